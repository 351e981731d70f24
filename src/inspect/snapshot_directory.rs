use std::path::Path;
use std::sync::Arc;

use super::snapshot_examination::{SnapshotExamination, examine};
use super::snapshot_reader::{SnapshotItem, read_items};
use super::{EngineManifestInfo, Progress};
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::format::snapshot::{SnapshotName, snapshot_name};
use crate::format::{DatabaseId, Name, Numbering};
use crate::io::{Disk, EntryKind, OpenMode, open_dir_to_read};
use crate::snapshot::{SnapshotFile, SnapshotInfo, load};
use crate::tree::DataTree;

/// A directory of snapshots, to look at.
#[derive(Debug)]
pub struct SnapshotDirectory {
    disk: Arc<dyn Disk>,
    database_id: Option<DatabaseId>,
}

/// A snapshot's file, as its name, its first and its last bytes tell of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotListing {
    /// Its name.
    pub file: String,
    /// The zxid of the name.
    pub end: Zxid,
    /// Its length.
    pub file_bytes: u64,
    /// What it says of itself, or why that cannot be believed.
    pub info: Result<SnapshotInfo>,
}

impl SnapshotDirectory {
    /// Opens a directory of snapshots of whatever database. Reads nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it is no directory or may not be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<SnapshotDirectory> {
        let dir = dir.as_ref();
        let disk = open_dir_to_read(dir)
            .map_err(|e| Error::io("open a directory", e).in_file(&dir.display().to_string()))?;
        Ok(SnapshotDirectory { disk, database_id: None })
    }

    pub(super) fn of_engine(disk: Arc<dyn Disk>, manifest: Option<&EngineManifestInfo>) -> SnapshotDirectory {
        SnapshotDirectory { disk, database_id: manifest.map(|manifest| manifest.database_id) }
    }

    /// All snapshots, newest first. Of each, header, trailer and index are read.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]. That a snapshot is damaged is an answer.
    pub fn list(&self) -> Result<Vec<SnapshotListing>> {
        let mut found = Vec::new();
        for entry in self.disk.list().map_err(|e| Error::io("list the snapshots' directory", e))? {
            let SnapshotName::Snapshot(end) = SnapshotName::parse(&entry.name) else { continue };
            if entry.kind != EntryKind::File {
                continue;
            }
            let info = match self.file(end) {
                Ok(file) => Ok(file.info),
                // A live server has removed it since the listing.
                Err(error) if error.code() == "snapshot_missing" => continue,
                Err(error) => Err(error),
            };
            found.push(SnapshotListing { file: entry.name, end, file_bytes: entry.len, info });
        }
        found.sort_by_key(|listing| std::cmp::Reverse(listing.end));
        Ok(found)
    }

    /// What else is in the directory: temporary files, which the next open removes, and names that are nobody's we
    /// know.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn others(&self) -> Result<(Vec<String>, Vec<String>)> {
        let (mut temporary, mut foreign) = (Vec::new(), Vec::new());
        for entry in self.disk.list().map_err(|e| Error::io("list the snapshots' directory", e))? {
            match SnapshotName::parse(&entry.name) {
                SnapshotName::Temporary if entry.kind == EntryKind::File => temporary.push(entry.name),
                SnapshotName::Snapshot(_) if entry.kind == EntryKind::File => {}
                // A log may share the directory.
                _ if Name::parse(&entry.name) == Name::Foreign => foreign.push(entry.name),
                _ => {}
            }
        }
        temporary.sort();
        foreign.sort();
        Ok((temporary, foreign))
    }

    /// Reads the snapshot that ends at `end` to its end, past all damage.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read. Damage is an answer.
    pub fn examine(&self, end: Zxid, progress: &mut dyn FnMut(Progress)) -> Result<SnapshotExamination> {
        match self.file(end) {
            Ok(file) => examine(&file, progress),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => Ok(SnapshotExamination::unreadable(end, error)),
        }
    }

    /// Hands out what the file holds, in its order, each block verified before, until `visit` says no more: the nodes
    /// as the walk has met them, the sessions, and the txns of the walk's time, which make the tree as it is at
    /// [`SnapshotInfo::end`] out of them. Memory is bounded by one block.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] at the first damage, [`ErrorKind::Unsupported`] if it is of a newer version,
    /// [`ErrorKind::Io`].
    pub fn read(
        &self,
        end: Zxid,
        visit: &mut dyn FnMut(SnapshotItem<'_>) -> bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<SnapshotInfo> {
        let file = self.file(end)?;
        read_items(&file, visit, progress)?;
        Ok(file.info)
    }

    /// Makes the tree that the snapshot is at its end. All is checked, its digest, too.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn load(&self, end: Zxid, progress: &mut dyn FnMut(Progress)) -> Result<(DataTree, SnapshotInfo)> {
        load(&self.file(end)?, &mut |at| {
            progress(Progress { done_bytes: at.done_bytes, total_bytes: at.total_bytes });
        })
    }

    fn file(&self, end: Zxid) -> Result<SnapshotFile> {
        let name = snapshot_name(end);
        let file = self.disk.open(&name, OpenMode::Read).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt("snapshot_missing", "the snapshot is missing").in_file(&name)
            }
            _ => Error::io("open a snapshot", e).in_file(&name),
        })?;
        match self.database_id {
            Some(id) => SnapshotFile::open_named(file, end, id, Numbering::Zxid),
            None => SnapshotFile::open_any_named(file, end),
        }
    }
}
