use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::{VERSION_DIR, log_zxid, snapshot_zxid};
use crate::base::{Error, ErrorKind, Result};
use crate::io::{BackendChoice, Disk, File, Lock, OpenMode, ensure_dir, names_in, open_dir, remove_dir};

/// Held while an export is at work, and then removed.
const LOCK_NAME: &str = "version-2.lock";
/// Where the files are written before they are all there.
const PARTIAL_DIR: &str = "version-2.partial";

/// A directory that is made for a ZooKeeper server: `version-2` is there when all of it is durable, and not before.
#[derive(Debug)]
pub(super) struct TargetDir {
    parent: Arc<dyn Disk>,
    disk: Arc<dyn Disk>,
    /// Where the files are, until they are published.
    partial: Option<PathBuf>,
    /// Of two exports at once, one would remove and publish the other's files.
    _lock: Box<dyn Lock>,
}

impl Drop for TargetDir {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // What was refused leaves nothing; what cannot be removed, the next export removes.
            let _ = remove_dir(partial, &is_ours);
        }
        // While it is held. One that stays is in nobody's way: a server does not look at it, the next export takes it.
        let _ = self.parent.remove(LOCK_NAME);
    }
}

impl TargetDir {
    /// Begins in `dest`, which must exist, with nothing in it but what an attempt has left that was cut off.
    pub(super) fn begin(dest: &Path) -> Result<TargetDir> {
        let wrap = |doing: &'static str| move |e| Error::io(doing, e).in_file(&dest.display().to_string());
        let parent = open_dir(dest, BackendChoice::Threads).map_err(wrap("open a directory"))?;
        let has_other = |name: &str| name != PARTIAL_DIR && name != LOCK_NAME;
        let list = || parent.list().map_err(wrap("list a directory"));
        if list()?.iter().any(|entry| has_other(&entry.name)) {
            return Err(not_empty(dest));
        }
        let lock = parent.lock(LOCK_NAME).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                let why = format!("another export is at work in {}: {e}", dest.display());
                Error::new(ErrorKind::Locked, "locked", why)
            }
            _ => wrap("lock a directory")(e),
        })?;
        // Another one may have ended meanwhile.
        if list()?.iter().any(|entry| has_other(&entry.name)) {
            return Err(not_empty(dest));
        }
        let partial = dest.join(PARTIAL_DIR);
        if let Err(refused) = check_left(dest) {
            // It was not there, and nothing else was made. One that stays is in nobody's way.
            let _ = parent.remove(LOCK_NAME);
            return Err(refused);
        }
        remove_dir(&partial, &is_ours).map_err(wrap("remove what an export has left"))?;
        // What no export left, or a link: it would get the good name.
        if list()?.iter().any(|entry| entry.name == PARTIAL_DIR) {
            return Err(not_empty(dest));
        }
        ensure_dir(&partial).map_err(wrap("create a directory"))?;
        let disk = open_dir(&partial, BackendChoice::Threads).map_err(wrap("open a directory"))?;
        Ok(TargetDir { parent, disk, partial: Some(partial), _lock: lock })
    }

    /// Tells what [`begin`](TargetDir::begin) would, without changing anything. A directory that is not there would do.
    pub(super) fn check(dest: &Path) -> Result<()> {
        let names = names_in(dest)
            .map_err(|e| Error::io("list a directory", e).in_file(&dest.display().to_string()))?;
        if names.iter().any(|name| name != PARTIAL_DIR && name != LOCK_NAME) {
            Err(not_empty(dest))
        } else {
            check_left(dest)
        }
    }

    /// Begins a file.
    pub(super) fn create(&self, name: &str) -> Result<BufWriter<FileWriter>> {
        let file = self.disk.open(name, OpenMode::CreateNew { direct: false });
        let file = file.map_err(|e| Error::io("create a file", e).in_file(name))?;
        Ok(BufWriter::with_capacity(256 * 1024, FileWriter { file, offset: 0 }))
    }

    /// Ends a file: all of it is durable, but not its name. Its length in bytes.
    pub(super) fn finish(out: BufWriter<FileWriter>) -> Result<u64> {
        let writer = out.into_inner().map_err(|e| {
            let (error, out) = e.into_parts();
            Error::io("write a file", error).in_file(out.get_ref().name())
        })?;
        writer.file.sync().map_err(|e| Error::io("sync a file", e).in_file(writer.name()))?;
        Ok(writer.offset)
    }

    /// A small file.
    pub(super) fn put(&self, name: &str, text: &str) -> Result<()> {
        let mut out = self.create(name)?;
        out.write_all(text.as_bytes()).map_err(|e| Error::io("write a file", e).in_file(name))?;
        TargetDir::finish(out).map(drop)
    }

    /// Gives the directory its name.
    pub(super) fn publish(mut self) -> Result<()> {
        let wrap = |e| Error::io("name a directory", e).in_file(VERSION_DIR);
        self.disk.sync_dir().map_err(wrap)?;
        self.parent.rename(PARTIAL_DIR, VERSION_DIR).map_err(wrap)?;
        self.partial = None;
        self.parent.sync_dir().map_err(wrap)
    }
}

fn not_empty(dest: &Path) -> Error {
    let why = format!("the directory to export to, {}, is not empty", dest.display());
    Error::new(ErrorKind::Invalid, "restore_not_empty", why)
}

/// Refuses to remove what no export has left.
fn check_left(dest: &Path) -> Result<()> {
    let partial = dest.join(PARTIAL_DIR);
    let names = names_in(&partial)
        .map_err(|e| Error::io("list a directory", e).in_file(&partial.display().to_string()))?;
    if names.iter().all(|name| is_ours(name)) { Ok(()) } else { Err(not_empty(dest)) }
}

fn is_ours(name: &str) -> bool {
    log_zxid(name).is_some()
        || snapshot_zxid(name).is_some()
        || name == "currentEpoch"
        || name == "acceptedEpoch"
}

/// A file that is written from its beginning to its end.
#[derive(Debug)]
pub(super) struct FileWriter {
    file: Arc<dyn File>,
    offset: u64,
}

impl FileWriter {
    pub(super) fn name(&self) -> &str {
        self.file.name()
    }
}

impl Write for FileWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(self.offset, buf)?;
        self.offset += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nothing_is_removed_that_no_export_has_left() {
        let dir = tempfile::tempdir().unwrap();
        let partial = dir.path().join(PARTIAL_DIR);
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("snapshot.5"), b"half").unwrap();
        fs::write(partial.join("precious"), b"mine").unwrap();
        for _ in 0..2 {
            let refused = TargetDir::begin(dir.path()).unwrap_err();
            assert_eq!(TargetDir::check(dir.path()).unwrap_err().code(), refused.code());
            assert_eq!(names_in(&partial).unwrap(), ["precious", "snapshot.5"]);
            assert_eq!(names_in(dir.path()).unwrap(), [PARTIAL_DIR]);
        }
        fs::remove_file(partial.join("precious")).unwrap();
        TargetDir::check(dir.path()).unwrap();
        TargetDir::begin(dir.path()).unwrap();
        assert!(names_in(dir.path()).unwrap().is_empty(), "given up, it leaves nothing");
    }
}
