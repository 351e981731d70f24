use std::sync::Arc;

use parking_lot::Mutex;

use super::foundation::unfinished;
use super::home::{Home, Room};
use super::manifest_file::ManifestFile;
use super::options::EngineOptions;
use super::order::Order;
use super::pipeline::Pipeline;
use super::progress::Told;
use super::recent::Recent;
use super::replay::{Replay, Replayed};
use super::report::OpenReport;
use super::shared::EngineShared;
use super::stats::Counters;
use super::trigger::SnapshotTrigger;
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::{DatabaseId, EngineManifest, LOCK_NAME, Numbering};
use crate::io::{Disk, EntryKind, Lock};
use crate::log::{Log, LogOptions, RecoveryReport};
use crate::snapshot::{SnapshotInfo, SnapshotStore, load};
use crate::tree::{DataTree, Observer, Proposer, SharedTree};

/// A state that was brought back: a snapshot's, and the log's behind it.
struct Restored {
    tree: DataTree,
    log: Log,
    snapshot: Option<SnapshotInfo>,
    skipped: Vec<(Zxid, Error)>,
    replay: Replayed,
    report: RecoveryReport,
    load_ns: u64,
}

/// What there is already when an engine is opened.
#[derive(Default)]
pub(super) struct Given {
    pub(super) lock: Option<Box<dyn Lock>>,
    pub(super) warm: Option<Warm>,
}

/// A tree that followed the log before it was opened here.
pub(super) struct Warm {
    pub(super) tree: DataTree,
    pub(super) generation: u64,
    /// Where the log holds the last txn of it; none if nothing after the snapshot's end.
    pub(super) segment: Option<u64>,
}

/// Opens the engine of a home; all but its thread.
pub(super) fn open_at(
    home: Arc<dyn Home>,
    options: &EngineOptions,
    observer: Box<dyn Observer + Send>,
    given: Given,
) -> Result<(EngineShared, OpenReport)> {
    let clock = Clock::real();
    let begin = clock.nanos();
    let mut random = Random::from_system();
    let root = home.root();
    let Given { lock, warm } = given;
    let lock = lock.map_or_else(|| take_lock(root.as_ref()), Ok)?;
    let (manifest, created) = open_manifest(home.as_ref(), &root, options, &mut random)?;
    let EngineManifest { database_id, generation, established, .. } = manifest.get();
    let place = |room| {
        if established { home.existing_room(room, generation) } else { home.room(room, generation) }
    };
    let snapshots = place(Room::Snapshots)?;
    let seed = Random::from_system();
    let (store, store_report) = SnapshotStore::open(snapshots, database_id, Numbering::Zxid, seed)?;
    let log_disk = place(Room::Log)?;
    let log_options = LogOptions {
        expected_database_id: Some(database_id),
        must_exist: established,
        ..options.log.clone()
    };
    let warm = warm.filter(|warm| warm.generation == generation);
    let (restored, went_on) = match go_on(warm, &log_disk, &log_options, &options.progress)? {
        Some((restored, last)) => (restored, Some(last)),
        None => (restore(&store, &log_disk, &log_options, &clock, &options.progress)?, None),
    };
    let Restored { tree, log, snapshot, skipped, replay, report, load_ns } = restored;
    settle(home.as_ref(), &manifest, log.epoch())?;
    let last_zxid = tree.last_zxid();
    let open_report = OpenReport {
        created,
        snapshot,
        went_on,
        skipped,
        replayed: replay.txns,
        replay_failures: replay.failures,
        last_zxid,
        digest: tree.digest(),
        log: report,
        removed: store_report.cleaned,
        foreign: store_report.foreign,
        load_ns,
        total_ns: clock.nanos() - begin,
    };
    let recent = Recent::new(options.recent_txns, options.recent_bytes);
    let counters = Counters::new(clock.clone());
    let pipeline = Arc::new(Pipeline::new(SharedTree::new(tree), options.commit, observer, recent, counters));
    pipeline.follow(&log);
    let trigger = SnapshotTrigger::new(options.snap_count, options.snap_log_bytes, &mut random);
    let order = Order::new(Proposer::new(options.propose.clone()), last_zxid, trigger, random);
    let shared = EngineShared {
        log,
        pipeline,
        order: Mutex::new(order),
        store,
        manifest,
        requests: Arc::default(),
        writing: Mutex::new(()),
        options: options.clone(),
        clock,
        home,
        lock,
    };
    Ok((shared, open_report))
}

/// Brings the manifest up to what was found. The state in use is known to be whole by now, so the other one may go.
fn settle(home: &dyn Home, manifest: &ManifestFile, epoch: Epoch) -> Result<()> {
    let EngineManifest { spare, established, accepted, .. } = manifest.get();
    if spare != 0 {
        home.remove(spare)?;
    }
    // The log's fence stands for itself; a promise that is older than it means nothing.
    if epoch > accepted || spare != 0 || !established {
        manifest.commit(|manifest| {
            manifest.accepted = manifest.accepted.max(epoch);
            (manifest.spare, manifest.established) = (0, true);
        })?;
    }
    Ok(())
}

/// Refuses something else in the place of the lock.
pub(super) fn check_lock(root: &dyn Disk) -> Result<()> {
    let entries = root.list().map_err(|e| Error::io("list a directory", e))?;
    if entries.iter().any(|entry| entry.name == LOCK_NAME && entry.kind != EntryKind::File) {
        let what = "a file of the engine belongs here, and this is none";
        return Err(Error::corrupt("not_a_file", what).in_file(LOCK_NAME));
    }
    Ok(())
}

