use std::mem;
use std::sync::Arc;

use super::device::{Device, Pace, Piece};
use super::read::Reading;
use super::read_back::ReadBack;
use super::write_behind::WriteBehind;
use crate::base::Result;
use crate::format::snapshot::{BlockPlace, SnapshotHeader};
use crate::io::{Buffer, File};

/// Bytes that are written at once, and read again at once: some two milliseconds' worth at the pace beside writers, so
/// that neither the device nor a processor is kept from the log for long (decision 7 has what was measured).
const PIECE_BYTES: usize = 64 * 1024;
/// The same on a simulated disk, where small snapshots shall be written in several pieces, too.
const SIMULATED_PIECE_BYTES: usize = 4096;

/// A snapshot's file that is written from its beginning to its end, past the page cache where the file system can.
#[derive(Debug)]
pub(super) struct Output {
    /// What is not handed over yet.
    staged: Buffer,
    /// The blocks that have ended in it.
    ended: Vec<BlockPlace>,
    piece_bytes: usize,
    to: To,
}

/// Who writes.
#[derive(Debug)]
enum To {
    /// Whoever hands it over: the simulator needs the same order of calls each time.
    Here(Device),
    /// A thread, which also reads each piece again.
    Behind(WriteBehind),
}

impl Output {
    /// A file of that header, which is its first bytes.
    pub(super) fn begin(
        file: Arc<dyn File>,
        header: &SnapshotHeader,
        pace: Pace,
        in_thread: bool,
    ) -> Result<Output> {
        // Out of the page cache, bytes that are read again say nothing of the disk.
        let is_direct = file.align_bytes() > 1;
        let read_back = (in_thread && is_direct).then(|| ReadBack::new(header.seed(), header.start));
        let device = Device::new(file, pace, read_back);
        let to = if in_thread { To::Behind(WriteBehind::start(device)?) } else { To::Here(device) };
        let piece_bytes = if in_thread { PIECE_BYTES } else { SIMULATED_PIECE_BYTES };
        let staged = Buffer::with_capacity(piece_bytes);
        let mut output = Output { staged, ended: Vec::new(), piece_bytes, to };
        output.push(&header.encode())?;
        Ok(output)
    }

    /// Adds bytes to the file's end.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.piece_bytes - self.staged.len()));
            self.staged.extend(now);
            bytes = later;
            if self.staged.len() == self.piece_bytes {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Takes note of a block whose last byte was pushed.
    pub(super) fn block_ended(&mut self, place: BlockPlace) {
        self.ended.push(place);
    }

    /// Writes what is left, and makes all of it durable. Returns what was read again, if it was.
    pub(super) fn finish(self) -> Result<Option<Reading>> {
        let last = Piece { bytes: self.staged, ended: self.ended };
        match self.to {
            To::Here(device) => device.finish(last),
            To::Behind(thread) => thread.finish(last),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        let bytes = mem::replace(&mut self.staged, Buffer::with_capacity(0));
        let mut piece = Piece { bytes, ended: mem::take(&mut self.ended) };
        let next = match &mut self.to {
            To::Here(device) => {
                device.write(&mut piece)?;
                piece.bytes.clear();
                Some(piece.bytes)
            }
            To::Behind(thread) => thread.write(piece)?,
        };
        self.staged = next.unwrap_or_else(|| Buffer::with_capacity(self.piece_bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
