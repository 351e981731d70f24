use std::path::Path;

use super::home::{Directories, Room};
use super::options::EngineOptions;
use super::view::{Place, snapshot_files};
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::log::looks::until_believed;
use crate::log::retain::truncate_on;
use crate::log::{Execution, TruncateReport};
use crate::snapshot::{SnapshotFile, load};

/// What [`Engine::truncate`](crate::Engine::truncate) would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TruncationPlan {
    /// What would become of the log.
    pub log: TruncateReport,
    /// Snapshots that hold what is to go, newest first: they would be removed.
    pub snapshots_removed: Vec<Zxid>,
    /// The snapshot that the state would begin with; none if it would begin with an empty tree.
    pub begins_with: Option<Zxid>,
}

/// Tells what a truncation of the engine in `dir` to `to` would do, without a lock, and without changing one byte.
///
/// # Errors
/// Those that the truncation would have: [`ErrorKind::NotInLog`] if the state at `to` cannot be rebuilt, or the log
/// does not hold it; else as [`EngineOptions::open_read_only`].
pub fn plan_truncation(dir: impl AsRef<Path>, options: &EngineOptions, to: Zxid) -> Result<TruncationPlan> {
    let home = Directories::open_to_read(dir.as_ref(), options.log_dir.as_deref())?;
    let place = Place { options, home: &home };
    let manifest = place.manifest()?;
    let floor = place.log(&manifest)?.0.floor_zxid();
    let (mut snapshots_removed, mut begins_with) = (Vec::new(), None);
    let snapshots = place.room_in_use(Room::Snapshots, &manifest)?;
    for (end, file) in snapshot_files(&snapshots, manifest.database_id)? {
        if end > to {
            snapshots_removed.push(end);
        } else if begins_with.is_none() && end >= floor && is_base(file)? {
            begins_with = Some(end);
        }
    }
    if to < floor || floor > Zxid::ZERO && begins_with.is_none() {
        let why = format!("no snapshot is left from which the state at {to} could be rebuilt");
        return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
    }
    let log_disk = place.room_in_use(Room::Log, &manifest)?;
    let log = until_believed(|| truncate_on(&log_disk, to, Execution::DryRun), |_| None)?;
    Ok(TruncationPlan { log, snapshots_removed, begins_with })
}

/// Whether the snapshot makes the tree that it says it makes: with its digest, as opening checks it.
fn is_base(file: Result<SnapshotFile>) -> Result<bool> {
    match file.and_then(|file| load(&file, &mut |_| ())) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
        Err(error) => Err(error),
    }
}