pub(super) fn take_lock(root: &dyn Disk) -> Result<Box<dyn Lock>> {
    check_lock(root)?;
    root.lock(LOCK_NAME).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, "locked", format!("the engine is open elsewhere: {e}"))
                .in_file(LOCK_NAME)
        }
        _ => Error::io("lock the engine's directory", e).in_file(LOCK_NAME),
    })
}

/// Refuses another database than the one asked for.
pub(super) fn check_asked(options: &EngineOptions, found: DatabaseId) -> Result<()> {
    if options.log.expected_database_id.is_some_and(|asked| asked != found) {
        let why = format!("the directory belongs to database {found}");
        return Err(Error::new(ErrorKind::WrongOwner, "database_foreign", why));
    }
    Ok(())
}

/// Refuses a state of which no manifest says that it is the one in use.
pub(super) fn check_is_new(home: &dyn Home) -> Result<()> {
    if let Some(error) = unfinished(home.root().as_ref())? {
        return Err(error);
    }
    let Some(generation) = home.generations()?.into_iter().max() else { return Ok(()) };
    let why = format!("the engine's manifest is missing, but there is a state of generation {generation}");
    Err(Error::corrupt("engine_manifest_missing", why))
}

/// Reads the manifest, or makes the first one.
fn open_manifest(
    home: &dyn Home,
    root: &Arc<dyn Disk>,
    options: &EngineOptions,
    random: &mut Random,
) -> Result<(ManifestFile, bool)> {
    if let Some(manifest) = ManifestFile::read(root)? {
        check_asked(options, manifest.get().database_id)?;
        return Ok((manifest, false));
    }
    check_is_new(home)?;
    let asked = options.log.expected_database_id;
    let database_id = asked.unwrap_or_else(|| DatabaseId::random(random));
    let first = EngineManifest {
        database_id,
        version: 1,
        accepted: Epoch::ZERO,
        generation: 1,
        spare: 0,
        established: false,
    };
    Ok((ManifestFile::create(root, first)?, true))
}

/// The state of a tree that followed the log, and the log behind it; none if it has to be rebuilt: its last txns were
/// purged meanwhile, or cut off.
fn go_on(
    warm: Option<Warm>,
    disk: &Arc<dyn Disk>,
    options: &LogOptions,
    progress: &Told,
) -> Result<Option<(Restored, Zxid)>> {
    let Some(Warm { tree, segment, .. }) = warm else { return Ok(None) };
    let last = tree.last_zxid();
    match replay(tree, None, disk, options, progress) {
        // Another txn of the same number would stand elsewhere.
        Ok(restored) => Ok((restored.log.segment_of(last) == segment).then_some((restored, last))),
        Err(error) if matches!(error.code(), "snapshot_gap" | "log_behind_snapshot") => Ok(None),
        Err(error) => Err(error),
    }
}

/// The newest snapshot that is whole and that the log reaches, and the log behind it. Each attempt begins with
/// nothing.
fn restore(
    store: &SnapshotStore,
    disk: &Arc<dyn Disk>,
    options: &LogOptions,
    clock: &Clock,
    progress: &Told,
) -> Result<Restored> {
    let mut skipped = Vec::new();
    for end in store.snapshots() {
        let begin = clock.nanos();
        let loaded = store.open_file(end).and_then(|file| load(&file, &mut |done| progress.loaded(done)));
        let (tree, info) = match loaded {
            Ok(loaded) => loaded,
            // Another snapshot, or the log, may do. Whatever the system fails at, it may fail at there.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                skipped.push((end, error));
                continue;
            }
            Err(error) => return Err(error),
        };
        let load_ns = clock.nanos() - begin;
        return replay(tree, Some(info), disk, options, progress).map(|restored| Restored {
            skipped,
            load_ns,
            ..restored
        });
    }
    let newest = skipped.first().cloned();
    let restored = replay(DataTree::new(), None, disk, options, progress).map_err(|error| match newest {
        // The log alone does not do: then it is the snapshots that are the matter.
        Some((_, damage)) if error.code() == "snapshot_gap" => damage,
        _ => error,
    })?;
    Ok(Restored { skipped, ..restored })
}

fn replay(
    mut tree: DataTree,
    snapshot: Option<SnapshotInfo>,
    disk: &Arc<dyn Disk>,
    options: &LogOptions,
    progress: &Told,
) -> Result<Restored> {
    let after = tree.last_zxid();
    let mut replay = Replay::new(&mut tree, progress);
    let opened = options.open_replaying_on(disk, after, &mut |record| replay.record(&record));
    let (log, report) = opened.map_err(|error| match error.kind() {
        ErrorKind::NotInLog => {
            let why = format!("the log does not reach back to {after}, where the snapshot ends: {error}");
            Error::corrupt("snapshot_gap", why)
        }
        _ => error,
    })?;
    let replayed = replay.end()?;
    if report.last_zxid < after {
        let why = format!("the log ends at {}, before the snapshot's end {after}", report.last_zxid);
        return Err(Error::corrupt("log_behind_snapshot", why));
    }
    Ok(Restored { tree, log, snapshot, skipped: Vec::new(), replay: replayed, report, load_ns: 0 })
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
