use bytemuck::Zeroable;
use hashbrown::{HashMap, HashSet};

use super::acl_table::AclTable;
use super::digest::{changed_digest, whole_digest};
use super::directory::{Directory, LISTED_FROM};
use super::family::{Family, Raise, family_of};
use super::lookup::Spot;
use super::owner::Owner;
use super::path;
use super::quota::Quotas;
use super::sessions::Sessions;
use super::store::{Index, Node, NodeId, Nodes, Packed, len_of};
use super::stored_stat::StoredStat;
use crate::base::Zxid;
use crate::format::{AclBuf, AclEntry, AclList, Perms};

/// A tree of nodes with ZooKeeper's semantics, and the sessions that own some of them.
///
/// Changed by txns alone, with [`apply`](DataTree::apply); the same txns make the same tree, everywhere. Reads take
/// `&self`; put it into a [`SharedTree`](crate::SharedTree) to read while it is changed.
#[derive(Debug)]
pub struct DataTree {
    pub(super) nodes: Nodes,
    pub(super) index: Index,
    /// What nodes have that have, or had, children.
    pub(super) families: HashMap<NodeId, Family>,
    /// Where parents are found at once.
    pub(super) directory: Directory,
    /// So many nodes were removed that had, or had had, children.
    pub(super) parents_gone: u64,
    /// So many nodes were removed.
    pub(super) nodes_gone: u64,
    /// What few nodes have.
    pub(super) rare: HashMap<NodeId, Rare>,
    pub(super) acls: AclTable,
    pub(super) sessions: Sessions,
    /// Containers and TTL nodes.
    pub(super) expiring: HashSet<NodeId>,
    pub(super) quotas: Quotas,
    pub(super) digest: u64,
    pub(super) last_zxid: Zxid,
    /// The lengths of all paths, in UTF-16 units, and of all data.
    pub(super) approximate_bytes: u64,
}

/// Fields that most nodes leave at their defaults, and values that do not fit into a node's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    pub(super) owner: Owner,
    pub(super) aversion: i32,
    /// The ACL's number, if it is too large for the record.
    pub(super) acl: u32,
    /// ctime and mtime, if one of them is out of the record's range.
    pub(super) times_ms: Option<(i64, i64)>,
}

/// A node that is to be added.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewNode<'n> {
    pub(super) path: &'n str,
    pub(super) data: Option<&'n [u8]>,
    pub(super) acl: AclList<'n>,
    pub(super) stat: &'n StoredStat,
    /// Of all this.
    pub(super) digest: u32,
}

/// A node that is to be removed.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    id: NodeId,
    /// Of its parent and name.
    hash: u64,
    chunk: Option<usize>,
    path_units: u64,
    in_digest: bool,
}

pub(super) const ROOT: NodeId = 0;

impl DataTree {
    /// A tree as a new ZooKeeper server has it: `/`, `/zookeeper`, `/zookeeper/quota` and `/zookeeper/config`.
    pub fn new() -> DataTree {
        let mut tree = DataTree::rootless();
        tree.plant(path::ROOT, Some(b""), AclList::EMPTY, &StoredStat::default());
        for reserved in [path::ZOOKEEPER, path::QUOTA] {
            tree.plant(reserved, Some(b""), AclList::EMPTY, &StoredStat::default());
        }
        let mut acl = AclBuf::new();
        acl.push(AclEntry { perms: Perms::READ, scheme: "world", id: "anyone" });
        let stat = StoredStat { aversion: -1, ..StoredStat::default() };
        tree.plant(path::CONFIG, Some(b""), acl.as_list(), &stat);
        tree
    }

    pub(super) fn rootless() -> DataTree {
        DataTree {
            nodes: Nodes::default(),
            index: Index::new(),
            families: HashMap::new(),
            directory: Directory::default(),
            parents_gone: 0,
            nodes_gone: 0,
            rare: HashMap::new(),
            acls: AclTable::default(),
            sessions: Sessions::default(),
            expiring: HashSet::new(),
            quotas: Quotas::default(),
            digest: 0,
            last_zxid: Zxid::ZERO,
            approximate_bytes: 0,
        }
    }

