use std::path::Path;
use std::sync::Arc;

use super::home::{Directories, Home, Room, missing};
use super::manifest_file::ManifestFile;
use super::open::{check_asked, check_is_new, check_lock};
use super::options::EngineOptions;
use super::restore::replay;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::snapshot::SnapshotName;
use crate::format::{DatabaseId, EngineManifest, Numbering};
use crate::io::{Disk, EntryKind, OpenMode};
use crate::log::{LogOptions, LogView, RecoveryReport};
use crate::snapshot::{SnapshotFile, SnapshotInfo, load};
use crate::tree::DataTree;

/// How often a state that a live server changes under the eyes is looked at again.
const LOOKS_MAX: u32 = 5;

/// An engine's state as it stands on disk, to be looked at: no lock, no file, not one byte changes, also beside a live
/// server.
#[derive(Debug)]
pub struct EngineView {
    /// The tree at the last txn that is whole on disk.
    pub tree: DataTree,
    /// The database.
    pub database_id: DatabaseId,
    /// Which log and snapshots are in use.
    pub generation: u64,
    /// The newest epoch that was accepted.
    pub accepted_epoch: Epoch,
    /// The epoch of the leader whose history this is.
    pub current_epoch: Epoch,
    /// All snapshots, newest first: what each says of itself, or what is the matter with it.
    pub snapshots: Vec<(Zxid, Result<SnapshotInfo>)>,
    /// The snapshot that the tree began with.
    pub began_with: Option<Zxid>,
    /// How many txns of the log came after it.
    pub replayed: u64,
    /// How many of these could not be done, though they were no errors when they were logged: the tree and the log
    /// differ. Zero in a database that is well.
    pub replay_failures: u64,
    /// What opening the log would find.
    pub log: RecoveryReport,
}

/// Where a view looks.
pub(super) struct Place<'a> {
    pub(super) options: &'a EngineOptions,
    pub(super) home: &'a dyn Home,
}

impl EngineOptions {
    /// Looks at the engine in `dir` as it stands, without opening it.
    ///
    /// # Errors
    /// As [`open`](EngineOptions::open), for the same reasons; [`ErrorKind::Io`] with the code `no_log` if there is
    /// none.
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<EngineView> {
        let home = Directories::open_to_read(dir.as_ref(), self.log_dir.as_deref())?;
        let place = Place { options: self, home: &home };
        several_looks(|| place.look()).map(|(view, _)| view)
    }
}

/// Looks again if it fails: a live server purges, and removes snapshots. Damage stays in its place.
pub(super) fn several_looks<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let (mut looks, mut doubted) = (0, None);
    loop {
        looks += 1;
        match look() {
            Err(error) if looks < LOOKS_MAX && !is_same(doubted.as_ref(), &error) => doubted = Some(error),
            outcome => return outcome,
        }
    }
}

/// Whether two looks met the same at the same place in a file.
fn is_same(before: Option<&Error>, error: &Error) -> bool {
    let place = error.at();
    place.offset.is_some()
        && before.is_some_and(|before| before.code() == error.code() && before.at() == place)
}

