//! The two ways a plain log makes a group durable.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::FILE_NAME;
use super::aligned::AlignedBuffer;

/// One write while zeroing.
const ZERO_CHUNK_BYTES: usize = 1 << 20;
/// How much is zeroed at once when the prepared space has run out.
const ZERO_AHEAD_BYTES: u64 = 64 << 20;

/// A file and the state that its way of writing needs.
#[derive(Debug)]
pub enum GroupFile {
    /// `O_DIRECT | O_DSYNC` into blocks that were written before.
    Direct { file: File, offset: u64, zeroed: u64 },
    /// Buffered into a growing file, then fdatasync.
    Buffered { file: File, offset: u64 },
}

impl GroupFile {
    /// A zeroed file, written directly.
    pub fn direct(dir: &Path, zeroed_bytes: u64) -> GroupFile {
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .custom_flags(libc::O_DIRECT | libc::O_DSYNC)
            .open(dir.join(FILE_NAME))
            .expect("open the plain log for direct writes");
        let zeroed = zero(&file, 0, zeroed_bytes);
        file.sync_all().expect("sync the zeroed file");
        GroupFile::Direct { file, offset: 0, zeroed }
    }

    /// An empty file, written through the page cache.
    pub fn buffered(dir: &Path) -> GroupFile {
        let path = dir.join(FILE_NAME);
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path);
        GroupFile::Buffered { file: file.expect("open the plain log"), offset: 0 }
    }

    /// Writes a group and returns when it is durable.
    pub fn write_durably(&mut self, group: &mut AlignedBuffer) {
        match self {
            GroupFile::Direct { file, offset, zeroed } => {
                group.pad_to_block();
                let end = *offset + group.as_slice().len() as u64;
                if end > *zeroed {
                    *zeroed = zero(file, *zeroed, end.next_multiple_of(ZERO_AHEAD_BYTES));
                }
                file.write_all_at(group.as_slice(), *offset).expect("write a group directly");
                *offset = end;
            }
            GroupFile::Buffered { file, offset } => {
                file.write_all_at(group.as_slice(), *offset).expect("write a group");
                file.sync_data().expect("sync a group");
                *offset += group.as_slice().len() as u64;
            }
        }
    }
}

/// Writes zeros from one offset to another; returns the new end.
fn zero(file: &File, from: u64, to: u64) -> u64 {
    let mut zeros = AlignedBuffer::with_capacity(ZERO_CHUNK_BYTES);
    zeros.extend(&vec![0; ZERO_CHUNK_BYTES]);
    let mut offset = from;
    while offset < to {
        file.write_all_at(zeros.as_slice(), offset).expect("zero the log's space");
        offset += ZERO_CHUNK_BYTES as u64;
    }
    offset
}
