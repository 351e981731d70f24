use std::sync::Arc;

use super::arena::Arena;

/// Pages are about this large.
const PAGE_BYTES: usize = 32 * 1024;
/// Up to this size the sizes of places are 8 bytes apart, above it 64.
const FINE_MAX: usize = 512;
/// Name and data together up to this size, with their lengths, stand in a page; larger ones by themselves.
const INLINE_MAX: usize = 4096;
const FINE_CLASSES: usize = FINE_MAX / 8;
const CLASSES: usize = FINE_CLASSES + (INLINE_MAX - FINE_MAX) / 64;
/// The lengths of name and data.
const HEADER: usize = 4;
/// A data length that says that there is none.
const NULL: u16 = u16::MAX;
/// No further free place.
const NO_SLOT: u32 = u32::MAX;

/// Where a node's name and data stand: a size class, and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlobId {
    pub(crate) class: u8,
    pub(crate) slot: u32,
}

impl BlobId {
    /// The class of those that stand by themselves.
    const LARGE: u8 = u8::MAX;
}

/// A node's data, to keep: shared with the tree where it is large, copied where copying is cheaper than sharing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data(Arc<[u8]>);

impl Data {
    pub(crate) fn copied(bytes: &[u8]) -> Data {
        Data(Arc::from(bytes))
    }
}

impl std::ops::Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Places of one size.
#[derive(Debug)]
struct Class {
    size: usize,
    /// So many places are in a page.
    per_page: u32,
    /// Their numbers in the arena.
    pages: Vec<u32>,
    used: u32,
    free: u32,
}

impl Class {
    fn new(class: usize) -> Class {
        let size = size_of_class(class);
        let per_page = u32::try_from(PAGE_BYTES / size).expect("small");
        Class { size, per_page, pages: Vec::new(), used: 0, free: NO_SLOT }
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        ((slot / self.per_page) as usize, (slot % self.per_page) as usize * self.size)
    }

    fn bytes<'a>(&self, arena: &'a Arena, slot: u32) -> &'a [u8] {
        let (page, at) = self.place(slot);
        &arena.piece(self.pages[page] as usize)[at..at + self.size]
    }

    fn bytes_mut<'a>(&self, arena: &'a mut Arena, slot: u32) -> &'a mut [u8] {
        let (page, at) = self.place(slot);
        &mut arena.piece_mut(self.pages[page] as usize)[at..at + self.size]
    }

    fn take(&mut self, arena: &mut Arena) -> u32 {
        if self.free != NO_SLOT {
            let slot = self.free;
            let next = self.bytes(arena, slot).first_chunk().expect("a place has eight bytes");
            self.free = u32::from_le_bytes(*next);
            return slot;
        }
        let slot = self.used;
        self.used += 1;
        if self.place(slot).0 == self.pages.len() {
            self.pages.push(u32::try_from(arena.add()).expect("64 TiB are enough"));
        }
        slot
    }

    fn give_back(&mut self, arena: &mut Arena, slot: u32) {
        let next = self.free.to_le_bytes();
        self.bytes_mut(arena, slot)[..4].copy_from_slice(&next);
        self.free = slot;
    }
}

/// A node with much data.
#[derive(Debug)]
struct Large {
    name: Box<[u8]>,
    data: Option<Arc<[u8]>>,
}

/// The names and data of all nodes, packed into pages by size so that a node costs no allocation of its own.
#[derive(Debug)]
pub(crate) struct Blobs {
    arena: Arena,
    classes: Vec<Class>,
    large: Vec<Option<Large>>,
    large_free: Vec<u32>,
}

impl Blobs {
    pub(crate) fn new() -> Blobs {
        Blobs {
            arena: Arena::new(PAGE_BYTES),
            classes: (0..CLASSES).map(Class::new).collect(),
            large: Vec::new(),
            large_free: Vec::new(),
        }
    }

    /// Stores a name with data.
    pub(crate) fn insert(&mut self, name: &[u8], data: Option<&[u8]>) -> BlobId {
        let len = HEADER + name.len() + data.map_or(0, <[u8]>::len);
        if len > INLINE_MAX {
            return self.insert_large(Large { name: name.into(), data: data.map(Arc::from) });
        }
        let class = class_of(len);
        let class_number = u8::try_from(class).expect("few classes");
        let class = &mut self.classes[class];
        let slot = class.take(&mut self.arena);
        let place = class.bytes_mut(&mut self.arena, slot);
        let data_len = data.map_or(NULL, |d| u16::try_from(d.len()).expect("at most INLINE_MAX"));
        let name_len = u16::try_from(name.len()).expect("at most INLINE_MAX");
        place[..2].copy_from_slice(&name_len.to_le_bytes());
        place[2..HEADER].copy_from_slice(&data_len.to_le_bytes());
        place[HEADER..HEADER + name.len()].copy_from_slice(name);
        if let Some(data) = data {
            place[HEADER + name.len()..len].copy_from_slice(data);
        }
        BlobId { class: class_number, slot }
    }

    fn insert_large(&mut self, large: Large) -> BlobId {
        let slot = if let Some(slot) = self.large_free.pop() {
            self.large[slot as usize] = Some(large);
            slot
        } else {
            self.large.push(Some(large));
            u32::try_from(self.large.len() - 1).expect("fewer than nodes")
        };
        BlobId { class: BlobId::LARGE, slot }
    }

