//! Files of a ZooKeeper server, made by hand: logs of txns, and snapshots as fuzzy as a server's can be.

use std::fs;
use std::path::Path;

use arborlog::zookeeper::{ImportOptions, ImportReport, read_state};
use arborlog::{DataTree, Error, NodeRef, RestoreTarget, Zxid};

/// Appends what a string or a buffer is.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

/// A list of one entry that lets everybody do what these permissions are.
fn put_acl(out: &mut Vec<u8>, perms: i32) {
    out.extend(1_i32.to_be_bytes());
    out.extend(perms.to_be_bytes());
    put(out, b"world");
    put(out, b"anyone");
}

/// The type of a txn and its body.
pub(crate) type Op = (i32, Vec<u8>);

/// The session that makes what is not ephemeral.
const SESSION: i64 = 0x100;

pub(crate) fn create(path: &str, perms: i32, ephemeral: bool, cversion: i32) -> Op {
    let mut body = Vec::new();
    put(&mut body, path.as_bytes());
    put(&mut body, b"data");
    put_acl(&mut body, perms);
    body.push(ephemeral.into());
    body.extend(cversion.to_be_bytes());
    (1, body)
}

pub(crate) fn delete(path: &str) -> Op {
    let mut body = Vec::new();
    put(&mut body, path.as_bytes());
    (2, body)
}

pub(crate) fn set(path: &str, data: &[u8], version: i32) -> Op {
    let mut body = Vec::new();
    put(&mut body, path.as_bytes());
    put(&mut body, data);
    body.extend(version.to_be_bytes());
    (5, body)
}

pub(crate) fn set_acl(path: &str, perms: i32, version: i32) -> Op {
    let mut body = Vec::new();
    put(&mut body, path.as_bytes());
    put_acl(&mut body, perms);
    body.extend(version.to_be_bytes());
    (7, body)
}

pub(crate) fn check(path: &str, version: i32) -> Op {
    let mut body = Vec::new();
    put(&mut body, path.as_bytes());
    body.extend(version.to_be_bytes());
    (13, body)
}

pub(crate) fn multi(ops: &[Op]) -> Op {
    let mut body = Vec::new();
    body.extend(i32::try_from(ops.len()).unwrap().to_be_bytes());
    for (kind, op) in ops {
        body.extend(kind.to_be_bytes());
        put(&mut body, op);
    }
    (14, body)
}

/// A session begins, or with its list of nodes, or without, ends.
pub(crate) fn open_session() -> Op {
    (-10, 4000_i32.to_be_bytes().to_vec())
}

pub(crate) fn close_session(paths: Option<&[&str]>) -> Op {
    let mut body = Vec::new();
    if let Some(paths) = paths {
        body.extend(i32::try_from(paths.len()).unwrap().to_be_bytes());
        paths.iter().for_each(|path| put(&mut body, path.as_bytes()));
    }
    (-11, body)
}

/// A log of txns from `first` on, each with its session.
pub(crate) fn log(first: u64, txns: &[(i64, Op)]) -> Vec<u8> {
    let mut bytes = b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    for (zxid, (session, (kind, body))) in (first..).zip(txns) {
        let mut payload = session.to_be_bytes().to_vec();
        payload.extend(0_i32.to_be_bytes());
        payload.extend(zxid.to_be_bytes());
        payload.extend(zxid.to_be_bytes());
        payload.extend(kind.to_be_bytes());
        payload.extend(body);
        bytes.extend(u64::from(adler2::adler32_slice(&payload)).to_be_bytes());
        put(&mut bytes, &payload);
        bytes.push(b'B');
    }
    bytes.resize(bytes.len() + 100, 0);
    bytes
}

/// Txns of the session that makes what is not ephemeral.
pub(crate) fn of_one(ops: Vec<Op>) -> Vec<(i64, Op)> {
    ops.into_iter().map(|op| (SESSION, op)).collect()
}

/// The checksum of all before, and a slash.
pub(crate) fn seal(bytes: &mut Vec<u8>) {
    bytes.extend(u64::from(adler2::adler32_slice(bytes)).to_be_bytes());
    put(bytes, b"/");
}

