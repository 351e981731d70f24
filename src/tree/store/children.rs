use super::NodeId;

/// A chunk with this many children is split.
const CHUNK_MAX: usize = 512;
/// A chunk's room grows by this many, so that little of it is unused.
const GROWTH: usize = 32;

/// The children of a parent in the order of their names: chunks of numbers, each with a few bytes of each name
/// beside it, so that looking for a place touches few nodes.
///
/// Names are compared as bytes. Methods take a function that tells a child's name.
#[derive(Debug, Default)]
pub(crate) struct Children {
    chunks: Vec<Chunk>,
    count: u32,
}

#[derive(Debug)]
struct Chunk {
    /// So many bytes are the same at the start of all names of the chunk.
    common: usize,
    /// For each child the four bytes after those.
    keys: Vec<u32>,
    ids: Vec<NodeId>,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { common: 0, keys: Vec::new(), ids: Vec::new() }
    }

    /// Where `name` stands or belongs; `Ok` if it stands there.
    fn search<'n>(&self, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) -> Result<usize, usize> {
        let Some(&first) = self.ids.first() else { return Err(0) };
        let shared = common_len(name, name_of(first));
        if shared < self.common {
            // Before or behind them all.
            return Err(if name < name_of(first) { 0 } else { self.ids.len() });
        }
        let key = key_of(name, self.common);
        let from = self.keys.partition_point(|k| *k < key);
        let to = from + self.keys[from..].partition_point(|k| *k == key);
        let found = self.ids[from..to].binary_search_by(|id| name_of(*id).cmp(name));
        found.map(|at| from + at).map_err(|at| from + at)
    }

    fn insert<'n>(&mut self, at: usize, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        if self.ids.len() == self.ids.capacity() {
            self.ids.reserve_exact(GROWTH);
            self.keys.reserve_exact(GROWTH);
        }
        let shared = self.ids.first().map_or(name.len(), |first| common_len(name, name_of(*first)));
        self.ids.insert(at, id);
        if self.ids.len() == 1 {
            self.common = shared;
        }
        if shared < self.common {
            self.common = shared;
            self.keys.clear();
            // The new one cannot be asked yet.
            let key = |other: &NodeId| {
                if *other == id { key_of(name, shared) } else { key_of(name_of(*other), shared) }
            };
            self.keys.extend(self.ids.iter().map(key));
        } else {
            self.keys.insert(at, key_of(name, self.common));
        }
    }

    fn remove(&mut self, at: usize) {
        self.ids.remove(at);
        self.keys.remove(at);
    }

    /// Takes the names anew: they may share more.
    fn rebuild<'n>(&mut self, name_of: &impl Fn(NodeId) -> &'n [u8]) {
        if let (Some(first), Some(last)) = (self.ids.first(), self.ids.last()) {
            self.common = common_len(name_of(*first), name_of(*last));
        }
        self.keys.clear();
        self.keys.reserve_exact(self.ids.capacity());
        self.keys.extend(self.ids.iter().map(|id| key_of(name_of(*id), self.common)));
    }

    fn split<'n>(&mut self, name_of: &impl Fn(NodeId) -> &'n [u8]) -> Chunk {
        let mut upper = Chunk::new();
        upper.ids.reserve_exact(CHUNK_MAX / 2 + GROWTH);
        upper.ids.extend(self.ids.drain(CHUNK_MAX / 2..));
        upper.rebuild(name_of);
        self.ids.shrink_to(CHUNK_MAX / 2 + GROWTH);
        self.keys = Vec::new();
        self.rebuild(name_of);
        upper
    }
}

