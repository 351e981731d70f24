use hashbrown::HashSet;

use super::directory::{NamedFile, ZkDirectory};
use super::import::ImportOptions;
use super::report::{Finding, FindingKind, ImportReport};
use super::snapshot_file::SnapshotNode;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::engine::RestoreTarget;
use crate::format::{AclBuf, AclEntry, Perms};
use crate::tree::{DataTree, Owner, StoredStat, WalkedNode};

/// The scheme of the list that a node gets whose own is not in the file: no identity has it.
const MISSING_ACL_SCHEME: &str = "zookeeper-acl-missing";

/// Rebuilds the state of a ZooKeeper server as the server itself does, and looks closer.
///
/// The newest snapshot that is whole, then the logs behind it. What they have to be for that, where a server is
/// content with less, is in `docs/ZOOKEEPER.md`.
pub(super) struct Recovery<'a> {
    source: &'a ZkDirectory,
    options: &'a ImportOptions,
    pub(super) tree: DataTree,
    pub(super) report: ImportReport,
    /// Where the snapshot's nodes may be ahead of its name, until a txn has come so far; with the digest there.
    ahead: Option<Ahead>,
    /// The paths of nodes whose ACL the snapshot did not have.
    acl_missing: HashSet<String>,
    /// The zxid of the newest snapshot that could not be used.
    skipped: Option<Zxid>,
}

/// How far the nodes of a snapshot are ahead of its name.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    zxid: Zxid,
    digest: Option<u64>,
}

impl<'a> Recovery<'a> {
    pub(super) fn new(source: &'a ZkDirectory, options: &'a ImportOptions) -> Recovery<'a> {
        let report = ImportReport { findings: source.findings().to_vec(), ..ImportReport::default() };
        Recovery {
            source,
            options,
            tree: DataTree::new(),
            report,
            ahead: None,
            acl_missing: HashSet::new(),
            skipped: None,
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let target = self.target()?;
        let base = self.base(target)?;
        self.replay(base, target)?;
        self.judge()
    }

    /// Damage that is no more than noted when it is to be salvaged.
    fn damage(&mut self, kind: FindingKind, error: Error) -> Result<()> {
        if !self.options.salvage || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        self.report.findings.push(Finding::of_error(kind, &error));
        Ok(())
    }