/// Puts snapshots together.
pub(crate) struct SnapshotWriter {
    pub(crate) bytes: Vec<u8>,
    lists: Vec<Vec<u8>>,
}

impl SnapshotWriter {
    /// With the sessions of one tree, and the ACL lists of one.
    pub(crate) fn new(sessions: &DataTree, lists: &DataTree) -> SnapshotWriter {
        let mut bytes = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        bytes.extend(i32::try_from(sessions.sessions().len()).unwrap().to_be_bytes());
        for (id, timeout_ms) in sessions.sessions() {
            bytes.extend(id.to_be_bytes());
            bytes.extend(timeout_ms.to_be_bytes());
        }
        let mut writer = SnapshotWriter { bytes, lists: Vec::new() };
        let mut table = Vec::new();
        for node in lists.get("/").into_iter().chain(lists.descendants("/", None)) {
            let before = writer.lists.len();
            let id = writer.id_of(&node);
            if writer.lists.len() > before {
                table.extend(id.to_be_bytes());
                table.extend(i32::try_from(node.acl().iter().count()).unwrap().to_be_bytes());
                for entry in node.acl().iter() {
                    table.extend(entry.perms.get().to_be_bytes());
                    put(&mut table, entry.scheme.as_bytes());
                    put(&mut table, entry.id.as_bytes());
                }
            }
        }
        writer.bytes.extend(i32::try_from(writer.lists.len()).unwrap().to_be_bytes());
        writer.bytes.extend(table);
        writer
    }

    /// The number of a node's list; one that is not in the table gets a number all the same, as in a server.
    fn id_of(&mut self, node: &NodeRef<'_>) -> i64 {
        let list = node.acl().as_bytes();
        if node.acl().is_empty() {
            return -1;
        }
        let at = self.lists.iter().position(|known| known == list).unwrap_or_else(|| {
            self.lists.push(list.to_vec());
            self.lists.len() - 1
        });
        i64::try_from(at).unwrap() + 1
    }

    pub(crate) fn node(&mut self, node: &NodeRef<'_>) {
        let (path, stat, id) = (node.path(), node.stored(), self.id_of(node));
        put(&mut self.bytes, if path == "/" { b"" } else { path.as_bytes() });
        match node.data() {
            Some(data) => put(&mut self.bytes, data),
            None => self.bytes.extend((-1_i32).to_be_bytes()),
        }
        self.bytes.extend(id.to_be_bytes());
        self.bytes.extend(stat.czxid.get().to_be_bytes());
        self.bytes.extend(stat.mzxid.get().to_be_bytes());
        self.bytes.extend(stat.ctime_ms.to_be_bytes());
        self.bytes.extend(stat.mtime_ms.to_be_bytes());
        for version in [stat.version, stat.cversion, stat.aversion] {
            self.bytes.extend(version.to_be_bytes());
        }
        self.bytes.extend(stat.owner.to_raw().to_be_bytes());
        self.bytes.extend(stat.pzxid.get().to_be_bytes());
    }

    /// Its end, with the digest of a tree if there is one, and with a last zxid.
    pub(crate) fn end(mut self, digest: Option<&DataTree>, last_zxid: Option<u64>) -> Vec<u8> {
        put(&mut self.bytes, b"/");
        seal(&mut self.bytes);
        if let Some(tree) = digest {
            self.bytes.extend(tree.last_zxid().get().to_be_bytes());
            self.bytes.extend(2_i32.to_be_bytes());
            self.bytes.extend(tree.digest().to_be_bytes());
            seal(&mut self.bytes);
        }
        if let Some(zxid) = last_zxid {
            self.bytes.extend(zxid.to_be_bytes());
            seal(&mut self.bytes);
        }
        self.bytes
    }
}

/// A snapshot of a tree that stands still, as a server before 3.6 writes it.
pub(crate) fn snapshot_of(tree: &DataTree) -> Vec<u8> {
    let mut writer = SnapshotWriter::new(tree, tree);
    tree.get("/").into_iter().chain(tree.descendants("/", None)).for_each(|node| writer.node(&node));
    writer.end(None, None)
}

/// The directory of a server, with these files.
pub(crate) fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("version-2")).unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join("version-2").join(name), bytes).unwrap();
    }
    dir
}

