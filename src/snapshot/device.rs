use std::fmt;
use std::sync::Arc;

use super::read::Reading;
use super::read_back::ReadBack;
use crate::base::{Error, Result};
use crate::format::snapshot::BlockPlace;
use crate::io::{Buffer, File};

/// Through the page cache, the file is synced each time that so many bytes were written: one sync of all of it at the
/// end keeps the device from the log for as long as it takes (decision 7 has what was measured).
const SYNCED_AT_ONCE: u64 = 2 << 20;

/// What is called after each write, with how many bytes it had; it may sleep. Where what was written is read again, one
/// half is told after the write and one after the read.
pub(crate) type Pace = Box<dyn FnMut(u64) + Send>;

/// A piece of a snapshot's file: what comes next, and the blocks that end in it.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Buffer,
    pub(super) ended: Vec<BlockPlace>,
}

/// Writes the pieces of a file, one behind the other.
pub(super) struct Device {
    file: Arc<dyn File>,
    offset: u64,
    synced: u64,
    pace: Pace,
    read_back: Option<ReadBack>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl Device {
    /// With `read_back`, blocks are read again once they are written.
    pub(super) fn new(file: Arc<dyn File>, pace: Pace, read_back: Option<ReadBack>) -> Device {
        Device { file, offset: 0, synced: 0, pace, read_back }
    }

    /// Writes a piece. Not the last one's length is a multiple of the alignment of direct writes.
    pub(super) fn write(&mut self, piece: &mut Piece) -> Result<()> {
        self.put(&piece.bytes).map_err(|e| self.failed(e))?;
        let bytes = piece.bytes.len() as u64;
        let Some(read_back) = &mut self.read_back else {
            (self.pace)(bytes);
            return Ok(());
        };
        // The log gets the device between the write and the read as well.
        (self.pace)(bytes / 2);
        read_back.expect(piece.ended.drain(..));
        read_back.check(self.file.as_ref(), self.offset)?;
        (self.pace)(bytes - bytes / 2);
        Ok(())
    }

    /// Writes the last piece, and makes the file durable, with its length. Returns what was read again, if it was.
    pub(super) fn finish(mut self, mut last: Piece) -> Result<Option<Reading>> {
        let len = self.offset + last.bytes.len() as u64;
        let align = usize::try_from(self.file.align_bytes()).expect("64 KiB at most");
        last.bytes.resize_zeroed(last.bytes.len().next_multiple_of(align));
        self.write(&mut last)?;
        let ended = if self.offset == len { Ok(()) } else { self.file.set_len(len) };
        ended.and_then(|()| self.file.sync()).map_err(|e| self.failed(e))?;
        Ok(self.read_back.map(ReadBack::finish))
    }

    fn put(&mut self, bytes: &Buffer) -> std::io::Result<()> {
        if bytes.len() == 0 {
            return Ok(());
        }
        self.file.write_all_at(self.offset, bytes.as_slice())?;
        self.offset += bytes.len() as u64;
        let is_cached = self.file.align_bytes() == 1;
        if is_cached && self.offset - self.synced >= SYNCED_AT_ONCE {
            self.file.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io("write a snapshot", error).in_file(self.file.name())
    }
}
