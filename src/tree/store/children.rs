use super::NodeId;
use crate::io::prefetch;

/// A chunk with this many children is split.
const CHUNK_MAX: usize = 256;
/// So many numbers are in a cache line.
const LINE_IDS: usize = 16;
/// A chunk's room grows by this many, so that little of it is unused.
const GROWTH: usize = 32;

/// The children of a parent: chunks of numbers, one behind the other in the order of names. Inside of a chunk they are
/// in no order, so that to add one touches a single cache line; who reads sorts.
///
/// Names are compared as bytes. Methods take a function that tells a child's name.
#[derive(Debug, Default)]
pub(crate) struct Children {
    chunks: Vec<Chunk>,
    count: u32,
}

#[derive(Debug)]
struct Chunk {
    /// No name of the chunk is before this one, and all of the next chunk's are behind them. The first one's is empty.
    from: Box<[u8]>,
    ids: Vec<NodeId>,
    /// They are in order.
    sorted: bool,
}

impl Chunk {
    fn new(from: &[u8], id: NodeId) -> Chunk {
        let mut ids = Vec::with_capacity(4);
        ids.push(id);
        Chunk { from: from.into(), ids, sorted: true }
    }

    fn push(&mut self, id: NodeId) {
        if self.ids.len() == self.ids.capacity() {
            self.ids.reserve_exact(GROWTH);
        }
        self.ids.push(id);
    }

    /// Where a child stands. All are compared, several at once: to stop at the right one would be guessed wrong.
    fn place_of(&self, id: NodeId) -> Option<usize> {
        let hits = self.ids.iter().zip(1_u32..).map(|(other, behind)| if *other == id { behind } else { 0 });
        usize::try_from(hits.fold(0, |found, hit| found | hit)).ok()?.checked_sub(1)
    }

    /// The children in the order of their names.
    fn in_order<'n>(&self, name_of: &impl Fn(NodeId) -> &'n [u8]) -> Vec<NodeId> {
        let mut named: Vec<(&[u8], NodeId)> = self.ids.iter().map(|id| (name_of(*id), *id)).collect();
        named.sort_unstable();
        named.into_iter().map(|(_, id)| id).collect()
    }

    /// The same, those behind `after` only.
    fn iter<'c, 'n>(&'c self, after: Option<&[u8]>, name_of: &impl Fn(NodeId) -> &'n [u8]) -> InOrder<'c> {
        let sorted = if self.sorted { None } else { Some(self.in_order(name_of)) };
        let ids = sorted.as_deref().unwrap_or(&self.ids);
        let from = after.map_or(0, |after| ids.partition_point(|id| name_of(*id) <= after));
        match sorted {
            Some(sorted) => InOrder::Sorted(sorted.into_iter().skip(from)),
            None => InOrder::AsTheyAre(self.ids[from..].iter()),
        }
    }

    /// Its upper half, as a chunk of its own.
    fn split<'n>(&mut self, name_of: &impl Fn(NodeId) -> &'n [u8]) -> Chunk {
        let ids = self.in_order(name_of);
        let (lower, upper) = ids.split_at(CHUNK_MAX / 2);
        let with_room = |half: &[NodeId]| {
            let mut ids = Vec::with_capacity(half.len() + GROWTH);
            ids.extend_from_slice(half);
            ids
        };
        (self.ids, self.sorted) = (with_room(lower), true);
        Chunk { from: name_of(upper[0]).into(), ids: with_room(upper), sorted: true }
    }
}

/// The children of a chunk, one after the other.
enum InOrder<'c> {
    AsTheyAre(std::slice::Iter<'c, NodeId>),
    Sorted(std::iter::Skip<std::vec::IntoIter<NodeId>>),
}

impl Iterator for InOrder<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        match self {
            InOrder::AsTheyAre(ids) => ids.next().copied(),
            InOrder::Sorted(ids) => ids.next(),
        }
    }
}

impl Children {
    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The chunk in which `name` stands or belongs.
    fn chunk_of(&self, name: &[u8]) -> usize {
        // Names often come in order.
        if let Some(last) = self.chunks.last()
            && *last.from <= *name
        {
            return self.chunks.len() - 1;
        }
        // The first one takes what is before all of them.
        self.chunks.partition_point(|chunk| *chunk.from <= *name).saturating_sub(1)
    }

    /// Has the memory fetched that adding a child of that name touches, or all that removing it does. Tells the chunk.
    pub(crate) fn prefetch(&self, name: &[u8], all: bool) -> usize {
        let at = self.chunk_of(name);
        if let Some(chunk) = self.chunks.get(at) {
            chunk.ids.last().into_iter().for_each(prefetch);
            if all {
                chunk.ids.iter().step_by(LINE_IDS).for_each(prefetch);
            }
        }
        at
    }

