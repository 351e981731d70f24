use super::reference::Model;
use super::step::{Op, Step};
use crate::base::{Code, Random, Zxid};
use crate::format::{Acl, AclBuf, CreateKind, Perms};
use crate::tree::{Owner, path};

/// Sessions of servers of all sorts: the last byte from the left is the server's number.
const SESSIONS: [i64; 4] = [0x0100_0001_1914_c000, 7, -9, i64::MAX];
/// Few, so that they meet; some of them sort differently as part of a path.
const NAMES: [&str; 12] =
    ["a", "b", "a!", "a.b", "ab", "a\u{10000}", "ä", "日本", " ", "...", "zookeeper", "0000000001"];
/// Above this, leaves are deleted more often.
const NODES_MAX: usize = 22;

/// The txns of a random history on a new tree, for tests of other layers.
pub(crate) fn random_txns(seed: u64, count: usize) -> Vec<crate::format::TxnBuf> {
    let mut history = History::new(seed, Model::new(), Leader::Today);
    let mut next = || {
        let step = history.step();
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is of one lifetime")]
        step.with_txn(|txn| txn.to_buf())
    };
    (0..count).map(|_| next()).collect()
}

/// What sort of leader writes the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leader {
    /// Writes all that a replay needs.
    Today,
    /// Leaves out the parent's count and a closing session's nodes now and then, as old ones did.
    Any,
}

/// Makes one valid txn after the other, as a leader would that has checked each of them, and keeps the model up to
/// date with them.
#[derive(Debug)]
pub(super) struct History {
    pub(super) random: Random,
    pub(super) model: Model,
    zxid: Zxid,
    time_ms: i64,
    leader: Leader,
}

impl History {
    pub(super) fn new(seed: u64, model: Model, leader: Leader) -> History {
        let zxid = model.last_zxid;
        History { random: Random::from_seed(seed), model, zxid, time_ms: 1_700_000_000_000, leader }
    }

    /// The next txn; the model has it.
    pub(super) fn step(&mut self) -> Step {
        self.zxid = match self.random.below(40) {
            0 => Zxid::from_parts(self.zxid.get().wrapping_shr(32).try_into().unwrap_or(0) + 1, 1),
            _ => self.zxid.next_index().expect("a short history"),
        };
        self.time_ms += i64::from(self.random.next_u64().to_le_bytes()[0]) * 10;
        let time_ms = match self.random.below(30) {
            0 => [-1, 0, 1 << 48, i64::MIN, i64::MAX][below(&mut self.random, 5)],
            1 => self.time_ms - 1_000_000,
            _ => self.time_ms,
        };
        let (session_id, op) = std::iter::repeat_with(|| self.op()).flatten().next().expect("without end");
        let step = Step { zxid: self.zxid, time_ms, session_id, op };
        self.model.apply(&step);
        step
    }

    fn op(&mut self) -> Option<(i64, Op)> {
        let known: Vec<i64> = self.model.sessions.keys().copied().collect();
        let session_id = if known.is_empty() { 0 } else { known[below(&mut self.random, known.len())] };
        let (random, model) = (&mut self.random, &self.model);
        let crowded = model.nodes.len() > NODES_MAX;
        let op = match random.below(100) {
            0..9 => {
                let id = SESSIONS[below(random, SESSIONS.len())];
                let timeout_ms = [0, -1, 4000, i32::MAX][below(random, 4)];
                return Some((id, Op::CreateSession { timeout_ms }));
            }
            9..14 => {
                let id = SESSIONS[below(random, SESSIONS.len())];
                return Some((id, self.close(id)));
            }
            14..18 => Op::Error { code: [Code::NO_NODE, Code::NO_AUTH, Code::new(-9999)][below(random, 3)] },
            18..21 => {
                let data = data(random);
                let version = next(model.nodes.get(path::CONFIG)?.stat.version);
                Op::Reconfig { path: path::CONFIG.to_owned(), data, version }
            }
            21..25 => {
                let expired = model.expired(i64::MAX);
                let path = expired.get(below(random, expired.len().max(1)))?.clone();
                return Some((0, Op::DeleteContainer { path }));
            }
            25..27 => delete_all(random, model)?,
            27..40 => self.multi(session_id)?,
            40..70 if crowded => delete(random, model)?,
            _ => node_op(random, model, session_id, self.leader)?,
        };
        Some((session_id, op))
    }

    fn close(&mut self, session_id: i64) -> Op {
        let mut paths = self.model.ephemerals(session_id);
        if self.leader == Leader::Any && self.random.below(2) == 0 {
            return Op::CloseSession { paths: None };
        }
        if self.leader == Leader::Any && self.random.below(2) == 0 {
            paths.pop();
        }
        if self.random.below(2) == 0 {
            paths.reverse();
        }
        Op::CloseSession { paths: Some(paths) }
    }

