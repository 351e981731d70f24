use arborlog::{
    Acl, AclBuf, Change, Code, Create, CreateKind, DataTree, Ops, Owner, Paths, Perms, Txn, TxnBody, Walk,
    Zxid,
};

use super::directory::Outcome;
use super::source::Source;

/// More txns than this are cut off.
const TXNS_MAX: usize = 600;
/// Trees are looked at whole after every txn up to here, and after every sixteenth from here on.
const CLOSELY: usize = 48;
const NAMES: [&str; 10] = [
    "a",
    "b",
    "a!",
    "zookeeper",
    "quota",
    "config",
    "ä",
    "0000000001",
    "zookeeper_limits",
    "zookeeper_stats",
];
const SESSIONS: [i64; 4] = [1, -9, i64::MIN, 0];

/// Txns that no leader would write: of any zxid, on nodes that are not there, of paths that are none. Whatever they
/// are, the tree is one afterwards.
///
/// # Panics
/// If the tree contradicts itself; see [`check`].
pub fn tree_model(input: &[u8]) -> Outcome {
    if input.is_empty() {
        return Outcome::Skipped;
    }
    let mut source = Source::new(input);
    let mut tree = DataTree::new();
    let (mut zxid, mut refused) = (0_u64, false);
    for count in 0..TXNS_MAX {
        if source.is_empty() {
            break;
        }
        zxid = match source.byte() {
            // Again, earlier, or far away.
            250 => zxid,
            251 => zxid.saturating_sub(source.byte().into()),
            252 => source.number(),
            _ => zxid.saturating_add(1),
        };
        let time_ms = if source.byte() < 8 { source.number().cast_signed() } else { 1_700_000_000_000 };
        let session_id = SESSIONS[usize::from(source.byte()) % SESSIONS.len()];
        let op = Made::read(&mut source);
        refused |= apply(&mut tree, Zxid::new(zxid), time_ms, session_id, &op);
        if count < CLOSELY || count % 16 == 0 {
            check(&tree);
        }
    }
    check(&tree);
    if refused { Outcome::Refused } else { Outcome::Opened }
}

/// What an input makes of one operation: what a body borrows from.
struct Made {
    kind: u8,
    path: String,
    paths: Vec<String>,
    data: Option<Vec<u8>>,
    acl: AclBuf,
    number: i32,
    create: CreateKind,
    ops: Vec<Made>,
}

impl Made {
    fn read(source: &mut Source<'_>) -> Made {
        let mut made = Made::read_one(source);
        if made.kind % 14 == 13 {
            let count = source.byte() % 6;
            made.ops = (0..count).map(|_| Made::read_one(source)).collect();
            // A multi takes no sessions, no configuration and no other multi.
            made.ops.retain(|op| !matches!(op.kind % 14, 7 | 9 | 10 | 13));
        }
        made
    }

    fn read_one(source: &mut Source<'_>) -> Made {
        let kind = source.byte();
        let path = read_path(source);
        let choice = source.byte();
        let paths = match kind % 14 {
            5 | 10 => (0..choice % 5).map(|_| read_path(source)).collect(),
            _ => Vec::new(),
        };
        let data = match choice % 8 {
            0 => None,
            1 => Some(Vec::new()),
            2 => Some(vec![choice; 4070 + usize::from(source.byte() % 40)]),
            3 => Some(vec![choice; 9000]),
            _ => Some(source.bytes(usize::from(choice % 16)).to_vec()),
        };
        let acl = match choice / 8 % 4 {
            0 => AclBuf::new(),
            n => [Acl::new(Perms::new(n.into()), "ip", "::1").as_entry()].into_iter().collect(),
        };
        let number = match source.byte() {
            255 => i32::MAX,
            254 => i32::MIN,
            byte => i32::from(byte) - 2,
        };
        let ephemeral = choice & 16 != 0;
        let create = match choice / 32 {
            0..4 => CreateKind::Plain { ephemeral },
            4 => CreateKind::WithStat { ephemeral },
            5 => CreateKind::Container,
            6 => CreateKind::Ttl { ttl_ms: 1 },
            _ => CreateKind::Ttl { ttl_ms: source.number().cast_signed() & Owner::TTL_MAX_MS },
        };
        Made { kind, path, paths, data, acl, number, create, ops: Vec::new() }
    }

    fn body(&self) -> TxnBody<'_> {
        let (path, data, version) = (self.path.as_str(), self.data.as_deref(), self.number);
        let acl = self.acl.as_list();
        match self.kind % 14 {
            0..3 => {
                let parent_cversion = (self.number != -2).then_some(self.number);
                TxnBody::Create(Create { path, data, acl, kind: self.create, parent_cversion })
            }
            3 => TxnBody::Delete { path },
            4 => TxnBody::DeleteContainer { path },
            5 => TxnBody::DeleteAll { paths: Paths::from_slice(&self.paths) },
            6 => TxnBody::SetData { path, data, version },
            7 => TxnBody::Reconfig { path, data, version },
            8 => TxnBody::SetAcl { path, acl, version },
            9 => TxnBody::CreateSession { timeout_ms: version },
            10 => TxnBody::CloseSession { paths: (version != 0).then_some(Paths::from_slice(&self.paths)) },
            11 => TxnBody::Check { path, version },
            12 => TxnBody::Error { code: Code::new(version) },
            _ => TxnBody::Multi(Ops::from_slice(&[])),
        }
    }
}

