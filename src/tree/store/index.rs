use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::NodeId;

/// A segment that has this many entries is split: moving them is what an insert may have to wait for.
const SEGMENT_MAX: usize = 896;

/// Finds nodes by their parent and name. It holds no keys: whoever asks compares with the node itself.
///
/// An extendible hash table: a directory of small tables, of which one is split at a time, so that it grows
/// without ever moving more than a segment. The hash is seeded anew in each process, against clients that choose
/// their names for collisions; nothing that can be seen depends on it.
#[derive(Debug)]
pub(crate) struct Index {
    hashing: DefaultHashBuilder,
    /// Two to the power of `depth` numbers of segments.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    ids: HashTable<NodeId>,
    /// How many bits of the hash all of its entries share.
    depth: u32,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index {
            hashing: DefaultHashBuilder::default(),
            directory: vec![0],
            depth: 0,
            segments: vec![Segment { ids: HashTable::new(), depth: 0 }],
        }
    }

    /// The hash of a node's key.
    pub(crate) fn hash(&self, parent: NodeId, name: &[u8]) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write_u32(parent);
        hasher.write(name);
        hasher.finish()
    }

    /// The bits of a hash that choose a segment: not those that the tables use.
    fn bits(hash: u64, depth: u32) -> usize {
        usize::try_from((hash >> 24) & ((1 << depth) - 1)).expect("few bits")
    }

    fn segment_of(&self, hash: u64) -> usize {
        self.directory[Self::bits(hash, self.depth)] as usize
    }

    /// The node of that hash for which `is` says yes.
    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(NodeId) -> bool) -> Option<NodeId> {
        self.segments[self.segment_of(hash)].ids.find(hash, |id| is(*id)).copied()
    }

    /// Adds a node that is not there yet; `hash_of` hashes those that have to move.
    pub(crate) fn insert(&mut self, hash: u64, id: NodeId, hash_of: impl Fn(&Index, NodeId) -> u64) {
        let mut at = self.segment_of(hash);
        while self.segments[at].ids.len() >= SEGMENT_MAX && self.segments[at].depth < 32 {
            self.split(at, &hash_of);
            at = self.segment_of(hash);
        }
        let mut ids = std::mem::take(&mut self.segments[at].ids);
        ids.insert_unique(hash, id, |id| hash_of(self, *id));
        self.segments[at].ids = ids;
    }

    /// Removes a node.
    pub(crate) fn remove(&mut self, hash: u64, id: NodeId) {
        let at = self.segment_of(hash);
        if let Ok(entry) = self.segments[at].ids.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
    }

    fn split(&mut self, at: usize, hash_of: &impl Fn(&Index, NodeId) -> u64) {
        let depth = self.segments[at].depth + 1;
        if depth > self.depth {
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let ids = std::mem::take(&mut self.segments[at].ids);
        let mut halves = [HashTable::with_capacity(SEGMENT_MAX), HashTable::with_capacity(SEGMENT_MAX)];
        for id in ids {
            let hash = hash_of(self, id);
            let half = &mut halves[Self::bits(hash, depth) >> (depth - 1)];
            half.insert_unique(hash, id, |id| hash_of(self, *id));
        }
        let [low, high] = halves;
        let new = u32::try_from(self.segments.len()).expect("fewer than nodes");
        self.segments[at] = Segment { ids: low, depth };
        self.segments.push(Segment { ids: high, depth });
        // Every second of the directory's entries that led here leads to the new one.
        let old = u32::try_from(at).expect("fewer than nodes");
        for (bits, segment) in self.directory.iter_mut().enumerate() {
            if *segment == old && bits >> (depth - 1) & 1 == 1 {
                *segment = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_added_and_not_removed() {
        let mut index = Index::new();
        let name = |id: NodeId| format!("node-{id}");
        let hash_of = |index: &Index, id: NodeId| index.hash(id % 7, name(id).as_bytes());
        let find = |index: &Index, id: NodeId| index.find(hash_of(index, id), |other| other == id);
        for id in 0..20_000 {
            assert_eq!(find(&index, id), None);
            index.insert(hash_of(&index, id), id, hash_of);
        }
        assert!((20_000..30_000).all(|id| find(&index, id).is_none()));
        for id in (0..20_000).step_by(3) {
            index.remove(hash_of(&index, id), id);
        }
        for id in 0..20_000 {
            assert_eq!(find(&index, id), (id % 3 != 0).then_some(id));
        }
        assert!(index.segments.len() > 20 && index.segments.iter().all(|s| s.ids.len() <= SEGMENT_MAX));
    }
}
