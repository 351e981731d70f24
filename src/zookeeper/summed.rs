use std::io::{self, Read};

use adler2::Adler32;

use super::jute::too_long;
use crate::base::{Error, Result};

/// How much is read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// Bytes in order, with the checksum of all that were taken. They stand in memory in one piece as far as is asked for,
/// and the checksum is that of whole pieces: field by field it would cost more than all the rest.
pub(super) struct Summed<R> {
    inner: R,
    /// The longest string or buffer.
    limit: u32,
    held: Vec<u8>,
    /// How many of `held` were taken, and how many of these are in the checksum.
    at: usize,
    added: usize,
    adler: Adler32,
    /// Where `held` begins.
    start: u64,
}

impl<R> std::fmt::Debug for Summed<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summed").field("offset", &self.offset()).finish_non_exhaustive()
    }
}

impl<R> Summed<R> {
    pub(super) fn new(inner: R, limit: u32) -> Summed<R> {
        Summed { inner, limit, held: Vec::new(), at: 0, added: 0, adler: Adler32::new(), start: 0 }
    }

    /// What it reads.
    pub(super) fn inner(&self) -> &R {
        &self.inner
    }

    /// How many bytes were taken.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// The checksum of all that were taken.
    pub(super) fn checksum(&mut self) -> u32 {
        self.adler.write_slice(&self.held[self.added..self.at]);
        self.added = self.at;
        self.adler.checksum()
    }

    /// What is held and not taken.
    pub(super) fn held(&self) -> &[u8] {
        &self.held[self.at..]
    }

    /// Takes bytes that are held.
    pub(super) fn take(&mut self, len: usize) {
        self.at += len;
    }

    /// The bytes that were just taken.
    pub(super) fn taken(&self, len: usize) -> &[u8] {
        &self.held[self.at - len..self.at]
    }
}

impl<R: Read> Summed<R> {
    /// Has `len` bytes held, or all that are left if that is fewer: how many are held.
    pub(super) fn reach(&mut self, len: usize) -> Result<usize> {
        if self.held.len() - self.at < len {
            self.fill(len)?;
        }
        Ok(self.held.len() - self.at)
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<()> {
        self.checksum();
        self.held.drain(..self.at);
        self.start += self.at as u64;
        (self.at, self.added) = (0, 0);
        self.held.shrink_to(2 * PIECE_BYTES);
        while self.held.len() < len {
            // Memory grows with what is there, not with what a length says.
            let before = self.held.len();
            self.held.resize(before + PIECE_BYTES, 0);
            let read = self.inner.read(&mut self.held[before..]);
            self.held.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }

    /// Has `len` bytes held.
    pub(super) fn hold(&mut self, len: usize) -> Result<()> {
        if self.reach(len)? < len { Err(failed(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let array = self.array_ahead(0)?;
        self.take(N);
        Ok(array)
    }

    /// The bytes `ahead` of what was taken; they are held, and not taken.
    pub(super) fn array_ahead<const N: usize>(&mut self, ahead: usize) -> Result<[u8; N]> {
        self.hold(ahead + N)?;
        Ok(*self.held()[ahead..].first_chunk().expect("they are held"))
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// The length of a buffer whose bytes follow it, `ahead` of what was taken; none for null. All of it is held.
    pub(super) fn buffer_ahead(&mut self, ahead: usize) -> Result<Option<usize>> {
        let length = i32::from_be_bytes(self.array_ahead(ahead)?);
        if length == -1 {
            return Ok(None);
        }
        let len = u32::try_from(length).ok().filter(|len| *len <= self.limit);
        let len = len.ok_or_else(|| too_long(length))? as usize;
        self.hold(ahead + 4 + len)?;
        Ok(Some(len))
    }

    /// Takes a buffer; none for null.
    pub(super) fn buffer(&mut self) -> Result<Option<Vec<u8>>> {
        let len = self.buffer_ahead(0)?;
        let bytes = len.map(|len| self.held()[4..4 + len].to_vec());
        self.take(4 + len.unwrap_or(0));
        Ok(bytes)
    }
}

/// A file that ends early, or does not decompress, is damaged; other failures are the system's.
pub(super) fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::corrupt("zk_snapshot", "the snapshot ends too early"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            Error::corrupt("zk_snapshot", format!("it does not decompress: {error}"))
        }
        _ => Error::io("read a snapshot", error),
    }
}
