//! Faults that real systems had with the replay of a snapshot's own time. Their numbers are those of
//! `docs/TESTING.md`.

use super::compare::differences;
use super::exhaustive::create;
use super::history::below;
use super::scene::{Scene, Torn};
use super::step::Op;
use crate::base::Random;
use crate::format::{Acl, AclBuf, CreateKind, Perms};
use crate::tree::{DataTree, Owner, SharedTree, Walk, path};

const PLAIN: CreateKind = CreateKind::Plain { ephemeral: false };
const EPHEMERAL: CreateKind = CreateKind::Plain { ephemeral: true };

/// A scene with these nodes; ephemeral ones belong to session 1.
fn scene(nodes: &[(&str, CreateKind)]) -> Scene {
    let mut scene = Scene::new();
    scene.apply(1, Op::CreateSession { timeout_ms: 4000 });
    nodes.iter().for_each(|(path, kind)| make(&mut scene, 1, path, *kind));
    scene.begin();
    scene
}

fn make(scene: &mut Scene, session_id: i64, path: &str, kind: CreateKind) {
    let op = create(scene.model(), path, kind).expect("it may be created");
    assert!(scene.apply(session_id, op).code().is_ok());
}

fn delete(scene: &mut Scene, path: &str) {
    assert!(scene.apply(0, Op::Delete { path: path.to_owned() }).code().is_ok());
}

fn set_data(path: &str, version: i32) -> Op {
    Op::SetData { path: path.to_owned(), data: Some(vec![7; 9]), version }
}

fn close(scene: &mut Scene, session_id: i64) {
    let paths = Some(scene.model().ephemerals(session_id));
    scene.apply(session_id, Op::CloseSession { paths });
}

fn recovered(scene: &Scene, torn: &Torn) -> DataTree {
    let mut tree = torn.load();
    scene.replay(&mut tree);
    tree
}

#[test]
fn fz_01_a_zxid_is_seen_with_all_of_its_effect() {
    let shared = SharedTree::new(DataTree::new());
    let mut live = Scene::new();
    (1..=400).for_each(|n| make(&mut live, 0, &format!("/{n}"), PLAIN));
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One lock a txn.
            live.steps
                .iter()
                .for_each(|step| assert!(step.with_txn(|txn| shared.apply(txn, &mut ())).code().is_ok()));
        });
        while seen < 400 {
            let tree = shared.read();
            seen = tree.last_zxid().get();
            assert_eq!(tree.len(), 4 + seen, "exactly what the zxid says");
            assert!(seen == 0 || tree.get(&format!("/{seen}")).is_some());
        }
    });
}

#[test]
fn fz_01_a_snapshot_named_at_any_moment_converges() {
    let mut live = scene(&[("/a", PLAIN)]);
    make(&mut live, 0, "/a/1", PLAIN);
    live.apply(0, set_data("/a", 1));
    delete(&mut live, "/a/1");
    for start in 0..live.states.len() {
        let mut later = Scene::of(live.states[start].clone());
        live.steps[start..].iter().for_each(|step| drop(later.take(step.clone())));
        later.assert_all_converge();
    }
}

#[test]
fn fz_02_a_multi_is_in_a_snapshot_whole_or_not_at_all() {
    let mut live = scene(&[("/a", PLAIN), ("/b", PLAIN), ("/c", PLAIN)]);
    let mut ops = vec![create(live.model(), "/a/1", PLAIN).expect("absent")];
    let second = Op::Create {
        path: "/a/2".to_owned(),
        data: None,
        acl: AclBuf::new(),
        kind: PLAIN,
        parent_cversion: Some(2),
    };
    ops.extend([second, set_data("/b", 1), Op::Delete { path: "/c".to_owned() }]);
    live.apply(0, Op::Multi(ops));
    assert_eq!(live.assert_all_converge(), 1 << 6, "six nodes change, each before or after");
    let b = live.tree.exists("/b").expect("there");
    assert_eq!((b.version, live.tree.exists("/a").expect("there").cversion), (1, 2));
    assert_eq!(live.tree.last_zxid(), live.steps[0].zxid);
}

