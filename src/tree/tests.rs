use super::*;
use crate::base::{Code, Zxid};
use crate::format::{Acl, AclBuf, AclList, Create, CreateKind, Ops, Txn, TxnBody};
use crate::tree::digest::whole_digest;

pub(super) fn txn(zxid: u64, body: TxnBody<'_>) -> Txn<'_> {
    Txn {
        zxid: Zxid::new(zxid),
        time_ms: 1_700_000_000_000 + zxid.cast_signed(),
        session_id: 9,
        cxid: 0,
        digest: None,
        body,
    }
}

pub(super) fn create<'a>(path: &'a str, data: &'a [u8], acl: AclList<'a>, cversion: i32) -> TxnBody<'a> {
    let kind = CreateKind::Plain { ephemeral: false };
    TxnBody::Create(Create { path, data: Some(data), acl, kind, parent_cversion: Some(cversion) })
}

fn recomputed(tree: &DataTree) -> u64 {
    let mut sum = 0_u64;
    let mut todo = vec![tree.get("/").unwrap()];
    while let Some(node) = todo.pop() {
        todo.extend(node.children(None));
        if path::is_in_digest(&node.path()) {
            let digest = u64::from(whole_digest(&node.path(), node.data(), &node.stored()));
            assert_eq!(node.digest(), digest);
            sum = sum.wrapping_add(digest);
        }
    }
    sum
}

#[test]
fn a_new_tree_is_that_of_a_new_zookeeper() {
    let tree = DataTree::new();
    assert_eq!(tree.digest(), 1_371_985_504);
    assert_eq!(tree.len(), 4);
    let root = tree.get("/").unwrap();
    assert_eq!((root.stat().cversion, root.stat().child_count), (-1, 1));
    assert!(root.children(None).map(|c| c.name()).eq(["zookeeper"]));
    let names: Vec<_> = tree.get("/zookeeper").unwrap().children(None).map(|c| c.path()).collect();
    assert_eq!(names, ["/zookeeper/config", "/zookeeper/quota"]);
    assert_eq!(tree.get("/zookeeper/config").unwrap().stat().aversion, -1);
}

#[test]
fn changes_make_the_stats_that_zookeeper_makes() {
    let acl: AclBuf = [Acl::open().as_entry()].into_iter().collect();
    let mut tree = DataTree::new();
    let mut seen = Vec::new();
    let mut note = |change: Change<'_>| seen.push(format!("{change:?}"));
    tree.apply(&txn(1, create("/a", b"1", acl.as_list(), 1)), &mut note);
    tree.apply(&txn(2, create("/a/b", b"22", acl.as_list(), 1)), &mut note);
    tree.apply(&txn(3, TxnBody::SetData { path: "/a/b", data: None, version: 1 }), &mut note);
    tree.apply(&txn(4, create("/a/c", b"", acl.as_list(), 2)), &mut note);
    tree.apply(&txn(5, TxnBody::Delete { path: "/a/b" }), &mut note);
    let a = tree.exists("/a").unwrap();
    assert_eq!((a.cversion, a.child_count, a.pzxid, a.version), (3, 1, Zxid::new(5), 0));
    assert_eq!((a.czxid, a.mzxid, a.data_bytes), (Zxid::new(1), Zxid::new(1), 1));
    assert_eq!(tree.get("/a").unwrap().acl(), acl.as_list());
    assert_eq!(tree.digest(), recomputed(&tree));
    assert_eq!(seen.len(), 5);
    assert_eq!(tree.last_zxid(), Zxid::new(5));
}

#[test]
fn a_multi_with_an_error_changes_nothing() {
    let mut tree = DataTree::new();
    let ops = [
        create("/a", b"", AclList::EMPTY, 1),
        TxnBody::Error { code: Code::NO_NODE },
        TxnBody::Check { path: "/", version: -1 },
    ];
    let outcome = tree.apply(&txn(1, TxnBody::Multi(Ops::from_slice(&ops))), &mut ());
    assert!(tree.get("/a").is_none());
    let codes = [Outcome::Done, Outcome::Failed(Code::NO_NODE), Outcome::Failed(Code::RUNTIME_INCONSISTENCY)];
    assert_eq!(outcome, Outcome::Multi(codes.to_vec()));
    assert_eq!(outcome.code(), Code::NO_NODE);
}

