use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, Scope};

use parking_lot::{Condvar, Mutex};

use super::checks::Checks;
use super::piece::{PIECE, Piece};
use crate::io::File;

/// The threads that read ahead of one that uses what they read, and the memory that goes from file to file.
#[derive(Clone, Debug)]
pub(crate) struct Helpers {
    count: usize,
    spare: Arc<Mutex<Vec<Piece>>>,
}

impl Helpers {
    pub(crate) fn new(count: usize) -> Helpers {
        Helpers { count, spare: Arc::default() }
    }

    /// So many pieces are held at most, read or being read, besides the one in use: one for each thread, and as
    /// many again that wait.
    fn pieces(&self) -> usize {
        2 * (self.count + 1)
    }
}

/// A file that other threads read a little ahead of who uses it, front to back, and whose groups they verify: what
/// is copied out of the page cache is verified by the core that has it at hand.
///
/// Who uses it does its share: where the next piece is not there yet, it reads the first one that nobody has begun.
#[derive(Debug)]
pub(super) struct Ahead(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    file_len: u64,
    checks: Option<Checks>,
    helpers: Helpers,
    state: Mutex<State>,
    /// A piece has been read, or taken, or no more are wanted.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The pieces that were begun and not taken yet, in the order of the file; empty while they are read.
    begun: VecDeque<Option<io::Result<Piece>>>,
    /// How many were taken: the number of the first one in `begun`.
    taken: u64,
    ended: bool,
}

impl Ahead {
    /// Begins to read `file` from its start. The other threads end with the file, or when this is dropped.
    pub(super) fn start<'s, 'f: 's>(
        scope: &'s Scope<'s, 'f>,
        file: &'f dyn File,
        file_len: u64,
        helpers: &Helpers,
    ) -> Ahead {
        let shared = Arc::new(Shared {
            file_len,
            checks: Checks::of(file),
            helpers: helpers.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        for _ in 0..helpers.count {
            let (thread, shared) = (thread::Builder::new().name("arborlog-reader".into()), shared.clone());
            if thread.spawn_scoped(scope, move || shared.read_ahead(file)).is_err() {
                break; // no more threads for this process: those that there are do the work
            }
        }
        Ahead(shared)
    }

    /// The next piece; `None` after the last one.
    pub(super) fn next(&self, file: &dyn File) -> Option<io::Result<Piece>> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(Some(_)) = state.begun.front() {
                state.taken += 1;
                self.0.changed.notify_all();
                return state.begun.pop_front().flatten();
            }
            if let Some(claim) = Claim::of(&self.0, &mut state) {
                drop(state);
                claim.read(file);
                state = self.0.state.lock();
            } else if state.begun.is_empty() {
                return None;
            } else {
                self.0.changed.wait(&mut state);
            }
        }
    }

    /// Gives a piece back whose memory is not needed any more.
    pub(super) fn give_back(&self, piece: Piece) {
        self.0.helpers.spare.lock().push(piece);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// What the other threads do.
    fn read_ahead(&self, file: &dyn File) {
        let mut state = self.state.lock();
        while !state.ended {
            if let Some(claim) = Claim::of(self, &mut state) {
                drop(state);
                claim.read(file);
                state = self.state.lock();
            } else if state.offset_of_next() >= self.file_len {
                return;
            } else {
                self.changed.wait(&mut state);
            }
        }
    }
}

impl State {
    fn offset_of_next(&self) -> u64 {
        (self.taken + self.begun.len() as u64) * PIECE
    }
}

/// A piece that a thread has taken upon itself to read. However that ends, its place is filled, so that nobody waits
/// for it in vain.
struct Claim<'s> {
    shared: &'s Shared,
    number: u64,
    piece: Piece,
    read: io::Result<()>,
}

impl<'s> Claim<'s> {
    fn of(shared: &'s Shared, state: &mut State) -> Option<Claim<'s>> {
        let offset = state.offset_of_next();
        if state.begun.len() >= shared.helpers.pieces() || offset >= shared.file_len {
            return None;
        }
        state.begun.push_back(None);
        // None to use again yet.
        let mut piece = shared.helpers.spare.lock().pop().unwrap_or_default();
        piece.start(offset);
        let read = Err(io::Error::other("the thread that was to read it has panicked"));
        Some(Claim { shared, number: offset / PIECE, piece, read })
    }

    fn read(mut self, file: &dyn File) {
        let left = self.shared.file_len - self.piece.offset;
        self.read = self.piece.read(file, PIECE.min(left)).and_then(|()| match &self.shared.checks {
            Some(checks) => checks.verify(file, &mut self.piece, left),
            None => Ok(()),
        });
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        let read = std::mem::replace(&mut self.read, Ok(()));
        let mut state = self.shared.state.lock();
        let at = usize::try_from(self.number - state.taken).expect("nobody takes it before it is there");
        state.begun[at] = Some(read.map(|()| piece));
        self.shared.changed.notify_all();
    }
}
