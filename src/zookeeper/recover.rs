use std::path::Path;

use hashbrown::HashSet;

use super::directory::{NamedFile, ZkDirectory};
use super::import::ImportOptions;
use super::report::{Finding, FindingKind, ImportReport, told_path};
use super::unexplained::Unexplained;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, counted};
use crate::engine::RestoreTarget;
use crate::tree::DataTree;

/// The scheme of the list that a node gets whose own is not in the file: no identity has it.
pub(super) const MISSING_ACL_SCHEME: &str = "zookeeper-acl-missing";

/// Rebuilds the state of a ZooKeeper server as the server itself does, and looks closer.
///
/// The newest snapshot that is whole, then the logs behind it. What they have to be for that, where a server is
/// content with less, is in `docs/ZOOKEEPER.md`.
pub(super) struct Recovery<'a> {
    pub(super) source: &'a ZkDirectory,
    pub(super) options: &'a ImportOptions,
    pub(super) tree: DataTree,
    pub(super) report: ImportReport,
    /// Where the snapshot's nodes may be ahead of its name, until a txn has come so far; with the digest there.
    pub(super) ahead: Option<Ahead>,
    /// The paths of nodes whose ACL the snapshot did not have.
    pub(super) acl_missing: HashSet<String>,
    /// The newest snapshot that could not be used, by the zxid in its name, and why.
    pub(super) skipped: Option<(Zxid, Error)>,
    /// Txns that could not be done.
    pub(super) unexplained: Unexplained,
    /// Whether nothing in the snapshot tells that its name is right.
    pub(super) is_unproven: bool,
    /// The highest zxid that the snapshot's nodes or its digest tell.
    pub(super) newest_told: Zxid,
    /// The log that was read last, and where its entries end.
    pub(super) log_end: Option<(String, u64)>,
    /// Whether a txn behind the target was seen.
    pub(super) has_passed_target: bool,
}

