use std::collections::BTreeMap;
use std::sync::Arc;

use super::data_tree::{DataTree, NewNode, ROOT};
use super::digest::whole_digest;
use super::lookup::Spot;
use super::node_batch::{BatchNode, NodeBatch};
use super::path;
use super::store::{Index, NodeId, Nodes};
use super::stored_stat::StoredStat;
use super::walk::WalkedNode;
use super::warm::{AHEAD, Use};
use crate::base::Zxid;
use crate::format::{AclBuf, AclList};

/// Builds a tree from nodes that were met on a walk, in any order.
#[derive(Debug)]
pub struct TreeLoader {
    tree: DataTree,
    /// Nodes whose parent has not come yet, by the number of its path and by name.
    waiting: BTreeMap<(usize, String), Waiting>,
    /// The paths under which nodes wait, numbered. Each is kept once, however many nodes wait there: they may be
    /// many, and the path long.
    parents: BTreeMap<String, usize>,
    /// The ACL of the node that waits since last, which is often the next one's too.
    acl: Arc<AclBuf>,
    /// Nodes that no parent can have.
    strays: u64,
    /// The parent of the node that came last, which is often the next one's too. Nodes that came never go.
    parent: Option<(String, NodeId)>,
}

#[derive(Debug)]
struct Waiting {
    data: Option<Vec<u8>>,
    acl: Arc<AclBuf>,
    stat: StoredStat,
}

/// What became of the nodes that were loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The tree.
    pub tree: DataTree,
    /// How many nodes were left out, since their parent was not among the nodes: it was deleted while the walk was
    /// under way, after them. The txns of that time tell what became of them.
    pub orphans: u64,
}

impl TreeLoader {
    /// An empty tree: even the nodes that servers keep are to be loaded.
    pub(super) fn new(expected: u64) -> TreeLoader {
        let mut tree = DataTree::rootless();
        tree.index = Index::with_room(usize::try_from(expected.min(Nodes::MAX.into())).expect("32 bits"));
        TreeLoader {
            tree,
            waiting: BTreeMap::new(),
            parents: BTreeMap::new(),
            acl: Arc::new(AclList::EMPTY.to_buf()),
            strays: 0,
            parent: None,
        }
    }

    /// Takes in a node. One that came before is replaced.
    pub fn node(&mut self, node: &WalkedNode<'_>) {
        let is_put = self.put(node);
        let Some((parent, name)) = path::split(node.path) else {
            self.strays += u64::from(!is_put);
            return;
        };
        if is_put {
            self.forget_waiting(parent, name);
        } else {
            self.wait(parent, name, node);
        }
    }

    /// Takes in several, as [`node`](TreeLoader::node) takes in each. Faster: what they touch is fetched from memory
    /// together, and their checksums were worked out elsewhere.
    pub fn batch(&mut self, batch: &NodeBatch) {
        let mut nodes = batch.nodes();
        let mut ahead = Vec::with_capacity(AHEAD);
        while nodes.len() > 0 {
            ahead.extend(nodes.by_ref().take(AHEAD).map(|node| (self.warm_place(&node), node)));
            for (spot, node) in ahead.drain(..) {
                match spot {
                    Some(spot) => self.put_at(&spot, &node),
                    // Its parent may have come just now.
                    None => self.node(&node.node),
                }
            }
        }
    }

