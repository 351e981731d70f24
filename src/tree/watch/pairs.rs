use super::names::{MANY, Name, Named, Names, are_most};
use super::slab::Slab;
use crate::tree::store::Index;

/// The pairs of a path or of a watcher: a ring through the pairs themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    pub(super) first: u32,
    pub(super) pairs: u32,
}

/// A pair's neighbours in a ring.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    before: u32,
    behind: u32,
}

/// That a watcher watches a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    /// Four bits of modes, and 28 of the path's number.
    modes_and_path: u32,
    pub(super) watcher: u32,
    /// In the ring of the path, and in that of the watcher.
    rings: [Neighbours; 2],
}

impl Pair {
    const PATH: u32 = u32::MAX >> 4;

    fn path(&self) -> u32 {
        self.modes_and_path & Pair::PATH
    }

    /// In which ways: bits of [`WatchKind`](super::WatchKind).
    pub(super) fn modes(&self) -> u8 {
        (self.modes_and_path >> 28).to_le_bytes()[0]
    }

    pub(super) fn set_modes(&mut self, modes: u8) {
        self.modes_and_path = u32::from(modes) << 28 | self.path();
    }

    /// The next one of the same path.
    pub(super) fn behind_on_path(&self) -> u32 {
        self.rings[OF_PATH].behind
    }
}

const _: () = assert!(size_of::<Pair>() == 24, "the table's doc has what a watch costs");
const _: () = assert!(size_of::<Named<Box<str>>>() == 24 && size_of::<Named<Watcher>>() == 24);

const OF_PATH: usize = 0;
const OF_WATCHER: usize = 1;

/// So many pairs are prefetched together.
pub(super) const AHEAD: u32 = 16;

/// Somebody who watches.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) id: u64,
    /// The firing that it was told of last, so that it is told once.
    pub(super) told: u32,
    /// How many watches it has, on all paths.
    pub(super) watches: u32,
}

impl Name for Watcher {
    fn bytes(&self) -> impl AsRef<[u8]> {
        self.id.to_le_bytes()
    }
}

/// Every pair of a path and a watcher, found by both, by the path, and by the watcher. Adding and removing one takes
/// the same time however many there are.
#[derive(Debug)]
pub(super) struct Pairs {
    pub(super) paths: Names<Box<str>>,
    pub(super) watchers: Names<Watcher>,
    slab: Slab<Pair>,
    index: Index,
    /// Entries of pairs that are gone stay in the index, until it is built anew.
    leaves_entries: bool,
}

impl Pairs {
    /// More pairs than this do not fit: their paths are numbered in 28 bits.
    pub(super) const MAX: u32 = Pair::PATH;

    pub(super) fn new() -> Pairs {
        Pairs {
            paths: Names::new(),
            watchers: Names::new(),
            slab: Slab::new(),
            index: Index::new(),
            leaves_entries: false,
        }
    }

