use std::collections::VecDeque;
use std::ops::Range;
use std::thread::Scope;

use super::ahead::{Ahead, Helpers};
use super::group::GroupTotals;
use super::piece::Piece;
use crate::base::{Error, Result};
use crate::io::File;

/// Read in pieces of this size: large enough for the disk, small enough for the cache.
const CHUNK: usize = 64 * 1024;

/// Further ahead than this, nobody reads on in order.
const FAR: u64 = 4 << 20;

/// A stretch of a file in memory that moves forward. Never holds more than a chunk, or the largest piece
/// asked for; and never asks for more than the file has, so a length read from damaged bytes allocates nothing.
#[derive(Debug)]
pub(crate) struct Window {
    /// Grows and is then used again: only what `held` spans has a meaning.
    bytes: Vec<u8>,
    held: Range<usize>,
    /// Where in the file `held` starts.
    start: u64,
    file_len: u64,
    /// Reads the file for this window, as long as it is asked for bytes in order.
    ahead: Option<Ahead>,
    /// The groups among what is held that were verified while it was read.
    verified: VecDeque<(u64, GroupTotals)>,
}

impl Window {
    pub(crate) fn new(file_len: u64) -> Window {
        Window { bytes: Vec::new(), held: 0..0, start: 0, file_len, ahead: None, verified: VecDeque::new() }
    }

