use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::generation::Generation;
use super::home::{Directories, Home, Room, missing};
use super::manifest_file::ManifestFile;
use super::open::{Replayed, check_is_new, take_lock};
use super::options::EngineOptions;
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::snapshot::{SnapshotName, snapshot_name};
use crate::format::{DatabaseId, EngineManifest, LOCK_NAME, Numbering, Paths, Txn, TxnBody};
use crate::io::{Disk, OpenMode};
use crate::log::{Execution, LogOptions, LogView};
use crate::snapshot::{SnapshotFile, SnapshotInfo, load};
use crate::tree::DataTree;

/// Which of the states that a directory remembers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RestoreTarget {
    /// The last one.
    Newest,
    /// That after the last txn that is not after this zxid, which the log must reach.
    Zxid(Zxid),
    /// That before the first txn of a later time, in milliseconds since 1970, as its leader's clock told it.
    TimeMs(i64),
}

/// How far a restore has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RestoreProgress {
    /// A snapshot is being loaded.
    Loading {
        /// Bytes of it that were read.
        done_bytes: u64,
        /// All of its bytes.
        total_bytes: u64,
    },
    /// The log behind it is being replayed.
    Replaying {
        /// Txns that were replayed.
        txns: u64,
        /// The last of them.
        zxid: Zxid,
    },
    /// The state is being written.
    Writing {
        /// How many nodes it has.
        nodes: u64,
    },
}

/// Who is told of progress.
type Listener = Arc<dyn Fn(RestoreProgress) + Send + Sync>;

/// Txns between two tellings.
const TXNS_PER_TELLING: u64 = 4096;

/// What to restore.
#[derive(Clone)]
pub struct RestoreOptions {
    target: RestoreTarget,
    sessions: bool,
    source_log_dir: Option<PathBuf>,
    execution: Execution,
    listener: Listener,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions {
            target: RestoreTarget::Newest,
            sessions: true,
            source_log_dir: None,
            execution: Execution::Real,
            listener: Arc::new(|_| ()),
        }
    }
}

impl fmt::Debug for RestoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestoreOptions")
            .field("target", &self.target)
            .field("sessions", &self.sessions)
            .field("execution", &self.execution)
            .finish_non_exhaustive()
    }
}

impl RestoreOptions {
    /// The newest state, with its sessions.
    pub fn new() -> RestoreOptions {
        RestoreOptions::default()
    }

    /// Which state (default [`RestoreTarget::Newest`]).
    #[must_use]
    pub fn target(mut self, target: RestoreTarget) -> RestoreOptions {
        self.target = target;
        self
    }

    /// Whether sessions, and the ephemeral nodes that they own, are restored (default: they are). If not, each is
    /// closed by a txn of its own behind the target.
    #[must_use]
    pub fn sessions(mut self, kept: bool) -> RestoreOptions {
        self.sessions = kept;
        self
    }

    /// Where the source has its log, if not beside its snapshots.
    #[must_use]
    pub fn source_log_dir(mut self, dir: impl Into<PathBuf>) -> RestoreOptions {
        self.source_log_dir = Some(dir.into());
        self
    }

    /// Whether the state is written, or only made and told of (default [`Execution::Real`]). A dry run needs no
    /// destination that exists.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> RestoreOptions {
        self.execution = execution;
        self
    }

    /// Has `listener` called now and then (default: nobody is told).
    #[must_use]
    pub fn on_progress(
        mut self,
        listener: impl Fn(RestoreProgress) + Send + Sync + 'static,
    ) -> RestoreOptions {
        self.listener = Arc::new(listener);
        self
    }
}

/// What a restore has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The snapshot that the state began with; none if an empty tree was the beginning.
    pub snapshot: Option<SnapshotInfo>,
    /// Newer snapshots that could not be used, and why.
    pub skipped: Vec<(Zxid, Error)>,
    /// How many txns of the log came after it.
    pub replayed: u64,
    /// How many of these could not be done, though they were no errors when they were logged.
    pub replay_failures: u64,
    /// The last txn of the source that is in the state.
    pub source_zxid: Zxid,
    /// Sessions that were closed, each by a txn of its own.
    pub closed_sessions: u64,
    /// The last txn of the new engine.
    pub last_zxid: Zxid,
    /// The tree's digest there.
    pub digest: u64,
    /// The new database; of a dry run, one that nobody gets unless the options expect it.
    pub database_id: DatabaseId,
}