    /// Adds a child that is not there yet.
    pub(crate) fn insert<'n>(&mut self, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        self.count += 1;
        let mut at = self.chunk_of(name);
        let is_last = at + 1 == self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Chunk::new(b"", id));
            return;
        };
        let in_order = chunk.sorted && chunk.ids.last().is_none_or(|last| name_of(*last) < name);
        if chunk.ids.len() >= CHUNK_MAX {
            if in_order && is_last {
                // Names that come in order fill one chunk after the other.
                self.chunks.push(Chunk::new(name, id));
                return;
            }
            let upper = chunk.split(name_of);
            let is_upper = *upper.from <= *name;
            self.chunks.insert(at + 1, upper);
            at += usize::from(is_upper);
            let chunk = &mut self.chunks[at];
            chunk.sorted = chunk.ids.last().is_none_or(|last| name_of(*last) < name);
            chunk.push(id);
            return;
        }
        chunk.sorted = in_order;
        chunk.push(id);
    }

    /// Removes a child. `likely` is the chunk in which it was, if that is known; it may have moved since.
    pub(crate) fn remove(&mut self, id: NodeId, name: &[u8], likely: Option<usize>) {
        let place_in = |at: usize| self.chunks.get(at)?.place_of(id).map(|place| (at, place));
        let found = likely.and_then(place_in).or_else(|| place_in(self.chunk_of(name)));
        let Some((at, place)) = found else { return };
        let chunk = &mut self.chunks[at];
        if chunk.sorted {
            chunk.ids.remove(place);
        } else {
            chunk.ids.swap_remove(place);
        }
        self.count -= 1;
        let len = chunk.ids.len();
        if len == 0 {
            self.chunks.remove(at);
            if let Some(first) = self.chunks.first_mut() {
                first.from = Box::default();
            } else {
                self.chunks = Vec::new();
            }
        } else if len < CHUNK_MAX / 8 {
            self.join(at);
        }
    }

    /// Joins a chunk that has become small with the one behind it, if both are.
    fn join(&mut self, at: usize) {
        if self.chunks.get(at + 1).is_some_and(|chunk| chunk.ids.len() < CHUNK_MAX / 4) {
            let behind = self.chunks.remove(at + 1);
            let chunk = &mut self.chunks[at];
            chunk.sorted &= behind.sorted;
            chunk.ids.extend(behind.ids);
        }
    }

    /// The children in order, those after the name `after` if there is one.
    pub(crate) fn iter<'c, 'n, F: Fn(NodeId) -> &'n [u8]>(
        &'c self,
        after: Option<&[u8]>,
        name_of: F,
    ) -> impl Iterator<Item = NodeId> + use<'c, 'n, F> {
        let first = after.map_or(0, |after| self.chunk_of(after));
        let mut chunks = self.chunks.iter().skip(first);
        let begin = chunks.next().map(|chunk| chunk.iter(after, &name_of));
        begin.into_iter().flatten().chain(chunks.flat_map(move |chunk| chunk.iter(None, &name_of)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The names of all children ever; a child's number is its place.
    struct Model {
        names: Vec<Vec<u8>>,
        there: BTreeMap<Vec<u8>, NodeId>,
        children: Children,
    }

    impl Model {
        fn new() -> Model {
            Model { names: Vec::new(), there: BTreeMap::new(), children: Children::default() }
        }

        fn toggle(&mut self, name: Vec<u8>) {
            let names = &mut self.names;
            if let Some(id) = self.there.remove(&name) {
                // Known, wrong, or not known.
                let likely = [Some(self.children.chunk_of(&name)), Some(0), Some(usize::MAX), None];
                self.children.remove(id, &name, likely[id as usize % 4]);
            } else {
                let id = NodeId::try_from(names.len()).unwrap();
                names.push(name.clone());
                self.children.insert(id, &name, &|id| &names[id as usize]);
                self.there.insert(name, id);
            }
        }

        fn check(&self) {
            let name_of = |id: NodeId| &self.names[id as usize][..];
            assert_eq!(self.children.len() as usize, self.there.len());
            assert!(self.children.iter(None, name_of).eq(self.there.values().copied()));
            for chunk in &self.children.chunks {
                assert!(!chunk.sorted || chunk.ids.is_sorted_by_key(|id| name_of(*id)));
                assert!(!chunk.ids.is_empty() && chunk.ids.len() <= CHUNK_MAX);
            }
        }

        fn check_after(&self, after: &[u8]) {
            let name_of = |id: NodeId| &self.names[id as usize][..];
            let range = (std::ops::Bound::Excluded(after.to_vec()), std::ops::Bound::Unbounded);
            let wanted = self.there.range(range).map(|(_, id)| *id);
            assert!(self.children.iter(Some(after), name_of).eq(wanted), "after {after:?}");
        }
    }

    fn exercise(name: impl Fn(u64) -> Vec<u8>) {
        let mut model = Model::new();
        let mut random = crate::base::Random::from_seed(1);
        for turn in 0..6000 {
            model.toggle(name(random.next_u64()));
            if turn % 500 == 0 {
                model.check();
                (0..20).for_each(|_| model.check_after(&name(random.next_u64())));
            }
        }
        model.check();
        for name in model.there.keys().cloned().collect::<Vec<_>>() {
            model.toggle(name);
        }
        model.check();
    }

    #[test]
    fn stays_in_order_for_names_of_all_sorts() {
        exercise(|n| format!("node-{:010}", n % 5000).into_bytes());
        exercise(|n| (n % 3000).to_string().into_bytes());
        exercise(|n| n.to_le_bytes()[..usize::try_from(n % 4).unwrap()].to_vec());
        exercise(|n| vec![b'a'; usize::try_from(n % 300).unwrap()]);
        exercise(|n| {
            [&b"a"[..], &vec![0; usize::try_from(n % 9).unwrap()], &[(n >> 40).to_le_bytes()[0] % 3]].concat()
        });
    }

    #[test]
    fn names_in_order_fill_their_chunks() {
        let mut model = Model::new();
        (0..5000).for_each(|n| model.toggle(format!("{n:010}").into_bytes()));
        model.check();
        assert_eq!(model.children.chunks.len(), 5000_usize.div_ceil(CHUNK_MAX));
    }
}
