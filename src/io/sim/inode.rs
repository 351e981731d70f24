//! One file, named or not: what reads see, and what a power cut would leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{Content, PAGE, SECTOR, pieces};
use super::crash::Dice;

/// A file's content and length, twice: in the cache and on the medium.
///
/// The medium's side is kept as an undo record: a sector that is not in `unsynced` is the same on both sides.
/// Usually that is all of them, so a file takes the memory of one copy.
#[derive(Clone, Default)]
pub(super) struct Inode {
    cached: Content,
    len: usize,
    durable_len: usize,
    unsynced: BTreeMap<usize, Unsynced>,
    /// The shortest length since the last sync, where that is below `durable_len`: a truncation that a power
    /// cut may undo. It is undone whole, with all that was written behind it, because the file system
    /// journals it as one step and later blocks are allocated after it.
    cut: Option<usize>,
    /// How many leading bytes have blocks without having been written.
    reserved: usize,
    /// Where the last write went and what stood there, for stale reads.
    last_write: Option<(usize, Arc<[u8]>)>,
}

/// The medium's side of a sector that was written and not synced.
#[derive(Clone)]
struct Unsynced {
    /// `None`: zeros.
    durable: Option<Arc<[u8; SECTOR]>>,
    /// A failed sync took the dirty mark away: later syncs pass the sector by.
    lost: bool,
}

