//! Faults that real systems had with sessions, owners, versions and poison. Their numbers are those of
//! `docs/TESTING.md`.

use super::compare::differences;
use super::exhaustive::create;
use super::history::{History, Leader};
use super::reference::{Model, ModelNode};
use super::scene::Scene;
use super::step::{Op, Step};
use crate::base::{Code, Zxid};
use crate::format::{Acl, AclBuf, AclList, CreateKind, Perms};
use crate::tree::data_tree::{NewNode, ROOT};
use crate::tree::digest::whole_digest;
use crate::tree::{DataTree, Outcome, Owner, StoredStat, Walk};

const PLAIN: CreateKind = CreateKind::Plain { ephemeral: false };
const EPHEMERAL: CreateKind = CreateKind::Plain { ephemeral: true };

fn make(scene: &mut Scene, session_id: i64, path: &str, kind: CreateKind) {
    let op = create(scene.model(), path, kind).expect("it may be created");
    assert!(scene.apply(session_id, op).code().is_ok());
}

fn raw_create(path: &str, kind: CreateKind) -> Op {
    let (data, acl) = (Some(vec![1]), AclBuf::new());
    Op::Create { path: path.to_owned(), data, acl, kind, parent_cversion: None }
}

#[test]
fn se_01_an_ephemeral_after_its_session_is_made_alike_everywhere_and_can_be_found() {
    for inside_a_multi in [false, true] {
        let mut live = Scene::new();
        live.apply(1, Op::CreateSession { timeout_ms: 4000 });
        live.apply(1, Op::CloseSession { paths: Some(Vec::new()) });
        let op = create(live.model(), "/late", EPHEMERAL).expect("absent");
        live.apply(1, if inside_a_multi { Op::Multi(vec![op]) } else { op });
        live.assert_live();
        live.assert_all_converge();
        // An owner without a session is what a check of a loaded tree looks for.
        assert_eq!((live.tree.ephemeral_owners(), live.tree.session_timeout_ms(1)), (vec![1], None));
        live.apply(1, Op::CloseSession { paths: Some(vec!["/late".to_owned()]) });
        live.assert_live();
        assert!(live.tree.get("/late").is_none() && live.tree.ephemeral_owners().is_empty());
    }
}

#[test]
fn se_05_no_time_ends_a_session_but_a_txn() {
    let mut live = Scene::new();
    live.apply(1, Op::CreateSession { timeout_ms: 1 });
    make(&mut live, 1, "/e", EPHEMERAL);
    for (zxid, time_ms) in (10..).zip([0, i64::MAX, i64::MIN, 1_700_000_000_000]) {
        let op = Op::SetData { path: "/".to_owned(), data: None, version: 1 };
        live.take(Step { zxid: Zxid::new(zxid), time_ms, session_id: 0, op });
        assert_eq!(live.tree.ephemeral_paths(1), ["/e"]);
        live.assert_live();
    }
}

#[test]
fn se_06_sessions_of_every_timeout_leave_nothing_behind() {
    let mut tree = DataTree::new();
    let mut zxid = 0;
    let mut apply = |tree: &mut DataTree, session_id: i64, op: Op| {
        zxid += 1;
        Step { zxid: Zxid::new(zxid), time_ms: 1, session_id, op }.apply_to(tree, &mut ());
    };
    let before = (tree.len(), tree.approximate_bytes(), tree.acls.counts(), tree.rare.len());
    for id in 1..=10_000_i64 {
        let timeout_ms = [0, -1, i32::MAX, 4000][usize::try_from(id % 4).expect("small")];
        apply(&mut tree, id, Op::CreateSession { timeout_ms });
        apply(&mut tree, id, raw_create(&format!("/e{id}"), EPHEMERAL));
        assert_eq!(tree.session_timeout_ms(id), Some(timeout_ms));
    }
    assert_eq!((tree.sessions().len(), tree.ephemeral_owners().len()), (10_000, 10_000));
    (1..=10_000).for_each(|id| apply(&mut tree, id, Op::CloseSession { paths: None }));
    assert!(tree.sessions().is_empty() && tree.ephemeral_owners().is_empty());
    assert_eq!((tree.len(), tree.approximate_bytes(), tree.acls.counts(), tree.rare.len()), before);
    assert_eq!(tree.get("/").expect("the root").child_count(), 1);
}