    /// Adds a node whose parent is there and which is not, exactly as it is given. `None` if there are too many.
    pub(super) fn plant(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        acl: AclList<'_>,
        stat: &StoredStat,
    ) -> Option<NodeId> {
        let (parent, name) = match path::split(path) {
            Some((parent, name)) => (self.find_parent(parent)?, name),
            None => (ROOT, ""),
        };
        let digest = whole_digest(path, data, stat);
        let spot = self.spot(parent, name.as_bytes());
        self.plant_at(&spot, &NewNode { path, data, acl, stat, digest }, None)
    }

    /// The same where its place is known. `raise` is what its parent notices.
    pub(super) fn plant_at(
        &mut self,
        spot: &Spot<'_>,
        new: &NewNode<'_>,
        raise: Option<&Raise>,
    ) -> Option<NodeId> {
        let NewNode { path, data, acl, stat, digest } = *new;
        let (ctime, mtime) = (Packed::of(stat.ctime_ms), Packed::of(stat.mtime_ms));
        let acl_number = self.acls.intern(acl);
        let acl = u16::try_from(acl_number).ok().filter(|number| *number != Node::ACL_APART);
        let node = Node {
            ctime: ctime.unwrap_or(Packed::ZERO),
            mtime: mtime.unwrap_or(Packed::ZERO),
            version: stat.version,
            digest,
            parent: spot.parent,
            acl: acl.unwrap_or(Node::ACL_APART),
            czxid: stat.czxid.get(),
            mzxid: stat.mzxid.get(),
            ..Node::zeroed()
        };
        let Some(id) = self.nodes.insert(node, spot.name, data) else {
            self.acls.release(acl_number);
            return None;
        };
        let times_ms = (ctime.is_none() || mtime.is_none()).then_some((stat.ctime_ms, stat.mtime_ms));
        let acl = if acl.is_some() { 0 } else { acl_number };
        let rare = Rare { owner: stat.owner, aversion: stat.aversion, acl, times_ms };
        if rare != Rare::default() {
            self.rare.insert(id, rare);
            self.nodes.at_mut(id).set(Node::RARE, true);
        }
        if stat.cversion != 0 || stat.pzxid != stat.czxid {
            let family = self.family_mut(id);
            (family.cversion, family.pzxid) = (stat.cversion, stat.pzxid);
        }
        self.enter_owner(id, stat.owner);
        if id != ROOT {
            self.link(id, spot, path, raise);
        }
        self.approximate_bytes += path_units(path) + len_of(data) as u64;
        if path::is_in_digest(path) {
            self.digest = self.digest.wrapping_add(digest.into());
        }
        self.quota_planted(id, path, data);
        Some(id)
    }

    pub(super) fn enter_owner(&mut self, id: NodeId, owner: Owner) {
        match owner {
            Owner::Persistent => {}
            Owner::Session(owner) => self.sessions.own(owner, id),
            Owner::Container | Owner::Ttl { .. } => drop(self.expiring.insert(id)),
        }
    }

    pub(super) fn leave_owner(&mut self, id: NodeId, owner: Owner) {
        match owner {
            Owner::Persistent => {}
            Owner::Session(owner) => self.sessions.disown(owner, id),
            Owner::Container | Owner::Ttl { .. } => drop(self.expiring.remove(&id)),
        }
    }

    /// Makes a node its parent's child, and findable.
    fn link(&mut self, id: NodeId, spot: &Spot<'_>, path: &str, raise: Option<&Raise>) {
        let DataTree { nodes, families, directory, index, digest, .. } = self;
        index.insert(spot.hash, id);
        let parent = spot.parent;
        let family = family_of(parent, nodes, families);
        family.children.insert(id, spot.name, &|id| nodes.name(id));
        if family.children.len() == LISTED_FROM && !family.is_listed {
            family.is_listed = directory.enter(path::above(path), parent);
        }
        if let Some(raise) = raise {
            let before = family.counts();
            raise.raise(family);
            let (old, new) = family.settle(before, nodes.at_mut(parent));
            if raise.in_digest {
                *digest = digest.wrapping_sub(old.into()).wrapping_add(new.into());
            }
        }
    }

