use super::judge::{Ending, Judgement};
use crate::base::{Error, Result};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, segment_name};
use crate::io::{Disk, File, OpenMode};
use crate::log::commit::RetiredSegment;
use crate::log::read::{Window, verify_group};

/// Makes what recovery counts on durable. Groups that were read back and that nothing proves durable may be in
/// a cache only: of a process that was killed between write and sync, or whose sync failed. After a failed
/// sync the kernel may take their pages for clean, so that another sync would do nothing: they are written
/// again, the same bytes in the same place, and then synced.
///
/// Several segments can hold such groups, as those in flight may lie on both sides of a roll; and the seal of
/// a segment is written together with the first group of the next one.
pub(crate) fn settle(disk: &dyn Disk, judged: &Judgement) -> Result<()> {
    if judged.ending == Ending::InPlace || crate::planted("recovered_tail_unsynced") {
        return Ok(());
    }
    // What an earlier recovery or truncation has cut was settled then.
    let open = |s: &&RetiredSegment| judged.manifest.cut_of(s.header.seq).is_none();
    judged.segments.iter().filter(open).filter(|s| s.last_zxid >= judged.proven).try_for_each(|segment| {
        let name = segment_name(segment.header.seq);
        let wrap = |e| Error::io("sync the recovered end of the log", e).in_file(&name);
        let file = disk.open(&name, OpenMode::Write { direct: false }).map_err(wrap)?;
        write_again(file.as_ref(), segment, judged)?;
        file.sync().map_err(wrap)
    })
}

fn write_again(file: &dyn File, segment: &RetiredSegment, judged: &Judgement) -> Result<()> {
    let header = &segment.header;
    let mut window = Window::new(segment.end_offset);
    let near = segment.index.partition_point(|e| e.first_zxid <= judged.proven);
    let mut offset = near.checked_sub(1).map_or(header.first_group_offset(), |at| segment.index[at].offset);
    while offset < segment.end_offset {
        let changed = || {
            Error::corrupt("log_damaged", "a group changed while it was recovered")
                .in_file(file.name())
                .at_offset(offset)
        };
        let head = window.get(file, offset, GROUP_HEADER_BYTES)?;
        let group = head.and_then(|b| GroupHeader::decode(b, header.seed(), header.seq, offset));
        let group = group.ok_or_else(changed)?;
        let bytes = usize::try_from(group.total_bytes(header.block_bytes)).unwrap_or(usize::MAX);
        let whole = window.get(file, offset, bytes)?.ok_or_else(changed)?;
        // Of groups without records, those that end where the proof ends may be lost too, and with them the way
        // to what follows.
        let records = group.kind == GroupKind::Records;
        if group.last_zxid > judged.proven || !records && group.last_zxid == judged.proven {
            // Checked once more: bytes that were misread now would become durable.
            verify_group(&group, whole, header.seed(), header.database_id.seed()).map_err(|_| changed())?;
            file.write_all_at(offset, whole)
                .map_err(|e| Error::io("write the recovered end of the log", e).in_file(file.name()))?;
        }
        offset += bytes as u64;
    }
    Ok(())
}