#[test]
fn fz_04_creates_and_deletes_in_the_range_take_nothing_back() {
    let mut live = scene(&[("/p", PLAIN)]);
    let names: Vec<String> = (1..=5).map(|n| format!("/p/{n}")).collect();
    names.iter().for_each(|path| make(&mut live, 0, path, PLAIN));
    names.iter().for_each(|path| delete(&mut live, path));
    let moments = live.states.len();
    for parent_at in 0..moments {
        for children_at in 0..moments {
            let torn = live.tear(|path| if path == "/p" { parent_at } else { children_at }, 0);
            live.assert_converges(&torn);
            let p = recovered(&live, &torn).get("/p").expect("there").stored();
            assert_eq!((p.cversion, p.pzxid), (5, live.model().last_zxid));
            assert_eq!(path::sequence_suffix(p.cversion), "0000000005");
        }
    }
}

#[test]
fn fz_05_a_create_that_finds_its_node_still_raises_the_parent() {
    let ttl = CreateKind::Ttl { ttl_ms: 5 };
    for kind in [PLAIN, EPHEMERAL, CreateKind::WithStat { ephemeral: false }, CreateKind::Container, ttl] {
        let mut live = scene(&[("/q", PLAIN)]);
        make(&mut live, 1, "/q/c-0000000000", kind);
        let torn = live.tear(|path| usize::from(path != "/q"), 0);
        assert!(torn.load().get("/q/c-0000000000").is_some() && torn.load().exists("/q").is_some());
        live.assert_converges(&torn);
        let q = recovered(&live, &torn).get("/q").expect("there").stored();
        assert_eq!(
            (path::sequence_suffix(q.cversion), q.pzxid),
            ("0000000001".into(), live.model().last_zxid)
        );
    }
}

#[test]
fn fz_05_creates_of_old_logs_count_for_the_parent_once() {
    let untold = |live: &mut Scene, path: &str| {
        let mut op = create(live.model(), path, PLAIN).expect("it may be created");
        if let Op::Create { parent_cversion, .. } = &mut op {
            *parent_cversion = None;
        }
        assert!(live.apply(1, op).code().is_ok());
    };
    let mut live = scene(&[("/q", PLAIN), ("/q/before", PLAIN)]);
    untold(&mut live, "/q/a");
    delete(&mut live, "/q/before");
    untold(&mut live, "/q/b");
    delete(&mut live, "/q/a");
    untold(&mut live, "/q/a");
    // Whatever the snapshot has of the nodes and of their parent, and however often the log is replayed.
    assert_eq!(live.assert_all_converge(), 6_usize.pow(4));
    assert_eq!(live.tree.get("/q").expect("there").stored().cversion, 4);
}

#[test]
fn fz_05_a_count_that_comes_by_minus_one_converges() {
    let mut model = scene(&[("/q", PLAIN)]).model().clone();
    model.nodes.get_mut("/q").expect("there").stat.cversion = -3;
    let mut live = Scene::of(model);
    let ops = [("/q/a", Some(-2)), ("/q/b", None)].map(|(path, number)| {
        let mut op = create(live.model(), path, PLAIN).expect("it may be created");
        if let Op::Create { parent_cversion, .. } = &mut op {
            *parent_cversion = number;
        }
        op
    });
    // Of one txn, so that the parent has seen it already when the second one comes.
    assert!(live.apply(1, Op::Multi(ops.to_vec())).code().is_ok());
    assert_eq!(live.tree.get("/q").expect("there").stored().cversion, -1);
    live.assert_all_converge();
}

