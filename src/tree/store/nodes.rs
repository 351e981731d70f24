use super::large::{Data, Large};
use super::slab::{Slab, UNIT, units_of};
use super::{Node, NodeId};
use crate::io::prefetch;

const HEADER: usize = size_of::<Node>();
/// Longer names do not stand in the record.
const NAME_MAX: usize = u8::MAX as usize;
/// A cache line.
const LINE: usize = 64;
/// Room for the number of what is apart.
const HANDLE: usize = 4;
/// With more than this, a new node's data do not stand in its record.
const RECORD_MAX: usize = 512;
/// Data up to this size that do not stand in the record stand in a slab of their own.
const APART_MAX: usize = 4096;

/// All nodes: of each a record, which is its header, its name and mostly its data, in one place. It never moves, so
/// that the place is the node's number; what it has no room for, as data grow, stands apart.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    records: Slab,
    apart: Slab,
    large: Large,
    live: u32,
}

impl Nodes {
    /// More nodes than this are refused.
    pub(crate) const MAX: u32 = (1 << 28) - 1;

    /// How many nodes there are.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Behind the places of all nodes, ever.
    pub(crate) fn end(&self) -> NodeId {
        self.records.end()
    }

    /// The first place at `from` or behind it at which a node is or was.
    pub(crate) fn next(&self, from: NodeId) -> Option<NodeId> {
        self.records.next(from)
    }

