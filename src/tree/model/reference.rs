use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::step::{Op, Step};
use crate::base::{Code, Zxid};
use crate::format::{Acl, AclBuf, CreateKind, Perms, Stat};
use crate::tree::{Outcome, Owner, StoredStat};

/// A node, whole.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ModelNode {
    pub(super) data: Option<Rc<[u8]>>,
    pub(super) acl: AclBuf,
    pub(super) stat: StoredStat,
}

/// A tree written to be read: every path with its node, and nothing kept that can be found by looking at all of
/// them. Its rules are those of the facts about ZooKeeper's `processTxn`, with what this library does otherwise.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Model {
    pub(super) nodes: BTreeMap<String, ModelNode>,
    pub(super) sessions: BTreeMap<i64, i32>,
    pub(super) last_zxid: Zxid,
}

/// What the operations of one txn share.
#[derive(Clone, Copy)]
struct Shared {
    zxid: Zxid,
    time_ms: i64,
    session_id: i64,
}

impl Model {
    /// The tree of a new server.
    pub(super) fn new() -> Model {
        let mut nodes = BTreeMap::new();
        for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
            let (mut acl, mut stat) = (AclBuf::new(), StoredStat::default());
            if path == "/zookeeper/config" {
                acl.push(Acl::new(Perms::READ, "world", "anyone").as_entry());
                stat.aversion = -1;
            }
            nodes.insert(path.to_owned(), ModelNode { data: Some(Rc::from([])), acl, stat });
        }
        Model { nodes, sessions: BTreeMap::new(), last_zxid: Zxid::ZERO }
    }

    /// The names of a node's children, in order.
    pub(super) fn children(&self, path: &str) -> Vec<&str> {
        let below = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let names = self.nodes.keys().filter_map(|p| p.strip_prefix(&below));
        names.filter(|name| !name.is_empty() && !name.contains('/')).collect()
    }

    /// The paths of a session's ephemeral nodes, in order.
    pub(super) fn ephemerals(&self, session_id: i64) -> Vec<String> {
        let owned = self.nodes.iter().filter(|(_, node)| node.stat.owner == Owner::Session(session_id));
        owned.map(|(path, _)| path.clone()).collect()
    }

    /// Every owner of an ephemeral node.
    pub(super) fn owners(&self) -> BTreeSet<i64> {
        let owner = |node: &ModelNode| match node.stat.owner {
            Owner::Session(id) => Some(id),
            _ => None,
        };
        self.nodes.values().filter_map(owner).collect()
    }

    /// Containers that had children and TTL nodes that were left alone for long enough, without children.
    pub(super) fn expired(&self, now_ms: i64) -> Vec<String> {
        let due = |path: &str, stat: &StoredStat| {
            let due = match stat.owner {
                Owner::Container => stat.cversion != 0,
                Owner::Ttl { ttl_ms } => i128::from(now_ms) - i128::from(stat.mtime_ms) > i128::from(ttl_ms),
                _ => false,
            };
            due && self.children(path).is_empty()
        };
        let nodes = self.nodes.iter().filter(|(path, node)| due(path, &node.stat));
        nodes.map(|(path, _)| path.clone()).collect()
    }

    /// Path lengths in UTF-16 units and data lengths.
    pub(super) fn approximate_bytes(&self) -> usize {
        let bytes = |(path, node): (&String, &ModelNode)| {
            path.encode_utf16().count() + node.data.as_ref().map_or(0, |data| data.len())
        };
        self.nodes.iter().map(bytes).sum()
    }

    /// The sum of CRC-32 over path, data and sixty bytes of fields, without what is below `/zookeeper`.
    pub(super) fn digest(&self) -> u64 {
        let counts = |path: &str| !path.starts_with("/zookeeper/");
        let nodes = self.nodes.iter().filter(|(path, _)| counts(path));
        nodes.map(|(path, node)| u64::from(node_digest(path, node))).fold(0, u64::wrapping_add)
    }

    /// As a client sees it.
    pub(super) fn stat(&self, path: &str) -> Option<Stat> {
        let node = self.nodes.get(path)?;
        let stored = node.stat;
        let child_count = i32::try_from(self.children(path).len()).expect("a small tree");
        Some(Stat {
            czxid: stored.czxid,
            mzxid: stored.mzxid,
            ctime_ms: stored.ctime_ms,
            mtime_ms: stored.mtime_ms,
            version: stored.version,
            cversion: stored.cversion.wrapping_add(stored.cversion).wrapping_sub(child_count),
            aversion: stored.aversion,
            ephemeral_owner: if let Owner::Session(id) = stored.owner { id } else { 0 },
            data_bytes: node.data.as_ref().map_or(0, |d| i32::try_from(d.len()).expect("small data")),
            child_count,
            pzxid: stored.pzxid,
        })
    }

    /// Applies a txn.
    pub(super) fn apply(&mut self, step: &Step) -> Outcome {
        let shared = Shared { zxid: step.zxid, time_ms: step.time_ms, session_id: step.session_id };
        let outcome = match &step.op {
            Op::Multi(ops) => Outcome::Multi(self.apply_multi(ops, shared)),
            op => self.apply_one(op, shared),
        };
        self.last_zxid = self.last_zxid.max(step.zxid);
        outcome
    }

    fn apply_multi(&mut self, ops: &[Op], shared: Shared) -> Vec<Outcome> {
        if !ops.iter().any(|op| matches!(op, Op::Error { .. })) {
            return ops.iter().map(|op| self.apply_one(op, shared)).collect();
        }
        let mut failed = false;
        let mut outcomes = Vec::new();
        for op in ops {
            outcomes.push(match op {
                Op::Error { code } => Outcome::Failed(*code),
                _ if failed => Outcome::Failed(Code::RUNTIME_INCONSISTENCY),
                _ => Outcome::Done,
            });
            failed |= matches!(op, Op::Error { .. });
        }
        outcomes
    }

    fn apply_one(&mut self, op: &Op, shared: Shared) -> Outcome {
        match op {
            Op::Create { path, data, acl, kind, parent_cversion } => {
                let owner = match *kind {
                    CreateKind::Plain { ephemeral: true } | CreateKind::WithStat { ephemeral: true } => {
                        Owner::Session(shared.session_id)
                    }
                    CreateKind::Container => Owner::Container,
                    CreateKind::Ttl { ttl_ms } => Owner::Ttl { ttl_ms },
                    _ => Owner::Persistent,
                };
                let (Shared { zxid, time_ms, .. }, defaults) = (shared, StoredStat::default());
                let stat = StoredStat { czxid: zxid, mzxid: zxid, pzxid: zxid, owner, ..defaults };
                let stat = StoredStat { ctime_ms: time_ms, mtime_ms: time_ms, ..stat };
                let node = ModelNode { data: data.as_deref().map(Rc::from), acl: acl.clone(), stat };
                self.create(path, node, *parent_cversion)
            }
            Op::Delete { path } | Op::DeleteContainer { path } => self.delete(path, shared.zxid),
            Op::DeleteAll { paths } => {
                paths.iter().for_each(|path| drop(self.delete(path, shared.zxid)));
                Outcome::Done
            }
            Op::SetData { path, data, version } | Op::Reconfig { path, data, version } => {
                let Some(node) = self.nodes.get_mut(path) else { return Outcome::Failed(Code::NO_NODE) };
                node.data = data.as_deref().map(Rc::from);
                node.stat.version = *version;
                node.stat.mzxid = shared.zxid;
                node.stat.mtime_ms = shared.time_ms;
                Outcome::Stat(self.stat(path).expect("just found"))
            }
            Op::SetAcl { path, acl, version } => {
                let Some(node) = self.nodes.get_mut(path) else { return Outcome::Failed(Code::NO_NODE) };
                node.acl = acl.clone();
                node.stat.aversion = *version;
                Outcome::Stat(self.stat(path).expect("just found"))
            }
            Op::Check { .. } => Outcome::Done,
            Op::CreateSession { timeout_ms } => {
                self.sessions.insert(shared.session_id, *timeout_ms);
                Outcome::Done
            }
            Op::CloseSession { paths } => {
                paths.iter().flatten().for_each(|path| drop(self.delete(path, shared.zxid)));
                for path in self.ephemerals(shared.session_id) {
                    self.delete(&path, shared.zxid);
                }
                self.sessions.remove(&shared.session_id);
                Outcome::Done
            }
            Op::Error { code } => Outcome::Failed(*code),
            Op::Multi(_) => Outcome::Failed(Code::BAD_ARGUMENTS),
        }
    }

    fn create(&mut self, path: &str, node: ModelNode, parent_cversion: Option<i32>) -> Outcome {
        let parent_path = parent(path);
        let Some(parent) = self.nodes.get(parent_path) else { return Outcome::Failed(Code::NO_NODE) };
        // Without a number: the parent has seen the creation if it has seen this txn or a later one. But the number
        // -1 is written as none.
        let (seen, before) = (parent.stat.pzxid, parent.stat.cversion);
        let zxid = node.stat.czxid;
        let number = if seen < zxid || before == -2 { before.wrapping_add(1) } else { before };
        let number = parent_cversion.unwrap_or(number);
        let outcome = if let Some(existing) = self.nodes.get_mut(path) {
            existing.acl = node.acl;
            Err(Code::NODE_EXISTS)
        } else {
            self.nodes.insert(path.to_owned(), node);
            Ok(())
        };
        self.raise(parent_path, number, zxid);
        if let Err(code) = outcome {
            return Outcome::Failed(code);
        }
        Outcome::Stat(self.stat(path).expect("just made"))
    }

    /// Ahead means: less than half of all numbers away, going up.
    fn raise(&mut self, path: &str, cversion: i32, zxid: Zxid) {
        let stat = &mut self.nodes.get_mut(path).expect("a parent that was found").stat;
        let ahead = (i64::from(cversion) - i64::from(stat.cversion)).rem_euclid(1 << 32);
        if (1..1 << 31).contains(&ahead) {
            stat.cversion = cversion;
            stat.pzxid = zxid;
        }
    }

    fn delete(&mut self, path: &str, zxid: Zxid) -> Outcome {
        if path == "/" {
            return Outcome::Failed(Code::BAD_ARGUMENTS);
        }
        let Some(parent) = self.nodes.get_mut(parent(path)) else { return Outcome::Failed(Code::NO_NODE) };
        parent.stat.pzxid = parent.stat.pzxid.max(zxid);
        if self.nodes.remove(path).is_none() {
            return Outcome::Failed(Code::NO_NODE);
        }
        let below = format!("{path}/");
        self.nodes.retain(|path, _| !path.starts_with(&below));
        Outcome::Done
    }
}

