use std::sync::Arc;

use super::memory_file::MemoryFile;
use crate::base::Result;
use crate::snapshot::{SnapshotFile, SnapshotInfo, load};
use crate::tree::DataTree;

/// Reads a snapshot of whatever database out of bytes, and makes the tree that it was at its end. All is checked:
/// places, checksums, counts, the order, and the tree's digest.
///
/// # Errors
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is damaged,
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it is of a newer version.
pub fn load_snapshot(bytes: &[u8]) -> Result<(DataTree, SnapshotInfo)> {
    let file = SnapshotFile::open_any(Arc::new(MemoryFile { bytes: bytes.to_vec() }))?;
    load(&file, &mut |_| ())
}