fn read_path(source: &mut Source<'_>) -> String {
    let shape = source.byte();
    if shape >= 250 {
        return String::from_utf8_lossy(source.bytes(usize::from(shape - 249))).into_owned();
    }
    let mut path = String::new();
    for _ in 0..shape % 4 {
        path.push('/');
        path.push_str(NAMES[usize::from(source.byte()) % NAMES.len()]);
    }
    match shape {
        // Nearly a path.
        240.. => path + "/",
        230.. => format!("/{path}"),
        _ if path.is_empty() => "/".to_owned(),
        _ => path,
    }
}

/// Applies it; whether it was refused.
fn apply(tree: &mut DataTree, zxid: Zxid, time_ms: i64, session_id: i64, made: &Made) -> bool {
    let ops: Vec<TxnBody<'_>> = made.ops.iter().map(Made::body).collect();
    let body = if made.kind % 14 == 13 { TxnBody::Multi(Ops::from_slice(&ops)) } else { made.body() };
    let before = tree.last_zxid();
    let txn = Txn { zxid, time_ms, session_id, cxid: 0, digest: None, body };
    let mut told = 0;
    let (length, digest) = (tree.len(), tree.digest());
    let outcome = tree.apply(&txn, &mut |_: Change<'_>| told += 1);
    assert_eq!(tree.last_zxid(), before.max(zxid), "the last zxid is the highest");
    if matches!(body, TxnBody::Error { .. } | TxnBody::Check { .. }) {
        assert_eq!((told, tree.len(), tree.digest()), (0, length, digest), "{body:?} has changed something");
    }
    !outcome.code().is_ok()
}

/// Goes over the whole tree with public reads.
///
/// # Panics
/// If children are out of order or miscounted; if a node is not found at its path; if digest, sizes, owners or
/// expiring nodes are not those of the nodes; if a walk and a loader make another tree.
fn check(tree: &DataTree) {
    let (mut nodes, mut digest, mut bytes) = (0_u64, 0_u64, 0_usize);
    let mut owned = std::collections::BTreeMap::<i64, Vec<String>>::new();
    let root = tree.get("/").expect("a tree has a root");
    for node in std::iter::once(root).chain(tree.descendants("/", None)) {
        let (path, stored) = (node.path(), node.stored());
        nodes += 1;
        bytes += path.encode_utf16().count() + node.data().map_or(0, <[u8]>::len);
        if !path.starts_with("/zookeeper/") {
            digest = digest.wrapping_add(node_digest(&path, node.data(), &stored));
        }
        let names: Vec<&str> = node.children(None).map(|child| child.name()).collect();
        assert!(names.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()), "{path}: {names:?}");
        assert_eq!(node.child_count() as usize, names.len(), "{path}");
        assert_eq!(tree.get(&path).map(|found| found.stored()), Some(stored), "{path} is not found");
        if let Owner::Session(id) = stored.owner {
            owned.entry(id).or_default().push(path);
        }
    }
    assert_eq!(tree.len(), nodes);
    assert_eq!(tree.approximate_bytes(), bytes as u64);
    assert_eq!(tree.digest(), digest, "the digest is not that of the nodes");
    assert!(tree.ephemeral_owners().iter().eq(owned.keys()));
    for (id, mut paths) in owned {
        paths.sort_unstable();
        assert_eq!(tree.ephemeral_paths(id), paths);
    }
    for path in tree.expired_paths(i64::MAX) {
        let node = tree.get(&path).expect("what expires is there");
        assert!(matches!(node.owner(), Owner::Container | Owner::Ttl { .. }) && node.child_count() == 0);
    }
    let (mut walk, mut loader) = (Walk::new(), DataTree::loader());
    while tree.walk(&mut walk, 7, &mut |node| loader.node(&node)) {}
    let done = loader.finish(tree.last_zxid());
    assert_eq!(done.orphans, 0);
    assert_eq!((done.tree.digest(), done.tree.len()), (digest, nodes));
}

/// A node's digest by ZooKeeper's formula, from what is read.
fn node_digest(path: &str, data: Option<&[u8]>, stat: &arborlog::StoredStat) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(if path == "/" { b"" } else { path.as_bytes() });
    hasher.update(data.unwrap_or_default());
    for long in [stat.czxid, stat.mzxid, stat.pzxid] {
        hasher.update(&long.get().to_be_bytes());
    }
    hasher.update(&stat.ctime_ms.to_be_bytes());
    hasher.update(&stat.mtime_ms.to_be_bytes());
    for int in [stat.version, stat.cversion, stat.aversion] {
        hasher.update(&int.to_be_bytes());
    }
    hasher.update(&stat.owner.to_raw().to_be_bytes());
    hasher.finalize().into()
}
