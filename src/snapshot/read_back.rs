use std::collections::VecDeque;

use super::file::read_block;
use super::read::{Checking, Reading};
use crate::base::{Result, Zxid};
use crate::format::snapshot::BlockPlace;
use crate::io::File;

/// Reads the blocks of a snapshot again, as soon as they have been written past the page cache, and checks them as
/// whoever loads them will: by the time that the last one is written, all others are verified.
#[derive(Debug)]
pub(super) struct ReadBack {
    seed: u32,
    reading: Reading,
    /// Blocks that are not wholly written yet.
    places: VecDeque<BlockPlace>,
    number: u64,
}

impl ReadBack {
    pub(super) fn new(seed: u32, start: Zxid) -> ReadBack {
        ReadBack { seed, reading: Reading::new(start), places: VecDeque::new(), number: 0 }
    }

    /// Takes note of blocks that have been handed over to be written.
    pub(super) fn expect(&mut self, places: impl IntoIterator<Item = BlockPlace>) {
        self.places.extend(places);
    }

    /// Checks those that are wholly within the first `written` bytes.
    pub(super) fn check(&mut self, file: &dyn File, written: u64) -> Result<()> {
        while let Some(place) = self.places.pop_front_if(|place| place.end() <= written) {
            let (number, offset) = (self.number, place.offset);
            self.number += 1;
            read_block(file, self.seed, number, offset, place.end())
                .and_then(|(block, body)| self.reading.block(&block, &body, &mut Checking))
                .map_err(|e| e.in_file(file.name()).at_offset(offset))?;
        }
        Ok(())
    }

    /// What was read, all of it.
    pub(super) fn finish(self) -> Reading {
        debug_assert!(self.places.is_empty(), "checked up to the end");
        self.reading
    }
}
