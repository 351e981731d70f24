use bytemuck::Zeroable;
use hashbrown::{HashMap, HashSet};

use super::acl_table::AclTable;
use super::digest::{Content, node_digest};
use super::family::Family;
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
    /// So many nodes were removed that had, or had had, children.
    pub(super) parents_gone: u64,
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

/// A node that is to be removed.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    id: NodeId,
    /// Of its parent and name.
    hash: u64,
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
            parents_gone: 0,
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
            Some((parent, name)) => (self.find(parent)?, name),
            None => (ROOT, ""),
        };
        self.plant_at(&self.spot(parent, name.as_bytes()), path, Content::of(path, data), acl, stat)
    }

    pub(super) fn plant_at(
        &mut self,
        spot: &Spot<'_>,
        path: &str,
        content: Content<'_>,
        acl: AclList<'_>,
        stat: &StoredStat,
    ) -> Option<NodeId> {
        self.plant_digested(spot, path, content, acl, stat, node_digest(content.crc, stat))
    }

    /// The same of a node whose digest is known.
    pub(super) fn plant_digested(
        &mut self,
        spot: &Spot<'_>,
        path: &str,
        Content { data, crc }: Content<'_>,
        acl: AclList<'_>,
        stat: &StoredStat,
        digest: u64,
    ) -> Option<NodeId> {
        let (ctime, mtime) = (Packed::of(stat.ctime_ms), Packed::of(stat.mtime_ms));
        let acl_number = self.acls.intern(acl);
        let acl = u16::try_from(acl_number).ok().filter(|number| *number != Node::ACL_APART);
        let node = Node {
            ctime: ctime.unwrap_or(Packed::ZERO),
            mtime: mtime.unwrap_or(Packed::ZERO),
            version: stat.version,
            content_crc: crc,
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
            self.link(id, spot);
        }
        self.approximate_bytes += path_units(path) + len_of(data) as u64;
        if path::is_in_digest(path) {
            self.digest = self.digest.wrapping_add(digest);
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
    fn link(&mut self, id: NodeId, spot: &Spot<'_>) {
        let node = self.nodes.at_mut(spot.parent);
        node.set(Node::PARENT, true);
        let pzxid = node.czxid();
        let family = self.families.entry(spot.parent).or_insert_with(|| Family::new(pzxid));
        let nodes = &self.nodes;
        family.children.insert(id, spot.name, &|id| nodes.name(id));
        self.index.insert(spot.hash, id);
    }

    /// Removes a node with everything below it, from everywhere.
    pub(super) fn uproot(&mut self, id: NodeId, spot: &Spot<'_>, path: &str) {
        let top =
            Doomed { id, hash: spot.hash, path_units: path_units(path), in_digest: path::is_in_digest(path) };
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
                    Doomed { id, hash, path_units: units + 1 + path_units(name), in_digest }
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
            self.digest = self.digest.wrapping_sub(self.digest_of(id));
        }
        let node = *self.nodes.at(id);
        self.index.remove(doomed.hash, id);
        if let Some(family) = self.families.get_mut(&node.parent) {
            family.children.remove(id, self.nodes.name(id));
        }
        let data_bytes = self.stored_data_bytes(id);
        self.approximate_bytes -= doomed.path_units + data_bytes as u64;
        if let Some(path) = path {
            self.quota_uprooted(id, path, data_bytes);
        }
        self.acls.release(self.acl_number(id));
        self.leave_owner(id, self.owner(id));
        if node.is(Node::RARE) {
            self.rare.remove(&id);
        }
        if node.is(Node::PARENT) {
            self.families.remove(&id);
            self.parents_gone += 1;
        }
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
        if !self.nodes.at(id).is(Node::RARE) {
            return Rare::default();
        }
        self.rare.get(&id).copied().unwrap_or(Rare::default())
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
        let node = self.nodes.at(id);
        let family = if node.is(Node::PARENT) { self.families.get(&id) } else { None };
        self.stored_beside(id, family.map_or((0, node.czxid()), |f| (f.cversion, f.pzxid)))
    }

    /// The same of a node whose cversion and pzxid are known.
    pub(super) fn stored_beside(&self, id: NodeId, (cversion, pzxid): (i32, Zxid)) -> StoredStat {
        let node = self.nodes.at(id);
        let mut stat = StoredStat {
            czxid: node.czxid(),
            mzxid: node.mzxid(),
            pzxid,
            ctime_ms: node.ctime.get(),
            mtime_ms: node.mtime.get(),
            version: node.version,
            cversion,
            ..StoredStat::default()
        };
        if node.is(Node::RARE) {
            let rare = self.rare(id);
            (stat.owner, stat.aversion) = (rare.owner, rare.aversion);
            if let Some(times_ms) = rare.times_ms {
                (stat.ctime_ms, stat.mtime_ms) = times_ms;
            }
        }
        stat
    }

    /// The node's share of the tree's digest, whether it counts or not.
    pub(super) fn digest_of(&self, id: NodeId) -> u64 {
        node_digest(self.nodes.at(id).content_crc, &self.stored(id))
    }

    /// Changes a node, and the digest with it. `path` says whether the node counts.
    pub(super) fn change<T>(
        &mut self,
        id: NodeId,
        path: &str,
        change: impl FnOnce(&mut DataTree, NodeId) -> T,
    ) -> T {
        if !path::is_in_digest(path) {
            return change(self, id);
        }
        let before = self.digest_of(id);
        let done = change(self, id);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(self.digest_of(id));
        done
    }
}

impl Default for DataTree {
    fn default() -> DataTree {
        DataTree::new()
    }
}

/// The length of a path as ZooKeeper counts it.
fn path_units(path: &str) -> u64 {
    if path.is_ascii() { path.len() as u64 } else { path.encode_utf16().count() as u64 }
}