    /// The memory of all records and small data.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.memory() + self.apart.memory()
    }

    /// Takes in a node. `None` if there are too many.
    pub(crate) fn insert(&mut self, mut node: Node, name: &[u8], data: Option<&[u8]>) -> Option<NodeId> {
        if self.live >= Nodes::MAX {
            return None;
        }
        let short_name =
            (name.len() <= NAME_MAX).then(|| u8::try_from(name.len()).expect("at most NAME_MAX"));
        let start = HEADER + if short_name.is_some() { name.len() } else { HANDLE };
        let whole = start + len_of(data);
        let len = if whole <= RECORD_MAX { whole.max(start + HANDLE) } else { start + HANDLE };
        let units = units_of(len);
        let id = self.records.take(units)?;
        node.units = u8::try_from(units).expect("at most RECORD_MAX");
        node.name_len = short_name.unwrap_or(0);
        node.set(Node::LIVE, true);
        node.set(Node::NAME_APART, short_name.is_none());
        node.set(Node::DATA_APART, false);
        let number;
        let stored = if short_name.is_some() {
            name
        } else {
            number = self.large.insert(name).to_le_bytes();
            &number
        };
        let record = self.records.bytes_mut(id);
        record[HEADER..start].copy_from_slice(stored);
        record[..HEADER].copy_from_slice(bytemuck::bytes_of(&node));
        self.live += 1;
        self.put_data(id, data);
        Some(id)
    }

    /// Removes a node and frees its place.
    pub(crate) fn remove(&mut self, id: NodeId) {
        self.drop_data(id);
        if self.at(id).is(Node::NAME_APART) {
            self.large.remove(handle(&self.records.bytes(id)[HEADER..]));
        }
        self.at_mut(id).flags = 0;
        self.records.give_back(id);
        self.live -= 1;
    }

    /// Has a node's record fetched: header, name and little data.
    #[inline]
    pub(crate) fn prefetch(&self, id: NodeId) {
        let record = self.records.bytes(id);
        for at in [0, LINE, 2 * LINE] {
            record.get(at).into_iter().for_each(prefetch);
        }
    }

    /// The header of a node.
    #[inline]
    pub(crate) fn at(&self, id: NodeId) -> &Node {
        header(self.records.bytes(id))
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, id: NodeId) -> &mut Node {
        bytemuck::from_bytes_mut(&mut self.records.bytes_mut(id)[..HEADER])
    }

    /// Whether a node has that parent and that name.
    #[inline]
    pub(crate) fn is(&self, id: NodeId, parent: NodeId, name: &[u8]) -> bool {
        let record = self.records.bytes(id);
        let node = header(record);
        if node.parent != parent {
            return false;
        }
        if node.is(Node::NAME_APART) {
            return **self.large.get(handle(&record[HEADER..])) == *name;
        }
        usize::from(node.name_len) == name.len() && record[HEADER..HEADER + name.len()] == *name
    }

    /// The name.
    #[inline]
    pub(crate) fn name(&self, id: NodeId) -> &[u8] {
        let record = self.records.bytes(id);
        let node = header(record);
        if node.is(Node::NAME_APART) {
            return self.large.get(handle(&record[HEADER..]));
        }
        &record[HEADER..HEADER + usize::from(node.name_len)]
    }

    /// The data.
    #[inline]
    pub(crate) fn data(&self, id: NodeId) -> Option<&[u8]> {
        let record = self.records.bytes(id);
        let node = header(record);
        if node.data_len == Node::NULL {
            return None;
        }
        let data = &record[data_start(node)..];
        if !node.is(Node::DATA_APART) {
            return Some(&data[..node.data_len.into()]);
        }
        let number = handle(data);
        match node.data_len {
            Node::LARGE => Some(self.large.get(number)),
            len => Some(&self.apart.bytes(number)[..len.into()]),
        }
    }

    /// How many bytes the data have; null has none.
    #[inline]
    pub(crate) fn data_bytes(&self, id: NodeId) -> usize {
        match self.at(id).data_len {
            Node::NULL => 0,
            Node::LARGE => len_of(self.data(id)),
            len => len.into(),
        }
    }

    /// The data, to keep.
    pub(crate) fn shared(&self, id: NodeId) -> Option<Data> {
        let record = self.records.bytes(id);
        let node = header(record);
        if node.data_len == Node::LARGE {
            return Some(self.large.get(handle(&record[data_start(node)..])).clone());
        }
        self.data(id).map(Data::copied)
    }

    /// Puts other data into a node, and tells how many bytes it had.
    pub(crate) fn set_data(&mut self, id: NodeId, data: Option<&[u8]>) -> usize {
        let record = self.records.bytes_mut(id);
        let (header, rest) = record.split_at_mut(HEADER);
        let node: &mut Node = bytemuck::from_bytes_mut(header);
        let start = data_start(node) - HEADER;
        if !node.is(Node::DATA_APART)
            && let Some(data) = data
            && let Some(room) =
                rest[..usize::from(node.units) * UNIT - HEADER].get_mut(start..start + data.len())
        {
            // As most data: they come where others stood.
            let old = bytes_in_place(node);
            node.data_len = u16::try_from(data.len()).expect("at most RECORD_MAX");
            room.copy_from_slice(data);
            return old;
        }
        let old = self.data_bytes(id);
        if !self.set_apart(id, old, data) {
            self.drop_data(id);
            self.put_data(id, data);
        }
        old
    }

    /// Puts data where others stand apart that take as much, if a new node's would stand in such a place too.
    fn set_apart(&mut self, id: NodeId, old: usize, data: Option<&[u8]>) -> bool {
        let record = self.records.bytes_mut(id);
        let (header, rest) = record.split_at_mut(HEADER);
        let node: &mut Node = bytemuck::from_bytes_mut(header);
        let start = data_start(node) - HEADER;
        let room = usize::from(node.units) * UNIT - HEADER - start;
        let Some(data) = data.filter(|data| data.len() > room && data.len() <= APART_MAX) else {
            return false;
        };
        let is_apart = node.is(Node::DATA_APART) && node.data_len != Node::LARGE;
        if !is_apart || units_of(old) != units_of(data.len()) {
            return false;
        }
        node.data_len = u16::try_from(data.len()).expect("at most APART_MAX");
        self.apart.bytes_mut(handle(&rest[start..]))[..data.len()].copy_from_slice(data);
        true
    }

    fn put_data(&mut self, id: NodeId, data: Option<&[u8]>) {
        let record = self.records.bytes_mut(id);
        let (header, rest) = record.split_at_mut(HEADER);
        let node: &mut Node = bytemuck::from_bytes_mut(header);
        let start = data_start(node);
        let room = &mut rest[start - HEADER..usize::from(node.units) * UNIT - HEADER];
        let Some(data) = data else {
            node.data_len = Node::NULL;
            return;
        };
        if data.len() <= room.len() {
            node.data_len = u16::try_from(data.len()).expect("at most RECORD_MAX");
            room[..data.len()].copy_from_slice(data);
            return;
        }
        let place = if data.len() <= APART_MAX { self.apart.take(units_of(data.len())) } else { None };
        let number = if let Some(place) = place {
            self.apart.bytes_mut(place)[..data.len()].copy_from_slice(data);
            node.data_len = u16::try_from(data.len()).expect("at most APART_MAX");
            place
        } else {
            node.data_len = Node::LARGE;
            self.large.insert(data)
        };
        node.set(Node::DATA_APART, true);
        room[..HANDLE].copy_from_slice(&number.to_le_bytes());
    }

    fn drop_data(&mut self, id: NodeId) {
        let record = self.records.bytes(id);
        let node = header(record);
        if !node.is(Node::DATA_APART) {
            return;
        }
        let number = handle(&record[data_start(node)..]);
        match node.data_len {
            Node::LARGE => self.large.remove(number),
            _ => self.apart.give_back(number),
        }
        self.at_mut(id).set(Node::DATA_APART, false);
    }
}