    /// The last zxid that may be in the state.
    fn target(&mut self) -> Result<Zxid> {
        match self.options.target {
            RestoreTarget::Newest => Ok(Zxid::MAX),
            RestoreTarget::Zxid(zxid) => Ok(zxid),
            RestoreTarget::TimeMs(time_ms) => {
                let (mut before, mut first) = (None, None);
                'logs: for file in self.source.logs() {
                    let mut log = self.source.open_log(&file.name, self.options.length_limit)?;
                    while let Some(entry) = log.next_entry()? {
                        first.get_or_insert(entry.txn.zxid);
                        if entry.txn.time_ms > time_ms {
                            break 'logs;
                        }
                        before = Some(entry.txn.zxid);
                    }
                }
                // Of an untouched beginning, all that is known is that it was earlier than its first txn.
                let untouched = first.is_none_or(|first| first.get() == 1).then_some(Zxid::ZERO);
                before.or(untouched).ok_or_else(|| {
                    let why = format!("the logs begin later than {time_ms} ms");
                    Error::new(ErrorKind::NotInLog, "not_in_log", why)
                })
            }
        }
    }

    /// Loads the newest snapshot that will do; the zxid of its name.
    fn base(&mut self, target: Zxid) -> Result<Zxid> {
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
                    return Ok(file.zxid);
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.skipped.get_or_insert(file.zxid);
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
        let error = Error::corrupt("zk_no_snapshot", why);
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
        self.acl_missing.clear();
        let (mut newest, mut has_root) = (file.zxid, false);
        while let Some(node) = snapshot.next_node()? {
            has_root |= node.path == "/";
            let list = missing_acl(node.acl_id);
            let acl = node.acl.unwrap_or(list.as_list());
            if node.acl.is_none() {
                self.acl_missing.insert(node.path.to_owned());
            }
            let stat =
                self.stat_of(&node, &sessions).ok_or_else(|| corrupt(format!("{} cannot be", node.path)))?;
            newest = newest.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
            loader.node(&WalkedNode { path: node.path, data: node.data, acl, stat });
        }
        let done = loader.finish(file.zxid);
        if done.orphans > 0 || !has_root {
            return Err(corrupt(format!("{} nodes have no parent", done.orphans)));
        }
        self.tree = done.tree;
        // A leader's, at the beginning of its epoch, is that of the epoch before.
        let digest = snapshot.trailer().and_then(|t| t.digest).filter(|(zxid, _)| *zxid >= file.zxid);
        if let Some((_, digest)) = digest.filter(|(zxid, _)| *zxid == file.zxid) {
            self.check_digest(file.zxid, digest, &file.name)?;
            return Ok((newest > file.zxid).then_some(Ahead { zxid: newest, digest: None }));
        }
        // A txn that was under way at the end may be in the nodes, and not in the digest.
        let ahead = digest.map(|(zxid, digest)| Ahead {
            zxid: zxid.max(newest),
            digest: (newest <= zxid).then_some(digest),
        });
        Ok(ahead.or((newest > file.zxid).then_some(Ahead { zxid: newest, digest: None })))
    }

    /// The Stat of a node; none if it has fields that no server writes.
    fn stat_of(&self, node: &SnapshotNode<'_>, sessions: &HashSet<i64>) -> Option<StoredStat> {
        let raw = node.ephemeral_owner;
        // An old server of number 255 gave ids to sessions that look like times to live.
        let extended = self.options.extended_types && !sessions.contains(&raw);
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

    fn check_digest(&mut self, zxid: Zxid, told: u64, file: &str) -> Result<()> {
        let digest = self.tree.digest();
        if digest == told {
            self.report.digests_held += 1;
            return Ok(());
        }
        // One is enough: all that follow are wrong then.
        if self.report.findings.iter().any(|finding| finding.kind == FindingKind::Digest) {
            return Ok(());
        }
        let why = format!("the tree's digest is {digest:#x}, and the server's was {told:#x}");
        let error = Error::corrupt("zk_digest", why).in_file(file).with_zxids(zxid, zxid);
        self.damage(FindingKind::Digest, error)
    }

    /// Applies the txns behind `base`, up to the target.
    fn replay(&mut self, base: Zxid, target: Zxid) -> Result<()> {
        let logs = self.source.logs();
        // The one that begins at the next txn or before it has it.
        let first =
            logs.iter().rposition(|file| file.zxid.get() <= base.get().saturating_add(1)).unwrap_or(0);
        let mut order = Order { base, last: None };
        for file in &logs[first..] {
            match self.replay_log(file, &mut order, target) {
                Ok(true) => {}
                Ok(false) => break,
                // The state ends before the damage: what stands behind it may depend on what is lost.
                Err(error) => return self.damage(FindingKind::LogDamage, error),
            }
        }
        Ok(())
    }

    /// Applies a log's txns; false once the target is reached.
    fn replay_log(&mut self, file: &NamedFile, order: &mut Order, target: Zxid) -> Result<bool> {
        let mut log = self.source.open_log(&file.name, self.options.length_limit)?;
        let mut is_first = true;
        while let Some(entry) = log.next_entry()? {
            let zxid = entry.txn.zxid;
            let placed = |e: Error| e.in_file(&file.name).at_offset(entry.offset).with_zxids(zxid, zxid);
            if std::mem::take(&mut is_first) && zxid != file.zxid {
                let why = format!("the log's first txn is {zxid}, and its name tells another");
                return Err(placed(Error::corrupt("zk_order", why)));
            }
            order.check(zxid).map_err(placed)?;
            if zxid <= order.base {
                continue;
            }
            if zxid > target {
                return Ok(false);
            }
            entry.txn.with(|txn| self.tree.apply(txn, &mut ()));
            self.report.replayed += 1;
            self.report.source_time_ms = Some(entry.txn.time_ms);
            let told = entry.txn.with(|txn| txn.digest);
            self.compare(zxid, told, &file.name)?;
        }
        if let Some(finding) = log.end().and_then(|end| Finding::of_end(end, &file.name, log.offset())) {
            self.report.findings.push(finding);
        }
        Ok(true)
    }

    /// Holds the tree against the digests that are told of this moment.
    fn compare(&mut self, zxid: Zxid, told: Option<u64>, file: &str) -> Result<()> {
        if let Some(ahead) = self.ahead {
            if zxid < ahead.zxid {
                return Ok(());
            }
            self.ahead = None;
            // Where the nodes are ahead of the digest, it is that of no moment.
            if let Some(digest) = ahead.digest.filter(|_| zxid == ahead.zxid) {
                self.check_digest(zxid, digest, file)?;
            }
        }
        match told {
            Some(told) => self.check_digest(zxid, told, file),
            None => Ok(()),
        }
    }

    /// What is known once all txns were applied.
    fn judge(&mut self) -> Result<()> {
        let last = self.tree.last_zxid();
        if self.report.snapshot.is_none() && self.report.replayed == 0 {
            return Err(Error::corrupt(
                "zk_no_snapshot",
                "there is nothing from which a state could be made",
            ));
        }
        if let Some(ahead) = self.ahead.take() {
            let why =
                format!("the snapshot has effects of txns up to {}, and the logs end at {last}", ahead.zxid);
            self.damage(FindingKind::SnapshotAhead, Error::corrupt("zk_snapshot_ahead", why))?;
        }
        if let Some(skipped) = self.skipped.filter(|skipped| *skipped > last) {
            let why = format!("the logs end at {last}, before the damaged snapshot of {skipped}");
            self.damage(FindingKind::LogDamage, Error::corrupt("zk_gap", why))?;
        }
        if let RestoreTarget::Zxid(target) = self.options.target
            && target > last
        {
            let why = format!("the data end at {last}, before {target}");
            return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
        }
        self.judge_nodes()?;
        self.judge_epochs(last);
        Ok(())
    }

    fn judge_nodes(&mut self) -> Result<()> {
        let is_missing = |tree: &DataTree, path: &str| {
            tree.get(path).is_some_and(|node| node.acl().iter().any(|e| e.scheme == MISSING_ACL_SCHEME))
        };
        let mut missing: Vec<&String> =
            self.acl_missing.iter().filter(|path| is_missing(&self.tree, path)).collect();
        missing.sort();
        if let Some(first) = missing.first() {
            let why =
                format!("the ACLs of {} nodes are nowhere, of which the first is {first}", missing.len());
            self.damage(FindingKind::AclMissing, Error::corrupt("zk_acl", why))?;
        }
        for owner in self.tree.ephemeral_owners() {
            if self.tree.session_timeout_ms(owner).is_none() {
                let paths = self.tree.ephemeral_paths(owner);
                let what = format!("{owner:#x} owns {} nodes and is no session", paths.len());
                self.report.findings.push(Finding::new(FindingKind::OwnerWithoutSession, what));
            }
        }
        Ok(())
    }

    fn judge_epochs(&mut self, last: Zxid) {
        let (current, accepted) = (self.source.current_epoch(), self.source.accepted_epoch());
        let mut note = |what: String| self.report.findings.push(Finding::new(FindingKind::Epoch, what));
        if let Some(current) = current.filter(|current| *current < last.epoch()) {
            note(format!("currentEpoch is {}, before the last txn's", current.get()));
        }
        if let (Some(current), Some(accepted)) = (current, accepted)
            && accepted < current
        {
            note(format!("acceptedEpoch is {}, before currentEpoch", accepted.get()));
        }
        self.report.accepted =
            last.epoch().max(current.unwrap_or(Epoch::ZERO)).max(accepted.unwrap_or(Epoch::ZERO));
    }
}

/// Holds zxids to the order that they have in an undamaged log.
#[derive(Debug)]
struct Order {
    base: Zxid,
    last: Option<Zxid>,
}

impl Order {
    fn check(&mut self, zxid: Zxid) -> Result<()> {
        if let Some(last) = self.last.filter(|last| zxid <= *last) {
            return Err(Error::corrupt("zk_order", format!("it follows {last}")));
        }
        // Of what the snapshot has, nothing need be there.
        let before = self.last.unwrap_or(Zxid::ZERO).max(self.base);
        self.last = Some(zxid);
        let first_of_epoch = zxid.epoch() > before.epoch() && zxid.counter() <= 1;
        if zxid > before && zxid.get() != before.get().saturating_add(1) && !first_of_epoch {
            return Err(Error::corrupt("zk_gap", format!("txns are missing between {before} and {zxid}")));
        }
        Ok(())
    }
}

/// A list that grants nothing to anybody but who passes every list.
fn missing_acl(id: i64) -> AclBuf {
    let mut list = AclBuf::new();
    list.push(AclEntry { perms: Perms::ALL, scheme: MISSING_ACL_SCHEME, id: &id.to_string() });
    list
}