    /// A window that is to go through the file once, front to back, with a thread that reads ahead of it.
    pub(crate) fn reading_ahead<'s, 'f: 's>(
        scope: &'s Scope<'s, 'f>,
        file: &'f dyn File,
        file_len: u64,
        helpers: &Helpers,
    ) -> Window {
        Window { ahead: Some(Ahead::start(scope, file, file_len, helpers)), ..Window::new(file_len) }
    }

    /// The file's length as this window knows it.
    pub(crate) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Turns to another file, keeping the memory.
    pub(crate) fn turn_to(&mut self, file_len: u64) {
        (self.held, self.start, self.file_len, self.ahead) = (0..0, 0, file_len, None);
        self.verified.clear();
    }

    /// The file has grown, or its content beyond `offset` has changed: forget what was read from there on.
    pub(crate) fn forget_from(&mut self, offset: u64, file_len: u64) {
        (self.file_len, self.ahead) = (file_len, None);
        self.verified.clear();
        let keep = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.held.end = self.held.end.min(self.held.start.saturating_add(keep));
    }

    /// The `len` bytes at `offset`, or `None` if the file ends before them.
    pub(crate) fn get(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.file_len => {}
            _ => return Ok(None),
        }
        if offset < self.start || offset + len as u64 > self.end() {
            self.load(file, offset, len)?;
        }
        let at = usize::try_from(offset - self.start).expect("inside the window");
        Ok(self.bytes[self.held.clone()].get(at..at + len))
    }

    /// The `len` bytes at `offset`, which were got before and not forgotten since.
    pub(crate) fn held(&self, offset: u64, len: usize) -> &[u8] {
        let at = usize::try_from(offset - self.start).expect("inside the window");
        &self.bytes[self.held.clone()][at..at + len]
    }

    /// All bytes in memory from `offset` on, at least one unless the file ends there.
    pub(crate) fn rest(&mut self, file: &dyn File, offset: u64) -> Result<&[u8]> {
        if offset >= self.file_len || self.get(file, offset, 1)?.is_none() {
            return Ok(&[]);
        }
        let at = usize::try_from(offset - self.start).expect("inside the window");
        Ok(&self.bytes[self.held.start + at..self.held.end])
    }

    /// What the group at `offset` amounts to, if the bytes that are held were verified already.
    pub(super) fn verified(&mut self, offset: u64) -> Option<GroupTotals> {
        while self.verified.front().is_some_and(|(at, _)| *at < offset) {
            self.verified.pop_front();
        }
        self.verified.pop_front_if(|(at, _)| *at == offset).map(|(_, totals)| totals)
    }

    /// Where in the file the held bytes end.
    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    /// Forgets what is held before `offset`, which may be all.
    fn pass_to(&mut self, offset: u64) {
        if (self.start..self.end()).contains(&offset) {
            self.held.start += usize::try_from(offset - self.start).expect("inside the window");
        } else {
            self.held = 0..0;
        }
        self.start = offset;
    }

    fn load(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<()> {
        if self.take_ahead(file, offset, len)? {
            return Ok(());
        }
        self.verified.clear();
        // Keep the part that is already here: groups straddle chunks.
        self.pass_to(offset);
        self.bytes.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        let left = usize::try_from(self.file_len - offset).unwrap_or(usize::MAX);
        let want = len.max(CHUNK.min(left));
        if want <= self.held.end {
            return Ok(());
        }
        if self.bytes.len() < want {
            self.bytes.resize(want, 0);
        }
        let read = file
            .read_at(offset + self.held.end as u64, &mut self.bytes[self.held.end..want])
            .map_err(|e| Error::io("read a segment", e).in_file(file.name()).at_offset(offset))?;
        self.held.end += read;
        Ok(())
    }

    /// Takes pieces that were read ahead until the `len` bytes at `offset` are here. False if they do not come
    /// that way: the window was asked for something that does not lie ahead.
    fn take_ahead(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<bool> {
        let Some(ahead) = self.ahead.take() else { return Ok(false) };
        // Behind what is held, or so far ahead that a hole is jumped over: read it directly from now on.
        if offset < self.start || offset > self.end() + FAR {
            return Ok(false);
        }
        self.pass_to(offset);
        while self.end() < offset + len as u64 {
            let piece = match ahead.next(file) {
                Some(Ok(piece)) if piece.offset <= self.end() => piece,
                Some(Err(e)) => {
                    return Err(Error::io("read a segment", e).in_file(file.name()).at_offset(self.end()));
                }
                _ => return Ok(false),
            };
            let spare = self.take(piece);
            ahead.give_back(spare);
        }
        self.ahead = Some(ahead);
        Ok(true)
    }

    /// Takes a piece in place of what is held, or behind it. Returns what is not needed any more.
    fn take(&mut self, mut piece: Piece) -> Piece {
        let held_end = self.end();
        if piece.end() <= held_end {
            return piece;
        }
        if piece.offset <= self.start {
            let at = usize::try_from(self.start - piece.offset).expect("inside the piece");
            self.held = at..piece.len;
            std::mem::swap(&mut self.bytes, &mut piece.bytes);
            self.verified.clear();
        } else {
            // A group that is longer than what is read ahead of one.
            let fresh = piece.from(held_end).expect("it goes on behind what is held");
            self.bytes.truncate(self.held.end);
            self.bytes.drain(..self.held.start);
            self.bytes.extend_from_slice(fresh);
            self.held = 0..self.bytes.len();
            // Nothing is known of bytes that were read twice.
            piece.verified.retain(|(at, _)| *at >= held_end);
        }
        self.verified.extend(piece.verified.drain(..));
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::OpenMode;

    fn file_of(bytes: &[u8]) -> std::sync::Arc<dyn File> {
        let disk = crate::sim::SimDisk::new(1).handle();
        let file = disk.open("f", OpenMode::CreateNew { direct: false }).unwrap();
        file.write_all_at(0, bytes).unwrap();
        file
    }

    fn check(sizes: &[usize], skip: usize) {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let file = file_of(&bytes);
        std::thread::scope(|scope| {
            let mut window =
                Window::reading_ahead(scope, file.as_ref(), bytes.len() as u64, &Helpers::new(1));
            let (mut at, mut turn) = (0, 0);
            loop {
                let len = sizes[turn % sizes.len()];
                let got = window.get(file.as_ref(), at as u64, len).unwrap();
                assert_eq!(got, bytes.get(at..at + len), "at {at}");
                if got.is_none() {
                    break;
                }
                assert_eq!(window.held(at as u64, len), &bytes[at..at + len]);
                (at, turn) = (at + len + skip, turn + 1);
            }
            let rest = window.rest(file.as_ref(), at as u64).unwrap();
            assert_eq!(rest.first(), bytes.get(at));
        });
    }

    #[test]
    fn what_was_read_ahead_is_what_stands_in_the_file() {
        check(&[64, 4096, 233_000], 0);
        check(&[1_200_000, 64], 0);
        check(&[64], 4096);
        check(&[64], 700_000);
        check(&[1_000_000], 1);
    }

    /// A file that is a hole for the most part, and counts what is read of it.
    #[derive(Debug)]
    struct Sparse {
        len: u64,
        read: std::sync::atomic::AtomicU64,
    }

    impl File for Sparse {
        fn name(&self) -> &'static str {
            "sparse"
        }

        fn align_bytes(&self) -> u64 {
            1
        }

        fn len(&self) -> std::io::Result<u64> {
            Ok(self.len)
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
            let count = buf.len().min(usize::try_from(self.len - offset).unwrap_or(usize::MAX));
            buf[..count].fill((offset >> 20).to_le_bytes()[0]);
            self.read.fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
            Ok(count)
        }
    }

    #[test]
    fn what_is_jumped_over_is_not_read() {
        let file = Sparse { len: 1 << 34, read: std::sync::atomic::AtomicU64::new(0) };
        std::thread::scope(|scope| {
            let mut window = Window::reading_ahead(scope, &file, file.len, &Helpers::new(1));
            assert_eq!(window.get(&file, 0, 1000).unwrap().map(<[u8]>::len), Some(1000));
            let far = (1 << 33) + (5 << 20);
            assert_eq!(window.get(&file, far, 1).unwrap(), Some(&[5][..]));
        });
        let read = file.read.into_inner();
        assert!(read < 64 << 20, "{read} bytes of a hole were read");
    }

    #[test]
    fn a_window_may_leave_the_way_that_is_read_ahead() {
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|i| (i / 7).to_le_bytes()[0]).collect();
        let file = file_of(&bytes);
        std::thread::scope(|scope| {
            let mut window =
                Window::reading_ahead(scope, file.as_ref(), bytes.len() as u64, &Helpers::new(1));
            for at in [0, 1_500_000, 10, 1_999_000, 0] {
                let got = window.get(file.as_ref(), at as u64, 1000).unwrap();
                assert_eq!(got, bytes.get(at..at + 1000), "at {at}");
            }
        });
    }
}
