use bytemuck::{Pod, Zeroable};

use crate::base::Zxid;

/// A node's place in the store. Stays the same as long as the node lives, and is then used again.
pub(crate) type NodeId = u32;

/// A time in six bytes: milliseconds up to the year 10889. Other values are kept out of line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Packed([u8; 6]);

impl Packed {
    pub(crate) const ZERO: Packed = Packed([0; 6]);

    /// Packs a time, if it fits.
    pub(crate) fn of(time_ms: i64) -> Option<Packed> {
        if !(0..1 << 48).contains(&time_ms) {
            return None;
        }
        let bytes = time_ms.to_le_bytes();
        Some(Packed(*bytes.first_chunk().expect("eight bytes")))
    }

    pub(crate) fn get(self) -> i64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0);
        i64::from_le_bytes(bytes)
    }
}

/// What every node has; its name and data follow in memory. What few nodes have stands in side tables, which a flag tells to look into.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Node {
    /// As plain numbers, so that records can be seen as bytes.
    pub(crate) czxid: u64,
    pub(crate) mzxid: u64,
    pub(crate) ctime: Packed,
    pub(crate) mtime: Packed,
    pub(crate) version: i32,
    /// The node's digest, which changes with its data and with each field that is told below or kept elsewhere.
    pub(crate) digest: u32,
    pub(crate) parent: NodeId,
    /// [`Node::NULL`], [`Node::LARGE`], or the length of the data.
    pub(crate) data_len: u16,
    /// Which ACL list; [`Node::ACL_APART`] if its number stands out of line.
    pub(crate) acl: u16,
    /// The length of the name, if it stands here.
    pub(crate) name_len: u8,
    /// The length of the whole record in units of the slab.
    pub(crate) units: u8,
    pub(crate) flags: u8,
    pub(crate) unused: u8,
}

impl Node {
    /// Not a free place.
    pub(crate) const LIVE: u8 = 1;
    /// Owner, aversion, or a value that does not fit stands in the table of rare fields.
    pub(crate) const RARE: u8 = 2;
    /// It has, or had, children: cversion and pzxid stand in the table of parents.
    pub(crate) const PARENT: u8 = 4;
    /// Where the data would begin stands a number that tells where they are.
    pub(crate) const DATA_APART: u8 = 8;
    /// The same for the name.
    pub(crate) const NAME_APART: u8 = 16;
    /// A length of data that says that there is none.
    pub(crate) const NULL: u16 = u16::MAX;
    /// A length of data that says that they are an allocation of their own.
    pub(crate) const LARGE: u16 = u16::MAX - 1;
    /// The ACL's number is too large for the field.
    pub(crate) const ACL_APART: u16 = u16::MAX;

    pub(crate) fn czxid(&self) -> Zxid {
        Zxid::new(self.czxid)
    }

    pub(crate) fn mzxid(&self) -> Zxid {
        Zxid::new(self.mzxid)
    }

    pub(crate) fn set_czxid(&mut self, zxid: Zxid) {
        self.czxid = zxid.get();
    }

    pub(crate) fn set_mzxid(&mut self, zxid: Zxid) {
        self.mzxid = zxid.get();
    }

    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

const _: () = assert!(size_of::<Node>() == 48, "a node's record is what memory is made of");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fit_or_are_told_apart() {
        for time in [0, 1, 1_700_000_000_000, (1 << 48) - 1] {
            assert_eq!(Packed::of(time).map(Packed::get), Some(time));
        }
        for time in [-1, 1 << 48, i64::MIN, i64::MAX] {
            assert_eq!(Packed::of(time), None);
        }
    }
}