impl Place<'_> {
    pub(super) fn manifest(&self) -> Result<EngineManifest> {
        let Some(manifest) = ManifestFile::read(&self.home.root())? else {
            check_is_new(self.home)?;
            let why = "there is no engine in this directory".into();
            return Err(Error::new(ErrorKind::Io, "no_log", why));
        };
        check_lock(self.home.root().as_ref())?;
        check_asked(self.options, manifest.get().database_id)?;
        Ok(manifest.get())
    }

    /// The log of the generation in use. A log of another database would make a tree that never was.
    pub(super) fn log(&self, manifest: &EngineManifest) -> Result<(LogView, RecoveryReport)> {
        let EngineManifest { database_id, generation, established, .. } = *manifest;
        let options = LogOptions { expected_database_id: Some(database_id), ..self.options.log.clone() };
        options.view_on(&self.room_in_use(Room::Log, manifest)?).map_err(|error| {
            if established && error.code() == "no_log" {
                Error::corrupt("log_missing", "the directory holds no log, though there was one")
                    .in_file(&Room::Log.name(generation))
            } else {
                error
            }
        })
    }

    /// The whole state, and the log whose end it is.
    pub(super) fn look(&self) -> Result<(EngineView, LogView)> {
        let manifest = self.manifest()?;
        let EngineManifest { database_id, generation, accepted, .. } = manifest;
        let snapshots = self.room_in_use(Room::Snapshots, &manifest)?;
        let files = snapshot_files(&snapshots, database_id)?;
        let mut began = None;
        let mut listed = Vec::new();
        for (end, file) in files {
            let info = match file.and_then(|file| load_unless(began.is_some(), &file)) {
                Ok((info, tree)) => {
                    began = began.or(tree);
                    Ok(info)
                }
                // Opening goes on to the next one if this one is damaged, and for no other reason.
                Err(error) if began.is_none() && error.kind() != ErrorKind::Corrupt => return Err(error),
                Err(error) => Err(error),
            };
            listed.push((end, info));
        }
        let began_with = began.as_ref().map(DataTree::last_zxid);
        // Without a whole snapshot the log begins with an empty tree; each refusal is listed.
        let mut tree = began.unwrap_or_default();
        let (view, log) = self.log(&manifest)?;
        // A truncation removes snapshots before it changes the log: one that is there still belongs to this log.
        let info =
            listed.iter().find_map(|(_, info)| info.as_ref().ok().filter(|i| Some(i.end) == began_with));
        if info.is_some_and(|info| !is_there(&snapshots, database_id, info)) {
            let why = "the engine has removed the snapshot that was read; look again".into();
            return Err(Error::new(ErrorKind::Busy, "busy", why));
        }
        let replayed = replay(&view, &mut tree, Zxid::MAX).map_err(|error| {
            let damage = listed.first().and_then(|(_, info)| info.as_ref().err());
            match (error.kind(), damage) {
                (ErrorKind::NotInLog, Some(damage)) if began_with.is_none() => damage.clone(),
                (ErrorKind::NotInLog, _) => gap(began_with, &error),
                _ => error,
            }
        })?;
        if view.last_zxid() < tree.last_zxid() {
            let why = format!("the log ends at {}, before the snapshot's end", view.last_zxid());
            return Err(Error::corrupt("log_behind_snapshot", why));
        }
        let seen = EngineView {
            tree,
            database_id,
            generation,
            accepted_epoch: accepted.max(log.epoch),
            current_epoch: log.epoch,
            snapshots: listed,
            began_with,
            replayed: replayed.txns,
            replay_failures: replayed.failures,
            log,
        };
        Ok((seen, view))
    }

    /// The log's or the snapshots' directory of the generation in use.
    pub(super) fn room_in_use(&self, room: Room, manifest: &EngineManifest) -> Result<Arc<dyn Disk>> {
        let EngineManifest { generation, established, .. } = *manifest;
        self.home.room_if_there(room, generation)?.ok_or_else(|| {
            if established {
                return missing(room, generation);
            }
            let why =
                "the engine in this directory was never opened to its end: there is no state yet".into();
            Error::new(ErrorKind::Io, "no_log", why)
        })
    }
}

/// The log begins behind the end of the snapshot.
fn gap(began_with: Option<Zxid>, error: &Error) -> Error {
    let after = began_with.unwrap_or(Zxid::ZERO);
    let why = format!("the log does not reach back to {after}, where the snapshot ends: {error}");
    Error::corrupt("snapshot_gap", why)
}

/// What a snapshot says of itself, and its tree unless there is one already.
fn load_unless(has_tree: bool, file: &SnapshotFile) -> Result<(SnapshotInfo, Option<DataTree>)> {
    let tree = if has_tree { None } else { Some(load(file, &mut |_| ())?.0) };
    Ok((file.info.clone(), tree))
}

/// Whether the snapshot is the same one still.
fn is_there(disk: &Arc<dyn Disk>, id: DatabaseId, info: &SnapshotInfo) -> bool {
    disk.open(&info.file, OpenMode::Read).is_ok_and(|file| {
        SnapshotFile::open_named(file, info.end, id, Numbering::Zxid).is_ok_and(|file| file.info == *info)
    })
}

/// The snapshots in a directory, newest first.
pub(super) fn snapshot_files(
    disk: &Arc<dyn Disk>,
    id: DatabaseId,
) -> Result<Vec<(Zxid, Result<SnapshotFile>)>> {
    let mut found = Vec::new();
    for entry in disk.list().map_err(|e| Error::io("list the snapshots' directory", e))? {
        let SnapshotName::Snapshot(end) = SnapshotName::parse(&entry.name) else { continue };
        if entry.kind != EntryKind::File {
            continue;
        }
        let file = disk
            .open(&entry.name, OpenMode::Read)
            .map_err(|e| Error::io("open a snapshot", e).in_file(&entry.name))
            .and_then(|file| SnapshotFile::open_named(file, end, id, Numbering::Zxid));
        found.push((end, file));
    }
    found.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    Ok(found)
}
