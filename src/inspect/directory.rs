use std::path::Path;
use std::sync::Arc;

use super::state::read_manifest_state;
use super::{Examination, ManifestInfo, ManifestState, RecordStream, Selection};
use crate::base::{Error, Result};
use crate::format::Name;
use crate::io::Disk;
use crate::log::directory::open_log_dir_to_read;

/// The directory of a log, to look at.
#[derive(Debug)]
pub struct Directory {
    disk: Arc<dyn Disk>,
}

/// How far a long look has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that were read.
    pub done_bytes: u64,
    /// Bytes to read in all, as far as is known; a live log grows meanwhile.
    pub total_bytes: u64,
}

impl Directory {
    /// A directory that is open already.
    pub(super) fn on(disk: Arc<dyn Disk>) -> Directory {
        Directory { disk }
    }

    /// Opens the directory. Reads nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it is no directory or may not be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Directory> {
        Ok(Directory { disk: open_log_dir_to_read(dir.as_ref())? })
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The directory of a simulated disk.
    #[cfg(any(test, feature = "sim"))]
    pub fn open_sim(disk: &crate::sim::SimDisk) -> Directory {
        Directory { disk: disk.handle() }
    }

    /// The manifest alone: one small file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io). That it is damaged is an answer.
    pub fn manifest(&self) -> Result<ManifestState> {
        Ok(match read_manifest_state(self.disk.as_ref())? {
            Ok(Some(manifest)) => ManifestState::Present(ManifestInfo::of(&manifest)),
            Ok(None) => ManifestState::Missing,
            Err(error) => ManifestState::Unreadable(error),
        })
    }

    /// Whether there is anything of a log, or of what a log leaves behind: its manifest, a segment, part of either.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be listed.
    pub fn holds_log(&self) -> Result<bool> {
        let entries = self.disk.list().map_err(|e| Error::io("list the log's directory", e))?;
        Ok(entries.iter().any(|entry| !matches!(Name::parse(&entry.name), Name::Foreign | Name::Lock)))
    }

    /// Reads every byte, and judges the log as opening it would. Memory is bounded by the largest group.
    /// `progress` is called after each file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if something cannot be read. Damage is an answer.
    pub fn examine(&self, progress: &mut dyn FnMut(Progress)) -> Result<Examination> {
        Examination::of(&self.disk, progress)
    }

    /// The records of the log in their order, and damage where it stands. What lies behind a torn end is left
    /// out, as opening would leave it out. Memory is bounded by the largest group.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if something cannot be read; with the code `no_log` if there is no log.
    pub fn records(&self, selection: &Selection) -> Result<RecordStream> {
        RecordStream::new(self.disk.clone(), selection.clone())
    }
}
