use std::hash::{BuildHasher, Hasher};

use hashbrown::DefaultHashBuilder;

use super::NodeId;
use super::arena::{Arena, PIECE_BYTES};
use super::bucket::{Bucket, SLOTS};
use crate::io::prefetch;

const PIECE_BUCKETS: usize = PIECE_BYTES / size_of::<Bucket>();
/// So many buckets are moved with every insert while the table grows: it is done long before it is full.
const STEP: usize = 4;
/// It grows when its buckets have so many entries on average, so that few of them have to leave some to the next one.
const FILLED: usize = SLOTS / 8 * 5;

/// Finds nodes by their parent and name. It holds no keys: whoever asks compares with the node itself.
///
/// A table of buckets of one cache line, in the order of their hashes: a full bucket's next ones stand in the one
/// behind it. It grows by a half, a few buckets with every insert, from its beginning to its end; what is moved
/// makes room for the rest. The hash is seeded anew in each process, against clients that choose their names for
/// collisions; nothing that can be seen depends on it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    hashing: DefaultHashBuilder,
    arena: Arena,
    free: Vec<u32>,
    table: Table,
    /// What the table is moved into, if it has buckets.
    larger: Table,
    /// So many buckets were moved. None of their entries is in another bucket of the old table.
    moved: usize,
    len: usize,
    /// Entries that were put in or taken out.
    #[cfg(test)]
    work: u64,
}

#[derive(Debug, Default)]
struct Table {
    /// Hashes are spread over so many; what the last of them has no room for stands behind them.
    buckets: usize,
    pieces: Vec<u32>,
}

impl Table {
    /// Where a hash belongs. Never before that of a smaller one.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        usize::try_from((u64::from(hash) * self.buckets as u64) >> 32).expect("less than the buckets")
    }

    #[inline]
    fn bucket<'a>(&self, arena: &'a Arena, at: usize) -> Option<&'a Bucket> {
        let piece = *self.pieces.get(at / PIECE_BUCKETS)? as usize;
        let from = piece * PIECE_BYTES + at % PIECE_BUCKETS * size_of::<Bucket>();
        Some(bytemuck::from_bytes(&arena.at(from)[..size_of::<Bucket>()]))
    }

    #[inline]
    fn bucket_mut<'a>(&self, arena: &'a mut Arena, at: usize) -> &'a mut Bucket {
        let piece = self.pieces[at / PIECE_BUCKETS] as usize;
        let from = piece * PIECE_BYTES + at % PIECE_BUCKETS * size_of::<Bucket>();
        bytemuck::from_bytes_mut(&mut arena.at_mut(from)[..size_of::<Bucket>()])
    }

    /// Adds an entry at its home or behind it.
    fn put(&mut self, arena: &mut Arena, free: &mut Vec<u32>, hash: u32, id: NodeId) {
        let mut at = self.home(hash);
        loop {
            while at / PIECE_BUCKETS >= self.pieces.len() {
                self.pieces.push(empty_piece(arena, free));
            }
            let bucket = self.bucket_mut(arena, at);
            if !bucket.is_full() {
                return bucket.push(hash, id);
            }
            at += 1;
        }
    }

    /// The entry of that hash for which `is` says yes: bucket, slot and number.
    #[inline]
    fn find(&self, arena: &Arena, hash: u32, is: impl Fn(NodeId) -> bool) -> Option<(usize, usize, NodeId)> {
        let mut at = self.home(hash);
        loop {
            let bucket = self.bucket(arena, at)?;
            for slot in bucket.hits(hash) {
                if let Some(id) = bucket.number(slot).filter(|id| is(*id)) {
                    return Some((at, slot, id));
                }
            }
            if !bucket.is_full() {
                return None;
            }
            at += 1;
        }
    }

    /// Removes an entry, and brings those nearer to their homes that had no room there.
    fn remove(&mut self, arena: &mut Arena, mut at: usize, mut slot: usize) {
        loop {
            let bucket = self.bucket_mut(arena, at);
            let was_full = bucket.is_full();
            bucket.remove(slot);
            if !was_full {
                return;
            }
            let Some((from, from_slot, hash, id)) = self.displaced(arena, at) else { return };
            self.bucket_mut(arena, at).push(hash, id);
            (at, slot) = (from, from_slot);
        }
    }

    /// An entry behind bucket `at` that belongs there or before it.
    fn displaced(&self, arena: &Arena, at: usize) -> Option<(usize, usize, u32, NodeId)> {
        for from in at + 1.. {
            let bucket = self.bucket(arena, from)?;
            let mut entries = bucket.entries().enumerate();
            if let Some((slot, (hash, id))) = entries.find(|(_, (hash, _))| self.home(*hash) <= at) {
                return Some((from, slot, hash, id));
            }
            if !bucket.is_full() {
                return None;
            }
        }
        None
    }
}

fn empty_piece(arena: &mut Arena, free: &mut Vec<u32>) -> u32 {
    if let Some(piece) = free.pop() {
        arena.piece_mut(piece as usize).fill(0);
        return piece;
    }
    u32::try_from(arena.add()).expect("fewer than nodes")
}

impl Index {
    pub(crate) fn new() -> Index {
        Index::default()
    }

    /// An index that takes so many nodes without growing.
    pub(crate) fn with_room(nodes: usize) -> Index {
        let buckets = nodes.div_ceil(FILLED) + usize::from(nodes > 0);
        Index { table: Table { buckets, pieces: Vec::new() }, ..Index::default() }
    }

