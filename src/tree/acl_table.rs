use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::format::AclList;

/// The lists of all nodes, each kept once with the number of nodes that use it. The empty list is number 0 and is
/// not counted.
///
/// Numbers never leave memory: a list that nobody uses any more is forgotten, and its number used again.
#[derive(Debug, Default)]
pub(crate) struct AclTable {
    lists: Vec<Interned>,
    free: Vec<u32>,
    /// Where the one stands that was asked for last.
    last: usize,
    by_bytes: HashTable<u32>,
    hashing: DefaultHashBuilder,
}

#[derive(Debug)]
struct Interned {
    bytes: Box<[u8]>,
    uses: u32,
}

impl AclTable {
    /// The number of a list, which has one use more.
    pub(crate) fn intern(&mut self, list: AclList<'_>) -> u32 {
        if list.is_empty() {
            return 0;
        }
        let bytes = list.as_bytes();
        // Mostly it is the same as before.
        if let Some(last) = self.lists.get_mut(self.last)
            && *last.bytes == *bytes
        {
            last.uses += 1;
            return number_of(self.last);
        }
        let hash = self.hashing.hash_one(bytes);
        let lists = &mut self.lists;
        if let Some(&number) = self.by_bytes.find(hash, |n| *lists[*n as usize - 1].bytes == *bytes) {
            self.last = number as usize - 1;
            lists[self.last].uses += 1;
            return number;
        }
        let interned = Interned { bytes: bytes.into(), uses: 1 };
        let number = if let Some(number) = self.free.pop() {
            lists[number as usize - 1] = interned;
            number
        } else {
            lists.push(interned);
            number_of(lists.len() - 1)
        };
        let (hashing, lists) = (&self.hashing, &self.lists);
        self.by_bytes.insert_unique(hash, number, |n| hashing.hash_one(&*lists[*n as usize - 1].bytes));
        number
    }

    /// Takes a use away.
    pub(crate) fn release(&mut self, number: u32) {
        let Some(at) = (number as usize).checked_sub(1) else { return };
        let interned = &mut self.lists[at];
        interned.uses -= 1;
        if interned.uses == 0 {
            let bytes = std::mem::take(&mut interned.bytes);
            if let Ok(entry) = self.by_bytes.find_entry(self.hashing.hash_one(&*bytes), |n| *n == number) {
                entry.remove();
            }
            self.free.push(number);
        }
    }

    /// The list of a number.
    pub(crate) fn get(&self, number: u32) -> AclList<'_> {
        match (number as usize).checked_sub(1) {
            None => AclList::EMPTY,
            Some(at) => AclList::of_valid(&self.lists[at].bytes),
        }
    }

    /// How many lists there are, and the uses of all of them.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, u64) {
        (self.by_bytes.len(), self.lists.iter().map(|l| u64::from(l.uses)).sum())
    }
}

/// The number of the list that stands there.
fn number_of(at: usize) -> u32 {
    u32::try_from(at + 1).expect("fewer lists than nodes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Acl, AclBuf, Perms};

    #[test]
    fn lists_are_kept_once_and_go_with_their_last_use() {
        let list = |n: i32| -> AclBuf {
            [Acl::new(Perms::new(n), "digest", n.to_string()).as_entry()].into_iter().collect()
        };
        let mut table = AclTable::default();
        assert_eq!(table.intern(AclList::EMPTY), 0);
        let one = table.intern(list(1).as_list());
        assert_eq!(table.intern(list(1).as_list()), one);
        let two = table.intern(list(2).as_list());
        assert_eq!((table.get(one), table.get(two)), (list(1).as_list(), list(2).as_list()));
        assert_eq!(table.counts(), (2, 3));
        table.release(one);
        table.release(one);
        assert_eq!(table.counts(), (1, 1));
        assert_eq!(table.intern(list(3).as_list()), one, "numbers are used again");
        table.release(0);
        for n in 0..1000 {
            table.intern(list(n).as_list());
        }
        assert_eq!(table.counts().0, 1000);
    }
}
