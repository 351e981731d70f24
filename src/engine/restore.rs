use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apart::check_apart;
use super::foundation::Foundation;
use super::generation::Generation;
use super::home::{Directories, Home, Room};
use super::manifest_file::ManifestFile;
use super::open::{check_is_new, take_lock};
use super::options::EngineOptions;
use super::progress::Told;
use super::replay::{Replay, Replayed};
use super::view::snapshot_files;
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::{DatabaseId, EngineManifest, Paths, Txn, TxnBody};
use crate::io::Disk;
use crate::log::{Execution, LogOptions, LogView};
use crate::snapshot::{SnapshotInfo, load};
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

/// What to restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    target: RestoreTarget,
    sessions: bool,
    source_log_dir: Option<PathBuf>,
    execution: Execution,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions {
            target: RestoreTarget::Newest,
            sessions: true,
            source_log_dir: None,
            execution: Execution::Real,
        }
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
}

/// What a restore has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The snapshot that the state began with; none if an empty tree was the beginning.
    pub snapshot: Option<SnapshotInfo>,
    /// Newer snapshots that could not be used, and why.
    pub skipped: Vec<(Zxid, Error)>,
    /// Where the source's log begins if its oldest segments are missing, which an open of the source refuses: the
    /// snapshot stands in for what they held. None if all of the log is there.
    pub log_begins_after: Option<Zxid>,
    /// How many txns of the log came after it.
    pub replayed: u64,
    /// How many of these could not be done, though they were no errors when they were logged.
    pub replay_failures: u64,
    /// The last txn of the source that is in the state.
    pub source_zxid: Zxid,
    /// Nodes of the new engine.
    pub nodes: u64,
    /// Sessions of the new engine.
    pub sessions: u64,
    /// Sessions that were closed, each by a txn of its own.
    pub closed_sessions: u64,
    /// The last txn of the new engine.
    pub last_zxid: Zxid,
    /// The tree's digest there.
    pub digest: u64,
    /// The new database; the same one if it was restored in place. Of a dry run, one that nobody gets unless the
    /// options expect it.
    pub database_id: DatabaseId,
    /// Which log and snapshots hold the state from before, if it was restored in place: the directories with this
    /// number.
    pub kept_generation: Option<u64>,
}

/// Makes an engine in the directory `dest`, which must exist, with a state that the engine in `source` had: its
/// newest snapshot at or before the target, and the log behind it. `options` are those of the new engine.
///
/// The new engine is another database: it has the id that the options expect, or a new one, and its log begins
/// behind its one snapshot. It has made the same promises to leaders. Nothing in `source` is locked or changed; an
/// engine may be running there.
///
/// A source whose oldest segments of the log are missing, which does not open, does if a snapshot that is whole covers
/// what they held.
///
/// In `dest` there may be nothing but what an earlier restore has left that was cut off, which is removed, or a lock that
/// nobody holds.
///
/// # Errors
/// `dest` is no engine then, and the restore may be begun anew. What is refused before anything was written leaves
/// nothing in it.
/// - [`ErrorKind::NotInLog`]: the target is after the last txn, or the source has no snapshot and log any more to
///   rebuild it.
/// - [`ErrorKind::Corrupt`]: the log is damaged before the target, or the only snapshots that would do.
/// - [`ErrorKind::Invalid`]: there is no engine in `source`, something is in `dest`, or one of the two is inside the other.
/// - As [`EngineOptions::open`], of either directory.
pub fn restore(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &EngineOptions,
    what: &RestoreOptions,
) -> Result<RestoreReport> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    check_apart((dest, options.log_dir.as_deref()), (source, what.source_log_dir.as_deref()))?;
    let read = || {
        let reading = Directories::open_to_read(source, what.source_log_dir.as_deref())?;
        let source = Source::open(&reading, &options.log)?;
        let (tree, report) = source.rebuild(what, options, &Clock::real())?;
        Ok((tree, report, source.manifest.accepted))
    };
    if what.execution == Execution::DryRun {
        Foundation::check(dest, options)?;
        let expected = options.log.expected_database_id;
        let database_id = expected.unwrap_or_else(|| DatabaseId::random(&mut Random::from_system()));
        return read().map(|(_, report, _)| RestoreReport { database_id, ..report });
    }
    // Before the long part; nothing is written before `finish`.
    let foundation = Foundation::begin(dest, options)?;
    let (tree, report, accepted) = read()?;
    let database_id = foundation.finish(tree, accepted)?;
    Ok(RestoreReport { database_id, ..report })
}