    /// The hash of a node's key.
    #[inline]
    pub(crate) fn hash(&self, parent: NodeId, name: &[u8]) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        hasher.write_u32(parent);
        hasher.write(name);
        hasher.finish()
    }

    /// The memory of all buckets.
    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    #[inline]
    fn is_moved(&self, hash: u32) -> bool {
        self.larger.buckets > 0 && self.table.home(hash) < self.moved
    }

    /// The node of that hash for which `is` says yes.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let hash = upper(hash);
        let table = if self.is_moved(hash) { &self.larger } else { &self.table };
        table.find(&self.arena, hash, is).map(|(_, _, id)| id)
    }

    /// Has the bucket fetched in which a hash belongs.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let hash = upper(hash);
        let table = if self.is_moved(hash) { &self.larger } else { &self.table };
        table.bucket(&self.arena, table.home(hash)).into_iter().for_each(prefetch);
    }

    /// Adds a node that is not there yet. Its number is less than the largest there is.
    pub(crate) fn insert(&mut self, hash: u64, id: NodeId) {
        self.grow();
        let hash = upper(hash);
        let table = if self.is_moved(hash) { &mut self.larger } else { &mut self.table };
        table.put(&mut self.arena, &mut self.free, hash, id);
        self.len += 1;
        #[cfg(test)]
        {
            self.work += 1;
        }
    }

    /// Removes a node.
    pub(crate) fn remove(&mut self, hash: u64, id: NodeId) {
        let hash = upper(hash);
        let table = if self.is_moved(hash) { &mut self.larger } else { &mut self.table };
        if let Some((at, slot, _)) = table.find(&self.arena, hash, |other| other == id) {
            table.remove(&mut self.arena, at, slot);
            self.len -= 1;
            #[cfg(test)]
            {
                self.work += 1;
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Moves on a little, if the table is too small.
    fn grow(&mut self) {
        if self.larger.buckets == 0 {
            if self.len < self.table.buckets * FILLED {
                return;
            }
            let buckets = self.table.buckets;
            self.larger.buckets = (buckets / 2 * 3).max(buckets + PIECE_BUCKETS);
            self.moved = 0;
        }
        for step in 1.. {
            let Some(bucket) = self.table.bucket(&self.arena, self.moved).copied() else {
                return self.end_growth();
            };
            for (hash, id) in bucket.entries() {
                self.larger.put(&mut self.arena, &mut self.free, hash, id);
            }
            self.moved += 1;
            if self.moved.is_multiple_of(PIECE_BUCKETS) {
                self.free.push(self.table.pieces[self.moved / PIECE_BUCKETS - 1]);
            }
            // Not between a full bucket and those behind it that may belong to it.
            if step >= STEP && !bucket.is_full() {
                return;
            }
        }
    }

    fn end_growth(&mut self) {
        self.table = std::mem::take(&mut self.larger);
        self.moved = 0;
    }
}

/// What the table is ordered by.
#[inline]
fn upper(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("half of it")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Adds, finds and removes by chance, with hashes as `hash_of` gives them.
    fn exercise(count: u32, hash_of: impl Fn(u32) -> u64) {
        let mut index = Index::new();
        let mut random = crate::base::Random::from_seed(1);
        let mut there: HashSet<u32> = HashSet::new();
        for turn in 0..u64::from(count) * 3 {
            let id = u32::try_from(random.next_u64() % u64::from(count)).unwrap();
            let found = index.find(hash_of(id), |other| other == id);
            assert_eq!(found, there.get(&id).copied());
            // More are added than removed, at first.
            if found.is_none() {
                index.insert(hash_of(id), id);
                there.insert(id);
            } else if turn > u64::from(count) {
                index.remove(hash_of(id), id);
                there.remove(&id);
            }
            assert_eq!(index.len, there.len());
        }
        for id in 0..count {
            let found = index.find(hash_of(id), |other| other == id);
            assert_eq!(found.is_some(), there.contains(&id), "{id}");
            index.remove(hash_of(id), id);
        }
        let filled = |table: &Table| {
            (0..).map_while(|at| table.bucket(&index.arena, at)).map(|b| b.entries().count()).sum::<usize>()
        };
        assert_eq!((index.len, index.larger.buckets == 0 && filled(&index.table) > 0), (0, false));
    }

    #[test]
    fn finds_what_was_added_and_not_removed() {
        let hashing = Index::new();
        exercise(40_000, |id| hashing.hash(id % 7, &id.to_le_bytes()));
    }

    #[test]
    fn full_buckets_go_on_in_the_next_ones() {
        // Few homes for many, at the beginning, in the middle and at the very end.
        exercise(3_000, |id| u64::from(id % 40) << 54);
        exercise(3_000, |id| u64::MAX - (u64::from(id % 300) << 33));
        exercise(300, |_| 0);
        exercise(300, |_| u64::MAX);
    }

    #[test]
    fn grows_little_by_little_and_stays_dense() {
        let mut index = Index::new();
        for id in 0..300_000_u32 {
            let moved = index.moved;
            index.insert(index.hash(0, &id.to_le_bytes()), id);
            assert!(index.moved < moved + 100, "an insert waits for {} buckets", index.moved - moved);
            if id > 20_000 {
                // Five entries in 64 bytes, a third less when it has just grown; a piece is much of a small table.
                let most = if id > 100_000 { 20 } else { 21 };
                let per_entry = index.bytes() / u64::from(id);
                assert!(per_entry < most, "{per_entry} bytes an entry at {id}");
            }
        }
    }
}
