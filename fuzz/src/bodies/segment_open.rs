use super::directory::{Files, Outcome, check};
use super::layout::{PAGE, Sign, groups, manifest_of, sign_segment, u64_at};

/// Larger inputs take time and show nothing new.
const INPUT_BYTES_MAX: usize = 256 * 1024;

/// A whole segment file, as the only one of its log. The first byte says which checksums to make right, and
/// what the manifest claims.
///
/// # Panics
/// If something is wrong; see `directory::check`.
pub fn segment_open(input: &[u8]) -> Outcome {
    let Some((flags, segment)) = input.split_first() else { return Outcome::Skipped };
    if segment.len() > INPUT_BYTES_MAX {
        return Outcome::Skipped;
    }
    let mut segment = segment.to_vec();
    sign_segment(&mut segment, Sign::of(*flags));
    let whole = segment.len() >= PAGE;
    let (id, seq) = if whole { (segment[32..48].to_vec(), u64_at(&segment, 48)) } else { (vec![0; 16], 1) };
    let (ahead, clean) = (u64::from(flags >> 5), flags & 16 != 0);
    // What the first group says came before it.
    let floor = groups(&segment).first().map_or(0, |at| u64_at(&segment, at + 56));
    let name = format!("{seq:016x}.seg");
    let manifest = manifest_of(&id, seq, floor, ahead, clean);
    check(&Files::from([(name, segment), ("log.manifest".to_owned(), manifest)]))
}
