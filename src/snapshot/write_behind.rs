use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::device::{Device, Piece};
use super::read::Reading;
use crate::base::{Error, ErrorKind, Result};
use crate::io::Buffer;

/// Pieces that wait to be written.
const PIECES_BEHIND: usize = 2;

/// A thread that writes what it is handed, so that the disk has work while entries are encoded. Dropped before the last
/// piece, it ends.
#[derive(Debug)]
pub(super) struct WriteBehind {
    pieces: Option<Sender<(Piece, bool)>>,
    /// Buffers that have been written, to be filled again.
    spare: Receiver<Buffer>,
    thread: Option<JoinHandle<Result<Option<Reading>>>>,
}

impl WriteBehind {
    pub(super) fn start(device: Device) -> Result<WriteBehind> {
        let (pieces, to_write) = bounded(PIECES_BEHIND);
        let (written, spare) = unbounded();
        let thread = std::thread::Builder::new()
            .name("arborlog-snapwrite".to_owned())
            .spawn(move || write_all(device, &to_write, &written))
            .map_err(|e| Error::io("start a thread", e))?;
        Ok(WriteBehind { pieces: Some(pieces), spare, thread: Some(thread) })
    }

    /// Hands over a piece that is not the last one. Returns a buffer for the next, if one is free.
    pub(super) fn write(&mut self, piece: Piece) -> Result<Option<Buffer>> {
        if self.hand_over(piece, false) {
            return Ok(self.spare.try_recv().ok());
        }
        self.end()?;
        unreachable!("the thread goes on until the last piece, or fails")
    }

    /// Hands over the last piece and waits until all is durable. Returns what was read again, if it was.
    pub(super) fn finish(mut self, last: Piece) -> Result<Option<Reading>> {
        // If it is not taken, the thread has failed.
        let _taken = self.hand_over(last, true);
        self.end()
    }

    fn hand_over(&self, piece: Piece, is_last: bool) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.send((piece, is_last)).is_ok())
    }

    fn end(&mut self) -> Result<Option<Reading>> {
        self.pieces = None;
        let Some(thread) = self.thread.take() else { return Err(ended()) };
        thread.join().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // What it says is of a snapshot that is given up.
        let _given_up = self.end();
    }
}

fn write_all(
    mut device: Device,
    pieces: &Receiver<(Piece, bool)>,
    written: &Sender<Buffer>,
) -> Result<Option<Reading>> {
    for (mut piece, is_last) in pieces {
        if is_last {
            return device.finish(piece);
        }
        device.write(&mut piece)?;
        piece.bytes.clear();
        if written.send(piece.bytes).is_err() {
            break;
        }
    }
    Ok(None)
}

fn ended() -> Error {
    let why = "the thread that writes the snapshot has panicked".to_owned();
    Error::new(ErrorKind::Io, "snapshot_writer_panicked", why)
}
