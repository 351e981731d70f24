use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::store::NodeId;

/// A node is listed once it has so many children: what its path takes is little for each of them. Fewer in tests, whose
/// trees are small.
pub(super) const LISTED_FROM: u32 = if cfg!(test) { 2 } else { 32 };
/// Nodes with longer paths are found name by name.
const PATH_MAX: usize = 128;

/// The nodes with many children, by their paths. Most look-ups are of a child of one of them, and its parent is found at
/// once so, not name by name. A node's path never changes, so that it stays listed until it is removed.
#[derive(Debug, Default)]
pub(super) struct Directory {
    listed: HashTable<Listed>,
    hashing: DefaultHashBuilder,
}

#[derive(Debug)]
struct Listed {
    path: Box<str>,
    id: NodeId,
}

impl Directory {
    /// The node at a path, if it is listed.
    #[inline]
    pub(super) fn find(&self, path: &[u8]) -> Option<NodeId> {
        if self.listed.is_empty() {
            return None;
        }
        self.listed.find(self.hash(path), |listed| *listed.path.as_bytes() == *path).map(|listed| listed.id)
    }

    /// Lists a node that is not listed yet, unless its path is too long; the root, whose path is empty here, is found
    /// without. Returns whether it is listed.
    pub(super) fn enter(&mut self, path: &str, id: NodeId) -> bool {
        if path.is_empty() || path.len() > PATH_MAX {
            return false;
        }
        let (hash, hashing) = (self.hash(path.as_bytes()), self.hashing);
        self.listed.insert_unique(hash, Listed { path: path.into(), id }, |other| {
            hash_of(hashing, other.path.as_bytes())
        });
        true
    }

    /// Forgets a node, if it is listed.
    pub(super) fn leave(&mut self, path: &str) {
        if let Ok(entry) = self.listed.find_entry(self.hash(path.as_bytes()), |listed| *listed.path == *path)
        {
            entry.remove();
        }
    }

    /// All of them.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, NodeId)> {
        self.listed.iter().map(|listed| (&*listed.path, listed.id))
    }

    #[inline]
    fn hash(&self, path: &[u8]) -> u64 {
        hash_of(self.hashing, path)
    }
}

#[inline]
fn hash_of(hashing: DefaultHashBuilder, path: &[u8]) -> u64 {
    let mut hasher = hashing.build_hasher();
    hasher.write(path);
    hasher.finish()
}