/// How far the nodes of a snapshot are ahead of its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) zxid: Zxid,
    pub(super) digest: Option<u64>,
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
            unexplained: Unexplained::default(),
            is_unproven: false,
            newest_told: Zxid::ZERO,
            log_end: None,
            has_passed_target: false,
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        if self.source.logs().is_empty() && !self.options.snapshot_alone {
            // A running server has one; where a server has a dataLogDir, there is none here.
            let log_dir = self.source.log_dir().display();
            let why = match self.source.snapshots() {
                [] => {
                    format!(
                        "there is no snapshot in {}, and no log in {log_dir}",
                        self.source.dir().display()
                    )
                }
                _ => format!("there is no log in {log_dir}: what came after the snapshot would be missing"),
            };
            return Err(Error::new(ErrorKind::Invalid, "zk_no_log", why));
        }
        let target = self.target()?;
        let base = self.base(target)?;
        self.unexplained = Unexplained::new(base == Zxid::ZERO);
        self.replay(base, target)?;
        self.judge()
    }

    /// Damage that is no more than noted when it is to be salvaged.
    pub(super) fn damage(&mut self, kind: FindingKind, error: Error) -> Result<()> {
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
            RestoreTarget::TimeMs(time_ms) => self.target_at(time_ms),
        }
    }

    /// The last txn before the first of a later time.
    fn target_at(&mut self, time_ms: i64) -> Result<Zxid> {
        let (mut before, mut first, mut damage) = (None, None, None);
        for file in self.source.logs() {
            let read = self.read_times(file, |zxid, at_ms| {
                first.get_or_insert(zxid);
                if at_ms <= time_ms {
                    before = Some(zxid);
                }
                at_ms <= time_ms
            });
            match read {
                Ok(true) => {}
                Ok(false) => break,
                // It may be of no concern: only the logs behind a snapshot make the state. If it is, that the next txn is
                // not later tells that those which are lost here were not.
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    damage = Some((error, before.take()));
                }
                Err(error) => return Err(error),
            }
        }
        if let (None, Some((error, last_read))) = (before, damage) {
            self.damage(FindingKind::LogDamage, error)?;
            before = last_read;
        }
        // Of an untouched beginning, all that is known is that it was earlier than its first txn.
        let untouched = first.is_none_or(|first| first.get() == 1).then_some(Zxid::ZERO);
        before.or(untouched).ok_or_else(|| {
            let why = format!("the logs begin later than {time_ms} ms");
            not_in_log(why, self.source)
        })
    }

    /// Shows zxid and time of a log's txns, as long as they are wanted; whether to the end.
    fn read_times(&self, file: &NamedFile, mut show: impl FnMut(Zxid, i64) -> bool) -> Result<bool> {
        let mut log = self.source.open_log(&file.name, self.options.length_limit)?;
        while let Some(entry) = log.next_entry()? {
            if !entry.txn.with(|txn| show(txn.zxid, txn.time_ms)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is known once all txns were applied.
    fn judge(&mut self) -> Result<()> {
        let last = self.tree.last_zxid();
        if self.report.snapshot.is_none() && self.report.replayed == 0 {
            let why = "there is nothing from which a state could be made";
            return Err(Error::corrupt("zk_no_snapshot", why).in_file(&shown(self.source.dir())));
        }
        if let Some(ahead) = self.ahead.take() {
            let why =
                format!("the snapshot has effects of txns up to {}, and the logs end at {last}", ahead.zxid);
            let error = Error::corrupt("zk_snapshot_ahead", why).in_place(self.end_of_logs());
            self.damage(FindingKind::SnapshotAhead, error)?;
        }
        self.judge_skipped(last)?;
        if let Some((count, first)) = self.unexplained.first() {
            let why = format!(
                "{} could not be done, of which the first is {first}: snapshot and logs differ",
                counted(count, "txn")
            );
            let error = Error::corrupt("zk_replay", why).with_zxids(first, first);
            let place = self.place_of(first).map(|(file, offset)| (file, Some(offset)));
            let error = error.in_place(place);
            self.damage(FindingKind::Replay, error)?;
        }
        if let RestoreTarget::Zxid(target) = self.options.target
            && target > last
            && !self.has_passed_target
        {
            let why = format!("the data end at {last}, before {target}");
            return Err(not_in_log(why, self.source));
        }
        self.judge_nodes()?;
        if let Some(name) = self.source.bad_epoch() {
            // It is the promise that keeps an old leader out.
            let error = Error::corrupt("zk_epoch", "it tells no epoch").in_file(name);
            self.damage(FindingKind::Epoch, error)?;
        }
        self.judge_epochs(last);
        Ok(())
    }

    fn end_of_logs(&self) -> Option<(&str, Option<u64>)> {
        self.log_end.as_ref().map(|(file, offset)| (file.as_str(), Some(*offset)))
    }

    /// The logs have to reach as far as a snapshot that was passed over; if it was renamed, as far as its name says.
    fn judge_skipped(&mut self, last: Zxid) -> Result<()> {
        let Some((zxid, skipped)) = self.skipped.take().filter(|(zxid, _)| *zxid > last) else {
            return Ok(());
        };
        let name = skipped.at().file.as_deref().unwrap_or("a snapshot");
        let why = format!(
            "the logs end at {last}, before {name} of {zxid}, which cannot be used: {} [{}]",
            skipped.message(),
            skipped.code()
        );
        let error = Error::corrupt("zk_gap", why).in_place(self.end_of_logs());
        self.damage(FindingKind::LogDamage, error)
    }

    fn judge_nodes(&mut self) -> Result<()> {
        let is_missing = |tree: &DataTree, path: &str| {
            tree.get(path).is_some_and(|node| node.acl().iter().any(|e| e.scheme == MISSING_ACL_SCHEME))
        };
        let mut missing: Vec<&String> =
            self.acl_missing.iter().filter(|path| is_missing(&self.tree, path)).collect();
        missing.sort();
        if let Some(first) = missing.first() {
            let first = told_path(first);
            let why = match missing.len() {
                1 => format!("the ACL of {first} is nowhere"),
                count => format!("the ACLs of {count} nodes are nowhere, of which the first is {first}"),
            };
            let place = self.report.snapshot.as_deref().map(|snapshot| (snapshot, None));
            let error = Error::corrupt("zk_acl", why).in_place(place);
            self.damage(FindingKind::AclMissing, error)?;
        }
        for owner in self.tree.ephemeral_owners() {
            if self.tree.session_timeout_ms(owner).is_none() {
                let paths = self.tree.ephemeral_paths(owner);
                let nodes = counted(paths.len() as u64, "node");
                let what = format!("{owner:#x} owns {nodes} and is no session");
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

fn not_in_log(why: String, source: &ZkDirectory) -> Error {
    Error::new(ErrorKind::NotInLog, "not_in_log", why).in_file(&shown(source.log_dir()))
}

/// A directory in place of a file, where it is none of its files that is told of.
pub(super) fn shown(dir: &Path) -> String {
    dir.display().to_string()
}