/// The parent's path of any path but the root's.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/').expect("a path").0 {
        "" => "/",
        parent => parent,
    }
}

pub(super) fn node_digest(path: &str, node: &ModelNode) -> u32 {
    let mut bytes = Vec::new();
    bytes.extend(if path == "/" { "" } else { path }.as_bytes());
    bytes.extend(node.data.iter().flat_map(|data| data.iter()));
    let stat = &node.stat;
    for zxid in [stat.czxid, stat.mzxid, stat.pzxid] {
        bytes.extend(zxid.get().to_be_bytes());
    }
    bytes.extend(stat.ctime_ms.to_be_bytes());
    bytes.extend(stat.mtime_ms.to_be_bytes());
    for number in [stat.version, stat.cversion, stat.aversion] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(match stat.owner {
        Owner::Persistent => [0; 8],
        Owner::Session(id) => id.to_be_bytes(),
        Owner::Container => [0x80, 0, 0, 0, 0, 0, 0, 0],
        Owner::Ttl { ttl_ms } => {
            let mut raw = ttl_ms.to_be_bytes();
            raw[..3].copy_from_slice(&[0xff, 0, 0]);
            raw
        }
    });
    crc32(&bytes)
}

/// CRC-32 as zlib has it, byte by byte.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0_u32;
        while byte < 256 {
            let (mut crc, mut bit) = (byte, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
                bit += 1;
            }
            table[byte as usize] = crc;
            byte += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn a_new_model_has_the_digest_of_a_new_zookeeper() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(Model::new().digest(), 1_371_985_504);
}