/// The length of data that stand in the record; null has none.
#[inline]
fn bytes_in_place(node: &Node) -> usize {
    if node.data_len == Node::NULL { 0 } else { node.data_len.into() }
}

/// The length of data; null has none.
#[inline]
pub(crate) fn len_of(data: Option<&[u8]>) -> usize {
    data.map_or(0, <[u8]>::len)
}

#[inline]
fn header(record: &[u8]) -> &Node {
    bytemuck::from_bytes(&record[..HEADER])
}

#[inline]
fn data_start(node: &Node) -> usize {
    HEADER + if node.is(Node::NAME_APART) { HANDLE } else { usize::from(node.name_len) }
}

#[inline]
fn handle(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("every record has room for it"))
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    #[test]
    fn names_and_data_of_all_sizes_come_back_and_places_are_used_again() {
        let mut nodes = Nodes::default();
        let bytes = |len: usize| -> Vec<u8> { (0..len).map(|i| (i % 251).to_le_bytes()[0]).collect() };
        let sizes = [0, 1, 3, 4, 100, 440, 460, 461, 464, 513, 4080, 4096, 4097, 100_000];
        let names = [0, 1, 16, 254, 255, 256, 5000];
        let mut ids = Vec::new();
        for name in names {
            for size in sizes {
                let id = nodes.insert(Node::zeroed(), &bytes(name), Some(&bytes(size))).unwrap();
                ids.push((id, name, size));
            }
            ids.push((nodes.insert(Node::zeroed(), &bytes(name), None).unwrap(), name, usize::MAX));
        }
        for &(id, name, size) in &ids {
            let data = (size != usize::MAX).then(|| bytes(size));
            assert_eq!((nodes.name(id), nodes.data(id)), (&bytes(name)[..], data.as_deref()));
            assert_eq!(nodes.data_bytes(id), len_of(data.as_deref()));
            assert_eq!(nodes.shared(id).as_deref(), data.as_deref());
        }
        for (&(id, name, _), size) in ids.iter().zip(sizes.iter().cycle().skip(5)) {
            let had = nodes.data_bytes(id);
            assert_eq!(nodes.set_data(id, Some(&bytes(*size))), had);
            assert_eq!((nodes.name(id), nodes.data(id)), (&bytes(name)[..], Some(&bytes(*size)[..])));
        }
        for _ in 0..200 {
            nodes.set_data(ids[0].0, Some(&bytes(5000)));
        }
        for &(id, name, _) in &ids {
            assert!(nodes.is(id, 0, &bytes(name)) && !nodes.is(id, 1, &bytes(name)));
            let had = nodes.data_bytes(id);
            assert_eq!(nodes.set_data(id, None), had);
            assert_eq!((nodes.name(id), nodes.data(id)), (&bytes(name)[..], None));
            nodes.remove(id);
        }
        // In a place of the same size, in one of another, in the record, apart again: each time all of them.
        let id = nodes.insert(Node::zeroed(), b"apart", Some(&bytes(600))).unwrap();
        let mut had = 600;
        for size in [601, 599, 600, 1200, 640, 625, 4096, 4095, 4097, 4096, 100, 624, 3, 610, 0] {
            assert_eq!(nodes.set_data(id, Some(&bytes(size))), had);
            assert_eq!((nodes.name(id), nodes.data(id)), (&b"apart"[..], Some(&bytes(size)[..])));
            had = size;
        }
        nodes.remove(id);
        assert_eq!((nodes.len(), nodes.records.next(0), nodes.apart.next(0)), (0, None, None));
        assert!(nodes.large.insert(b"") < 100, "numbers are used again");
    }
}