impl Inode {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether cache and medium agree, so that a power cut changes nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.unsynced.is_empty() && self.cut.is_none() && self.len == self.durable_len
    }

    /// Fills `buf` as far as the file reaches.
    pub(super) fn read(&self, offset: usize, buf: &mut [u8]) -> usize {
        let count = self.len.saturating_sub(offset).min(buf.len());
        self.cached.read(offset, &mut buf[..count]);
        count
    }

    /// As [`read`](Inode::read), before the last write.
    pub(super) fn read_stale(&self, offset: usize, buf: &mut [u8]) -> usize {
        let count = self.read(offset, buf);
        if let Some((start, before)) = &self.last_write {
            let from = offset.max(*start);
            let to = (offset + count).min(start + before.len());
            if from < to {
                buf[from - offset..to - offset].copy_from_slice(&before[from - start..to - start]);
            }
        }
        count
    }

    /// Notes what stands where a write is about to go.
    pub(super) fn remember(&mut self, offset: usize, len: usize) {
        let mut before = vec![0; len];
        self.cached.read(offset, &mut before);
        self.last_write = Some((offset, before.into()));
    }

    /// Writes into the cache.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (sector, _, _) in pieces(offset, bytes.len(), SECTOR) {
            self.dirty(sector);
        }
        self.put(offset, bytes);
    }

    /// Writes into the cache and onto the medium: exactly these bytes, and the length needed to read them.
    pub(super) fn write_durable(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.cut.is_some_and(|cut| end > cut) {
            self.commit_cut(); // The blocks behind a truncation are allocated after it.
        }
        for (sector, at, range) in pieces(offset, bytes.len(), SECTOR) {
            if range.len() == SECTOR {
                self.unsynced.remove(&sector);
            } else if let Some(unsynced) = self.unsynced.get_mut(&sector) {
                let durable = unsynced.durable.get_or_insert_with(|| Arc::new([0; SECTOR]));
                Arc::make_mut(durable)[at..at + range.len()].copy_from_slice(&bytes[range]);
            }
        }
        self.put(offset, bytes);
        if !bytes.is_empty() {
            self.durable_len = self.durable_len.max(end);
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        if len < self.durable_len {
            // Behind an earlier, shorter cut all that the medium holds is noted already.
            for sector in len / SECTOR..self.durable_len.div_ceil(SECTOR) {
                if self.cached.sector(sector).is_some() {
                    self.note_durable(sector);
                }
            }
            self.cut = Some(self.cut.map_or(len, |cut| cut.min(len)));
        }
        if len < self.len {
            self.cached.zero_from(len);
            self.reserved = self.reserved.min(len);
        }
        self.len = len;
    }

    /// Gives the first `len` bytes blocks; never shortens.
    pub(super) fn reserve(&mut self, len: usize) {
        self.reserved = self.reserved.max(len);
        self.len = self.len.max(len);
    }

    /// Makes the length and all sectors durable, except those a failed sync had given up.
    pub(super) fn sync(&mut self) {
        self.commit_cut();
        self.unsynced.retain(|_, unsynced| unsynced.lost);
        self.durable_len = self.len;
    }

    /// What a failed sync does: all dirty marks are gone, the cached bytes stay.
    pub(super) fn lose_unsynced(&mut self) {
        for unsynced in self.unsynced.values_mut() {
            unsynced.lost = true;
        }
    }

    /// Loses power. Returns the truncation that was undone, if one was: nothing behind it can have landed.
    pub(super) fn crash(&mut self, dice: &mut Dice) -> Option<usize> {
        dice.next_file();
        let mut undone = None;
        if self.cut.is_some() {
            if dice.keep() { self.commit_cut() } else { undone = self.cut.take() }
        }
        for (sector, unsynced) in std::mem::take(&mut self.unsynced) {
            let behind = undone.is_some_and(|cut| (sector + 1) * SECTOR > cut);
            if unsynced.lost || behind || !dice.keep() {
                let durable = unsynced.durable.as_deref().unwrap_or(&[0; SECTOR]);
                self.cached.write(sector * SECTOR, durable);
            }
        }
        let grown = if undone.is_some() { self.durable_len } else { self.len };
        self.len = dice.between(self.durable_len, grown);
        self.durable_len = self.len;
        self.cached.zero_from(self.len);
        self.reserved = self.reserved.min(self.len);
        self.last_write = None;
        undone
    }

    /// Makes the file at least `len` long, on both sides.
    pub(super) fn extend_durable(&mut self, len: usize) {
        self.len = self.len.max(len);
        self.durable_len = self.durable_len.max(len);
    }

    /// Bytes of blocks that the file takes.
    pub(super) fn space_bytes(&self) -> usize {
        let reserved_pages = self.reserved.div_ceil(PAGE);
        reserved_pages * PAGE + self.cached.page_bytes_after(reserved_pages)
    }

    /// How many of `len` bytes from `offset` can be written when `free` bytes of blocks are left.
    pub(super) fn fitting(&self, offset: usize, len: usize, mut free: usize) -> usize {
        for (page, _, range) in pieces(offset, len, PAGE) {
            if page * PAGE < self.reserved || self.cached.holds_page(page) {
                continue;
            }
            if free < PAGE {
                return range.start;
            }
            free -= PAGE;
        }
        len
    }

    /// Bytes of new blocks that reserving the first `len` bytes takes.
    pub(super) fn reserve_bytes(&self, len: usize) -> usize {
        (self.reserved.div_ceil(PAGE)..len.div_ceil(PAGE))
            .filter(|&page| !self.cached.holds_page(page))
            .count()
            * PAGE
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.cached.write(offset, bytes);
            self.len = self.len.max(offset + bytes.len());
        }
    }

    /// Marks a sector dirty before it is written; writing makes a lost sector dirty again.
    fn dirty(&mut self, sector: usize) {
        self.note_durable(sector);
        if let Some(unsynced) = self.unsynced.get_mut(&sector) {
            unsynced.lost = false;
        }
    }

    fn note_durable(&mut self, sector: usize) {
        let Inode { unsynced, cached, .. } = self;
        unsynced
            .entry(sector)
            .or_insert_with(|| Unsynced { durable: cached.sector(sector).map(Arc::new), lost: false });
    }

    /// Carries a pending truncation out on the medium.
    fn commit_cut(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        for (sector, unsynced) in self.unsynced.range_mut(cut / SECTOR..) {
            let kept = cut.saturating_sub(sector * SECTOR);
            if kept == 0 {
                unsynced.durable = None;
            } else if let Some(durable) = &mut unsynced.durable {
                Arc::make_mut(durable)[kept..].fill(0);
            }
        }
        self.durable_len = cut;
    }
}
