use std::path::Path;

use super::{Directory, SnapshotDirectory};
use crate::base::{Epoch, Error, ErrorKind, Result};
use crate::engine::{Directories, FOUNDING_MARK_NAME, Home, ManifestFile, Room, unfinished};
use crate::format::{DatabaseId, ENGINE_MANIFEST_NAME, ENGINE_MANIFEST_TEMP_NAME, EngineManifest, LOCK_NAME};
use crate::io::{DirEntry, EntryKind};

/// The directory of an engine, to look at: manifest, generations, what is in them, and what does not belong there.
#[derive(Debug)]
pub struct EngineDirectory {
    home: Directories,
}

/// The manifest at the top of an engine's directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EngineManifestState {
    /// It can be read.
    Present(EngineManifestInfo),
    /// There is none.
    Missing,
    /// It is damaged, no regular file, or of a newer version.
    Unreadable(Error),
}

/// What an engine's manifest says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EngineManifestInfo {
    /// The identity of the database.
    pub database_id: DatabaseId,
    /// Counts the manifests of the directory.
    pub version: u64,
    /// The newest epoch that was promised to a leader.
    pub accepted_epoch: Epoch,
    /// Which log and snapshots are in use.
    pub generation: u64,
    /// The generation that is being built or was replaced; the next open removes it.
    pub spare: Option<u64>,
    /// Whether the generation in use was opened once: from then on its directories must be there.
    pub established: bool,
}

/// What a name at the top of an engine's directory is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EngineName {
    /// The manifest.
    Manifest,
    /// A manifest that was being written: of no use.
    ManifestTemp,
    /// The mark of an import or a restore: beside no manifest, it was cut off, and the next attempt begins anew.
    Founding,
    /// Held by the process that has the engine open.
    Lock,
    /// The log of a generation.
    Log(u64),
    /// The snapshots of a generation.
    Snapshots(u64),
    /// Not arborlog's. Never read, never changed.
    Foreign,
}

impl EngineDirectory {
    /// Opens the directory, with its log in another one if the server has it there. Reads nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it is no directory or may not be read.
    pub fn open(dir: impl AsRef<Path>, log_dir: Option<&Path>) -> Result<EngineDirectory> {
        Ok(EngineDirectory { home: Directories::open_to_read(dir.as_ref(), log_dir)? })
    }

    /// The manifest alone: one small file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]. That it is damaged is an answer.
    pub fn manifest(&self) -> Result<EngineManifestState> {
        match ManifestFile::read(&self.home.root()) {
            Ok(Some(manifest)) => Ok(EngineManifestState::Present(EngineManifestInfo::of(manifest.get()))),
            Ok(None) => Ok(EngineManifestState::Missing),
            Err(error) if error.kind() == ErrorKind::Io && !self.is_no_file(ENGINE_MANIFEST_NAME)? => {
                Err(error)
            }
            Err(error) => Ok(EngineManifestState::Unreadable(error)),
        }
    }

    /// What there is to say of a directory without a manifest, if an import or a restore into it was cut off.
    pub(super) fn unfinished(&self) -> Result<Option<Error>> {
        unfinished(self.home.root().as_ref())
    }

    fn is_no_file(&self, name: &str) -> Result<bool> {
        let entries = self.home.root().list().map_err(|e| Error::io("list a directory", e))?;
        Ok(entries.iter().any(|entry| entry.name == name && entry.kind != EntryKind::File))
    }

    /// The generations of which there is a log or a snapshots' directory, the oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn generations(&self) -> Result<Vec<u64>> {
        self.home.generations()
    }

    /// Whether there is anything of an engine: its manifest, or a generation.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn holds_engine(&self) -> Result<bool> {
        let is_ours = |what: &EngineName| !matches!(what, EngineName::Foreign | EngineName::Lock);
        Ok(self.names()?.iter().any(|(_, what)| is_ours(what)) || !self.generations()?.is_empty())
    }

    /// All names at the top, sorted.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn names(&self) -> Result<Vec<(String, EngineName)>> {
        let entries = self.home.root().list().map_err(|e| Error::io("list a directory", e))?;
        let mut names: Vec<_> =
            entries.into_iter().map(|entry| (EngineName::of(&entry.name), entry.name)).collect();
        names.sort_by(|a, b| a.1.cmp(&b.1));
        Ok(names.into_iter().map(|(what, name)| (name, what)).collect())
    }

    /// Names at which files of the engine belong, and where something else stands: it keeps the engine from being
    /// opened, or its manifest from being changed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn misplaced(&self) -> Result<Vec<String>> {
        let entries = self.home.root().list().map_err(|e| Error::io("list a directory", e))?;
        let is_file = |what| matches!(what, EngineName::Lock | EngineName::ManifestTemp);
        let misplaced = |e: &DirEntry| e.kind != EntryKind::File && is_file(EngineName::of(&e.name));
        let mut names: Vec<_> = entries.into_iter().filter(misplaced).map(|entry| entry.name).collect();
        names.sort();
        Ok(names)
    }

    /// The log of a generation; none if its directory is not there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn log(&self, generation: u64) -> Result<Option<Directory>> {
        Ok(self.home.room_if_there(Room::Log, generation)?.map(Directory::on))
    }

    /// The snapshots of a generation, which are this database's if `manifest` says so; none if their directory is not
    /// there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn snapshots(
        &self,
        generation: u64,
        manifest: Option<&EngineManifestInfo>,
    ) -> Result<Option<SnapshotDirectory>> {
        let disk = self.home.room_if_there(Room::Snapshots, generation)?;
        Ok(disk.map(|disk| SnapshotDirectory::of_engine(disk, manifest)))
    }
}

impl EngineManifestInfo {
    fn of(manifest: EngineManifest) -> EngineManifestInfo {
        let EngineManifest { database_id, version, accepted, generation, spare, established } = manifest;
        let spare = (spare != 0).then_some(spare);
        EngineManifestInfo { database_id, version, accepted_epoch: accepted, generation, spare, established }
    }
}

impl EngineName {
    fn of(name: &str) -> EngineName {
        match name {
            ENGINE_MANIFEST_NAME => EngineName::Manifest,
            ENGINE_MANIFEST_TEMP_NAME => EngineName::ManifestTemp,
            LOCK_NAME => EngineName::Lock,
            FOUNDING_MARK_NAME => EngineName::Founding,
            _ => Room::Log
                .generation(name)
                .map(EngineName::Log)
                .or_else(|| Room::Snapshots.generation(name).map(EngineName::Snapshots))
                .unwrap_or(EngineName::Foreign),
        }
    }
}
