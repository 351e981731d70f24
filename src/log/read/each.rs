use super::{Record, Records, Window, verify_group};
use crate::base::{Error, Result};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader};
use crate::io::File;

/// Hands every record of a segment's first `end_offset` bytes to `visit`, verified, until it returns false.
pub(crate) fn each_record(
    file: &dyn File,
    header: &SegmentHeader,
    end_offset: u64,
    visit: &mut dyn FnMut(Record<'_>) -> bool,
) -> Result<()> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let mut window = Window::new(len);
    let mut offset = header.first_group_offset();
    while offset < end_offset {
        let head = window.get(file, offset, GROUP_HEADER_BYTES)?;
        let group = head.and_then(|b| GroupHeader::decode(b, header.seed(), header.seq, offset));
        let damaged = |code, at| {
            Error::corrupt(code, "bytes that were durable have changed").in_file(file.name()).at_offset(at)
        };
        let group = group.ok_or_else(|| damaged("log_damaged", offset))?;
        let bytes = usize::try_from(group.total_bytes(header.block_bytes)).unwrap_or(usize::MAX);
        let whole = window.get(file, offset, bytes)?.ok_or_else(|| damaged("group_short", offset))?;
        verify_group(&group, whole, header.seed(), header.database_id.seed()).map_err(|bad| {
            damaged(bad.code, offset + bad.offset).with_zxids(bad.first_zxid, bad.last_zxid)
        })?;
        let mut records = Records::of(&group, header.database_id.seed());
        while let Some(record) = records.next(whole) {
            if !visit(record) {
                return Ok(());
            }
        }
        offset += bytes as u64;
    }
    Ok(())
}