pub(crate) fn state(dir: &Path) -> Result<(DataTree, ImportReport), Error> {
    read_state(dir, &ImportOptions::new())
}

/// The state of a server that has logged these txns and nothing else, from its first one on.
pub(crate) fn state_of(ops: Vec<Op>) -> Result<(DataTree, ImportReport), Error> {
    let (first, bytes) = (snapshot_of(&DataTree::new()), log(1, &of_one(ops)));
    state(directory(&[("snapshot.0", &first), ("log.1", &bytes)]).path())
}

/// All that a client could see of a tree, and its owners.
fn seen(tree: &DataTree) -> Vec<String> {
    let mut lines: Vec<String> = tree
        .get("/")
        .into_iter()
        .chain(tree.descendants("/", None))
        .map(|node| format!("{} {:?} {:?} {:?}", node.path(), node.stored(), node.data(), node.acl()))
        .collect();
    lines.extend(tree.sessions().iter().map(|(id, _)| format!("{id:#x}: {:?}", tree.ephemeral_paths(*id))));
    lines.push(format!("{:?} {:?} {:#x}", tree.ephemeral_owners(), tree.quotas(), tree.digest()));
    lines
}

/// Has a server write a snapshot at every moment of a history, with the rest of the history coming after each number of
/// nodes, with a digest, if servers had any, and without. Each, with the log behind it, must be the state that the history leads to.
pub(crate) fn every_fuzzy_snapshot_is_the_live_state(
    txns: &[(i64, Op)],
    has_digests: bool,
    same: fn(&str) -> String,
) {
    let (first, bytes) = (snapshot_of(&DataTree::new()), log(1, txns));
    let live = directory(&[("snapshot.0", &first), ("log.1", &bytes)]);
    let at = |zxid: u64| {
        let what = ImportOptions::new().target(RestoreTarget::Zxid(Zxid::new(zxid)));
        read_state(live.path(), &what).unwrap_or_else(|e| panic!("{zxid}: {e}")).0
    };
    let last = txns.len() as u64;
    let trees: Vec<DataTree> = (0..=last).map(at).collect();
    let lines = |tree: &DataTree| seen(tree).iter().map(|line| same(line)).collect::<Vec<_>>();
    let expected = lines(&trees[txns.len()]);
    let mut count = 0;
    for (start, tree) in trees.iter().enumerate() {
        for (end, later) in trees.iter().enumerate().skip(start) {
            for pause in 0..=later.len().max(tree.len()) {
                let sessions = if pause == 0 { later } else { tree };
                let mut writer = SnapshotWriter::new(sessions, tree);
                let mut walk = Walk { before: tree, after: later, left: pause, writer: &mut writer };
                walk.node("/");
                for digest in
                    [None, Some(later).filter(|_| has_digests)].into_iter().take(1 + usize::from(has_digests))
                {
                    let writer = SnapshotWriter { bytes: writer.bytes.clone(), lists: Vec::new() };
                    let snapshot = writer.end(digest, None);
                    let name = format!("snapshot.{start:x}");
                    let dir = directory(&[(&name, &snapshot), ("log.1", &bytes)]);
                    let place = format!("begun at {start}, paused after {pause} nodes until {end}");
                    let (read, report) = state(dir.path()).unwrap_or_else(|e| panic!("{place}: {e}"));
                    assert_eq!(report.snapshot, Some(name), "{place}: {:?}", report.findings);
                    assert_eq!(lines(&read), expected, "{place}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 100, "{count} snapshots");
}

/// A walk as a server makes it: a node as it is now, with the names of its children; then each of them.
struct Walk<'a> {
    before: &'a DataTree,
    after: &'a DataTree,
    /// So many nodes are written before all txns come.
    left: u64,
    writer: &'a mut SnapshotWriter,
}

impl Walk<'_> {
    fn node(&mut self, path: &str) {
        let tree = if self.left > 0 { self.before } else { self.after };
        let Some(node) = tree.get(path) else { return };
        self.left = self.left.saturating_sub(1);
        self.writer.node(&node);
        let children: Vec<String> = node.children(None).map(|child| child.path()).collect();
        children.iter().for_each(|child| self.node(child));
    }
}
