use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::{Epoch, Error, Result};
use crate::format::{
    ENGINE_MANIFEST_BYTES_MAX, ENGINE_MANIFEST_NAME, ENGINE_MANIFEST_TEMP_NAME, EngineManifest,
};
use crate::io::{Disk, OpenMode, replace_file};

/// The manifest at the top of an engine's directory, and the one way to change it.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    disk: Arc<dyn Disk>,
    held: Mutex<EngineManifest>,
    /// The accepted epoch of `held`, for everyone to see without the lock.
    accepted: AtomicU64,
}

impl ManifestFile {
    /// Reads it; none if there is none.
    pub(crate) fn read(disk: &Arc<dyn Disk>) -> Result<Option<ManifestFile>> {
        let wrap = |e| Error::io("read the engine's manifest", e).in_file(ENGINE_MANIFEST_NAME);
        let file = match disk.open(ENGINE_MANIFEST_NAME, OpenMode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
                return Err(not_a_file(ENGINE_MANIFEST_NAME));
            }
            Err(e) => return Err(wrap(e)),
        };
        // One byte more than may be: a longer file does not end where its checksum is.
        let mut bytes = vec![0; ENGINE_MANIFEST_BYTES_MAX + 1];
        let read = file.read_at(0, &mut bytes).map_err(wrap)?;
        let manifest = EngineManifest::decode(&bytes[..read]).map_err(|e| e.in_file(ENGINE_MANIFEST_NAME))?;
        Ok(Some(ManifestFile::holding(disk, manifest)))
    }

    /// Writes the first one.
    pub(crate) fn create(disk: &Arc<dyn Disk>, manifest: EngineManifest) -> Result<ManifestFile> {
        write(disk.as_ref(), &manifest)?;
        Ok(ManifestFile::holding(disk, manifest))
    }

    fn holding(disk: &Arc<dyn Disk>, manifest: EngineManifest) -> ManifestFile {
        let accepted = AtomicU64::new(manifest.accepted.get());
        ManifestFile { disk: disk.clone(), held: Mutex::new(manifest), accepted }
    }

    /// The newest epoch that was accepted, durably.
    pub(crate) fn accepted(&self) -> Epoch {
        Epoch::new(self.accepted.load(Ordering::Acquire))
    }

    pub(crate) fn get(&self) -> EngineManifest {
        *self.held.lock()
    }

    /// Replaces it by what `change` makes of it; it is durable when this returns. After an error the old one or the
    /// new one stands on disk.
    pub(crate) fn commit(&self, change: impl FnOnce(&mut EngineManifest)) -> Result<EngineManifest> {
        let mut held = self.held.lock();
        let mut next = *held;
        change(&mut next);
        next.version += 1;
        write(self.disk.as_ref(), &next)?;
        *held = next;
        self.accepted.store(next.accepted.get(), Ordering::Release);
        Ok(next)
    }
}

fn not_a_file(name: &str) -> Error {
    Error::corrupt("not_a_file", "the engine's manifest belongs here, and this is no regular file")
        .in_file(name)
}

fn write(disk: &dyn Disk, manifest: &EngineManifest) -> Result<()> {
    let wrap = |e| Error::io("write the engine's manifest", e).in_file(ENGINE_MANIFEST_TEMP_NAME);
    match disk.remove(ENGINE_MANIFEST_TEMP_NAME) {
        Err(e) if e.kind() == std::io::ErrorKind::IsADirectory => {
            return Err(not_a_file(ENGINE_MANIFEST_TEMP_NAME));
        }
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(wrap(e)),
        _ => {}
    }
    let names = (ENGINE_MANIFEST_TEMP_NAME, ENGINE_MANIFEST_NAME);
    let synced = !crate::planted("engine_manifest_unsynced");
    replace_file(disk, names, manifest.encode().as_bytes(), synced).map_err(wrap)?;
    disk.sync_dir().map_err(wrap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::format::DatabaseId;
    use crate::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};

    fn created(disk: &SimDisk) -> ManifestFile {
        let first = EngineManifest {
            database_id: DatabaseId::from_bytes([7; 16]),
            version: 1,
            accepted: Epoch::ZERO,
            generation: 1,
            spare: 0,
            established: false,
        };
        ManifestFile::create(&disk.handle(), first).unwrap()
    }

    #[test]
    fn each_change_has_a_version_of_its_own_and_one_that_failed_is_none() {
        let disk = SimDisk::new(1);
        let manifest = created(&disk);
        let changed = manifest.commit(|manifest| manifest.spare = 4).unwrap();
        assert_eq!((changed.version, changed.spare), (2, 4));
        for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename] {
            disk.inject(Fault::next(op, Effect::EIO).on(NamePattern::Any));
            let error = manifest.commit(|manifest| manifest.generation = 9).unwrap_err();
            assert_eq!((error.kind(), manifest.get()), (ErrorKind::Io, changed), "{op:?}");
        }
        assert_eq!(manifest.commit(|manifest| manifest.spare = 5).unwrap().version, 3);
        let read = ManifestFile::read(&disk.handle()).unwrap().unwrap();
        assert_eq!(read.get(), manifest.get());
    }

    #[test]
    fn what_cannot_be_cleared_away_is_told() {
        let disk = SimDisk::new(1);
        let manifest = created(&disk);
        let temp = NamePattern::Exact(ENGINE_MANIFEST_TEMP_NAME.into());
        disk.inject(Fault::next(FaultOp::Remove, Effect::EIO).on(temp));
        assert_eq!(manifest.commit(|manifest| manifest.spare = 4).unwrap_err().kind(), ErrorKind::Io);
    }
}
