use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::format::Name;
use crate::format::snapshot::SnapshotName;
use crate::io::{BackendChoice, Disk, ensure_dir, names_in, open_dir, open_dir_to_read, remove_dir};

/// The directories of an engine: one at the top, and for each generation one for the log and one for the snapshots.
///
/// A generation is begun when a whole state is installed or restored: it is built beside the one in use, and taken
/// into use by one change of the manifest at the top.
pub(crate) trait Home: Send + Sync + fmt::Debug {
    /// The directory at the top.
    fn root(&self) -> Arc<dyn Disk>;

    /// The directory of a generation's log or snapshots, which is made if it is not there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace).
    fn room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>>;

    /// The same of a generation that was made before.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is not there.
    fn existing_room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>>;

    /// The same, to be read only; none if it is not there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn room_if_there(&self, room: Room, generation: u64) -> Result<Option<Arc<dyn Disk>>>;

    /// The same of one that must be there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is not there.
    fn room_to_read(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>> {
        self.room_if_there(room, generation)?.ok_or_else(|| missing(room, generation))
    }

    /// The generations of which there is something.
    fn generations(&self) -> Result<Vec<u64>>;

    /// Removes a generation.
    fn remove(&self, generation: u64) -> Result<()>;
}

/// What a directory is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Room {
    Log,
    Snapshots,
}

impl Room {
    const ALL: [Room; 2] = [Room::Log, Room::Snapshots];

    /// The name of a generation's directory.
    pub(crate) fn name(self, generation: u64) -> String {
        format!("{}{generation}", self.prefix())
    }

    const fn prefix(self) -> &'static str {
        match self {
            Room::Log => "log-",
            Room::Snapshots => "snapshots-",
        }
    }

    /// The generation of a directory of that name, as [`name`](Self::name) writes it.
    pub(crate) fn generation(self, name: &str) -> Option<u64> {
        let generation = name.strip_prefix(self.prefix())?.parse().ok()?;
        (self.name(generation) == name).then_some(generation)
    }
}

/// The directories on the real file system.
#[derive(Debug)]
pub(crate) struct Directories {
    data: PathBuf,
    log: PathBuf,
    backend: BackendChoice,
    root: Arc<dyn Disk>,
}

impl Directories {
    /// `data` must exist; so must `log`, if it is another one.
    pub(crate) fn open(data: &Path, log: Option<&Path>, backend: BackendChoice) -> Result<Directories> {
        let root = open(data, backend)?;
        let log = log.unwrap_or(data).to_owned();
        // Before anything is read, let alone written.
        open_dir_to_read(&log).map_err(|e| failed("open a directory", e, &log))?;
        Ok(Directories { data: data.to_owned(), log, backend, root })
    }

    /// The same, of an engine that is only read.
    pub(crate) fn open_to_read(data: &Path, log: Option<&Path>) -> Result<Directories> {
        let root = open_dir_to_read(data).map_err(|e| failed("open a directory", e, data))?;
        let log = log.unwrap_or(data).to_owned();
        Ok(Directories { data: data.to_owned(), log, backend: BackendChoice::Threads, root })
    }

    fn path(&self, room: Room, generation: u64) -> PathBuf {
        let parent = if room == Room::Log { &self.log } else { &self.data };
        parent.join(room.name(generation))
    }
}

fn open(path: &Path, backend: BackendChoice) -> Result<Arc<dyn Disk>> {
    open_dir(path, backend).map_err(|e| failed("open a directory", e, path))
}

fn failed(doing: &str, error: std::io::Error, path: &Path) -> Error {
    Error::io(doing, error).in_file(&path.display().to_string())
}

impl Home for Directories {
    fn root(&self) -> Arc<dyn Disk> {
        self.root.clone()
    }

    fn room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>> {
        let path = self.path(room, generation);
        ensure_dir(&path).map_err(|e| failed("create a directory", e, &path))?;
        open(&path, self.backend)
    }

    fn existing_room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>> {
        let path = self.path(room, generation);
        match open_dir(&path, self.backend) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(missing(room, generation)),
            opened => opened.map_err(|e| failed("open a directory", e, &path)),
        }
    }

    fn room_if_there(&self, room: Room, generation: u64) -> Result<Option<Arc<dyn Disk>>> {
        let path = self.path(room, generation);
        match open_dir_to_read(&path) {
            Ok(disk) => Ok(Some(disk)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed("open a directory", e, &path)),
        }
    }

    fn generations(&self) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for room in Room::ALL {
            let parent = if room == Room::Log { &self.log } else { &self.data };
            let names = names_in(parent).map_err(|e| failed("list a directory", e, parent))?;
            found.extend(names.iter().filter_map(|name| room.generation(name)));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn remove(&self, generation: u64) -> Result<()> {
        Room::ALL.into_iter().try_for_each(|room| {
            let path = self.path(room, generation);
            remove_dir(&path, &is_ours).map_err(|e| failed("remove a directory", e, &path))
        })
    }
}

/// The directory of a generation in use is not there.
pub(super) fn missing(room: Room, generation: u64) -> Error {
    let name = room.name(generation);
    let why = "the directory is missing: is it on a disk that is not mounted, or in another place?";
    Error::corrupt("generation_missing", why).in_file(&name)
}

/// A name that the log or the snapshots give.
fn is_ours(name: &str) -> bool {
    Name::parse(name) != Name::Foreign || SnapshotName::parse(name) != SnapshotName::Foreign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_generations_have_one_spelling() {
        assert_eq!(Room::Log.generation("log-7"), Some(7));
        for other in ["log-07", "log-", "log-x", "log", "snapshots-7", "log-7.old"] {
            assert_eq!(Room::Log.generation(other), None, "{other}");
        }
    }
}