pub(super) fn is_not_there(error: &Error) -> bool {
    let kind = error.raw_os_error().map(|code| std::io::Error::from_raw_os_error(code).kind());
    kind == Some(std::io::ErrorKind::NotFound)
}

/// Makes an earlier state of the engine in `dir`, which nobody has open, its state: what came after the target is no
/// part of it any more. The database stays the same one, and so do its promises to leaders.
///
/// The state from before is kept, log and snapshots, in directories that the report tells the number of, to be looked at
/// with the tool's verbs for a log and for snapshots; remove them by hand. Have the engine
/// [enter a new epoch](crate::Engine::enter_epoch) before it serves: in the old one, zxids after the target would be given
/// a second time, and whoever has seen them before (peers, backups, readers of changes) could not tell. The new state is written beside it, with the room that this takes, and taken into use by one change of
/// `engine.manifest`: whenever the power is cut, opening gives one state or the other, whole.
///
/// # Errors
/// The engine is as it was then, unless the manifest could not be written: it may be restored.
/// - [`ErrorKind::Locked`]: it is open. [`ErrorKind::Invalid`]: there is no engine in `dir`.
/// - [`ErrorKind::NotInLog`], [`ErrorKind::Corrupt`] as [`restore`]; else as [`EngineOptions::open`].
pub fn restore_in_place(
    dir: impl AsRef<Path>,
    options: &EngineOptions,
    what: &RestoreOptions,
) -> Result<RestoreReport> {
    options.check()?;
    let home = Directories::open(dir.as_ref(), options.log_dir.as_deref(), options.log.backend_choice())?;
    in_place(&(Arc::new(home) as Arc<dyn Home>), options, what)
}

pub(super) fn in_place(
    home: &Arc<dyn Home>,
    options: &EngineOptions,
    what: &RestoreOptions,
) -> Result<RestoreReport> {
    let root = home.root();
    // Before a lock is made where there is no engine.
    if ManifestFile::read(&root)?.is_none() {
        return Err(Error::invalid("there is no engine in this directory"));
    }
    let _lock = take_lock(root.as_ref())?;
    let clock = Clock::real();
    let source = Source::open(home.as_ref(), &options.log)?;
    let (tree, report) = source.rebuild(what, options, &clock)?;
    let epoch = source.view.epoch();
    let Some(manifest) = ManifestFile::read(&root)? else {
        return Err(Error::invalid("there is no engine in this directory"));
    };
    let EngineManifest { database_id, generation, spare, .. } = manifest.get();
    // What an earlier attempt left, which nobody else can have made.
    if spare != 0 {
        home.remove(spare)?;
    }
    let number = home.generations()?.last().map_or(generation, |last| *last.max(&generation)) + 1;
    manifest.commit(|manifest| manifest.spare = number)?;
    let next = Generation { home, number, database_id, options, clock: &clock };
    // The state from before is nobody's spare: it is not removed.
    let commit = || {
        manifest.commit(|manifest| {
            (manifest.generation, manifest.spare, manifest.established) = (number, 0, true);
            manifest.accepted = manifest.accepted.max(epoch);
        })
    };
    if crate::planted("restore_before_durable") {
        commit()?;
    }
    next.write(&next.store()?, tree, epoch)?;
    commit()?;
    Ok(RestoreReport { database_id, kept_generation: Some(generation), ..report })
}

/// A tree, the snapshot that it comes from, and newer ones that could not be used.
pub(crate) type Base = (DataTree, Option<SnapshotInfo>, Vec<(Zxid, Error)>);

/// An engine's directory, to be read only.
pub(crate) struct Source {
    manifest: EngineManifest,
    snapshots: Arc<dyn Disk>,
    view: LogView,
    /// See [`RestoreReport::log_begins_after`].
    begins_after: Option<Zxid>,
}

impl Source {
    fn open(home: &dyn Home, options: &LogOptions) -> Result<Source> {
        let Some(manifest) = ManifestFile::read(&home.root())? else {
            check_is_new(home)?;
            return Err(Error::invalid("there is no engine in the directory to restore from"));
        };
        let manifest = manifest.get();
        let snapshots = home.room_to_read(Room::Snapshots, manifest.generation)?;
        let log = home.room_to_read(Room::Log, manifest.generation)?;
        let options = LogOptions { expected_database_id: Some(manifest.database_id), ..options.clone() };
        let (view, begins_after) = match options.view_on(&log) {
            // Another state is made, and the directory stays as it is: a snapshot may do for what is missing.
            Err(error) if error.code() == "segment_missing" => {
                let options = LogOptions { oldest_may_be_missing: true, ..options };
                let (view, _) = options.view_on(&log).map_err(|_| error)?;
                let floor = view.floor_zxid();
                (view, Some(floor))
            }
            seen => (seen?.0, None),
        };
        Ok(Source { manifest, snapshots, view, begins_after })
    }

