//! Whether a directory is what a verb works on, and if not, which one was probably meant.

use std::path::Path;

use arborlog::inspect::{Directory, EngineDirectory, EngineManifestState, SnapshotDirectory};

use crate::args::EngineTarget;
use crate::output::Failure;

/// The directory of a log. One that holds nothing of a log is refused: it is the wrong one, or the disk is not mounted.
pub(crate) fn log_at(dir: &Path) -> Result<Directory, Failure> {
    let directory = Directory::open(dir)?;
    if directory.holds_log()? { Ok(directory) } else { Err(no_log(dir)) }
}

/// There is no log here.
pub(crate) fn no_log(dir: &Path) -> Failure {
    let message = format!("there is no log in {}{} [no_log]", dir.display(), log_meant(dir));
    Failure::Refused { code: "no_log", message }
}

fn log_meant(dir: &Path) -> String {
    // What cannot be read gives no hint; the refusal stands without one.
    let Ok(engine) = EngineDirectory::open(dir, None) else { return String::new() };
    if !engine.holds_engine().unwrap_or(false) {
        return String::new();
    }
    let in_use = match engine.manifest() {
        Ok(EngineManifestState::Present(manifest)) => Some(manifest.generation),
        _ => engine.generations().ok().and_then(|generations| generations.last().copied()),
    };
    let Some(generation) = in_use else {
        return "; it is the directory of an engine, which has no log yet".to_owned();
    };
    let name = format!("log-{generation}");
    if dir.join(&name).is_dir() {
        let log = dir.join(&name);
        return format!("; it is the directory of an engine, whose log is in {}", log.display());
    }
    format!(
        "; it is the directory of an engine, whose log is in {name} of another directory: the server's log_dir"
    )
}

/// The directory of an engine.
pub(crate) fn engine_at(target: &EngineTarget) -> Result<EngineDirectory, Failure> {
    let dir = &target.target.dir;
    let engine = EngineDirectory::open(dir, target.log_dir.as_deref())?;
    if engine.holds_engine()? { Ok(engine) } else { Err(no_engine(dir)) }
}

/// There is no engine here.
pub(crate) fn no_engine(dir: &Path) -> Failure {
    let message = format!("there is no engine in {}{} [no_log]", dir.display(), engine_meant(dir));
    Failure::Refused { code: "no_log", message }
}

fn engine_meant(dir: &Path) -> String {
    let above = dir.canonicalize().ok().and_then(|dir| dir.parent().map(Path::to_owned));
    if let Some(above) = above.filter(|above| above.join("engine.manifest").is_file()) {
        return format!("; it is part of the one in {}", above.display());
    }
    let holds_log = Directory::open(dir).is_ok_and(|log| log.holds_log().unwrap_or(false));
    if holds_log { "; it holds a log by itself: see `arborlog log`".to_owned() } else { String::new() }
}

/// The snapshots in use of an engine, or those of a directory that holds snapshots alone.
pub(crate) fn snapshots_at(dir: &Path) -> Result<SnapshotDirectory, Failure> {
    let engine = EngineDirectory::open(dir, None)?;
    if let EngineManifestState::Present(manifest) = engine.manifest()? {
        let snapshots = engine.snapshots(manifest.generation, Some(&manifest))?;
        return snapshots.ok_or_else(|| {
            let name = format!("snapshots-{}", manifest.generation);
            let message = format!("{name} of {} is missing [generation_missing]", dir.display());
            Failure::Damaged { code: "generation_missing", message }
        });
    }
    let alone = SnapshotDirectory::open(dir)?;
    if alone.list()?.is_empty() {
        let rooms = engine.generations()?.into_iter().map(|number| format!("snapshots-{number}"));
        let rooms: Vec<String> = rooms.filter(|name| dir.join(name).is_dir()).collect();
        if rooms.is_empty() {
            return Err(no_engine(dir));
        }
        let message = format!(
            "the manifest of the engine in {} cannot be read, so that nothing says which snapshots are in use: give {} \
             itself [engine_manifest_missing]",
            dir.display(),
            rooms.join(" or ")
        );
        return Err(Failure::Damaged { code: "engine_manifest_missing", message });
    }
    Ok(alone)
}