#[test]
fn a_walk_and_a_loader_make_the_same_tree() {
    let acl: AclBuf = [Acl::open().as_entry()].into_iter().collect();
    let mut tree = DataTree::new();
    let mut zxid = 0;
    let mut go = |tree: &mut DataTree, body: TxnBody<'_>| {
        zxid += 1;
        tree.apply(&txn(zxid, body), &mut ());
    };
    go(&mut tree, TxnBody::CreateSession { timeout_ms: 4000 });
    go(&mut tree, create("/gone", b"", AclList::EMPTY, 2));
    go(&mut tree, create("/b", b"", AclList::EMPTY, 3));
    go(&mut tree, TxnBody::Delete { path: "/gone" });
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        let path = format!("/b/{name}");
        go(&mut tree, create(&path, &[7; 5000], acl.as_list(), i32::try_from(n).unwrap() + 1));
    }
    go(&mut tree, create("/z", b"", AclList::EMPTY, 4));
    go(&mut tree, create("/b/a/x", b"x", acl.as_list(), 1));
    let kind = CreateKind::Ttl { ttl_ms: 1000 };
    let ttl = Create { path: "/ttl", data: None, acl: AclList::EMPTY, kind, parent_cversion: Some(5) };
    go(&mut tree, TxnBody::Create(ttl));
    let mut loader = DataTree::loader();
    let mut walk = Walk::new();
    while tree.walk(&mut walk, 3, &mut |node| loader.node(&node)) {}
    assert!((walk.progress(&tree) - 1.0).abs() < f64::EPSILON);
    tree.sessions().into_iter().for_each(|(id, timeout)| loader.session(id, timeout));
    let done = loader.finish(tree.last_zxid());
    assert_eq!(done.orphans, 0);
    let paths = |tree: &DataTree| -> Vec<_> {
        tree.descendants("/", None).map(|n| (n.path(), n.stored(), n.data().map(<[u8]>::to_vec))).collect()
    };
    assert_eq!(paths(&done.tree), paths(&tree));
    assert_eq!(
        (done.tree.digest(), done.tree.approximate_bytes()),
        (tree.digest(), tree.approximate_bytes())
    );
    assert_eq!(done.tree.expired_paths(i64::MAX), ["/ttl"]);
}

#[test]
fn descendants_come_in_pages_in_order() {
    let mut tree = DataTree::new();
    for (zxid, path) in (1..).zip(["/b", "/b/c", "/b/c/d", "/b-", "/b/a", "/a", "/b/c-", "/c"]) {
        tree.apply(&txn(zxid, create(path, b"..", AclList::EMPTY, 1)), &mut ());
    }
    let all: Vec<_> = tree.descendants("/", None).map(|n| n.path()).collect();
    assert_eq!(all[..8], ["/a", "/b", "/b/a", "/b/c", "/b/c/d", "/b/c-", "/b-", "/c"]);
    for (at, after) in all.iter().enumerate() {
        assert!(
            tree.descendants("/", Some(after)).map(|n| n.path()).eq(all[at + 1..].iter().cloned()),
            "{after}"
        );
    }
    let below = |after| tree.descendants("/b", after).map(|n| n.path()).collect::<Vec<_>>();
    assert_eq!(below(None), ["/b/a", "/b/c", "/b/c/d", "/b/c-"]);
    assert_eq!(below(Some("/b/b/x")), ["/b/c", "/b/c/d", "/b/c-"]);
    assert_eq!(below(Some("/b/c/a")), ["/b/c/d", "/b/c-"]);
    assert_eq!(tree.descendants("/none", None).count(), 0);
    let totals = tree.subtree_totals("/b").unwrap();
    assert_eq!((totals.nodes, totals.data_bytes), (5, 10));
    assert_eq!(tree.subtree_totals("/").unwrap().digest, tree.digest());
}

