//! What fills a tree, counted node by node.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use arborlog::Owner;

/// Upper bounds of the classes of data sizes, in bytes; what is larger than the last one is a class of its own.
pub(crate) const CLASSES: [u64; 9] = [0, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Counts of nodes, and of the bytes of their data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) nodes: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.nodes += 1;
        self.bytes += bytes;
    }
}

/// The counts. Memory is that of a number for each node that has children, of the subtrees at the depth, and of the
/// largest few.
#[derive(Debug)]
pub(crate) struct Analysis {
    depth: usize,
    top: usize,
    pub(crate) all: Sum,
    pub(crate) without_data: u64,
    pub(crate) persistent: u64,
    pub(crate) ephemeral: u64,
    pub(crate) container: u64,
    pub(crate) ttl: u64,
    pub(crate) classes: [Sum; CLASSES.len() + 1],
    subtrees: HashMap<Box<str>, Sum>,
    largest: BinaryHeap<Reverse<(u64, Reverse<Box<str>>)>>,
    /// Children by a hash of their parent's path: the paths of all parents could be more than memory holds.
    children: HashMap<u64, u64>,
}

impl Analysis {
    pub(crate) fn new(depth: usize, top: usize) -> Analysis {
        Analysis {
            depth,
            top,
            all: Sum::default(),
            without_data: 0,
            persistent: 0,
            ephemeral: 0,
            container: 0,
            ttl: 0,
            classes: [Sum::default(); CLASSES.len() + 1],
            subtrees: HashMap::new(),
            largest: BinaryHeap::new(),
            children: HashMap::new(),
        }
    }

    pub(crate) fn node(&mut self, path: &str, data_bytes: Option<usize>, owner: Owner) {
        let bytes = data_bytes.unwrap_or(0) as u64;
        self.without_data += u64::from(data_bytes.is_none());
        self.all.add(bytes);
        match owner {
            Owner::Persistent => self.persistent += 1,
            Owner::Session(_) => self.ephemeral += 1,
            Owner::Container => self.container += 1,
            Owner::Ttl { .. } => self.ttl += 1,
        }
        let class = CLASSES.iter().position(|bound| bytes <= *bound).unwrap_or(CLASSES.len());
        self.classes[class].add(bytes);
        let top = ancestor(path, self.depth);
        match self.subtrees.get_mut(top) {
            Some(sum) => sum.add(bytes),
            None => self.subtrees.entry(top.into()).or_default().add(bytes),
        }
        if let Some(parent) = parent(path) {
            *self.children.entry(hash(parent)).or_default() += 1;
        }
        let is_large = self.largest.len() < self.top
            || self.largest.peek().is_some_and(|Reverse((least, _))| bytes > *least);
        if is_large {
            self.largest.push(Reverse((bytes, Reverse(path.into()))));
            if self.largest.len() > self.top {
                self.largest.pop();
            }
        }
    }

    /// The subtrees with the most bytes, the largest first.
    pub(crate) fn subtrees(&self) -> Vec<(&str, Sum)> {
        let mut subtrees: Vec<(&str, Sum)> =
            self.subtrees.iter().map(|(path, sum)| (&**path, *sum)).collect();
        subtrees.sort_by_key(|(path, sum)| (Reverse(sum.bytes), Reverse(sum.nodes), *path));
        subtrees.truncate(self.top);
        subtrees
    }

    /// The nodes with the most data, the largest first.
    pub(crate) fn largest(&self) -> Vec<(&str, u64)> {
        let mut largest: Vec<(&str, u64)> =
            self.largest.iter().map(|Reverse((bytes, Reverse(path)))| (&**path, *bytes)).collect();
        largest.sort_by_key(|(path, bytes)| (Reverse(*bytes), *path));
        largest
    }

    /// The nodes with the most children, by the hashes of their paths.
    pub(crate) fn crowded(&self) -> HashMap<u64, u64> {
        let mut crowded: Vec<(u64, u64)> =
            self.children.iter().map(|(hash, count)| (*hash, *count)).collect();
        crowded.sort_unstable_by_key(|(hash, count)| (Reverse(*count), *hash));
        crowded.truncate(self.top);
        crowded.into_iter().collect()
    }

    /// How many nodes have children.
    pub(crate) fn parents(&self) -> usize {
        self.children.len()
    }
}

/// The hash under which children are counted.
pub(crate) fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn parent(path: &str) -> Option<&str> {
    let (parent, name) = path.rsplit_once('/')?;
    if name.is_empty() {
        return None;
    }
    Some(if parent.is_empty() { "/" } else { parent })
}

/// The node `depth` levels below the root at or above this one; the node itself if it is not as deep.
fn ancestor(path: &str, depth: usize) -> &str {
    if depth == 0 {
        return "/";
    }
    path.match_indices('/').nth(depth).map_or(path, |(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!((parent("/"), parent("/a"), parent("/a/b")), (None, Some("/"), Some("/a")));
        for (depth, expected) in [(0, "/"), (1, "/a"), (2, "/a/b"), (3, "/a/b/c"), (9, "/a/b/c")] {
            assert_eq!(ancestor("/a/b/c", depth), expected);
        }
        assert_eq!(ancestor("/", 1), "/");
    }

    #[test]
    fn counts_are_those_of_all_nodes_and_lists_those_of_the_largest() {
        let mut analysis = Analysis::new(1, 2);
        analysis.node("/", Some(0), Owner::Persistent);
        for n in 0..10 {
            analysis.node(&format!("/a/{n}"), Some(n * 100), Owner::Session(7));
        }
        analysis.node("/a", None, Owner::Container);
        analysis.node("/b", Some(2 << 20), Owner::Ttl { ttl_ms: 5 });
        assert_eq!(analysis.all, Sum { nodes: 13, bytes: 4500 + (2 << 20) });
        assert_eq!(
            (analysis.persistent, analysis.ephemeral, analysis.container, analysis.ttl),
            (1, 10, 1, 1)
        );
        assert_eq!(
            analysis.subtrees(),
            [("/b", Sum { nodes: 1, bytes: 2 << 20 }), ("/a", Sum { nodes: 11, bytes: 4500 }),]
        );
        assert_eq!(analysis.largest(), [("/b", 2 << 20), ("/a/9", 900)]);
        assert_eq!(analysis.crowded(), [(hash("/a"), 10), (hash("/"), 2)].into());
        assert_eq!((analysis.without_data, analysis.parents()), (1, 2));
        let nodes: Vec<u64> = analysis.classes.iter().map(|sum| sum.nodes).collect();
        assert_eq!(nodes, [3, 0, 2, 7, 0, 0, 0, 0, 0, 1]);
    }
}
