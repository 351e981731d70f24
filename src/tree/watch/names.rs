use super::pairs::Ring;
use super::slab::Slab;
use crate::tree::store::Index;

/// What can be numbered: it is found by its bytes.
pub(super) trait Name: Default {
    fn bytes(&self) -> impl AsRef<[u8]>;
}

impl Name for Box<str> {
    fn bytes(&self) -> impl AsRef<[u8]> {
        self.as_bytes()
    }
}

/// Fewer than this are taken out of an index one by one.
pub(super) const MANY: usize = 1024;

/// Whether an index is better built anew, from what stays, than freed of so many entries one by one.
pub(super) fn are_most(going: usize, all: usize) -> bool {
    going >= MANY && going / 2 > all - going
}

/// A path or a watcher, with the ring of its pairs.
#[derive(Debug, Default)]
pub(super) struct Named<N> {
    pub(super) name: N,
    pub(super) ring: Ring,
}

/// Numbers for all that has pairs, and for nothing else.
#[derive(Debug)]
pub(super) struct Names<N> {
    slab: Slab<Named<N>>,
    index: Index,
    /// Entries of names that are gone stay in the index, until it is built anew.
    leaves_entries: bool,
}

impl<N: Name> Names<N> {
    pub(super) fn new() -> Names<N> {
        Names { slab: Slab::new(), index: Index::new(), leaves_entries: false }
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn find(&self, bytes: &[u8]) -> Option<u32> {
        // An entry that was left behind finds nobody.
        let is = |number| {
            let named = self.slab.at(number);
            named.ring.pairs > 0 && named.name.bytes().as_ref() == bytes
        };
        self.index.find(self.index.hash(0, bytes), is)
    }

    /// Numbers what is not there yet.
    pub(super) fn insert(&mut self, name: N) -> u32 {
        let hash = self.index.hash(0, name.bytes().as_ref());
        let number = self.slab.insert(Named { name, ring: Ring::default() });
        self.index.insert(hash, number);
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        if !self.leaves_entries {
            let hash = self.index.hash(0, self.at(number).name.bytes().as_ref());
            self.index.remove(hash, number);
        }
        self.slab.remove(number);
        if self.slab.len() == 0 {
            self.index = Index::new();
        }
    }

    /// So many are about to go, one after the other and with nothing between them but
    /// [`have_gone`](Names::have_gone) at their end.
    pub(super) fn will_go(&mut self, count: usize) {
        self.leaves_entries = are_most(count, self.len());
    }

    pub(super) fn have_gone(&mut self) {
        if std::mem::take(&mut self.leaves_entries) {
            self.index = Index::new();
            for (number, named) in self.slab.all().filter(|(_, named)| named.ring.pairs > 0) {
                self.index.insert(self.index.hash(0, named.name.bytes().as_ref()), number);
            }
        }
    }

    /// How many entries were put into the index, or taken out of it.
    #[cfg(test)]
    pub(super) fn index_work(&self) -> u64 {
        self.index.work()
    }

    pub(super) fn at(&self, number: u32) -> &Named<N> {
        self.slab.at(number)
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut Named<N> {
        self.slab.at_mut(number)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut N> {
        self.slab.all_mut().map(|named| &mut named.name)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slab.capacity()
    }
}
