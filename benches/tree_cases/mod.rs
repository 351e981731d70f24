//! The cases of the bench, and the work that they share.
#![allow(clippy::cast_precision_loss, reason = "figures for people: 52 bits are plenty")]

pub(crate) mod crowded;
pub(crate) mod memory;
pub(crate) mod readers;
pub(crate) mod report;
pub(crate) mod speed;
pub(crate) mod watches;

use arborlog::{Acl, AclBuf, AclList, Create, CreateKind, DataTree, Txn, TxnBody, Zxid};

pub(crate) const PARENTS: usize = 1000;
pub(crate) const DATA: [u8; 100] = [0x61; 100];
const TIME_MS: i64 = 1_700_000_000_000;

/// The txns of one life of a tree: they come in order.
pub(crate) struct Leader {
    zxid: u64,
    acl: AclBuf,
}

impl Leader {
    pub(crate) fn new() -> Leader {
        Leader { zxid: 0, acl: [Acl::open().as_entry()].into_iter().collect() }
    }

    pub(crate) fn apply(&mut self, tree: &mut DataTree, body: TxnBody<'_>) {
        let outcome = tree.apply(&self.txn(body), &mut ());
        assert!(outcome.code().is_ok(), "{:?}", outcome.code());
    }

    pub(crate) fn txn<'b>(&mut self, body: TxnBody<'b>) -> Txn<'b> {
        self.zxid += 1;
        let time_ms = TIME_MS + self.zxid.cast_signed();
        Txn { zxid: Zxid::new(self.zxid), time_ms, session_id: 1, cxid: 0, digest: None, body }
    }

    pub(crate) fn create(&mut self, tree: &mut DataTree, path: &str, cversion: i32, data: Option<&[u8]>) {
        let acl = self.acl.clone();
        let kind = CreateKind::Plain { ephemeral: false };
        let create = Create { path, data, acl: acl.as_list(), kind, parent_cversion: Some(cversion) };
        self.apply(tree, TxnBody::Create(create));
    }
}

pub(crate) fn create_body<'a>(path: &'a str, acl: AclList<'a>, cversion: i32) -> TxnBody<'a> {
    let kind = CreateKind::Plain { ephemeral: false };
    TxnBody::Create(Create { path, data: Some(&DATA), acl, kind, parent_cversion: Some(cversion) })
}

pub(crate) fn parent_path(parent: usize) -> String {
    format!("/bench/p{parent:07}")
}

/// 32 characters.
pub(crate) fn node_path(node: usize) -> String {
    format!("/bench/p{:07}/node-{node:011}", node % PARENTS)
}

/// All numbers below `count` once, in an order that looks like chance.
pub(crate) fn shuffled(count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(count).expect("few")).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in (1..order.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).expect("31 bits") % (at + 1);
        order.swap(at, other);
    }
    order
}

/// A tree with the parents only.
pub(crate) fn with_parents(leader: &mut Leader) -> DataTree {
    let mut tree = DataTree::new();
    leader.create(&mut tree, "/bench", 1, Some(b""));
    for parent in 0..PARENTS {
        leader.create(&mut tree, &parent_path(parent), i32::try_from(parent).expect("few") + 1, Some(b""));
    }
    tree
}

/// Adds the nodes of these numbers.
pub(crate) fn fill(
    tree: &mut DataTree,
    leader: &mut Leader,
    order: &[u32],
    paths: &[String],
    data: Option<&[u8]>,
) {
    let mut cversions = vec![0; PARENTS];
    for &node in order {
        let node = node as usize;
        cversions[node % PARENTS] += 1;
        leader.create(tree, &paths[node], cversions[node % PARENTS], data);
    }
}