    /// Where a node goes, whose memory is fetched; `None` if its parent has not come.
    fn warm_place<'b>(&mut self, node: &BatchNode<'b>) -> Option<Spot<'b>> {
        let (parent, name) = node.place?;
        let parent = self.parent_at(parent).filter(|_| self.tree.nodes.len() > 0)?;
        let mut spot = self.tree.spot(parent, name.as_bytes());
        self.tree.warm_spot(&mut spot, Use::Add);
        Some(spot)
    }

    fn put_at(&mut self, spot: &Spot<'_>, node: &BatchNode<'_>) {
        self.place(spot, &node.node, node.digest);
        if let Some((parent, name)) = node.place {
            self.forget_waiting(parent, name);
        }
    }

    /// Makes what is at a spot this node.
    fn place(&mut self, spot: &Spot<'_>, node: &WalkedNode<'_>, digest: u32) {
        let tree = &mut self.tree;
        if let Some(id) = tree.at_spot(spot) {
            tree.overwrite(id, node, digest);
        } else {
            // Only of more nodes than there are numbers one finds no place; the digest tells.
            let new = NewNode { path: node.path, data: node.data, acl: node.acl, stat: &node.stat, digest };
            let _placed = tree.plant_at(spot, &new, None);
        }
    }

    /// What waited for its parent is an earlier state of what has found it.
    fn forget_waiting(&mut self, parent: &str, name: &str) {
        if let Some(number) = self.parents.get(parent) {
            self.waiting.remove(&(*number, name.to_owned()));
        }
    }

    fn wait(&mut self, parent: &str, name: &str, node: &WalkedNode<'_>) {
        let next = self.parents.len();
        let number = match self.parents.get(parent) {
            Some(number) => *number,
            None => *self.parents.entry(parent.to_owned()).or_insert(next),
        };
        if self.acl.as_list().as_bytes() != node.acl.as_bytes() {
            self.acl = Arc::new(node.acl.to_buf());
        }
        let data = node.data.map(<[u8]>::to_vec);
        let waiting = Waiting { data, acl: self.acl.clone(), stat: node.stat };
        self.waiting.insert((number, name.to_owned()), waiting);
    }

    /// Takes in a session.
    pub fn session(&mut self, id: i64, timeout_ms: i32) {
        self.tree.sessions.create(id, timeout_ms);
    }

    fn put(&mut self, node: &WalkedNode<'_>) -> bool {
        // The first node of all is the root.
        let has_root = self.tree.nodes.len() > 0;
        let Some((parent_path, name)) = path::split(node.path) else {
            if node.path != path::ROOT {
                return false;
            }
            if has_root {
                self.tree.overwrite(ROOT, node, whole_digest(node.path, node.data, &node.stat));
            } else {
                self.tree.plant(node.path, node.data, node.acl, &node.stat);
            }
            return true;
        };
        let Some(parent) = self.parent_at(parent_path).filter(|_| has_root) else { return false };
        let digest = whole_digest(node.path, node.data, &node.stat);
        let spot = self.tree.spot(parent, name.as_bytes());
        self.place(&spot, node, digest);
        true
    }

    fn parent_at(&mut self, path: &str) -> Option<NodeId> {
        match &mut self.parent {
            Some((last, id)) if last == path => Some(*id),
            last => {
                let id = self.tree.find_parent(path).filter(|_| self.tree.nodes.len() > 0)?;
                let (text, number) = last.get_or_insert_default();
                path.clone_into(text);
                *number = id;
                Some(id)
            }
        }
    }

    /// Ends the loading; without a root among the nodes, with a new tree. `zxid` is the last txn whose effect all nodes have.
    pub fn finish(mut self, zxid: Zxid) -> Loaded {
        let mut orphans = self.strays;
        let (waiting, mut path) = (std::mem::take(&mut self.waiting), String::new());
        // In the order of their parents' paths, a parent comes before its children.
        for (parent, number) in std::mem::take(&mut self.parents) {
            let parent = if parent == path::ROOT { "" } else { &parent };
            for ((_, name), node) in waiting.range((number, String::new())..(number + 1, String::new())) {
                let Waiting { data, acl, stat } = node;
                path.clear();
                path.extend([parent, "/", name]);
                let node = WalkedNode { path: &path, data: data.as_deref(), acl: acl.as_list(), stat: *stat };
                orphans += u64::from(!self.put(&node));
            }
        }
        if self.tree.nodes.len() == 0 {
            self.tree = DataTree::new();
        }
        self.tree.last_zxid = zxid;
        Loaded { tree: self.tree, orphans }
    }
}

impl DataTree {
    /// Makes a node as a walk has met it again: deleted and created anew, at another place.
    fn overwrite(&mut self, id: NodeId, met: &WalkedNode<'_>, digest: u32) {
        let stat = met.stat;
        let owner = self.owner(id);
        self.leave_owner(id, owner);
        self.set_content(id, met.path, met.data);
        self.set_acl(id, met.acl);
        self.set_rare(id, |rare| {
            rare.times_ms = None;
            (rare.owner, rare.aversion) = (stat.owner, stat.aversion);
        });
        let node = self.nodes.at_mut(id);
        node.version = stat.version;
        node.set_czxid(stat.czxid);
        node.set_mzxid(stat.mzxid);
        self.set_times(id, stat.ctime_ms, stat.mtime_ms);
        let family = self.family_mut(id);
        (family.cversion, family.pzxid) = (stat.cversion, stat.pzxid);
        self.set_digest(id, digest, path::is_in_digest(met.path));
        self.enter_owner(id, stat.owner);
    }

    /// Begins to build a tree from nodes.
    pub fn loader() -> TreeLoader {
        TreeLoader::new(0)
    }

    /// The same for about so many nodes, which saves time: room for finding them (13 bytes each) is made at once.
    pub fn loader_for(expected: u64) -> TreeLoader {
        TreeLoader::new(expected)
    }
}
