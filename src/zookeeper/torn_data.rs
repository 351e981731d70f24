//! Where clients' data stand in an entry that may not be whole.

use std::ops::Range;

use super::log_file::TXN_HEADER_BYTES;

/// The ranges of data in the payload of an entry whose length is `len`, of which `payload` is there, in order. Lengths that do not
/// fit into it end the search: then something else than the end of the file is wrong.
///
/// A client stores what it likes, so an entry that stands in its data is no entry of the log.
pub(super) fn data_ranges(payload: &[u8], len: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let body = TXN_HEADER_BYTES as usize;
    match int(payload, body - 4) {
        Some(kind) if has_data(kind) => ranges.extend(data(payload, body, len)),
        Some(14) => {
            let mut at = body + 4;
            // The type of an operation, and its bytes behind their length.
            while let (Some(kind), Some(op)) = (int(payload, at), buffer(payload, at + 4, len)) {
                if has_data(kind) {
                    ranges.extend(data(payload, op.start, op.end));
                }
                at = op.end;
            }
        }
        _ => {}
    }
    ranges
}

/// Creates, and what sets data: a path comes first, then the data.
fn has_data(kind: i32) -> bool {
    matches!(kind, 1 | 5 | 15 | 16 | 19 | 21)
}

fn data(payload: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let path = buffer(payload, at, end)?;
    buffer(payload, path.end, end)
}

/// The bytes of a buffer whose length stands at `at`, and that ends at `end` or before.
fn buffer(payload: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let len = usize::try_from(int(payload, at)?).ok()?;
    let start = at + 4;
    (len <= end.checked_sub(start)?).then_some(start..start + len)
}

fn int(payload: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*payload.get(at..)?.first_chunk()?))
}