#[test]
fn fz_07_a_close_lifts_the_parents_of_what_is_gone_already() {
    let mut live = scene(&[("/p", PLAIN), ("/q", PLAIN), ("/p/e1", EPHEMERAL), ("/q/e2", EPHEMERAL)]);
    close(&mut live, 1);
    assert_eq!(live.assert_all_converge(), 1 << 5);
    // The parents were met before the close, the nodes after it.
    let torn = live.tear(|path| usize::from(path.contains("/e")), 1);
    let tree = recovered(&live, &torn);
    for parent in ["/p", "/q"] {
        assert_eq!(tree.exists(parent).expect("there").pzxid, live.model().last_zxid);
    }
    assert!(tree.ephemeral_owners().is_empty() && tree.sessions().is_empty());
}

#[test]
fn fz_07_a_close_of_old_times_makes_the_same_nodes() {
    let mut live = scene(&[("/p", PLAIN), ("/q", PLAIN), ("/p/e1", EPHEMERAL), ("/q/e2", EPHEMERAL)]);
    live.apply(1, Op::CloseSession { paths: None });
    for combination in 0..1 << 4 {
        let names = ["/p", "/q", "/p/e1", "/q/e2"];
        let at = |path: &str| names.iter().position(|n| *n == path).map_or(0, |n| combination >> n & 1);
        let tree = recovered(&live, &live.tear(at, 0));
        assert!(
            tree.descendants("/", None)
                .map(|n| n.path())
                .eq(live.tree.descendants("/", None).map(|n| n.path()))
        );
        assert!(tree.ephemeral_owners().is_empty() && tree.sessions().is_empty());
    }
}

#[test]
fn fz_08_sessions_may_be_copied_at_any_moment() {
    let mut live = scene(&[("/p", PLAIN), ("/p/old", EPHEMERAL)]);
    live.apply(2, Op::CreateSession { timeout_ms: 5000 });
    make(&mut live, 2, "/p/new", EPHEMERAL);
    close(&mut live, 1);
    live.assert_all_converge();
    assert_eq!(live.tree.sessions(), [(2, 5000)]);
    assert_eq!(live.tree.ephemeral_paths(2), ["/p/new"]);
    close(&mut live, 2);
    live.apply(2, Op::CreateSession { timeout_ms: 6000 });
    live.assert_all_converge();
    assert_eq!(live.tree.sessions(), [(2, 6000)]);
}

/// As the discussion of ZooKeeper's pull request 1997 has it.
#[test]
fn fz_10_a_node_never_gets_the_acl_of_another() {
    let list = |n: i32| -> AclBuf {
        [Acl::new(Perms::new(n), "digest", format!("{n}:x")).as_entry()].into_iter().collect()
    };
    let make = |live: &mut Scene, path: &str, number: i32| {
        let Some(Op::Create { path, data, kind, parent_cversion, .. }) = create(live.model(), path, PLAIN)
        else {
            unreachable!("it may be created")
        };
        live.apply(0, Op::Create { path, data, acl: list(number), kind, parent_cversion });
    };
    let start = || {
        let mut live = scene(&[]);
        (1..=5).for_each(|n| make(&mut live, &format!("/old{n}"), n));
        live.begin();
        live
    };
    let mut first = start();
    make(&mut first, "/a1", 6);
    make(&mut first, "/a2", 6);
    delete(&mut first, "/a1");
    first.assert_all_converge();
    let mut second = start();
    make(&mut second, "/a0", 6);
    delete(&mut second, "/a0");
    make(&mut second, "/a1", 7);
    make(&mut second, "/a2", 8);
    make(&mut second, "/a3", 7);
    second.assert_all_converge();
    assert_eq!(second.tree.get("/a3").expect("there").acl(), list(7).as_list());
}

