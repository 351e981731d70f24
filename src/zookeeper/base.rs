//! The snapshot that a state begins with.

use hashbrown::HashSet;

use super::ahead::{BATCH_BYTES, BATCH_COUNT};
use super::directory::NamedFile;
use super::recover::{Ahead, MISSING_ACL_SCHEME, Recovery, shown};
use super::report::{Finding, FindingKind, told_path};
use super::snapshot_file::{SnapshotNode, SnapshotTrailer};
use crate::base::{Error, ErrorKind, Result, Zxid, counted};
use crate::engine::{Activity, Progress};
use crate::format::{AclBuf, AclEntry, Perms};
use crate::snapshot::read_ahead;
use crate::tree::{DataTree, NodeBatch, Owner, StoredStat, WalkedNode};

impl Recovery<'_> {
    /// Loads the newest snapshot that will do; the zxid of its name.
    pub(super) fn base(&mut self, target: Zxid) -> Result<Zxid> {
        let candidates = self.source.snapshots().iter().rev().filter(|file| file.zxid <= target);
        let mut first_error = None;
        for file in candidates {
            let error = match self.load(file) {
                Ok(ahead) if ahead.is_some_and(|ahead| ahead.zxid > target) => {
                    let why = format!("it has effects of txns behind {target}");
                    Error::new(ErrorKind::NotInLog, "not_in_log", why).in_file(&file.name)
                }
                Ok(ahead) => {
                    self.ahead = ahead;
                    self.report.snapshot = Some(file.name.clone());
                    self.report.snapshot_zxid = Some(file.zxid);
                    return Ok(file.zxid);
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.skipped.get_or_insert_with(|| (file.zxid, error.clone()));
                    error
                }
                Err(error) => return Err(error),
            };
            self.report.findings.push(Finding::of_error(FindingKind::SnapshotSkipped, &error));
            first_error.get_or_insert(error);
        }
        self.acl_missing.clear();
        self.tree = DataTree::new();
        if let Some(error) = first_error {
            self.damage(FindingKind::SnapshotSkipped, error)?;
        }
        // A server writes snapshot.0 before its first txn: without it, nobody knows what came before the logs.
        let (has_logs, has_snapshots) = (!self.source.logs().is_empty(), !self.source.snapshots().is_empty());
        let why = if has_logs || has_snapshots {
            "no snapshot from which to begin"
        } else {
            "no snapshot and no log"
        };
        let error = Error::corrupt("zk_no_snapshot", why).in_file(&shown(self.source.dir()));
        if !has_logs {
            return Err(error);
        }
        self.damage(FindingKind::LogDamage, error)?;
        Ok(Zxid::ZERO)
    }

    fn load(&mut self, file: &NamedFile) -> Result<Option<Ahead>> {
        let mut snapshot = self.source.open_snapshot(&file.name, self.options.length_limit)?;
        let corrupt = |why: String| Error::corrupt("zk_snapshot", why).in_file(&file.name);
        let mut loader = DataTree::loader();
        let mut sessions = HashSet::new();
        for (id, timeout_ms) in snapshot.sessions() {
            loader.session(*id, *timeout_ms);
            sessions.insert(*id);
        }
        let extended = self.options.extended_types;
        let (mut missing, mut newest, mut has_root, mut done) = (HashSet::new(), Zxid::ZERO, false, 0);
        let next = || {
            let mut batch = NodeBatch::new();
            while batch.len() < BATCH_COUNT && batch.bytes() <= BATCH_BYTES {
                // If it fails here, the snapshot is not used at all: what came before is of no interest.
                let Some(node) = snapshot.next_node()? else { break };
                has_root |= node.path == "/";
                let stat = stat_of(&node, &sessions, extended);
                let stat = stat.ok_or_else(|| corrupt(format!("{} cannot be", told_path(node.path))))?;
                newest = newest.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
                let list;
                let acl = if let Some(acl) = node.acl {
                    acl
                } else {
                    missing.insert(node.path.to_owned());
                    list = missing_acl(node.acl_id);
                    list.as_list()
                };
                batch.push(&WalkedNode { path: node.path, data: node.data, acl, stat });
            }
            Ok((!batch.is_empty()).then(|| (batch, snapshot.read_bytes())))
        };
        read_ahead(next, |(batch, read_bytes): (NodeBatch, u64)| {
            loader.batch(&batch);
            done += batch.len() as u64;
            self.options.progress.tell(&Progress {
                activity: Activity::LoadSnapshot,
                done_bytes: read_bytes,
                total_bytes: Some(file.len_bytes),
                done,
                total: None,
            });
            Ok(true)
        })?;
        self.acl_missing = missing;
        let whole = loader.finish(file.zxid);
        if !has_root {
            return Err(corrupt("it has no root".to_owned()));
        }
        if whole.orphans > 0 {
            return Err(corrupt(self.tell_orphans(file, whole.orphans, &whole.tree)?));
        }
        self.tree = whole.tree;
        // Older formats have none.
        let trailer = snapshot.trailer().unwrap_or_default();
        self.check_name(file, trailer)?;
        self.newest_told = newest.max(trailer.digest.map_or(Zxid::ZERO, |(zxid, _)| zxid));
        let newest = newest.max(file.zxid);
        let digest = trailer.digest.filter(|(zxid, _)| *zxid >= file.zxid);
        if let Some((_, digest)) = digest.filter(|(zxid, _)| *zxid == file.zxid) {
            self.check_digest(file.zxid, digest, (&file.name, None))?;
            return Ok((newest > file.zxid).then_some(Ahead { zxid: newest, digest: None }));
        }
        // A txn that was under way at the end may be in the nodes, and not in the digest.
        let ahead = digest.map(|(zxid, digest)| Ahead {
            zxid: zxid.max(newest),
            digest: (newest <= zxid).then_some(digest),
        });
        Ok(ahead.or((newest > file.zxid).then_some(Ahead { zxid: newest, digest: None })))
    }

    /// Says how many nodes of the file found no place in the tree, and which was the first.
    fn tell_orphans(&self, file: &NamedFile, count: u64, tree: &DataTree) -> Result<String> {
        let mut snapshot = self.source.open_snapshot(&file.name, self.options.length_limit)?;
        while let Some(node) = snapshot.next_node()? {
            if tree.get(node.path).is_none() {
                let path = told_path(node.path);
                return Ok(match count {
                    1 => format!("1 node has no parent: {path}"),
                    _ => format!("{count} nodes have no parent, of which the first is {path}"),
                });
            }
        }
        Ok(format!("{} without a parent", counted(count, "node")))
    }

    /// Holds the zxids behind the nodes to the one in the name. Both were told when all nodes had been written, so none is
    /// lower; but a leader's, at the beginning of its epoch, may have the digest of the epoch before.
    fn check_name(&mut self, file: &NamedFile, trailer: SnapshotTrailer) -> Result<()> {
        self.is_unproven = trailer.last_zxid.is_none() && trailer.digest.is_none();
        let of_last = trailer.last_zxid;
        let of_digest = trailer.digest.map(|(zxid, _)| zxid).filter(|_| file.zxid.counter() > 0);
        let Some(told) = of_last.into_iter().chain(of_digest).find(|told| *told < file.zxid) else {
            return Ok(());
        };
        let why = format!("its name tells {}, and it was written at {told}: it was renamed", file.zxid);
        self.damage(FindingKind::Renamed, Error::corrupt("zk_order", why).in_file(&file.name))
    }
}