    /// Removes a node with everything below it, from everywhere.
    pub(super) fn uproot(&mut self, id: NodeId, spot: &Spot<'_>, path: &str) {
        let top = Doomed {
            id,
            hash: spot.hash,
            chunk: spot.chunk,
            path_units: path_units(path),
            in_digest: path::is_in_digest(path),
        };
        if self.child_count(id) > 0 {
            // Children before their parents. A list, not a recursion: a chain of nodes can be very deep.
            let below_counts = top.in_digest && path != path::ZOOKEEPER;
            for node in self.below(&top, below_counts).iter().rev() {
                // Its path is asked for by quotas alone.
                let counted = !self.quotas.is_empty() || !node.in_digest;
                let path = counted.then(|| self.path_of(node.id));
                self.uproot_leaf(node, path.as_deref());
            }
        }
        self.uproot_leaf(&top, Some(path));
    }

    /// The nodes below one, each after its parent. `in_digest` says whether they count.
    fn below(&self, top: &Doomed, in_digest: bool) -> Vec<Doomed> {
        let mut nodes: Vec<Doomed> = Vec::new();
        let mut next = 0;
        let (mut id, mut units) = (top.id, top.path_units);
        loop {
            if let Some(family) = self.families.get(&id) {
                let parent = id;
                nodes.extend(family.children.iter(None, |id| self.name(id)).map(|id| {
                    let name = std::str::from_utf8(self.name(id)).expect("names came as text");
                    let hash = self.index.hash(parent, name.as_bytes());
                    Doomed { id, hash, chunk: None, path_units: units + 1 + path_units(name), in_digest }
                }));
            }
            let Some(node) = nodes.get(next) else { return nodes };
            (id, units) = (node.id, node.path_units);
            next += 1;
        }
    }

    fn uproot_leaf(&mut self, doomed: &Doomed, path: Option<&str>) {
        let id = doomed.id;
        if doomed.in_digest {
            self.digest = self.digest.wrapping_sub(self.digest_of(id).into());
        }
        let node = *self.nodes.at(id);
        self.index.remove(doomed.hash, id);
        if let Some(family) = self.families.get_mut(&node.parent) {
            family.children.remove(id, self.nodes.name(id), doomed.chunk);
        }
        let data_bytes = self.stored_data_bytes(id);
        self.approximate_bytes -= doomed.path_units + data_bytes as u64;
        if let Some(path) = path {
            self.quota_uprooted(id, path, data_bytes);
        }
        self.acls.release(self.acl_number(id));
        if node.is(Node::RARE) {
            self.leave_owner(id, self.owner(id));
            self.rare.remove(&id);
        }
        if node.is(Node::PARENT) {
            if self.families.remove(&id).is_some_and(|family| family.is_listed) {
                self.directory.leave(&self.path_of(id));
            }
            self.parents_gone += 1;
        }
        self.nodes_gone += 1;
        self.nodes.remove(id);
    }

    /// Changes a node's rare fields; they are kept only while one of them says something.
    pub(super) fn set_rare(&mut self, id: NodeId, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare(id);
        change(&mut rare);
        let says = rare != Rare::default();
        let node = self.nodes.at_mut(id);
        if says {
            self.rare.insert(id, rare);
        } else if node.is(Node::RARE) {
            self.rare.remove(&id);
        }
        node.set(Node::RARE, says);
    }

    pub(super) fn rare(&self, id: NodeId) -> Rare {
        rare_of(id, self.nodes.at(id), &self.rare)
    }