    fn multi(&mut self, session_id: i64) -> Option<Op> {
        let mut scratch = self.model.clone();
        let mut ops = Vec::new();
        for _ in 0..self.random.below(6) {
            let op = if self.random.below(6) == 0 {
                let path = any_path(&mut self.random, &scratch);
                Op::Check { version: scratch.nodes.get(&path)?.stat.version, path }
            } else {
                node_op(&mut self.random, &scratch, session_id, Leader::Today)?
            };
            let (zxid, time_ms) = (self.zxid, self.time_ms);
            scratch.apply(&Step { zxid, time_ms, session_id, op: op.clone() });
            ops.push(op);
        }
        if !ops.is_empty() && self.random.below(4) == 0 {
            let failed = below(&mut self.random, ops.len());
            ops[failed] = Op::Error { code: Code::BAD_VERSION };
            ops[failed + 1..].fill(Op::Error { code: Code::RUNTIME_INCONSISTENCY });
        }
        Some(Op::Multi(ops))
    }
}

/// A change of one node that holds on the state that it is given.
fn node_op(random: &mut Random, on: &Model, session_id: i64, leader: Leader) -> Option<Op> {
    match random.below(20) {
        0..10 => create(random, on, session_id, leader),
        10..13 => delete(random, on),
        13..17 => {
            let path = any_path(random, on);
            let version = next(on.nodes.get(&path)?.stat.version);
            Some(Op::SetData { path, data: data(random), version })
        }
        _ => {
            let path = any_path(random, on);
            let version = next(on.nodes.get(&path)?.stat.aversion);
            Some(Op::SetAcl { path, acl: acl(random), version })
        }
    }
}

fn create(random: &mut Random, on: &Model, session_id: i64, leader: Leader) -> Option<Op> {
    let parent = any_path(random, on);
    let stat = on.nodes.get(&parent)?.stat;
    if matches!(stat.owner, Owner::Session(_)) || parent.matches('/').count() > 4 {
        return None;
    }
    let ephemeral = random.below(3) == 0 && on.sessions.contains_key(&session_id);
    let kind = match random.below(10) {
        0..6 => CreateKind::Plain { ephemeral },
        6..8 => CreateKind::WithStat { ephemeral },
        8 => CreateKind::Container,
        _ => CreateKind::Ttl { ttl_ms: [1, 5000, Owner::TTL_MAX_MS][below(random, 3)] },
    };
    let mut name = match random.below(30) {
        0 => "x".repeat(300),
        1 => "y".repeat(4096),
        _ => NAMES[below(random, NAMES.len())].to_owned(),
    };
    if parent.starts_with("/zookeeper/quota/") && random.below(2) == 0 {
        "zookeeper_limits".clone_into(&mut name);
    } else if random.below(4) == 0 {
        name.push_str(&path::sequence_suffix(stat.cversion));
    }
    let path = if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") };
    if on.nodes.contains_key(&path) {
        return None;
    }
    let told = leader == Leader::Today || random.below(4) != 0;
    let parent_cversion = told.then(|| stat.cversion.wrapping_add(1));
    Some(Op::Create { path, data: data(random), acl: acl(random), kind, parent_cversion })
}

fn delete(random: &mut Random, on: &Model) -> Option<Op> {
    let may_go = |path: &&String| !path::is_reserved(path) && on.children(path).is_empty();
    let leaves: Vec<&String> = on.nodes.keys().filter(may_go).collect();
    let path = (*leaves.get(below(random, leaves.len().max(1)))?).clone();
    Some(Op::Delete { path })
}

fn delete_all(random: &mut Random, on: &Model) -> Option<Op> {
    let root = any_path(random, on);
    if path::is_within(path::ZOOKEEPER, &root) || path::is_within(&root, path::ZOOKEEPER) {
        return None;
    }
    let within = on.nodes.keys().filter(|path| path::is_within(path, &root));
    // What is longer stands before what it is below.
    let mut paths: Vec<String> = within.cloned().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    Some(Op::DeleteAll { paths })
}

fn any_path(random: &mut Random, on: &Model) -> String {
    let paths: Vec<&String> = on.nodes.keys().collect();
    paths[below(random, paths.len())].clone()
}

/// A leader counts on, but never to -1, which asks for any version.
fn next(version: i32) -> i32 {
    match version.wrapping_add(1) {
        -1 => 0,
        next => next,
    }
}

fn data(random: &mut Random) -> Option<Vec<u8>> {
    let len = match random.below(60) {
        0..6 => return None,
        6..12 => 0,
        12..16 => 4060 + below(random, 80),
        16 => 9000,
        17 => 70_000,
        _ => 1 + below(random, 40),
    };
    if len == 13 {
        return Some(b"count=1=;byteHardLimit=70;countHardLimit=4".to_vec());
    }
    let byte = random.next_u64().to_le_bytes()[0];
    Some(vec![byte; len])
}

fn acl(random: &mut Random) -> AclBuf {
    let lists: [&[Acl]; 4] = [
        &[],
        &[Acl::open()],
        &[Acl::new(Perms::READ, "world", "anyone"), Acl::new(Perms::ALL, "digest", "bob:x")],
        &[Acl::new(Perms::new(random.next_u64().to_le_bytes()[0].into()), "ip", "10.0.0.0/8")],
    ];
    lists[below(random, 4)].iter().map(Acl::as_entry).collect()
}

pub(super) fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a usize")
}