    /// Puts other data beside the name.
    pub(crate) fn set_data(&mut self, id: BlobId, data: Option<&[u8]>) -> BlobId {
        if id.class != BlobId::LARGE {
            let name_len = self.lengths(id).0;
            let len = HEADER + name_len + data.map_or(0, <[u8]>::len);
            if len <= INLINE_MAX && class_of(len) == usize::from(id.class) {
                // In its place.
                let data_len = data.map_or(NULL, |d| u16::try_from(d.len()).expect("at most INLINE_MAX"));
                let place = self.classes[usize::from(id.class)].bytes_mut(&mut self.arena, id.slot);
                place[2..HEADER].copy_from_slice(&data_len.to_le_bytes());
                if let Some(data) = data {
                    place[HEADER + name_len..len].copy_from_slice(data);
                }
                return id;
            }
        }
        let name = self.name(id).to_vec();
        self.remove(id);
        self.insert(&name, data)
    }

    /// The memory of all pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Frees a place.
    pub(crate) fn remove(&mut self, id: BlobId) {
        if id.class == BlobId::LARGE {
            self.large[id.slot as usize] = None;
            self.large_free.push(id.slot);
        } else {
            self.classes[usize::from(id.class)].give_back(&mut self.arena, id.slot);
        }
    }

    fn lengths(&self, id: BlobId) -> (usize, u16) {
        let place = self.classes[usize::from(id.class)].bytes(&self.arena, id.slot);
        (u16::from_le_bytes([place[0], place[1]]).into(), u16::from_le_bytes([place[2], place[3]]))
    }

    fn large(&self, id: BlobId) -> &Large {
        self.large[id.slot as usize].as_ref().expect("a place that is in use")
    }

    /// The name.
    pub(crate) fn name(&self, id: BlobId) -> &[u8] {
        if id.class == BlobId::LARGE {
            return &self.large(id).name;
        }
        let place = self.classes[usize::from(id.class)].bytes(&self.arena, id.slot);
        let len = usize::from(u16::from_le_bytes([place[0], place[1]]));
        &place[HEADER..HEADER + len]
    }

    /// The data.
    pub(crate) fn data(&self, id: BlobId) -> Option<&[u8]> {
        if id.class == BlobId::LARGE {
            return self.large(id).data.as_deref();
        }
        let (name_len, data_len) = self.lengths(id);
        let start = HEADER + name_len;
        let place = self.classes[usize::from(id.class)].bytes(&self.arena, id.slot);
        (data_len != NULL).then(|| &place[start..start + usize::from(data_len)])
    }

    /// The data, to keep.
    pub(crate) fn shared(&self, id: BlobId) -> Option<Data> {
        if id.class == BlobId::LARGE {
            return self.large(id).data.clone().map(Data);
        }
        self.data(id).map(Data::copied)
    }
}

fn class_of(len: usize) -> usize {
    if len <= FINE_MAX {
        len.div_ceil(8).max(1) - 1
    } else {
        FINE_CLASSES + (len - FINE_MAX).div_ceil(64) - 1
    }
}

fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES { 8 * (class + 1) } else { FINE_MAX + 64 * (class + 1 - FINE_CLASSES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_fits_its_class_and_no_smaller_one() {
        for len in 1..=INLINE_MAX {
            let class = class_of(len);
            assert!(size_of_class(class) >= len, "{len}");
            assert!(class == 0 || size_of_class(class - 1) < len, "{len}");
        }
        assert_eq!(class_of(INLINE_MAX), CLASSES - 1);
    }

    #[test]
    fn names_and_data_of_all_sizes_come_back_and_places_are_used_again() {
        let mut blobs = Blobs::new();
        let data = |len: usize| -> Vec<u8> { (0..len).map(|i| (i % 251).to_le_bytes()[0]).collect() };
        let sizes = [0, 1, 3, 4, 100, 500, 511, 513, 4080, 4092, 5000, 100_000];
        let ids: Vec<BlobId> = sizes.iter().map(|&len| blobs.insert(b"name", Some(&data(len)))).collect();
        let null = blobs.insert(b"", None);
        for (&id, &len) in ids.iter().zip(&sizes) {
            assert_eq!(blobs.name(id), b"name");
            assert_eq!(blobs.data(id), Some(&data(len)[..]));
            assert_eq!(blobs.shared(id).as_deref(), Some(&data(len)[..]));
        }
        assert_eq!((blobs.name(null), blobs.data(null)), (&b""[..], None));
        for (&id, &len) in ids.iter().zip(sizes.iter().rev()) {
            let id = blobs.set_data(id, Some(&data(len)));
            assert_eq!((blobs.name(id), blobs.data(id)), (&b"name"[..], Some(&data(len)[..])));
            blobs.remove(id);
        }
        let again: Vec<BlobId> = sizes.iter().map(|&len| blobs.insert(b"eman", Some(&data(len)))).collect();
        assert_eq!(blobs.classes.iter().map(|c| c.pages.len()).max(), Some(1));
        assert!(again.iter().zip(&sizes).all(|(&id, &len)| blobs.data(id) == Some(&data(len)[..])));
    }
}
