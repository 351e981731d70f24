use std::io;
use std::thread::Scope;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::io::File;

/// Pieces of this size are read ahead.
pub(super) const PIECE: usize = 256 * 1024;
/// Room before each piece for what is left over from the one before it: a group that straddles them.
pub(super) const HEAD: usize = 256 * 1024;
/// So many pieces are held at once: one in use, the others read or being read.
const PIECES: usize = 4;

/// A file that another thread reads, front to back, a little ahead of who uses it: copying bytes out of the
/// page cache costs about as much as verifying them, and the two can be done on two cores.
#[derive(Debug)]
pub(super) struct Ahead {
    filled: Receiver<io::Result<Piece>>,
    used: Sender<Vec<u8>>,
}

/// `HEAD` bytes without meaning, and then `len` bytes of the file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl Ahead {
    /// Begins to read `file` from its start. The thread ends with the file, or when this is dropped.
    pub(super) fn start<'s, 'f: 's>(scope: &'s Scope<'s, 'f>, file: &'f dyn File, file_len: u64) -> Ahead {
        let (ready, filled) = bounded(PIECES);
        let (used, reuse) = bounded(PIECES);
        for _ in 0..PIECES {
            // There is room for all of them.
            let _sent = used.try_send(Vec::new());
        }
        scope.spawn(move || read_pieces(file, file_len, &ready, &reuse));
        Ahead { filled, used }
    }

    /// The next piece; `None` after the last one.
    pub(super) fn next(&self) -> Option<io::Result<Piece>> {
        self.filled.recv().ok()
    }

    /// Gives a buffer back.
    pub(super) fn give_back(&self, bytes: Vec<u8>) {
        // Nobody takes it when the file has been read to its end.
        let _sent = self.used.try_send(bytes);
    }
}

fn read_pieces(file: &dyn File, file_len: u64, ready: &Sender<io::Result<Piece>>, reuse: &Receiver<Vec<u8>>) {
    let mut offset = 0;
    while offset < file_len {
        let Ok(mut bytes) = reuse.recv() else { return };
        bytes.resize(HEAD + PIECE, 0);
        let want = PIECE.min(usize::try_from(file_len - offset).unwrap_or(PIECE));
        let piece =
            file.read_at(offset, &mut bytes[HEAD..HEAD + want]).map(|len| Piece { bytes, offset, len });
        let read = piece.as_ref().map_or(0, |p| p.len);
        if ready.send(piece).is_err() || read < want {
            return;
        }
        offset += read as u64;
    }
}