    /// The engine in `dir`, and in `log` if its log is elsewhere.
    pub(crate) fn in_dir(dir: &Path, log: Option<&Path>) -> Result<Source> {
        Source::open(&Directories::open_to_read(dir, log)?, &LogOptions::default())
    }

    /// The newest epoch that the engine has accepted.
    pub(crate) fn accepted(&self) -> Epoch {
        self.manifest.accepted.max(self.view.epoch())
    }

    /// The tree at the newest snapshot at or before the target, the last zxid that may be in the state, and the
    /// log that leads there.
    pub(crate) fn begin(&self, target: RestoreTarget, told: &Told) -> Result<(Base, Zxid, &LogView)> {
        let target = self.resolve(target)?;
        Ok((self.base(target, told)?, target, &self.view))
    }

    /// See [`RestoreReport::log_begins_after`].
    pub(crate) fn log_begins_after(&self) -> Option<Zxid> {
        self.begins_after
    }

    /// The state that is wanted, and how it came about.
    fn rebuild(
        &self,
        what: &RestoreOptions,
        options: &EngineOptions,
        clock: &Clock,
    ) -> Result<(DataTree, RestoreReport)> {
        let target = self.resolve(what.target)?;
        let (mut tree, snapshot, skipped) = self.base(target, &options.progress)?;
        let replayed = replay_telling(&self.view, &mut tree, target, &options.progress)?;
        let source_zxid = tree.last_zxid();
        let closed_sessions = if what.sessions { 0 } else { close_sessions(&mut tree, clock.wall_ms())? };
        let report = RestoreReport {
            snapshot,
            skipped,
            log_begins_after: self.begins_after,
            replayed: replayed.txns,
            replay_failures: replayed.failures,
            source_zxid,
            nodes: tree.len(),
            sessions: tree.sessions().len() as u64,
            closed_sessions,
            last_zxid: tree.last_zxid(),
            digest: tree.digest(),
            database_id: self.manifest.database_id,
            kept_generation: None,
        };
        Ok((tree, report))
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
                if last == floor {
                    return missing(format!(
                        "the log has no txn yet, as after an import or a restore, so nothing tells the time of the state at \
                         {floor}: without a time it is restored"
                    ));
                }
                let (mut reader, mut before) = (self.view.records(floor)?, floor);
                while let Some(record) = reader.next_record()?.filter(|record| record.time_ms <= time_ms) {
                    before = record.zxid;
                }
                // Nobody knows the times of what was purged; and nobody means the empty tree before the first txn.
                if before == floor {
                    return missing(format!(
                        "the log begins after {floor}, with a txn later than {time_ms} ms"
                    ));
                }
                Ok(before)
            }
        }
    }

    /// The newest snapshot that is whole, not after the target, and reached by the log.
    fn base(&self, target: Zxid, progress: &Told) -> Result<Base> {
        let files = snapshot_files(&self.snapshots, self.manifest.database_id)?;
        let mut skipped = Vec::new();
        for (end, file) in
            files.into_iter().filter(|(end, _)| *end <= target && *end >= self.view.floor_zxid())
        {
            let loaded = file.and_then(|file| load(&file, &mut |done| progress.loaded(done)));
            match loaded {
                Ok((tree, info)) => return Ok((tree, Some(info), skipped)),
                Err(error) if error.kind() == ErrorKind::Corrupt || is_not_there(&error) => {
                    // A live source may have removed it since the listing.
                    skipped.push((end, error));
                }
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
}

/// Applies the records of a log behind a tree's last txn, up to the target.
pub(crate) fn replay(view: &LogView, tree: &mut DataTree, target: Zxid) -> Result<Replayed> {
    replay_telling(view, tree, target, &Told::default())
}

/// The same, and tells how far it has come.
pub(crate) fn replay_telling(
    view: &LogView,
    tree: &mut DataTree,
    target: Zxid,
    told: &Told,
) -> Result<Replayed> {
    let (mut reader, mut replay) = (view.records(tree.last_zxid())?, Replay::new(tree, told));
    while let Some(record) = reader.next_record()?.filter(|record| record.zxid <= target) {
        replay.record(&record);
        if replay.has_failed() {
            break;
        }
    }
    replay.end()
}

/// Closes all sessions; how many there were. Owners of nodes that are no sessions are among them.
pub(crate) fn close_sessions(tree: &mut DataTree, time_ms: i64) -> Result<u64> {
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
