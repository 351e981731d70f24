use super::directory::{Files, Outcome, check};
use super::layout::{Sign, groups, manifest_of, page, sign_segment, u64_at};

const DATABASE_ID: [u8; 16] = [0x5a; 16];
const INPUT_BYTES_MAX: usize = 128 * 1024;

/// Groups and records behind a good header page. The first byte says which checksums to make right.
///
/// # Panics
/// If something is wrong; see `directory::check`.
pub fn frame_decode(input: &[u8]) -> Outcome {
    let Some((flags, body)) = input.split_first() else { return Outcome::Skipped };
    if body.len() > INPUT_BYTES_MAX {
        return Outcome::Skipped;
    }
    let mut segment = page(&DATABASE_ID, 1, 7, 512, 1 << 20);
    segment.extend(body);
    sign_segment(&mut segment, Sign::of(*flags));
    let floor = groups(&segment).first().map_or(0, |at| u64_at(&segment, at + 56));
    let manifest = manifest_of(&DATABASE_ID, 1, floor, 0, flags & 16 != 0);
    check(&Files::from([("0000000000000001.seg".to_owned(), segment), ("log.manifest".to_owned(), manifest)]))
}
