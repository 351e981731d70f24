//! The floor: the simplest honest group commit, in a few dozen lines.

mod aligned;
mod file;
mod frames;
mod group;
mod scan;
mod watermark;

pub use group::PlainLog;
pub use scan::recover;

/// The one file that a plain log has.
const FILE_NAME: &str = "plain.log";
/// What direct writes are padded to.
const BLOCK_BYTES: usize = 4096;
