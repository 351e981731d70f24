use std::fmt;

/// What an ACL entry grants: a set of permissions.
///
/// Source: `org.apache.zookeeper.ZooDefs.Perms`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Perms(i32);

impl Perms {
    /// Read data and list children.
    pub const READ: Perms = Perms(1);
    /// Set data.
    pub const WRITE: Perms = Perms(2);
    /// Create a child.
    pub const CREATE: Perms = Perms(4);
    /// Delete a child.
    pub const DELETE: Perms = Perms(8);
    /// Set the ACL.
    pub const ADMIN: Perms = Perms(16);
    /// All of them.
    pub const ALL: Perms = Perms(31);

    /// The permissions of these bits; other bits are kept, and grant nothing.
    pub const fn new(bits: i32) -> Perms {
        Perms(bits)
    }

    /// The bits.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// Whether one of `wanted` is among them, as ZooKeeper asks.
    pub const fn any_of(self, wanted: Perms) -> bool {
        self.0 & wanted.0 != 0
    }
}

impl std::ops::BitOr for Perms {
    type Output = Perms;

    fn bitor(self, other: Perms) -> Perms {
        Perms(self.0 | other.0)
    }
}

/// An entry of an ACL list, borrowed: who (`scheme` and `id`) may do what.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AclEntry<'a> {
    /// What it grants.
    pub perms: Perms,
    /// How the identity is told: `world`, `auth`, `digest`, `ip`, `x509`, or any other word.
    pub scheme: &'a str,
    /// The identity, as its scheme writes it.
    pub id: &'a str,
}

/// The same, owned, as it comes in a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acl {
    /// What it grants.
    pub perms: Perms,
    /// How the identity is told.
    pub scheme: String,
    /// The identity.
    pub id: String,
}

impl Acl {
    /// An entry.
    pub fn new(perms: Perms, scheme: impl Into<String>, id: impl Into<String>) -> Acl {
        Acl { perms, scheme: scheme.into(), id: id.into() }
    }

    /// Everybody may do everything: ZooKeeper's `OPEN_ACL_UNSAFE`.
    pub fn open() -> Acl {
        Acl::new(Perms::ALL, "world", "anyone")
    }

    /// Borrowed.
    pub fn as_entry(&self) -> AclEntry<'_> {
        AclEntry { perms: self.perms, scheme: &self.scheme, id: &self.id }
    }
}

/// An ACL list as txns carry it and the tree keeps it: valid bytes, equal if and only if the lists are, entry by
/// entry in order. An empty one is a node without an ACL, on which everybody may do everything.
///
/// Each entry: perms (i32), the lengths of scheme and id (u16 and u32), both strings; little-endian, not aligned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AclList<'a>(&'a [u8]);

impl<'a> AclList<'a> {
    /// No entries: everybody may do everything.
    pub const EMPTY: AclList<'static> = AclList(&[]);

    /// Takes bytes for a list if they are one, whole and with nothing behind.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<AclList<'a>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = split_entry(rest)?.1;
        }
        Some(AclList(bytes))
    }

    /// Takes bytes that were a list before.
    pub(crate) const fn of_valid(bytes: &'a [u8]) -> AclList<'a> {
        AclList(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether it has no entries.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Its entries in order.
    pub fn iter(self) -> impl Iterator<Item = AclEntry<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (entry, behind) = split_entry(rest)?;
            rest = behind;
            Some(entry)
        })
    }

    /// A copy that owns its bytes.
    pub fn to_buf(self) -> AclBuf {
        AclBuf(self.0.to_vec())
    }
}

impl fmt::Debug for AclList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn split_entry(bytes: &[u8]) -> Option<(AclEntry<'_>, &[u8])> {
    let (perms, rest) = bytes.split_first_chunk::<4>()?;
    let (scheme_len, rest) = rest.split_first_chunk::<2>()?;
    let (id_len, rest) = rest.split_first_chunk::<4>()?;
    let (scheme, rest) = rest.split_at_checked(u16::from_le_bytes(*scheme_len).into())?;
    let (id, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*id_len)).ok()?)?;
    let (scheme, id) = (std::str::from_utf8(scheme).ok()?, std::str::from_utf8(id).ok()?);
    Some((AclEntry { perms: Perms(i32::from_le_bytes(*perms)), scheme, id }, rest))
}

/// An ACL list that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct AclBuf(Vec<u8>);

impl AclBuf {
    /// An empty list.
    pub const fn new() -> AclBuf {
        AclBuf(Vec::new())
    }

    /// Adds an entry at the end.
    ///
    /// # Panics
    /// If the scheme has more than 65,535 bytes, or the id more than 4 GiB.
    pub fn push(&mut self, entry: AclEntry<'_>) {
        let scheme_len = u16::try_from(entry.scheme.len()).expect("a scheme is a word");
        let id_len = u32::try_from(entry.id.len()).expect("an identity fits a record");
        self.0.extend(entry.perms.get().to_le_bytes());
        self.0.extend(scheme_len.to_le_bytes());
        self.0.extend(id_len.to_le_bytes());
        self.0.extend(entry.scheme.as_bytes());
        self.0.extend(entry.id.as_bytes());
    }

    /// Borrowed.
    pub fn as_list(&self) -> AclList<'_> {
        AclList(&self.0)
    }
}

impl<'e> FromIterator<AclEntry<'e>> for AclBuf {
    fn from_iter<I: IntoIterator<Item = AclEntry<'e>>>(entries: I) -> AclBuf {
        let mut list = AclBuf::new();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
}

impl fmt::Debug for AclBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_list().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_round_trips_and_is_equal_by_its_bytes() {
        let entries = [Acl::open(), Acl::new(Perms::READ | Perms::WRITE, "digest", "bob:hash=")];
        let list: AclBuf = entries.iter().map(Acl::as_entry).collect();
        let back: Vec<AclEntry<'_>> = list.as_list().iter().collect();
        assert_eq!(back, entries.iter().map(Acl::as_entry).collect::<Vec<_>>());
        let turned: AclBuf = entries.iter().rev().map(Acl::as_entry).collect();
        assert_ne!(list, turned);
        assert_eq!(AclList::from_bytes(list.as_list().as_bytes()), Some(list.as_list()));
    }

    #[test]
    fn bytes_that_are_no_list_are_refused() {
        let list: AclBuf = [Acl::open()].iter().map(Acl::as_entry).collect();
        let bytes = list.as_list().as_bytes();
        for len in 1..bytes.len() {
            assert_eq!(AclList::from_bytes(&bytes[..len]), None, "{len}");
        }
        let mut bad = bytes.to_vec();
        *bad.last_mut().unwrap() = 0xff;
        assert_eq!(AclList::from_bytes(&bad), None);
    }
}
