use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::{Error, ErrorKind, Result, limits};
use crate::format::{
    LOCK_NAME, MANIFEST_NAME, MANIFEST_TEMP_NAME, Manifest, Name, RESERVE_NAME, segment_name,
};
use crate::io::{BackendChoice, Disk, File, Lock, OpenMode, open_dir, open_dir_to_read, replace_file};
use crate::log::segment_file::without_hole;

/// The directory of a log: its manifest, and the one way to change it.
#[derive(Debug)]
pub(crate) struct LogDirectory {
    disk: Arc<dyn Disk>,
    manifest: Mutex<Manifest>,
}

impl LogDirectory {
    pub(crate) fn new(disk: Arc<dyn Disk>, manifest: Manifest) -> LogDirectory {
        LogDirectory { disk, manifest: Mutex::new(manifest) }
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(crate) fn manifest(&self) -> Manifest {
        self.manifest.lock().clone()
    }

    /// Keeps all changes waiting.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> parking_lot::MutexGuard<'_, Manifest> {
        self.manifest.lock()
    }

    /// Replaces the manifest by what `change` makes of it, in one step. After an error the old one or the
    /// new one stands on disk; what memory holds is the old one, and the caller must not go on as if the
    /// change had failed: it poisons the log.
    pub(crate) fn commit(&self, change: impl FnOnce(&mut Manifest)) -> Result<Manifest> {
        let mut held = self.manifest.lock();
        let mut next = held.clone();
        change(&mut next);
        next.version += 1;
        write_manifest(&self.disk, &next)?;
        *held = next.clone();
        Ok(next)
    }
}

#[cfg(test)]
impl crate::log::Log {
    /// Keeps all changes of the manifest waiting.
    pub(crate) fn hold_manifest(&self) -> parking_lot::MutexGuard<'_, Manifest> {
        self.shared.directory.hold()
    }
}

/// Opens a log's directory to write in it.
pub(crate) fn open_log_dir(dir: &Path, backend: BackendChoice) -> Result<Arc<dyn Disk>> {
    open_dir(dir, backend).map_err(|e| unopened(dir, e))
}

/// Opens a log's directory of which not one byte is to change.
pub(crate) fn open_log_dir_to_read(dir: &Path) -> Result<Arc<dyn Disk>> {
    open_dir_to_read(dir).map_err(|e| unopened(dir, e))
}

fn unopened(dir: &Path, error: std::io::Error) -> Error {
    Error::io("open the log's directory", error).in_file(&dir.display().to_string())
}

/// Takes the directory.
pub(crate) fn take_lock(disk: &dyn Disk) -> Result<Box<dyn Lock>> {
    disk.lock(LOCK_NAME).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, "locked", format!("the log is open elsewhere: {e}"))
                .in_file(LOCK_NAME)
        }
        _ => Error::io("lock the log's directory", e).in_file(LOCK_NAME),
    })
}

/// Takes the directory for a change that may be refused. A refused one leaves nothing behind, and no lock file
/// either: where there is none yet, nobody has the log open, and `rehearse` tells whether it will be refused.
pub(crate) fn take_lock_unless(
    disk: &dyn Disk,
    rehearse: impl FnOnce() -> Result<()>,
) -> Result<Box<dyn Lock>> {
    let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    if !entries.iter().any(|entry| entry.name == LOCK_NAME) {
        rehearse()?;
    }
    take_lock(disk)
}

/// Refuses a directory that holds nothing of a log, where there has to be one: before a lock is made in it.
pub(crate) fn check_exists(disk: &dyn Disk) -> Result<()> {
    let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    if entries.iter().all(|entry| matches!(Name::parse(&entry.name), Name::Foreign | Name::Lock)) {
        let why = "the directory holds no log, though there was one";
        return Err(Error::corrupt("log_missing", why).in_file(MANIFEST_NAME));
    }
    Ok(())
}

