use std::cmp::Ordering;

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

/// So much of what all names of a chunk share is kept with it.
const PREFIX_MAX: usize = 23;

#[derive(Debug)]
struct Chunk {
    /// What all names of the chunk have in common at their start, up to `PREFIX_MAX` bytes.
    prefix: [u8; PREFIX_MAX],
    prefix_len: u8,
    /// For each child the four bytes after the prefix.
    keys: Vec<u32>,
    ids: Vec<NodeId>,
}

impl Chunk {
    fn new(id: NodeId, name: &[u8]) -> Chunk {
        let mut chunk = Chunk { prefix: [0; PREFIX_MAX], prefix_len: 0, keys: Vec::new(), ids: vec![id] };
        chunk.set_prefix(name);
        chunk.keys.push(key_of(name, chunk.prefix().len()));
        chunk
    }

    fn prefix(&self) -> &[u8] {
        &self.prefix[..self.prefix_len.into()]
    }

    fn set_prefix(&mut self, shared: &[u8]) {
        let len = shared.len().min(PREFIX_MAX);
        self.prefix[..len].copy_from_slice(&shared[..len]);
        self.prefix_len = u8::try_from(len).expect("at most PREFIX_MAX");
    }

    /// Compares the name of the child at `at` with `name`, if need be by asking for it.
    fn compare<'n>(&self, at: usize, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) -> Ordering {
        let prefix = self.prefix();
        let shared = &name[..name.len().min(prefix.len())];
        prefix
            .cmp(shared)
            .then_with(|| self.keys[at].cmp(&key_of(name, prefix.len())))
            .then_with(|| name_of(self.ids[at]).cmp(name))
    }

    /// Where `name` stands or belongs; `Ok` if it stands there.
    fn search<'n>(&self, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match prefix.cmp(&name[..name.len().min(prefix.len())]) {
            Ordering::Equal => {}
            // Before or behind them all.
            Ordering::Greater => return Err(0),
            Ordering::Less => return Err(self.ids.len()),
        }
        let key = key_of(name, prefix.len());
        let from = self.keys.partition_point(|k| *k < key);
        let to = from + self.keys[from..].iter().take_while(|k| **k == key).count();
        let found = self.ids[from..to].binary_search_by(|id| name_of(*id).cmp(name));
        found.map(|at| from + at).map_err(|at| from + at)
    }

    fn insert<'n>(&mut self, at: usize, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        if self.ids.len() == self.ids.capacity() {
            self.ids.reserve_exact(GROWTH);
            self.keys.reserve_exact(GROWTH);
        }
        let shared = common_len(name, self.prefix());
        self.ids.insert(at, id);
        if shared < self.prefix().len() {
            self.prefix_len = u8::try_from(shared).expect("less than before");
            self.keys.clear();
            // The new one cannot be asked yet.
            let key = |other: &NodeId| {
                if *other == id { key_of(name, shared) } else { key_of(name_of(*other), shared) }
            };
            self.keys.extend(self.ids.iter().map(key));
        } else {
            self.keys.insert(at, key_of(name, shared));
        }
    }

    fn remove(&mut self, at: usize) {
        self.ids.remove(at);
        self.keys.remove(at);
    }

    /// Takes the names anew: they may share more.
    fn rebuild<'n>(&mut self, name_of: &impl Fn(NodeId) -> &'n [u8]) {
        if let (Some(first), Some(last)) = (self.ids.first(), self.ids.last()) {
            let first = name_of(*first);
            self.set_prefix(&first[..common_len(first, name_of(*last))]);
        }
        let prefix_len = self.prefix().len();
        self.keys.clear();
        self.keys.reserve_exact(self.ids.capacity());
        self.keys.extend(self.ids.iter().map(|id| key_of(name_of(*id), prefix_len)));
    }

    fn split<'n>(&mut self, name_of: &impl Fn(NodeId) -> &'n [u8]) -> Chunk {
        let mut ids = Vec::with_capacity(CHUNK_MAX / 2 + GROWTH);
        ids.extend(self.ids.drain(CHUNK_MAX / 2..));
        let mut upper = Chunk { prefix: [0; PREFIX_MAX], prefix_len: 0, keys: Vec::new(), ids };
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
        // The first one takes what is before all of them.
        self.chunks[1..].partition_point(|chunk| chunk.compare(0, name, name_of).is_le())
    }

    /// Adds a child that is not there yet.
    pub(crate) fn insert<'n>(&mut self, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        self.count += 1;
        if let Some(last) = self.chunks.last_mut() {
            let behind_all = last.compare(last.ids.len() - 1, name, name_of).is_lt();
            if behind_all && last.ids.len() < CHUNK_MAX {
                return last.insert(last.ids.len(), id, name, name_of);
            }
            if !behind_all {
                return self.insert_inside(id, name, name_of);
            }
        }
        // Names that come in order fill one chunk after the other.
        self.chunks.push(Chunk::new(id, name));
    }

    fn insert_inside<'n>(&mut self, id: NodeId, name: &[u8], name_of: &impl Fn(NodeId) -> &'n [u8]) {
        let mut at = self.chunk_of(name, name_of);
        if self.chunks[at].ids.len() >= CHUNK_MAX {
            let upper = self.chunks[at].split(name_of);
            let is_upper = upper.compare(0, name, name_of).is_le();
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
    let rest = name.get(from..).unwrap_or(&[]);
    if let Some(bytes) = rest.first_chunk::<4>() {
        return u32::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 4];
    bytes[..rest.len()].copy_from_slice(rest);
    u32::from_be_bytes(bytes)
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