#[test]
fn fz_11_the_digest_is_that_of_the_content_at_every_moment_of_a_replay() {
    let mut live = scene(&[("/a", PLAIN), ("/a/b", PLAIN), ("/e", EPHEMERAL)]);
    live.apply(0, set_data("/a/b", 1));
    make(&mut live, 1, "/a/b/c", EPHEMERAL);
    close(&mut live, 1);
    delete(&mut live, "/a/b");
    make(&mut live, 0, "/a/b", CreateKind::Container);
    let mut random = Random::from_seed(11);
    for _ in 0..300 {
        let moments = live.states.len();
        let mut tree = live.tear(|_| below(&mut random, moments), 0).load();
        for step in &live.steps {
            assert_eq!(Some(tree.digest()), tree.subtree_totals("/").map(|totals| totals.digest));
            step.apply_to(&mut tree, &mut ());
        }
        assert_eq!(tree.digest(), live.tree.digest());
    }
}

#[test]
fn fz_13_no_orphan_comes_into_a_tree() {
    let mut live = scene(&[("/a", PLAIN)]);
    make(&mut live, 0, "/a/b", PLAIN);
    delete(&mut live, "/a/b");
    delete(&mut live, "/a");
    live.assert_all_converge();
    let torn = live.tear(|path| if path == "/a" { 3 } else { 1 }, 0);
    let mut loader = DataTree::loader();
    for (path, node) in &torn.nodes {
        let (data, acl, stat) = (node.data.as_deref(), node.acl.as_list(), node.stat);
        loader.node(&crate::tree::WalkedNode { path, data, acl, stat });
    }
    let end = loader.finish(torn.start);
    assert_eq!(end.orphans, 1);
    assert_eq!((end.tree.len(), end.tree.get("/a").is_none()), (4, true));
    // Here again, with something else below.
    make(&mut live, 0, "/a", PLAIN);
    make(&mut live, 0, "/a/c", PLAIN);
    live.assert_all_converge();
}

#[test]
fn fz_13_what_is_below_a_node_that_a_replay_deletes_goes_with_it() {
    let mut live = scene(&[("/a", PLAIN)]);
    delete(&mut live, "/a");
    make(&mut live, 0, "/a", PLAIN);
    make(&mut live, 1, "/a/e", EPHEMERAL);
    let torn = live.tear(|_| 3, 0);
    let mut tree = torn.load();
    live.steps[0].apply_to(&mut tree, &mut ());
    assert!(tree.get("/a").is_none() && tree.ephemeral_owners().is_empty());
    assert_eq!(tree.len(), 4);
    live.assert_all_converge();
}

#[test]
fn fz_14_an_ephemeral_of_the_next_session_is_its_own() {
    for old_times in [false, true] {
        let mut live = scene(&[("/p", PLAIN), ("/p/e", EPHEMERAL)]);
        live.apply(2, Op::CreateSession { timeout_ms: 4000 });
        if old_times {
            live.apply(1, Op::CloseSession { paths: None });
        } else {
            close(&mut live, 1);
        }
        make(&mut live, 2, "/p/e", EPHEMERAL);
        live.apply(2, set_data("/p/e", 1));
        live.assert_all_converge();
        let e = live.tree.get("/p/e").expect("there");
        assert_eq!((e.owner(), e.data()), (Owner::Session(2), Some(&[7; 9][..])));
        assert_eq!(live.tree.ephemeral_owners(), [2]);
    }
}

