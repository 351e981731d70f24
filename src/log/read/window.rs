use crate::base::{Error, Result};
use crate::io::File;

/// Read in pieces of this size: large enough for the disk, small enough for the cache.
const CHUNK: usize = 64 * 1024;

/// A stretch of a file in memory that moves forward. Never holds more than a chunk, or the largest piece
/// asked for; and never asks for more than the file has, so a length read from damaged bytes allocates nothing.
#[derive(Debug)]
pub(crate) struct Window {
    /// Grows and is then used again: what lies behind `filled` has no meaning.
    bytes: Vec<u8>,
    filled: usize,
    start: u64,
    file_len: u64,
}

impl Window {
    pub(crate) fn new(file_len: u64) -> Window {
        Window { bytes: Vec::new(), filled: 0, start: 0, file_len }
    }

    /// The file's length as this window knows it.
    pub(crate) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Turns to another file, keeping the memory.
    pub(crate) fn turn_to(&mut self, file_len: u64) {
        (self.filled, self.start, self.file_len) = (0, 0, file_len);
    }

    /// The file has grown, or its content beyond `offset` has changed: forget what was read from there on.
    pub(crate) fn forget_from(&mut self, offset: u64, file_len: u64) {
        self.file_len = file_len;
        let keep = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.filled = self.filled.min(keep);
    }

    /// The `len` bytes at `offset`, or `None` if the file ends before them.
    pub(crate) fn get(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.file_len => {}
            _ => return Ok(None),
        }
        if offset < self.start || offset + len as u64 > self.start + self.filled as u64 {
            self.load(file, offset, len)?;
        }
        let at = usize::try_from(offset - self.start).expect("inside the window");
        Ok(self.bytes[..self.filled].get(at..at + len))
    }

    /// The `len` bytes at `offset`, which were got before and not forgotten since.
    pub(crate) fn held(&self, offset: u64, len: usize) -> &[u8] {
        let at = usize::try_from(offset - self.start).expect("inside the window");
        &self.bytes[..self.filled][at..at + len]
    }

    /// All bytes in memory from `offset` on, at least one unless the file ends there.
    pub(crate) fn rest(&mut self, file: &dyn File, offset: u64) -> Result<&[u8]> {
        if offset >= self.file_len || self.get(file, offset, 1)?.is_none() {
            return Ok(&[]);
        }
        let at = usize::try_from(offset - self.start).expect("inside the window");
        Ok(&self.bytes[at..self.filled])
    }

    fn load(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<()> {
        let held = self.start..self.start + self.filled as u64;
        if held.contains(&offset) {
            // Keep the part that is already here: groups straddle chunks.
            let at = usize::try_from(offset - self.start).expect("inside the window");
            self.bytes.copy_within(at..self.filled, 0);
            self.filled -= at;
        } else {
            self.filled = 0;
        }
        self.start = offset;
        let left = usize::try_from(self.file_len - offset).unwrap_or(usize::MAX);
        let want = len.max(CHUNK.min(left));
        if want <= self.filled {
            return Ok(());
        }
        if self.bytes.len() < want {
            self.bytes.resize(want, 0);
        }
        let read = file
            .read_at(offset + self.filled as u64, &mut self.bytes[self.filled..want])
            .map_err(|e| Error::io("read a segment", e).in_file(file.name()).at_offset(offset))?;
        self.filled += read;
        Ok(())
    }
}
