use super::directory::{Outcome, check};
use super::golden;
use super::layout::sign_manifest;

/// A manifest, beside the golden segments. If the first byte is odd, its checksum is made right.
///
/// # Panics
/// If something is wrong; see `directory::check`.
pub fn manifest_decode(input: &[u8]) -> Outcome {
    let Some((flags, text)) = input.split_first() else { return Outcome::Skipped };
    let manifest = if flags & 1 == 0 { text.to_vec() } else { sign_manifest(text) };
    let mut files = golden::directory();
    files.insert("log.manifest".to_owned(), manifest);
    check(&files)
}
