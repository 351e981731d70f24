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
}

impl<N: Name> Names<N> {
    pub(super) fn new() -> Names<N> {
        Names { slab: Slab::new(), index: Index::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn find(&self, bytes: &[u8]) -> Option<u32> {
        let is = |number| self.slab.at(number).name.bytes().as_ref() == bytes;
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
        let hash = self.index.hash(0, self.at(number).name.bytes().as_ref());
        self.index.remove(hash, number);
        self.slab.remove(number);
        if self.slab.len() == 0 {
            self.index = Index::new();
        }
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