#[test]
fn fz_16_a_learner_that_is_sent_a_walk_and_the_txns_is_the_leader() {
    let mut live = Scene::new();
    (0..20).for_each(|n| make(&mut live, 0, &format!("/d{n}"), PLAIN));
    for n in 0..400 {
        make(&mut live, 0, &format!("/d{}/n{n}", n % 20), PLAIN);
        live.begin();
    }
    let (mut walk, mut random, mut loader) = (Walk::new(), Random::from_seed(16), DataTree::loader());
    let start = live.model().last_zxid;
    let mut next = 400;
    while live.tree.walk(&mut walk, 8, &mut |met| loader.node(&met)) {
        for _ in 0..4 {
            let paths: Vec<&String> = live.model().nodes.keys().filter(|path| path.contains("/n")).collect();
            let path = paths[below(&mut random, paths.len())].clone();
            let node = &live.model().nodes[&path].stat;
            match random.below(10) {
                0..2 => {
                    next += 1;
                    let kind = if random.below(2) == 0 { PLAIN } else { EPHEMERAL };
                    let parent = random.below(20);
                    make(&mut live, 5, &format!("/d{parent}/n{next}"), kind);
                }
                2..4 => delete(&mut live, &path),
                4..5 => close(&mut live, 5),
                5..6 => drop(live.apply(5, Op::CreateSession { timeout_ms: 4000 })),
                6..8 => {
                    let acl = [Acl::new(Perms::READ, "ip", path.as_str()).as_entry()].into_iter().collect();
                    let version = node.aversion + 1;
                    live.apply(0, Op::SetAcl { path, acl, version });
                }
                _ => drop(live.apply(0, set_data(&path, node.version + 1))),
            }
        }
    }
    live.states[0].sessions.iter().for_each(|(id, timeout_ms)| loader.session(*id, *timeout_ms));
    let mut learner = loader.finish(start).tree;
    live.replay(&mut learner);
    assert!(live.steps.len() > 150, "{}", live.steps.len());
    assert_eq!(differences(&learner, live.model()), Vec::<String>::new());
}

/// Places in the store are used again, for a parent too.
#[test]
fn fz_16_a_walk_tells_a_node_from_one_that_had_its_place() {
    let mut live = scene(&[("/a", PLAIN), ("/a/x", PLAIN), ("/a/y", PLAIN)]);
    let (mut walk, mut met) = (Walk::new(), Vec::new());
    while met.last().is_none_or(|path| path != "/a/x") {
        assert!(live.tree.walk(&mut walk, 1, &mut |node| met.push(node.path.to_owned())));
    }
    ["/a/y", "/a/x", "/a"].iter().for_each(|path| delete(&mut live, path));
    ["/b", "/b/p", "/b/q"].iter().for_each(|path| make(&mut live, 0, path, PLAIN));
    met.clear();
    while live.tree.walk(&mut walk, 6, &mut |node| met.push(node.path.to_owned())) {}
    // Those of the system stand where nodes with more data do.
    met.retain(|path| !path.starts_with("/zookeeper"));
    assert_eq!(met, ["/b/q"]);
}

#[test]
fn fz_17_totals_are_a_recount_wherever_the_walk_is() {
    let mut live = scene(&[("/a", PLAIN), ("/zookeeper/quota/a", PLAIN)]);
    make(&mut live, 0, "/a/1", PLAIN);
    make(&mut live, 0, "/zookeeper/quota/a/zookeeper_limits", PLAIN);
    make(&mut live, 0, "/a/2", PLAIN);
    delete(&mut live, "/a/1");
    live.apply(0, set_data("/a", 1));
    let state = live.tree.quotas.state("/a").map(|quota| (quota.nodes, quota.bytes));
    assert_eq!(state, Some((2, 9 + 4)));
    let mut random = Random::from_seed(17);
    let moments = live.states.len();
    for _ in 0..2000 {
        let mut tree = live.tear(|_| below(&mut random, moments), 0).load();
        for step in &live.steps {
            let totals = tree.subtree_totals("/a").map_or((0, 0), |t| (t.nodes, t.data_bytes));
            if let Some(quota) = tree.quotas.state("/a") {
                assert_eq!((quota.nodes.cast_unsigned(), quota.bytes.cast_unsigned()), totals);
            }
            step.apply_to(&mut tree, &mut ());
        }
        assert_eq!(tree.quotas.state("/a"), live.tree.quotas.state("/a"));
    }
    live.assert_all_converge();
    // Away with the part of the tree, and with the limits.
    live.apply(0, Op::DeleteAll { paths: vec!["/a/2".to_owned(), "/a".to_owned()] });
    assert_eq!(live.tree.quotas.state("/a").map(|quota| (quota.nodes, quota.bytes)), Some((0, 0)));
    delete(&mut live, "/zookeeper/quota/a/zookeeper_limits");
    assert!(live.tree.quotas.is_empty());
    live.assert_live();
}
