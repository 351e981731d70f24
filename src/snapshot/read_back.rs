use std::collections::VecDeque;

use super::file::decode_block;
use super::read::{Checking, Reading};
use crate::base::{Error, Result, Zxid};
use crate::format::snapshot::{BlockPlace, SNAPSHOT_HEADER_BYTES};
use crate::io::{Buffer, File};

/// Reads what was written past the page cache again, piece by piece, and checks each block that has come to its end as
/// whoever loads it will: by the time that the last one is written, all others are verified.
#[derive(Debug)]
pub(super) struct ReadBack {
    seed: u32,
    reading: Reading,
    /// Blocks that are not wholly read yet.
    places: VecDeque<BlockPlace>,
    number: u64,
    piece: Buffer,
    /// So much of the file was read.
    read: u64,
    /// The end of what was read, from the place of the next block on.
    unchecked: Vec<u8>,
}

impl ReadBack {
    pub(super) fn new(seed: u32, start: Zxid) -> ReadBack {
        ReadBack {
            seed,
            reading: Reading::new(start),
            places: VecDeque::new(),
            number: 0,
            piece: Buffer::with_capacity(0),
            read: 0,
            unchecked: Vec::new(),
        }
    }

    /// Takes note of blocks that have been handed over to be written.
    pub(super) fn expect(&mut self, places: impl IntoIterator<Item = BlockPlace>) {
        self.places.extend(places);
    }

    /// Reads up to `written`, and checks the blocks that are whole by then. Reads begin and end where writes did, so
    /// that each is one request to the device.
    pub(super) fn check(&mut self, file: &dyn File, written: u64) -> Result<()> {
        self.read_up_to(file, written)?;
        let begins = self.read - self.unchecked.len() as u64;
        let mut at = begins;
        while let Some(place) = self.places.pop_front_if(|place| place.end() <= self.read) {
            let here = |offset: u64| usize::try_from(offset - begins).expect("it is in memory");
            let bytes = &self.unchecked[here(place.offset)..here(place.end())];
            decode_block(bytes, self.seed, self.number, place.offset)
                .and_then(|(block, body)| self.reading.block(&block, body, &mut Checking))
                .map_err(|e| e.in_file(file.name()).at_offset(place.offset))?;
            self.number += 1;
            at = place.end();
        }
        self.unchecked.drain(..usize::try_from(at - begins).expect("it is in memory"));
        Ok(())
    }

    fn read_up_to(&mut self, file: &dyn File, written: u64) -> Result<()> {
        let bytes = usize::try_from(written - self.read).expect("a piece");
        self.piece.reserve_total(bytes);
        self.piece.resize_zeroed(bytes);
        let got = file.read_at(self.read, self.piece.as_mut_slice());
        let got = got.map_err(|e| Error::io("read a snapshot", e).in_file(file.name()))?;
        if got < bytes {
            let what = "the file ends before what was written";
            return Err(Error::corrupt("snapshot_truncated", what).in_file(file.name()).at_offset(written));
        }
        // The file's header is no block.
        let header = (SNAPSHOT_HEADER_BYTES as u64).saturating_sub(self.read);
        let header = usize::try_from(header).expect("it is small").min(bytes);
        self.unchecked.extend_from_slice(&self.piece.as_slice()[header..]);
        self.read = written;
        Ok(())
    }

    /// What was read, all of it.
    pub(super) fn finish(self) -> Reading {
        debug_assert!(self.places.is_empty(), "checked up to the end");
        self.reading
    }
}
