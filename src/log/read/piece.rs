use std::io;

use super::group::GroupTotals;
use crate::io::File;

/// Pieces begin at multiples of this.
pub(super) const PIECE: u64 = 512 * 1024;

/// A stretch of a file in memory: `PIECE` bytes and the rest of the group that begins in them, if it is not too long.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Grows and is then used again: only the first `len` bytes have a meaning.
    pub(super) bytes: Vec<u8>,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Where the groups begin that lie in it whole and were verified, and what they amount to.
    pub(super) verified: Vec<(u64, GroupTotals)>,
}

impl Piece {
    /// Begins anew, at `offset`.
    pub(super) fn start(&mut self, offset: u64) {
        (self.offset, self.len) = (offset, 0);
        self.verified.clear();
    }

    /// Reads on until there are `len` bytes, or the file ends.
    pub(super) fn read(&mut self, file: &dyn File, len: u64) -> io::Result<()> {
        let want = usize::try_from(len).map_err(io::Error::other)?;
        if self.bytes.len() < want {
            // Not twice as much, as a vector grows by itself.
            self.bytes.reserve_exact(want - self.bytes.len());
            self.bytes.resize(want, 0);
        }
        self.len += file.read_at(self.offset + self.len as u64, &mut self.bytes[self.len..want])?;
        Ok(())
    }

    /// The bytes from the one at `offset` in the file on, as far as there are any.
    pub(super) fn from(&self, offset: u64) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes[..self.len].get(at..)
    }

    /// Where in the file it ends.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}