impl Children {
    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The chunk in which `name` stands or belongs.
    fn chunk_of<'n>(&self, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) -> usize {
        let behind = self
            .chunks
            .partition_point(|chunk| chunk.ids.first().is_some_and(|first| name_of(*first) <= name));
        behind.saturating_sub(1)
    }

    /// Adds a child that is not there yet.
    pub(crate) fn insert<'n>(&mut self, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        self.count += 1;
        if let Some(last) = self.chunks.last_mut() {
            let behind_all = last.ids.last().is_some_and(|last| name_of(*last) < name);
            if behind_all && last.ids.len() < CHUNK_MAX {
                return last.insert(last.ids.len(), id, name, name_of);
            }
            if !behind_all {
                return self.insert_inside(id, name, name_of);
            }
        }
        // Names that come in order fill one chunk after the other.
        let mut chunk = Chunk::new();
        chunk.insert(0, id, name, name_of);
        self.chunks.push(chunk);
    }

    fn insert_inside<'n>(&mut self, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        let mut at = self.chunk_of(name, name_of);
        if self.chunks[at].ids.len() >= CHUNK_MAX {
            let upper = self.chunks[at].split(name_of);
            let is_upper = upper.ids.first().is_some_and(|first| name_of(*first) <= name);
            self.chunks.insert(at + 1, upper);
            at += usize::from(is_upper);
        }
        let chunk = &mut self.chunks[at];
        let (Ok(place) | Err(place)) = chunk.search(name, name_of);
        chunk.insert(place, id, name, name_of);
    }

    /// Removes a child.
    pub(crate) fn remove<'n>(&mut self, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        if self.chunks.is_empty() {
            return;
        }
        let at = self.chunk_of(name, name_of);
        let Ok(place) = self.chunks[at].search(name, name_of) else { return };
        self.chunks[at].remove(place);
        self.count -= 1;
        let len = self.chunks[at].ids.len();
        if len == 0 {
            self.chunks.remove(at);
        } else if len < CHUNK_MAX / 8 {
            self.join(at, name_of);
        }
        if self.chunks.is_empty() {
            self.chunks = Vec::new();
        }
    }

    /// Joins a chunk that has become small with the one behind it, if both are.
    fn join<'n>(&mut self, at: usize, name_of: &impl Fn(NodeId) -> &'n [u8]) {
        let small = |chunk: &Chunk| chunk.ids.len() < CHUNK_MAX / 4;
        if self.chunks.get(at + 1).is_some_and(small) {
            let behind = self.chunks.remove(at + 1);
            let chunk = &mut self.chunks[at];
            chunk.ids.extend(behind.ids);
            chunk.rebuild(name_of);
        }
    }

    /// The children in order, those after the name `after` if there is one.
    pub(crate) fn iter<'c, 'n, F: Fn(NodeId) -> &'n [u8]>(
        &'c self,
        after: Option<&[u8]>,
        name_of: &F,
    ) -> impl Iterator<Item = NodeId> + use<'c, 'n, F> {
        let (chunk, place) = match after.filter(|_| !self.chunks.is_empty()) {
            None => (0, 0),
            Some(name) => {
                let at = self.chunk_of(name, name_of);
                (at, self.chunks[at].search(name, name_of).map_or_else(|place| place, |place| place + 1))
            }
        };
        let first = self.chunks.get(chunk).map_or(&[][..], |c| &c.ids[place..]);
        let others = self.chunks.iter().skip(chunk + 1).flat_map(|c| c.ids.iter());
        first.iter().chain(others).copied()
    }
}

/// Four bytes of a name, as a number that is in order as they are. A name that ends is before one that goes on
/// with zeros, but equal by its number; such names are compared whole.
fn key_of(name: &[u8], from: usize) -> u32 {
    let rest = name.get(from..).unwrap_or_default();
    match rest.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 4];
            bytes[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(bytes)
        }
    }
}

fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
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
            if self.there.remove(&name).is_some() {
                self.children.remove(&name, &|id| &names[id as usize]);
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
            assert!(self.children.iter(None, &name_of).eq(self.there.values().copied()));
            for chunk in &self.children.chunks {
                assert_eq!(chunk.ids.len(), chunk.keys.len());
                assert!(!chunk.ids.is_empty() && chunk.ids.len() <= CHUNK_MAX);
            }
        }

        fn check_after(&self, after: &[u8]) {
            let name_of = |id: NodeId| &self.names[id as usize][..];
            let range = (std::ops::Bound::Excluded(after.to_vec()), std::ops::Bound::Unbounded);
            let wanted = self.there.range(range).map(|(_, id)| *id);
            assert!(self.children.iter(Some(after), &name_of).eq(wanted), "after {after:?}");
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