/// The Stat of a node; none if it has fields that no server writes.
fn stat_of(node: &SnapshotNode<'_>, sessions: &HashSet<i64>, extended: bool) -> Option<StoredStat> {
    let raw = node.ephemeral_owner;
    // An old server of number 255 gave ids to sessions that look like times to live.
    let extended = extended && !sessions.contains(&raw);
    let owner = Owner::from_raw(raw, extended);
    if matches!(owner, Owner::Ttl { ttl_ms } if ttl_ms < 1) {
        return None;
    }
    let zxid = |raw: i64| u64::try_from(raw).ok().map(Zxid::new);
    Some(StoredStat {
        czxid: zxid(node.zxids[0])?,
        mzxid: zxid(node.zxids[1])?,
        pzxid: zxid(node.zxids[2])?,
        ctime_ms: node.times_ms[0],
        mtime_ms: node.times_ms[1],
        version: node.versions[0],
        cversion: node.versions[1],
        aversion: node.versions[2],
        owner,
    })
}

/// A list that grants nothing to anybody but who passes every list.
fn missing_acl(id: i64) -> AclBuf {
    let mut list = AclBuf::new();
    list.push(AclEntry { perms: Perms::ALL, scheme: MISSING_ACL_SCHEME, id: &id.to_string() });
    list
}