/// Makes an engine in the empty directory `dest`, which must exist, with a state that the engine in `source` had: its
/// newest snapshot at or before the target, and the log behind it. `options` are those of the new engine.
///
/// The new engine is another database: it has the id that the options expect, or a new one, and its log begins
/// behind its one snapshot. It has made the same promises to leaders. Nothing in `source` is locked or changed; an
/// engine may be running there.
///
/// # Errors
/// `dest` has no manifest then, so that it is no engine yet: remove what is in it. What is refused before anything was
/// written leaves nothing in it.
/// - [`ErrorKind::NotInLog`]: the target is after the last txn, or the source has no snapshot and log any more to rebuild it.
/// - [`ErrorKind::Corrupt`]: the log is damaged before the target, or the only snapshots that would do.
/// - [`ErrorKind::Invalid`]: there is no engine in `source`, or something is in `dest`.
/// - As [`EngineOptions::open`], of either directory.
pub fn restore(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &EngineOptions,
    what: &RestoreOptions,
) -> Result<RestoreReport> {
    options.check()?;
    let clock = Clock::real();
    let (dest, source) = (dest.as_ref(), source.as_ref());
    if what.execution == Execution::DryRun {
        match Directories::open_to_read(dest, options.log_dir.as_deref()) {
            Ok(home) => check_empty(&home, false)?,
            Err(error) if is_not_there(&error) => {}
            Err(error) => return Err(error),
        }
        return make(source, options, what, &clock).map(|(_, _, report)| report);
    }
    let home = Directories::open(dest, options.log_dir.as_deref(), options.log.backend)?;
    let root = home.root();
    check_empty(&home, false)?;
    // Before anything is written: what is refused leaves nothing behind.
    let (tree, accepted, report) = make(source, options, what, &clock)?;
    let _lock = take_lock(root.as_ref())?;
    // Another restore may have come before.
    check_empty(&home, true)?;
    let database_id = report.database_id;
    let home: Arc<dyn Home> = Arc::new(home);
    let first = Generation { home: &home, number: 1, database_id, options, clock: &clock };
    (what.listener)(RestoreProgress::Writing { nodes: tree.len() });
    first.write(&first.store()?, tree, report.last_zxid.epoch())?;
    ManifestFile::create(
        &root,
        EngineManifest { database_id, version: 1, accepted, generation: 1, spare: 0, established: true },
    )?;
    Ok(report)
}

/// `locked` is whether there is a lock by now, which is ours.
fn check_empty(home: &Directories, locked: bool) -> Result<()> {
    let entries = home.root().list().map_err(|e| Error::io("list a directory", e))?;
    let is_odd = |name: &str| !locked || name != LOCK_NAME;
    if entries.iter().any(|entry| is_odd(&entry.name)) || !home.generations()?.is_empty() {
        let why = "the directory to restore to is not empty".to_owned();
        return Err(Error::new(ErrorKind::Invalid, "restore_not_empty", why));
    }
    Ok(())
}

fn is_not_there(error: &Error) -> bool {
    let kind = error.raw_os_error().map(|code| std::io::Error::from_raw_os_error(code).kind());
    kind == Some(std::io::ErrorKind::NotFound)
}

/// Makes the state in memory, and with it the newest epoch that was promised, and what there is to tell.
fn make(
    source: &Path,
    options: &EngineOptions,
    what: &RestoreOptions,
    clock: &Clock,
) -> Result<(DataTree, Epoch, RestoreReport)> {
    let source = Source::open(source, what.source_log_dir.as_deref(), &options.log)?;
    let target = source.resolve(what.target)?;
    let tell = &*what.listener;
    let (mut tree, snapshot, skipped) = source.base(target, tell)?;
    let replayed = replay_telling(&source.view, &mut tree, target, tell)?;
    let source_zxid = tree.last_zxid();
    let closed_sessions = if what.sessions { 0 } else { close_sessions(&mut tree, clock.wall_ms())? };
    let last_zxid = tree.last_zxid();
    let expected = options.log.expected_database_id;
    let report = RestoreReport {
        snapshot,
        skipped,
        replayed: replayed.txns,
        replay_failures: replayed.failures,
        source_zxid,
        closed_sessions,
        last_zxid,
        digest: tree.digest(),
        database_id: expected.unwrap_or_else(|| DatabaseId::random(&mut Random::from_system())),
    };
    Ok((tree, source.manifest.accepted.max(last_zxid.epoch()), report))
}

/// A tree, the snapshot that it comes from, and newer ones that could not be used.
type Base = (DataTree, Option<SnapshotInfo>, Vec<(Zxid, Error)>);

/// An engine's directory, to be read only.
struct Source {
    manifest: EngineManifest,
    snapshots: Arc<dyn Disk>,
    view: LogView,
}

impl Source {
    fn open(data: &Path, log: Option<&Path>, options: &LogOptions) -> Result<Source> {
        let home = Directories::open_to_read(data, log)?;
        let Some(manifest) = ManifestFile::read(&home.root())? else {
            check_is_new(&home)?;
            return Err(Error::invalid(format!("there is no engine in {}", data.display())));
        };
        let manifest = manifest.get();
        let room = |room| {
            let there = home.room_if_there(room, manifest.generation)?;
            there.ok_or_else(|| missing(room, manifest.generation))
        };
        let (snapshots, log) = (room(Room::Snapshots)?, room(Room::Log)?);
        let options = LogOptions { expected_database_id: Some(manifest.database_id), ..options.clone() };
        let (view, _) = options.view_on(&log)?;
        Ok(Source { manifest, snapshots, view })
    }