    pub(super) fn acl_number(&self, id: NodeId) -> u32 {
        match self.nodes.at(id).acl {
            Node::ACL_APART => self.rare(id).acl,
            number => number.into(),
        }
    }

    pub(super) fn set_acl_number(&mut self, id: NodeId, number: u32) {
        let fits = u16::try_from(number).ok().filter(|n| *n != Node::ACL_APART);
        self.nodes.at_mut(id).acl = fits.unwrap_or(Node::ACL_APART);
        self.set_rare(id, |rare| rare.acl = if fits.is_some() { 0 } else { number });
    }

    pub(super) fn owner(&self, id: NodeId) -> Owner {
        self.rare(id).owner
    }

    pub(super) fn name(&self, id: NodeId) -> &[u8] {
        self.nodes.name(id)
    }

    pub(super) fn stored(&self, id: NodeId) -> StoredStat {
        self.stored_and_children(id).0
    }

    /// The same, and how many children it has.
    #[inline]
    pub(super) fn stored_and_children(&self, id: NodeId) -> (StoredStat, u32) {
        let node = self.nodes.at(id);
        let family = if node.is(Node::PARENT) { self.families.get(&id) } else { None };
        let child_count = family.map_or(0, |family| family.children.len());
        (stored_of(id, node, family, &self.rare), child_count)
    }

    /// The node's share of the tree's digest, whether it counts or not.
    pub(super) fn digest_of(&self, id: NodeId) -> u32 {
        self.nodes.at(id).digest
    }

    /// Changes fields of a node, and the digest with it. `path` says whether the node counts.
    pub(super) fn change<T>(
        &mut self,
        id: NodeId,
        path: &str,
        change: impl FnOnce(&mut DataTree, NodeId) -> T,
    ) -> T {
        let before = self.stored(id);
        let done = change(self, id);
        let digest = changed_digest(self.digest_of(id), &before, &self.stored(id));
        self.set_digest(id, digest, path::is_in_digest(path));
        done
    }

    /// Gives a node another digest, and takes that over into the tree's if the node counts.
    #[inline]
    pub(super) fn set_digest(&mut self, id: NodeId, digest: u32, counts: bool) {
        let node = self.nodes.at_mut(id);
        let before = std::mem::replace(&mut node.digest, digest);
        if counts {
            self.digest = self.digest.wrapping_sub(before.into()).wrapping_add(digest.into());
        }
    }
}

impl Default for DataTree {
    fn default() -> DataTree {
        DataTree::new()
    }
}

/// The state of a node, whose family is given if it has one.
fn stored_of(id: NodeId, node: &Node, family: Option<&Family>, rare: &HashMap<NodeId, Rare>) -> StoredStat {
    let mut stat = plain_of(node);
    if let Some(family) = family {
        (stat.cversion, stat.pzxid) = family.counts();
    }
    if node.is(Node::RARE) {
        let rare = rare_of(id, node, rare);
        (stat.owner, stat.aversion) = (rare.owner, rare.aversion);
        if let Some(times_ms) = rare.times_ms {
            (stat.ctime_ms, stat.mtime_ms) = times_ms;
        }
    }
    stat
}

/// The state of a node of which no table has anything, as of most.
#[inline]
pub(super) fn plain_of(node: &Node) -> StoredStat {
    StoredStat {
        czxid: node.czxid(),
        mzxid: node.mzxid(),
        pzxid: node.czxid(),
        ctime_ms: node.ctime.get(),
        mtime_ms: node.mtime.get(),
        version: node.version,
        ..StoredStat::default()
    }
}

#[inline]
fn rare_of(id: NodeId, node: &Node, rare: &HashMap<NodeId, Rare>) -> Rare {
    if !node.is(Node::RARE) {
        return Rare::default();
    }
    rare.get(&id).copied().unwrap_or(Rare::default())
}

/// The length of a path as ZooKeeper counts it.
fn path_units(path: &str) -> u64 {
    if path.is_ascii() { path.len() as u64 } else { path.encode_utf16().count() as u64 }
}