#[test]
fn quotas_tell_their_limits_and_totals() {
    let mut tree = DataTree::new();
    let limits = b"count=1,bytes=100=;byteHardLimit=200;countHardLimit=x";
    for (zxid, (path, data)) in (1..).zip([
        ("/a", &b"1234"[..]),
        ("/zookeeper/quota/a", b""),
        ("/zookeeper/quota/a/zookeeper_limits", limits),
        ("/a/b", b"12"),
    ]) {
        tree.apply(&txn(zxid, create(path, data, AclList::EMPTY, 1)), &mut ());
    }
    let limits =
        QuotaLimits { nodes_soft: Some(1), bytes_soft: Some(100), nodes_hard: None, bytes_hard: Some(200) };
    let state = QuotaState { limits, nodes: 2, bytes: 6 };
    assert_eq!(tree.quotas(), [("/a".to_owned(), state)]);
    assert!(tree.quota("/a").unwrap().exceeds_soft() && tree.quota("/a/b").is_none());
}

#[test]
fn a_walk_ends_though_nodes_are_created_faster_than_it_goes() {
    let mut tree = DataTree::new();
    let mut zxid = 0;
    let mut grow = |tree: &mut DataTree, count: u64| {
        for _ in 0..count {
            zxid += 1;
            let path = format!("/{zxid}");
            let cversion = i32::try_from(zxid).unwrap();
            let made = tree.apply(&txn(zxid, create(&path, b"x", AclList::EMPTY, cversion)), &mut ());
            assert_eq!(made.code(), Code::OK);
        }
    };
    grow(&mut tree, 50);
    let (mut walk, mut met, mut steps) = (Walk::new(), 0, 0);
    while tree.walk(&mut walk, 1, &mut |_| met += 1) {
        grow(&mut tree, 3);
        steps += 1;
        assert!(steps < 10_000, "it does not end");
    }
    // Where nodes ended is known to the piece of memory.
    assert!(met >= 50, "{met}");
}

/// Names of which the index keeps the same hash, found by trying.
fn alike(tree: &DataTree, parent: &str) -> (String, String) {
    let parent = tree.find(parent).unwrap();
    let mut seen = std::collections::HashMap::new();
    (0..)
        .find_map(|n: u64| {
            let name = n.to_string();
            let kept = tree.index.hash(parent, name.as_bytes()) >> 32;
            seen.insert(kept, name.clone()).map(|other| (other, name))
        })
        .unwrap()
}

#[test]
fn a_node_with_the_hash_of_another_is_not_taken_for_it() {
    let mut tree = DataTree::new();
    let mut apply = |zxid, body| tree.apply(&txn(zxid, body), &mut ()).code();
    apply(1, create("/p", b"", AclList::EMPTY, 1));
    let (there, missing) = alike(&tree, "/p");
    let (there, missing) = (format!("/p/{there}"), format!("/p/{missing}"));
    let mut apply = |zxid, body| tree.apply(&txn(zxid, body), &mut ()).code();
    assert_eq!(apply(2, create(&there, b"here", AclList::EMPTY, 1)), Code::OK);
    let set = TxnBody::SetData { path: &missing, data: Some(b"x"), version: 1 };
    assert_eq!(apply(3, set), Code::NO_NODE);
    assert_eq!(apply(4, TxnBody::Delete { path: &missing }), Code::NO_NODE);
    let node = tree.get(&there).unwrap();
    assert_eq!((node.data(), node.stat().version), (Some(&b"here"[..]), 0));
    assert!(tree.get(&missing).is_none() && tree.get_many(&[&missing])[0].is_none());
    // Both, and each for itself.
    let mut apply = |zxid, body| tree.apply(&txn(zxid, body), &mut ()).code();
    assert_eq!(apply(5, create(&missing, b"too", AclList::EMPTY, 2)), Code::OK);
    assert_eq!(apply(6, set), Code::OK);
    assert_eq!(apply(7, TxnBody::Delete { path: &there }), Code::OK);
    assert!(tree.get(&there).is_none());
    assert_eq!(tree.get(&missing).unwrap().data(), Some(&b"x"[..]));
    assert_eq!(tree.digest(), recomputed(&tree));
}