/// Reads the manifest, or `None` if there is none.
pub(crate) fn read_manifest(disk: &dyn Disk) -> Result<Option<Manifest>> {
    let wrap = |e| Error::io("read the manifest", e).in_file(MANIFEST_NAME);
    let file = match disk.open(MANIFEST_NAME, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
            return Err(
                Error::corrupt("not_a_file", "the manifest is no regular file").in_file(MANIFEST_NAME)
            );
        }
        Err(e) => return Err(wrap(e)),
    };
    let len = file.len().map_err(wrap)?;
    if len > limits::MANIFEST_BYTES_MAX {
        return Err(Error::corrupt("manifest_damaged", "the manifest is too large").in_file(MANIFEST_NAME));
    }
    let mut bytes = vec![0; usize::try_from(len).expect("bounded by 4 MiB")];
    let read = file.read_at(0, &mut bytes).map_err(wrap)?;
    Manifest::decode(&bytes[..read]).map(Some).map_err(|e| e.in_file(MANIFEST_NAME))
}

/// Writes a manifest so that a crash leaves the old one or the new one. On a full disk the reserve is given
/// up for it, so that a purge can always be made.
pub(crate) fn write_manifest(disk: &Arc<dyn Disk>, manifest: &Manifest) -> Result<()> {
    or_with_reserve(disk.as_ref(), || try_write(disk, manifest))
}

/// Does something; if the disk is full, once more in the place of the reserve.
pub(crate) fn or_with_reserve<T>(disk: &dyn Disk, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    match attempt() {
        Err(e) if e.kind() == ErrorKind::NoSpace => match disk.remove(RESERVE_NAME) {
            Ok(()) => attempt(),
            Err(_) => Err(e), // the reserve was used up before; the first error is the one to tell
        },
        done => done,
    }
}

fn try_write(disk: &Arc<dyn Disk>, manifest: &Manifest) -> Result<()> {
    let wrap = |e| Error::io("write the manifest", e).in_file(MANIFEST_TEMP_NAME);
    remove_if_there(disk.as_ref(), MANIFEST_TEMP_NAME)?;
    let synced = !crate::planted("manifest_unsynced");
    let text = manifest.encode();
    replace_file(disk.as_ref(), (MANIFEST_TEMP_NAME, MANIFEST_NAME), text.as_bytes(), synced)
        .map_err(wrap)?;
    sync_dir(disk.as_ref())
}

/// Makes the directory's names durable.
pub(crate) fn sync_dir(disk: &dyn Disk) -> Result<()> {
    if crate::planted("directory_unsynced") {
        return Ok(());
    }
    disk.sync_dir().map_err(|e| Error::io("sync the log's directory", e))
}

/// Removes a file; that it is not there is as good.
pub(crate) fn remove_if_there(disk: &dyn Disk, name: &str) -> Result<()> {
    match disk.remove(name) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("remove a file", e).in_file(name)),
    }
}

/// Sets space aside for a manifest on a full disk. Failing to is no failure of the log.
pub(crate) fn keep_reserve(disk: &dyn Disk) {
    let Ok(file) = disk.open(RESERVE_NAME, OpenMode::CreateNew { direct: false }) else { return };
    let zeros = vec![0; usize::try_from(limits::RESERVE_BYTES).expect("64 KiB")];
    if file.write_all_at(0, &zeros).and_then(|()| file.sync()).is_err() {
        // Half a reserve is none: try again at the next open.
        drop(file);
        let _best_effort = disk.remove(RESERVE_NAME);
    }
}

/// Makes a segment's content durable, whoever wrote it.
pub(crate) fn sync_segment(disk: &dyn Disk, seq: u64) -> Result<()> {
    let name = segment_name(seq);
    let wrap = |e| Error::io("sync a segment", e).in_file(&name);
    let file = disk.open(&name, OpenMode::Write { direct: false }).map_err(wrap)?;
    file.sync().map_err(wrap)
}

/// Opens an existing segment for reading. A hole that the file was stretched by is left out.
pub(crate) fn open_segment(disk: &dyn Disk, name: &str) -> Result<Arc<dyn File>> {
    disk.open(name, OpenMode::Read).and_then(without_hole).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::corrupt("segment_missing", "the segment is missing").in_file(name)
        }
        std::io::ErrorKind::InvalidInput => {
            Error::corrupt("not_a_file", "the segment is no regular file").in_file(name)
        }
        _ => Error::io("open a segment", e).in_file(name),
    })
}