#[test]
fn se_08_ten_thousand_sessions_with_ten_nodes_each_close_one_by_one() {
    let mut tree = DataTree::new();
    let mut zxid = 0;
    let mut apply = |tree: &mut DataTree, session_id: i64, op: Op| {
        zxid += 1;
        Step { zxid: Zxid::new(zxid), time_ms: 1, session_id, op }.apply_to(tree, &mut ())
    };
    apply(&mut tree, 0, raw_create("/p", PLAIN));
    for id in 1..=10_000 {
        (0..10).for_each(|n| drop(apply(&mut tree, id, raw_create(&format!("/p/{n}-{id}"), EPHEMERAL))));
    }
    for id in 1..=10_000 {
        let paths = tree.ephemeral_paths(id);
        assert_eq!(paths.len(), 10);
        apply(&mut tree, id, Op::CloseSession { paths: Some(paths) });
    }
    let p = tree.exists("/p").expect("there");
    assert_eq!((p.child_count, p.cversion, p.pzxid.get()), (0, 200_000, 110_001));
}

/// The kind of an owner is no part of its number: a session may have any.
#[test]
fn tc_01_a_session_is_no_ttl_whatever_its_number() {
    let numbers =
        [0xff00_0000_0000_0001, 0xff00_00ff_ffff_ffff, 0xff00_0100_0000_0000, 0x8000_0000_0000_03e8];
    let more = [0x8000_0000_0000_0000, 0xfe00_0000_0000_0001, 0x7fff_ffff_ffff_ffff];
    for id in numbers.into_iter().chain(more).map(u64::cast_signed) {
        let mut live = Scene::new();
        live.apply(id, Op::CreateSession { timeout_ms: 4000 });
        make(&mut live, id, "/e", EPHEMERAL);
        make(&mut live, id, "/t", CreateKind::Ttl { ttl_ms: 1 });
        make(&mut live, id, "/k", CreateKind::Container);
        live.assert_live();
        assert_eq!(live.tree.expired_paths(i64::MAX), ["/t"]);
        assert_eq!(live.tree.exists("/e").expect("there").ephemeral_owner, id);
        assert_eq!(live.tree.exists("/t").expect("there").ephemeral_owner, 0);
        live.apply(id, Op::CloseSession { paths: None });
        assert!(
            live.tree.get("/e").is_none() && live.tree.get("/t").is_some() && live.tree.get("/k").is_some()
        );
        live.assert_live();
    }
    // The numbers of old ZooKeepers without a flag that says what they mean.
    let ttl = 0xff00_0000_0000_0001_u64.cast_signed();
    assert_eq!(Owner::from_raw(ttl, true), Owner::Ttl { ttl_ms: 1 });
    assert_eq!(Owner::from_raw(ttl, false), Owner::Session(ttl));
    assert_eq!(Owner::from_raw(i64::MIN, false), Owner::Container);
    let old = 0x8000_0000_0000_03e8_u64.cast_signed();
    assert_eq!(Owner::from_raw(old, true), Owner::Session(old));
}

#[test]
fn tc_03_a_container_goes_when_its_last_child_has_gone_and_not_before() {
    let mut live = Scene::new();
    make(&mut live, 0, "/k", CreateKind::Container);
    assert!(live.tree.expired_paths(i64::MAX).is_empty(), "never used");
    make(&mut live, 0, "/k/x", PLAIN);
    assert!(live.tree.expired_paths(i64::MAX).is_empty(), "in use");
    live.apply(0, Op::Delete { path: "/k/x".to_owned() });
    assert_eq!(live.tree.expired_paths(i64::MIN), ["/k"]);
    live.apply(0, Op::DeleteContainer { path: "/k".to_owned() });
    assert!(live.tree.expired_paths(i64::MAX).is_empty());
    live.assert_all_converge();
}

#[test]
fn tc_03_a_container_is_in_use_past_the_end_of_its_count() {
    let mut model = Model::new();
    let stat = StoredStat { cversion: i32::MAX, owner: Owner::Container, ..StoredStat::default() };
    model.nodes.insert("/k".to_owned(), ModelNode { data: None, acl: AclBuf::new(), stat });
    let mut live = Scene::of(model);
    make(&mut live, 0, "/k/x", PLAIN);
    live.apply(0, Op::Delete { path: "/k/x".to_owned() });
    assert_eq!(live.tree.get("/k").expect("there").stored().cversion, i32::MIN);
    assert_eq!(live.tree.expired_paths(0), ["/k"]);
}

