use std::env;

use super::compare::differences;
use super::history::{History, Leader, below};
use super::reference::{Model, ModelNode};
use super::scene::{Scene, Torn};
use super::step::{Op, Step};
use crate::base::{Random, Zxid};
use crate::format::AclBuf;
use crate::tree::{Owner, StoredStat, Walk};

/// `ARBORLOG_TREE_SEED` runs one seed, `ARBORLOG_TREE_RUNS` so many instead of `runs`.
fn seeds(runs: u64) -> std::ops::Range<u64> {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("ARBORLOG_TREE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ARBORLOG_TREE_RUNS").unwrap_or(runs),
    }
}

/// A new server's tree, or one whose counts and times are at their ends.
fn start(seed: u64) -> Model {
    let mut model = Model::new();
    if !seed.is_multiple_of(3) {
        return model;
    }
    let plain =
        StoredStat { czxid: Zxid::new(3), mzxid: Zxid::new(3), pzxid: Zxid::new(3), ..StoredStat::default() };
    let stats = [
        ("/ends", StoredStat { cversion: i32::MAX - 1, version: i32::MAX, aversion: i32::MAX, ..plain }),
        ("/minus", StoredStat { cversion: -2, version: -2, aversion: -2, pzxid: Zxid::new(4), ..plain }),
        ("/times", StoredStat { ctime_ms: -5, mtime_ms: 1 << 48, ..plain }),
        ("/used", StoredStat { cversion: i32::MIN, owner: Owner::Container, ..plain }),
        ("/lost", StoredStat { owner: Owner::Session(77), ..plain }),
    ];
    for (path, stat) in stats {
        model.nodes.insert(path.to_owned(), ModelNode { data: None, acl: AclBuf::new(), stat });
    }
    model.last_zxid = Zxid::new(4);
    model
}

/// Prints the line that runs it again if it does not end well.
struct Replay(&'static str, u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("again: ARBORLOG_TREE_SEED={} cargo test --lib {}", self.1, self.0);
        }
    }
}

#[test]
fn a_live_tree_is_its_model_after_every_step() {
    for seed in seeds(250) {
        let _replay = Replay("a_live_tree_is_its_model", seed);
        let leader = if seed.is_multiple_of(2) { Leader::Any } else { Leader::Today };
        let mut scene = Scene::of(start(seed));
        let mut history = History::new(seed, scene.model().clone(), leader);
        for _ in 0..60 {
            scene.take(history.step());
            scene.assert_live();
            scene.begin();
        }
        assert_eq!(*scene.model(), history.model);
    }
}

#[test]
fn a_torn_snapshot_and_the_log_make_the_live_tree() {
    for seed in seeds(1500) {
        let _replay = Replay("a_torn_snapshot_and_the_log", seed);
        let mut scene = Scene::of(start(seed));
        let mut history = History::new(seed, scene.model().clone(), Leader::Today);
        for _ in 0..history.random.below(50) {
            scene.take(history.step());
            scene.begin();
        }
        for _ in 0..=history.random.below(25) {
            scene.take(history.step());
        }
        let moments = scene.states.len();
        for round in 0..3 {
            let random = &mut history.random;
            let sessions_at = below(random, moments);
            let torn = match round {
                0 => scene.tear(|_| below(random, moments), sessions_at),
                // Each node early or late: the largest distances.
                1 => scene.tear(|_| if random.below(2) == 0 { 0 } else { moments - 1 }, sessions_at),
                // A walk in the order of the paths.
                _ => {
                    let mut at = 0;
                    scene.tear(
                        |_| {
                            if random.below(4) == 0 {
                                at += below(random, moments - at);
                            }
                            at
                        },
                        sessions_at,
                    )
                }
            };
            scene.assert_converges(&shuffled(torn, &scene, random));
        }
    }
}

/// In any order; and some nodes met once more, later in the walk.
fn shuffled(mut torn: Torn, scene: &Scene, random: &mut Random) -> Torn {
    for at in (1..torn.nodes.len()).rev() {
        torn.nodes.swap(at, below(random, at + 1));
    }
    for _ in 0..random.below(3) {
        let path = torn.nodes[below(random, torn.nodes.len())].0.clone();
        if let Some(node) = scene.states[below(random, scene.states.len())].nodes.get(&path) {
            torn.nodes.push((path, node.clone()));
        }
    }
    torn
}

/// The walk that snapshots are made of, with txns between its steps.
#[test]
fn a_walk_beside_a_writer_and_the_log_make_the_live_tree() {
    for seed in seeds(1000) {
        let _replay = Replay("a_walk_beside_a_writer", seed);
        let mut scene = Scene::of(start(seed));
        let mut history = History::new(seed, scene.model().clone(), Leader::Today);
        for _ in 0..history.random.below(60) {
            scene.take(history.step());
            scene.begin();
        }
        let (start, mut nodes, mut walk) = (scene.model().last_zxid, Vec::new(), Walk::new());
        let mut sessions = scene.model().sessions.clone();
        loop {
            let places = u32::try_from(1 + history.random.below(4)).expect("few");
            let goes_on = scene.tree.walk(&mut walk, places, &mut |met| {
                let node =
                    ModelNode { data: met.data.map(Into::into), acl: met.acl.to_buf(), stat: met.stat };
                nodes.push((met.path.to_owned(), node));
            });
            if !goes_on || scene.steps.len() > 60 {
                break;
            }
            for _ in 0..history.random.below(4) {
                scene.take(history.step());
            }
            if history.random.below(6) == 0 {
                sessions.clone_from(&scene.model().sessions);
            }
        }
        // A tree that grows faster than it is walked: the rest at once.
        while scene.tree.walk(&mut walk, 100, &mut |met| {
            let node = ModelNode { data: met.data.map(Into::into), acl: met.acl.to_buf(), stat: met.stat };
            nodes.push((met.path.to_owned(), node));
        }) {}
        scene.assert_converges(&Torn { nodes, sessions, start });
    }
}

/// Txns in any order, some again and again: what a replay may meet, and more.
#[test]
fn a_tree_is_its_model_whatever_it_is_given() {
    for seed in seeds(120) {
        let _replay = Replay("a_tree_is_its_model_whatever", seed);
        let mut model = start(seed);
        let mut history = History::new(seed, model.clone(), Leader::Any);
        let mut steps: Vec<Step> = (0..60).map(|_| history.step()).collect();
        for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/ends"] {
            let op = Op::Delete { path: path.to_owned() };
            steps.push(Step { zxid: Zxid::new(9), time_ms: 1, session_id: 0, op });
        }
        let mut tree = Scene::of(model.clone()).tree;
        for _ in 0..80 {
            let step = &steps[below(&mut history.random, steps.len())];
            assert_eq!(step.apply_to(&mut tree, &mut ()), model.apply(step), "the outcome of {step:?}");
            let found = differences(&tree, &model);
            assert!(found.is_empty(), "after {step:?}: {found:#?}");
        }
    }
}

#[test]
fn a_history_has_txns_of_every_kind() {
    let mut kinds = std::collections::BTreeMap::<String, u32>::new();
    for seed in 0..40 {
        let mut history = History::new(seed, start(seed), Leader::Any);
        for _ in 0..60 {
            let op = format!("{:?}", history.step().op);
            *kinds.entry(op.split([' ', '(']).next().unwrap_or("").to_owned()).or_default() += 1;
        }
    }
    assert_eq!(kinds.len(), 11, "all but a check by itself: {kinds:?}");
    assert!(kinds.values().all(|count| *count >= 10), "{kinds:?}");
}
