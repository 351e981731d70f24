use super::directory::{Files, Outcome, check};
use super::layout::{Sign, manifest_of, page, sign_segment};

const DATABASE_ID: [u8; 16] = [0x5a; 16];
const INPUT_BYTES_MAX: usize = 128 * 1024;

/// Groups and records behind a good header page. The first byte says which checksums to make right.
///
/// # Panics
/// If something is wrong; see `directory::check`.
pub fn frame_decode(input: &[u8]) -> Outcome {
    let Some((flags, groups)) = input.split_first() else { return Outcome::Skipped };
    if groups.len() > INPUT_BYTES_MAX {
        return Outcome::Skipped;
    }
    let mut segment = page(&DATABASE_ID, 1, 7, 512, 1 << 20);
    segment.extend(groups);
    sign_segment(&mut segment, Sign::of(*flags));
    let manifest = manifest_of(&DATABASE_ID, 1, 0, flags & 16 != 0);
    check(&Files::from([("0000000000000001.seg".to_owned(), segment), ("log.manifest".to_owned(), manifest)]))
}
