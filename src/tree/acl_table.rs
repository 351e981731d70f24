use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::acl_check::granted_to_anyone;
use crate::format::{AclList, Perms};

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
    /// What it grants to everybody.
    to_anyone: Perms,
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
        let interned = Interned { bytes: bytes.into(), to_anyone: granted_to_anyone(list), uses: 1 };
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

    /// Whether the list of a number grants one of these to everybody: mostly all there is to know, and known without
    /// reading the list.
    pub(crate) fn allows_anyone(&self, number: u32, wanted: Perms) -> bool {
        (number as usize).checked_sub(1).is_none_or(|at| self.lists[at].to_anyone.any_of(wanted))
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
    use crate::format::{Acl, AclBuf};
    use crate::tree::{Identity, acl_allows};

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

    /// Also of a number that another list had before.
    #[test]
    fn what_is_granted_to_everybody_is_what_a_list_grants_to_nobody_in_particular() {
        let entries = [
            ("world", "anyone", 1),
            ("world", "anyone", 6),
            ("world", "anybody", 31),
            ("auth", "", 31),
            ("ip", "10.0.0.1", 8),
            ("ip", "0.0.0.0/0", 31),
            ("digest", "bob:x", 16),
            ("digest", "", 4),
        ];
        let mut table = AclTable::default();
        for chosen in 0..1_u32 << entries.len() {
            let chosen = entries.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            let acls = chosen.map(|(_, (scheme, id, bits))| Acl::new(Perms::new(*bits), *scheme, *id));
            let acls: Vec<Acl> = acls.collect();
            let list: AclBuf = acls.iter().map(Acl::as_entry).collect();
            let number = table.intern(list.as_list());
            for bits in 0..32 {
                let wanted = Perms::new(bits);
                let allows = table.allows_anyone(number, wanted);
                assert_eq!(allows, acl_allows(list.as_list(), &[], wanted), "{acls:?} {bits}");
                let bob = [Identity::new("digest", "bob:x")];
                assert!(!allows || acl_allows(list.as_list(), &bob, wanted), "{acls:?} {bits}");
            }
            table.release(number);
        }
    }
}