    pub(super) fn at(&self, number: u32) -> &Pair {
        self.slab.at(number)
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut Pair {
        self.slab.at_mut(number)
    }

    pub(super) fn find(&self, path: &str, watcher: u64) -> Option<u32> {
        let path = self.paths.find(path.as_bytes())?;
        self.find_numbers(path, self.watchers.find(&watcher.to_le_bytes())?)
    }

    fn find_numbers(&self, path: u32, watcher: u32) -> Option<u32> {
        let is = |number| {
            let pair = self.at(number);
            // An entry that was left behind finds nothing.
            (pair.path(), pair.watcher) == (path, watcher) && pair.modes() != 0
        };
        self.index.find(hash(&self.index, path, watcher), is)
    }

    /// Adds a pair that is not there yet, without modes.
    pub(super) fn insert(&mut self, path: &str, watcher: u64) -> u32 {
        let path = self.paths.find(path.as_bytes()).unwrap_or_else(|| self.paths.insert(path.into()));
        let watcher = self
            .watchers
            .find(&watcher.to_le_bytes())
            .unwrap_or_else(|| self.watchers.insert(Watcher { id: watcher, ..Watcher::default() }));
        let number = self.slab.insert(Pair { modes_and_path: path, watcher, ..Pair::default() });
        self.index.insert(hash(&self.index, path, watcher), number);
        link(&mut self.slab, OF_PATH, &mut self.paths.at_mut(path).ring, number);
        link(&mut self.slab, OF_WATCHER, &mut self.watchers.at_mut(watcher).ring, number);
        number
    }

    /// Removes a pair, and its path and watcher if it was their last one.
    pub(super) fn remove(&mut self, number: u32) {
        let (path, watcher) = (self.at(number).path(), self.at(number).watcher);
        let of_path = &mut self.paths.at_mut(path).ring;
        unlink(&mut self.slab, OF_PATH, of_path, number);
        if of_path.pairs == 0 {
            self.paths.remove(path);
        }
        let of_watcher = &mut self.watchers.at_mut(watcher).ring;
        unlink(&mut self.slab, OF_WATCHER, of_watcher, number);
        if of_watcher.pairs == 0 {
            self.watchers.remove(watcher);
        }
        if !self.leaves_entries {
            self.index.remove(hash(&self.index, path, watcher), number);
        }
        self.slab.remove(number);
        if self.slab.len() == 0 {
            self.index = Index::new();
        }
    }

    /// Pairs of a path are about to be removed, those for which `go` says so, with nothing between them but
    /// [`have_gone`](Pairs::have_gone) at their end. Most of the cost of a removal is to find its entries in two
    /// indexes: when a crowd goes, they are made anew instead.
    pub(super) fn will_go(&mut self, ring: Ring, go: impl Fn(&Pair) -> bool) {
        // In case that whoever was told has panicked.
        self.have_gone();
        if (ring.pairs as usize) < MANY {
            return;
        }
        let (mut next, mut pairs, mut watchers) = (ring.first, 0, 0);
        for _ in 0..ring.pairs {
            let pair = self.at(next);
            next = pair.behind_on_path();
            if go(pair) {
                pairs += 1;
                watchers += usize::from(self.watchers.at(pair.watcher).ring.pairs == 1);
            }
        }
        self.leaves_entries = are_most(pairs, self.slab.len());
        self.watchers.will_go(watchers);
    }

    /// Has the memory fetched in which the next few pairs of a path, from one on, are found that are to be removed.
    pub(super) fn prefetch(&self, first: u32, go: impl Fn(&Pair) -> bool) {
        if self.leaves_entries {
            return;
        }
        let mut next = first;
        for _ in 0..AHEAD {
            let pair = self.at(next);
            if go(pair) {
                self.index.prefetch(hash(&self.index, pair.path(), pair.watcher));
            }
            next = pair.behind_on_path();
        }
    }

    pub(super) fn have_gone(&mut self) {
        self.watchers.have_gone();
        if std::mem::take(&mut self.leaves_entries) {
            self.index = Index::new();
            for (number, pair) in self.slab.all().filter(|(_, pair)| pair.modes() != 0) {
                self.index.insert(hash(&self.index, pair.path(), pair.watcher), number);
            }
        }
    }

    /// How many entries were put into one of the indexes, or taken out of it.
    #[cfg(test)]
    pub(super) fn index_work(&self) -> u64 {
        self.index.work() + self.watchers.index_work() + self.paths.index_work()
    }

    /// Room that is held, in use or not.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slab.capacity() + self.paths.capacity() + self.watchers.capacity()
    }
}

fn hash(index: &Index, path: u32, watcher: u32) -> u64 {
    index.hash(path, &watcher.to_le_bytes())
}

/// Puts a pair at the end of a ring: before its first one.
fn link(slab: &mut Slab<Pair>, side: usize, ring: &mut Ring, number: u32) {
    if ring.pairs == 0 {
        ring.first = number;
        slab.at_mut(number).rings[side] = Neighbours { before: number, behind: number };
    } else {
        let last = slab.at(ring.first).rings[side].before;
        slab.at_mut(number).rings[side] = Neighbours { before: last, behind: ring.first };
        slab.at_mut(last).rings[side].behind = number;
        slab.at_mut(ring.first).rings[side].before = number;
    }
    ring.pairs += 1;
}

fn unlink(slab: &mut Slab<Pair>, side: usize, ring: &mut Ring, number: u32) {
    let Neighbours { before, behind } = slab.at(number).rings[side];
    slab.at_mut(before).rings[side].behind = behind;
    slab.at_mut(behind).rings[side].before = before;
    if ring.first == number {
        ring.first = behind;
    }
    ring.pairs -= 1;
}
