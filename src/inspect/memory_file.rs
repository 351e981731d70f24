use std::io;
use std::os::fd::RawFd;

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

    fn write_all_at(&self, _offset: u64, _buf: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn will_read(&self) {}

    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}