#[test]
fn ep_01_the_order_of_zxids_goes_on_over_epochs() {
    let mut live = Scene::new();
    let zxids = [(7, u32::MAX - 1), (7, u32::MAX), (8, 1), (0x7fff_ffff, 3), (0x8000_0000, 1), (u32::MAX, 1)];
    for (at, (epoch, counter)) in zxids.into_iter().enumerate() {
        let zxid = Zxid::from_parts(epoch, counter);
        let op = create(live.model(), &format!("/{at}"), PLAIN).expect("absent");
        live.take(Step { zxid, time_ms: 1, session_id: 0, op });
        assert_eq!((live.tree.last_zxid(), live.tree.exists("/").expect("there").pzxid), (zxid, zxid));
        // A parent's zxid only rises, beyond the sign of ZooKeeper's 64 bits as well.
        live.take(Step { zxid, time_ms: 1, session_id: 0, op: Op::Delete { path: format!("/{at}") } });
        assert_eq!(live.tree.exists("/").expect("there").pzxid, zxid);
        live.assert_live();
    }
    // What comes late changes what is set, and never the order.
    let op = Op::Delete { path: "/none".to_owned() };
    live.take(Step { zxid: Zxid::new(5), time_ms: 1, session_id: 0, op });
    assert_eq!(live.tree.last_zxid(), Zxid::from_parts(u32::MAX, 1));
    live.assert_live();
}

#[test]
fn tx_01_what_only_asks_changes_nothing() {
    let mut live = Scene::new();
    make(&mut live, 0, "/a", PLAIN);
    let check = Op::Check { path: "/a".to_owned(), version: 0 };
    let before = live.model().nodes.clone();
    let error = Op::Error { code: Code::new(-9999) };
    for op in [check.clone(), Op::Multi(Vec::new()), Op::Multi(vec![check.clone(), check]), error] {
        live.apply(0, op);
        assert_eq!(live.model().nodes, before);
        live.assert_live();
    }
}

#[test]
fn tx_03_versions_go_on_past_their_ends() {
    let mut model = Model::new();
    let stat = StoredStat { version: i32::MAX, cversion: i32::MAX, aversion: -2, ..StoredStat::default() };
    model.nodes.insert("/v".to_owned(), ModelNode { data: None, acl: AclBuf::new(), stat });
    let mut live = Scene::of(model);
    for version in [i32::MIN, -2, 0] {
        live.apply(0, Op::SetData { path: "/v".to_owned(), data: Some(vec![1]), version });
    }
    live.apply(0, Op::SetAcl { path: "/v".to_owned(), acl: AclBuf::new(), version: 0 });
    make(&mut live, 0, "/v/x", PLAIN);
    live.apply(0, Op::Delete { path: "/v/x".to_owned() });
    make(&mut live, 0, "/v/y", PLAIN);
    live.assert_live();
    live.assert_all_converge();
    let v = live.tree.get("/v").expect("there");
    assert_eq!((v.stat().version, v.stat().aversion, v.stored().cversion), (0, 0, i32::MIN + 1));
    // 2 * (MIN + 1) - 1, in 32 bits.
    assert_eq!(v.stat().cversion, 1);
}

/// Paths that no server lets through: a tree refuses them, whatever txn they come with, and stays as it is.
#[test]
fn tx_05_paths_that_are_none_change_nothing() {
    let long = format!("/{}", "x/".repeat(500_000));
    let none = ["", "a", "//", "//a", "/a/", "/a//b", "///", "//a/b", "a/b", " ", long.as_str()];
    for path in none {
        let mut live = Scene::new();
        live.apply(1, Op::CreateSession { timeout_ms: 4000 });
        make(&mut live, 0, "/a", PLAIN);
        make(&mut live, 0, "/a/b", PLAIN);
        let (mut tree, model) = (live.tree, live.states.pop().expect("the newest"));
        let named = path.to_owned();
        let ops = [
            raw_create(path, PLAIN),
            raw_create(path, EPHEMERAL),
            Op::SetData { path: named.clone(), data: None, version: 1 },
            Op::SetAcl { path: named.clone(), acl: AclBuf::new(), version: 1 },
            Op::Delete { path: named.clone() },
            Op::DeleteContainer { path: named.clone() },
            Op::Reconfig { path: named.clone(), data: None, version: 1 },
        ];
        for op in ops {
            let only_changes = matches!(op, Op::SetData { .. } | Op::SetAcl { .. } | Op::Reconfig { .. });
            let step = Step { zxid: model.last_zxid, time_ms: 1, session_id: 1, op };
            let mut told = 0;
            let outcome = step.apply_to(&mut tree, &mut |_: crate::tree::Change<'_>| told += 1);
            assert!(!outcome.code().is_ok(), "{path:.20}: {outcome:?}");
            assert!(!only_changes || outcome == Outcome::Failed(Code::NO_NODE), "{path:.20}: {outcome:?}");
            assert_eq!(told, 0);
        }
        assert!(tree.get(path).is_none());
        let found = differences(&tree, &model);
        assert!(found.is_empty(), "{path:.20}: {found:#?}");
    }
    let mut tree = DataTree::new();
    let root = Step { zxid: Zxid::new(1), time_ms: 1, session_id: 0, op: raw_create("/", PLAIN) };
    assert_eq!(root.apply_to(&mut tree, &mut ()), Outcome::Failed(Code::NODE_EXISTS));
    let root = Step { op: Op::Delete { path: "/".to_owned() }, ..root };
    assert_eq!(root.apply_to(&mut tree, &mut ()), Outcome::Failed(Code::BAD_ARGUMENTS));
    assert_eq!(tree.len(), 4);
}

/// Hash tables differ in their seeds; nothing that is told may.
#[test]
fn tx_07_one_history_makes_one_tree() {
    for seed in 0..20 {
        let make = || {
            let mut history = History::new(seed, Model::new(), Leader::Any);
            let (mut tree, mut told) = (DataTree::new(), Vec::new());
            for _ in 0..150 {
                let step = history.step();
                step.apply_to(&mut tree, &mut |change: crate::tree::Change<'_>| {
                    told.push(format!("{change:?}"))
                });
            }
            let mut walk = Walk::new();
            while tree.walk(&mut walk, 1000, &mut |node| told.push(format!("{node:?}"))) {}
            (told, tree.sessions(), tree.ephemeral_owners(), tree.expired_paths(i64::MAX), tree.digest())
        };
        assert_eq!(make(), make(), "seed {seed}");
    }
}

