use std::io;

use crate::io::File;

/// Bytes in memory as a file that can only be read: what lets fuzz targets run the code that reads a disk.
#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) bytes: Vec<u8>,
}

impl File for MemoryFile {
    fn name(&self) -> &'static str {
        "(bytes)"
    }

    fn align_bytes(&self) -> u64 {
        1
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let count = buf.len().min(self.bytes.len() - from);
        buf[..count].copy_from_slice(&self.bytes[from..from + count]);
        Ok(count)
    }
}
