use super::reference::Model;
use super::scene::Scene;
use super::step::Op;
use crate::base::Code;
use crate::format::{Acl, AclBuf, CreateKind, Perms};
use crate::tree::{Owner, path};

const PLAIN: CreateKind = CreateKind::Plain { ephemeral: false };
const EPHEMERAL: CreateKind = CreateKind::Plain { ephemeral: true };
/// Two sessions that are there at the start, and one that is not.
const SESSIONS: [i64; 3] = [1, 2, 3];

fn open() -> AclBuf {
    [Acl::open().as_entry()].into_iter().collect()
}

fn read_only() -> AclBuf {
    [Acl::new(Perms::READ, "world", "anyone").as_entry()].into_iter().collect()
}

/// A create as a leader makes it on that state, if it may.
pub(super) fn create(on: &Model, path: &str, kind: CreateKind) -> Option<Op> {
    let parent = on.nodes.get(super::reference::parent(path))?.stat;
    if on.nodes.contains_key(path) || matches!(parent.owner, Owner::Session(_)) {
        return None;
    }
    let parent_cversion = Some(parent.cversion.wrapping_add(1));
    let data = Some(path.as_bytes().to_vec());
    Some(Op::Create { path: path.to_owned(), data, acl: open(), kind, parent_cversion })
}

fn set_data(on: &Model, path: &str) -> Option<Op> {
    let version = on.nodes.get(path)?.stat.version + 1;
    Some(Op::SetData { path: path.to_owned(), data: Some(vec![b'd'; 5]), version })
}

fn set_acl(on: &Model, path: &str) -> Option<Op> {
    let version = on.nodes.get(path)?.stat.aversion + 1;
    Some(Op::SetAcl { path: path.to_owned(), acl: read_only(), version })
}

fn delete(on: &Model, path: &str) -> Option<Op> {
    let may = on.nodes.contains_key(path) && on.children(path).is_empty() && !path::is_reserved(path);
    may.then(|| Op::Delete { path: path.to_owned() })
}

/// A tree of a dozen nodes of all kinds, with a past.
fn start() -> Scene {
    let mut scene = Scene::new();
    for id in [1, 2] {
        scene.apply(id, Op::CreateSession { timeout_ms: 4000 });
    }
    let nodes = [
        (0, "/a", PLAIN),
        (0, "/a/b", PLAIN),
        (0, "/a/b/c", PLAIN),
        (1, "/a/e", EPHEMERAL),
        (1, "/e", EPHEMERAL),
        (2, "/f", EPHEMERAL),
        (0, "/k", CreateKind::Container),
        (0, "/k/x", PLAIN),
        (0, "/t", CreateKind::Ttl { ttl_ms: 1 }),
    ];
    for (session_id, path, kind) in nodes {
        let op = create(scene.model(), path, kind).expect("the parent is there");
        scene.apply(session_id, op);
    }
    let op = delete(scene.model(), "/k/x").expect("a leaf");
    scene.apply(0, op);
    scene.begin();
    scene
}

/// Every txn of every kind that a leader may write on that state: on nodes that are there, their parents, and new
/// ones.
fn candidates(on: &Model) -> Vec<(i64, Op)> {
    let mut all = Vec::new();
    let paths: Vec<&String> = on.nodes.keys().filter(|path| !path.starts_with("/zookeeper/")).collect();
    for path in paths.iter().map(|path| path.as_str()) {
        let child = if path == "/" { "/n".to_owned() } else { format!("{path}/n") };
        all.extend(create(on, &child, PLAIN).map(|op| (0, op)));
        all.extend(set_data(on, path).map(|op| (0, op)));
        all.extend(set_acl(on, path).map(|op| (0, op)));
        all.extend(delete(on, path).map(|op| (0, op)));
    }
    // What was there before, again, by others.
    for (session_id, path, kind) in [
        (2, "/e", EPHEMERAL),
        (1, "/e", PLAIN),
        (2, "/a/e", CreateKind::WithStat { ephemeral: true }),
        (0, "/f", CreateKind::Container),
        (0, "/t", CreateKind::WithStat { ephemeral: false }),
        (1, "/k/x", EPHEMERAL),
        (0, "/a/b/c", CreateKind::Ttl { ttl_ms: 5 }),
        (3, "/n", EPHEMERAL),
    ] {
        all.extend(create(on, path, kind).map(|op| (session_id, op)));
    }
    all.extend(on.expired(i64::MAX).into_iter().map(|path| (0, Op::DeleteContainer { path })));
    for root in ["/a", "/a/b", "/k"] {
        let mut paths: Vec<String> = on.nodes.keys().filter(|p| path::is_within(p, root)).cloned().collect();
        paths.reverse();
        if !paths.is_empty() {
            all.push((0, Op::DeleteAll { paths }));
        }
    }
    for id in SESSIONS {
        all.push((id, Op::CreateSession { timeout_ms: 9000 }));
        all.push((id, Op::CloseSession { paths: Some(on.ephemerals(id)) }));
    }
    let config = path::CONFIG.to_owned();
    all.push((
        0,
        Op::Reconfig { version: on.nodes[path::CONFIG].stat.version + 1, path: config, data: None },
    ));
    all.push((0, Op::Error { code: Code::NO_NODE }));
    all.extend(multis(on));
    all
}

/// Multis of several kinds, each on the state that the ones before it make.
fn multis(on: &Model) -> Vec<(i64, Op)> {
    type Make = fn(&Model) -> Option<Op>;
    let parts: [&[Make]; 3] = [
        &[
            |on| create(on, "/a/m", PLAIN),
            |on| set_data(on, "/a"),
            |on| delete(on, "/a/b/c"),
            |on| create(on, "/a/m/n", PLAIN),
        ],
        // Away and here again.
        &[|on| delete(on, "/a/b/c"), |on| create(on, "/a/b/c", EPHEMERAL), |on| set_acl(on, "/a/b/c")],
        // Here and away again: only the parent tells.
        &[|on| create(on, "/m", PLAIN), |on| delete(on, "/m")],
    ];
    let mut all = Vec::new();
    for makes in parts {
        let mut scratch = Scene::of(on.clone());
        for make in makes {
            if let Some(op) = make(scratch.model()) {
                scratch.apply(1, op);
            }
        }
        let mut ops: Vec<Op> = scratch.steps.into_iter().map(|step| step.op).collect();
        all.push((1, Op::Multi(ops.clone())));
        ops.push(Op::Error { code: Code::BAD_VERSION });
        all.push((1, Op::Multi(ops)));
    }
    all
}

/// The FZ group as a whole: ordered pairs of txns of all kinds on all nodes, and every way in which a walk can meet
/// the nodes that they change before, between and after them. Every sixth pair, or all with `ARBORLOG_TREE_ALL`.
#[test]
fn fz_pairs_of_txns_converge_wherever_the_walk_is() {
    let every = if std::env::var_os("ARBORLOG_TREE_ALL").is_some() { 1 } else { 6 };
    let (mut pairs, mut replays) = (0, 0);
    let first = candidates(start().model());
    for (at, (session_id, op)) in first.into_iter().enumerate() {
        let mut one = start();
        one.apply(session_id, op.clone());
        one.assert_all_converge();
        let second = candidates(one.model()).into_iter().skip(at % every).step_by(every);
        for (next_session_id, next) in second {
            let mut two = start();
            two.apply(session_id, op.clone());
            two.apply(next_session_id, next);
            pairs += 1;
            replays += two.assert_all_converge();
        }
    }
    assert!(pairs > 2000 / every && replays > 20_000 / every, "{pairs} pairs, {replays} replays");
}