#[test]
fn lg_03_a_chain_as_deep_as_a_path_can_be_is_deleted_on_a_small_stack() {
    let mut tree = DataTree::new();
    let before = (tree.len(), tree.approximate_bytes());
    let (mut parent, mut path) = (ROOT, String::new());
    for _ in 0..40_000 {
        path.push_str("/d");
        let stat = StoredStat::default();
        let digest = whole_digest(&path, None, &stat);
        let new = NewNode { path: &path, data: None, acl: AclList::EMPTY, stat: &stat, digest };
        parent = tree.plant_at(&tree.spot(parent, b"d"), &new, None).expect("few");
    }
    assert_eq!(tree.descendants("/d", None).count(), 39_999);
    let op = Op::Delete { path: "/d".to_owned() };
    let step = Step { zxid: Zxid::new(1), time_ms: 1, session_id: 0, op };
    assert_eq!(step.apply_to(&mut tree, &mut ()), Outcome::Done);
    assert_eq!((tree.len(), tree.approximate_bytes()), before);
    assert_eq!(Some(tree.digest()), tree.subtree_totals("/").map(|totals| totals.digest));
}

/// More lists than a node's record has numbers for, and none of them when they are not used any more.
#[test]
fn pf_01_the_table_of_lists_is_as_large_as_what_is_used() {
    let mut tree = DataTree::new();
    let list =
        |n: i32| -> AclBuf { [Acl::new(Perms::READ, "ip", n.to_string()).as_entry()].into_iter().collect() };
    let mut zxid = 0;
    let mut apply = |tree: &mut DataTree, op: Op| {
        zxid += 1;
        Step { zxid: Zxid::new(zxid), time_ms: 1, session_id: 0, op }.apply_to(tree, &mut ());
    };
    let before = (tree.acls.counts(), tree.rare.len());
    for n in 0..66_000 {
        let Op::Create { path, data, kind, .. } = raw_create(&format!("/{n}"), PLAIN) else { unreachable!() };
        apply(&mut tree, Op::Create { path, data, acl: list(n), kind, parent_cversion: None });
    }
    assert_eq!(tree.acls.counts(), (before.0.0 + 66_000, before.0.1 + 66_000));
    assert!(
        (0..66_000).all(|n| tree.get(&format!("/{n}")).is_some_and(|node| node.acl() == list(n).as_list()))
    );
    // From a large number to a small one and back.
    for (n, other) in [(65_999, 1), (1, 65_998), (65_990, 65_991)] {
        apply(&mut tree, Op::SetAcl { path: format!("/{n}"), acl: list(other), version: 1 });
        assert_eq!(tree.get(&format!("/{n}")).expect("there").acl(), list(other).as_list());
    }
    (0..66_000).for_each(|n| apply(&mut tree, Op::Delete { path: format!("/{n}") }));
    assert_eq!((tree.acls.counts(), tree.rare.len()), before);
}
