use std::io;
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::io::File;

/// How much is read at once.
const WINDOW_BYTES: usize = 64 * 1024;

/// Bytes that stand still while they are read: a file, or memory.
pub trait Bytes {
    /// How many there are.
    ///
    /// # Errors
    /// Of the file system.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset` as far as they reach.
    ///
    /// # Errors
    /// Of the file system.
    fn read_bytes_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for &[u8] {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_bytes_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..)).unwrap_or(&[]);
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// A file of a directory, read only.
#[derive(Clone, Debug)]
pub struct OnDisk(pub(super) Arc<dyn File>);

impl Bytes for OnDisk {
    fn len_bytes(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_bytes_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buf)
    }
}

/// Bytes from the first to the last.
#[derive(Debug)]
pub(super) struct InOrder<B> {
    bytes: B,
    offset: u64,
}

impl<B: Bytes> InOrder<B> {
    pub(super) fn new(bytes: B) -> InOrder<B> {
        InOrder { bytes, offset: 0 }
    }

    /// How many were read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}

impl<B: Bytes> io::Read for InOrder<B> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.bytes.read_bytes_at(self.offset, buf)?;
        self.offset += len as u64;
        Ok(len)
    }
}

/// A piece of a file in memory, which follows what is asked for.
#[derive(Debug)]
pub(super) struct Window<B> {
    bytes: B,
    len: u64,
    start: u64,
    held: Vec<u8>,
}

impl<B: Bytes> Window<B> {
    pub(super) fn new(bytes: B) -> Result<Window<B>> {
        let len = bytes.len_bytes().map_err(|e| Error::io("ask for a file's length", e))?;
        Ok(Window { bytes, len, start: 0, held: Vec::new() })
    }

    /// The file's length.
    pub(super) fn file_len(&self) -> u64 {
        self.len
    }

    /// The bytes from `offset`: `len` of them, or fewer if the file ends.
    pub(super) fn get(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let end = self.start + self.held.len() as u64;
        if offset < self.start || offset + len as u64 > end {
            let want = len.max(WINDOW_BYTES).min(left);
            self.held.resize(want, 0);
            self.held.shrink_to(WINDOW_BYTES.max(want));
            let read = self.bytes.read_bytes_at(offset, &mut self.held);
            self.held.truncate(read.map_err(|e| Error::io("read a file", e).at_offset(offset))?);
            self.start = offset;
        }
        // Within the window, or the file has become shorter.
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.held.len());
        Ok(&self.held[at..self.held.len().min(at + len)])
    }
}
