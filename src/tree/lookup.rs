use super::data_tree::{DataTree, ROOT};
use super::path;
use super::store::NodeId;

/// Where a node was found, for who comes back to it: there it is as long as no node was removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePlace {
    pub(super) id: NodeId,
    parent: NodeId,
    /// Of its parent and name.
    hash: u64,
    /// So many nodes had been removed by then.
    nodes_gone: u64,
}

/// Where a node is, or would be: found once, and then used for all that is done there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'p> {
    pub(super) parent: NodeId,
    pub(super) name: &'p [u8],
    /// Of both.
    pub(super) hash: u64,
    /// Where among the parent's children the name belonged when that was looked for.
    pub(super) chunk: Option<usize>,
}

impl Spot<'_> {
    /// Whether the parent counts into the digest. `path` is the node's.
    pub(super) fn parent_in_digest(&self, path: &str) -> bool {
        path::is_in_digest(&path[..path.len() - self.name.len() - 1])
    }
}

impl DataTree {
    /// The place under a parent for that name.
    #[inline]
    pub(super) fn spot<'p>(&self, parent: NodeId, name: &'p [u8]) -> Spot<'p> {
        Spot { parent, name, hash: self.index.hash(parent, name), chunk: None }
    }

    /// The node that is there.
    #[inline]
    pub(super) fn at_spot(&self, spot: &Spot<'_>) -> Option<NodeId> {
        self.index.find(spot.hash, |id| self.nodes.is(id, spot.parent, spot.name))
    }

    /// The same; `likely` is a node with that hash, if one is known: most probably that node.
    #[inline]
    pub(super) fn likely_at(&self, spot: &Spot<'_>, likely: Option<NodeId>) -> Option<NodeId> {
        likely.filter(|id| self.nodes.is(*id, spot.parent, spot.name)).or_else(|| self.at_spot(spot))
    }

    /// The node at a path.
    pub(super) fn find(&self, path: &str) -> Option<NodeId> {
        if path == path::ROOT { Some(ROOT) } else { self.at_spot(&self.spot_of(path)?) }
    }

    /// The same, to come back to it. Not the root.
    pub(super) fn find_place(&self, path: &str) -> Option<NodePlace> {
        let spot = self.spot_of(path)?;
        let id = self.at_spot(&spot)?;
        Some(NodePlace { id, parent: spot.parent, hash: spot.hash, nodes_gone: self.nodes_gone })
    }

    /// Where a node was found whose path this is; none if it may be another node's place by now.
    pub(super) fn spot_again<'p>(&self, place: &NodePlace, path: &'p str) -> Option<Spot<'p>> {
        let name = &path.as_bytes()[path::last_slash(path.as_bytes())? + 1..];
        let spot = Spot { parent: place.parent, name, hash: place.hash, chunk: None };
        self.is_still(place).then_some(spot)
    }

    /// Whether what was found there is there still.
    #[inline]
    pub(super) fn is_still(&self, place: &NodePlace) -> bool {
        place.nodes_gone == self.nodes_gone
    }

    /// Where the node at a path would be, if its parent is there. Not the root.
    fn spot_of<'p>(&self, path: &'p str) -> Option<Spot<'p>> {
        let path = path.as_bytes();
        let at = path::last_slash(path)?;
        let (above, name) = (&path[..at], &path[at + 1..]);
        let parent = match self.directory.find(above) {
            Some(parent) => parent,
            None if above.len() > 1 => self.find_by_names(above)?,
            // Of two slashes, the second is no parent.
            None if !above.is_empty() => return None,
            None => ROOT,
        };
        Some(self.spot(parent, name))
    }

    /// The same of a path that is most probably a parent's.
    #[inline]
    pub(super) fn find_parent(&self, path: &str) -> Option<NodeId> {
        let path = path.as_bytes();
        self.directory.find(path).or_else(|| self.find_by_names(path))
    }

    fn find_by_names(&self, path: &[u8]) -> Option<NodeId> {
        let mut names = path.strip_prefix(b"/")?;
        if names.is_empty() {
            return Some(ROOT);
        }
        let mut parent = ROOT;
        while let Some(end) = path::first_slash(names) {
            parent = self.find_child(parent, &names[..end])?;
            names = &names[end + 1..];
        }
        self.find_child(parent, names)
    }

    #[inline]
    pub(super) fn find_child(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.at_spot(&self.spot(parent, name))
    }

    /// A node's path.
    pub(super) fn path_of(&self, id: NodeId) -> String {
        let mut path = Vec::new();
        self.write_path(id, &mut path);
        String::from_utf8(path).expect("names came as text")
    }

    fn write_path(&self, id: NodeId, path: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let mut at = id;
        while at != ROOT {
            chain.push(at);
            at = self.nodes.at(at).parent;
        }
        if chain.is_empty() {
            path.push(b'/');
        }
        for id in chain.into_iter().rev() {
            path.push(b'/');
            path.extend(self.name(id));
        }
    }
}