    /// The last zxid that may be in the state.
    fn resolve(&self, target: RestoreTarget) -> Result<Zxid> {
        let (floor, last) = (self.view.floor_zxid(), self.view.last_zxid());
        let missing = |why: String| Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
        match target {
            RestoreTarget::Newest => Ok(last),
            RestoreTarget::Zxid(zxid) if zxid > last => {
                missing(format!("the log ends at {last}, before {zxid}"))
            }
            RestoreTarget::Zxid(zxid) => Ok(zxid),
            RestoreTarget::TimeMs(time_ms) => {
                let (mut reader, mut before) = (self.view.records(floor)?, floor);
                while let Some(record) = reader.next_record()?.filter(|record| record.time_ms <= time_ms) {
                    before = record.zxid;
                }
                // Nobody knows the times of what was purged.
                if before == floor && floor > Zxid::ZERO {
                    return missing(format!(
                        "the log begins after {floor}, which may be later than {time_ms} ms"
                    ));
                }
                Ok(before)
            }
        }
    }

    /// The newest snapshot that is whole, not after the target, and reached by the log.
    fn base(&self, target: Zxid, tell: &dyn Fn(RestoreProgress)) -> Result<Base> {
        let entries = self.snapshots.list().map_err(|e| Error::io("list the snapshots' directory", e))?;
        let mut ends: Vec<Zxid> = entries
            .iter()
            .filter_map(|entry| match SnapshotName::parse(&entry.name) {
                SnapshotName::Snapshot(end) => Some(end),
                _ => None,
            })
            .filter(|end| *end <= target && *end >= self.view.floor_zxid())
            .collect();
        ends.sort_unstable();
        let mut skipped = Vec::new();
        for end in ends.into_iter().rev() {
            match self.load(end, tell) {
                Ok((tree, info)) => return Ok((tree, Some(info), skipped)),
                Err(error) if error.kind() == ErrorKind::Corrupt => skipped.push((end, error)),
                Err(error) => return Err(error),
            }
        }
        if self.view.floor_zxid() == Zxid::ZERO {
            return Ok((DataTree::new(), None, skipped));
        }
        let why = format!("no snapshot is left from which the state at {target} could be rebuilt");
        let missing = Error::new(ErrorKind::NotInLog, "not_in_log", why);
        Err(skipped.into_iter().next().map_or(missing, |(_, damage)| damage))
    }

    fn load(&self, end: Zxid, tell: &dyn Fn(RestoreProgress)) -> Result<(DataTree, SnapshotInfo)> {
        let name = snapshot_name(end);
        let file = self
            .snapshots
            .open(&name, OpenMode::Read)
            .map_err(|e| Error::io("open a snapshot", e).in_file(&name))?;
        let file = SnapshotFile::open_named(file, end, self.manifest.database_id, Numbering::Zxid)?;
        load(&file, &mut |at| {
            tell(RestoreProgress::Loading { done_bytes: at.done_bytes, total_bytes: at.total_bytes });
        })
    }
}

/// Applies the records of a log behind a tree's last txn, up to the target.
pub(crate) fn replay(view: &LogView, tree: &mut DataTree, target: Zxid) -> Result<Replayed> {
    replay_telling(view, tree, target, &|_| ())
}

fn replay_telling(
    view: &LogView,
    tree: &mut DataTree,
    target: Zxid,
    tell: &dyn Fn(RestoreProgress),
) -> Result<Replayed> {
    let (mut reader, mut replayed) = (view.records(tree.last_zxid())?, Replayed::default());
    while let Some(record) = reader.next_record()?.filter(|record| record.zxid <= target) {
        replayed.visit(tree, &record);
        if let Some(error) = replayed.error {
            return Err(error);
        }
        if replayed.txns.is_multiple_of(TXNS_PER_TELLING) {
            tell(RestoreProgress::Replaying { txns: replayed.txns, zxid: record.zxid });
        }
    }
    Ok(replayed)
}

/// Closes all sessions; how many there were. Owners of nodes that are no sessions are among them.
fn close_sessions(tree: &mut DataTree, time_ms: i64) -> Result<u64> {
    let mut ids: Vec<i64> = tree.sessions().into_iter().map(|(id, _)| id).collect();
    ids.extend(tree.ephemeral_owners());
    ids.sort_unstable();
    ids.dedup();
    for session_id in &ids {
        let paths = tree.ephemeral_paths(*session_id);
        let body = TxnBody::CloseSession { paths: Some(Paths::from_slice(&paths)) };
        let zxid = tree.last_zxid().next_in_epoch()?;
        let txn = Txn { zxid, time_ms, session_id: *session_id, cxid: 0, digest: None, body };
        tree.apply(&txn, &mut ());
    }
    Ok(ids.len() as u64)
}
