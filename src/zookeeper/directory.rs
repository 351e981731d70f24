use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bytes::OnDisk;
use super::compression::Compression;
use super::log_file::LogFile;
use super::report::{Finding, FindingKind};
use super::snapshot_file::SnapshotFile;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::engine::place;
use crate::io::{Disk, EntryKind, File, OpenMode, names_in, open_dir_to_read};

/// Where servers keep their files, below the directory that they are told.
pub(super) const VERSION_DIR: &str = "version-2";
/// Files that are no snapshots and logs, and that servers keep.
const OTHER_NAMES: &[&str] = &["currentEpoch", "acceptedEpoch", "updatingEpoch", "myid", "initialize"];
/// Files of the last leader's epoch, and of the newest one that was promised.
const EPOCH_NAMES: [&str; 2] = ["currentEpoch", "acceptedEpoch"];
/// Longer epoch files are none.
const EPOCH_BYTES_MAX: usize = 32;

/// A snapshot or a log by its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct NamedFile {
    /// The zxid in its name: of a log, that of its first txn; of a snapshot, that of the last one before it.
    pub zxid: Zxid,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len_bytes: u64,
}

/// The data of a ZooKeeper server, read only. Snapshots and logs may stand in two places.
#[derive(Debug)]
pub struct ZkDirectory {
    /// Where the snapshots are, and where the logs are.
    dirs: [PathBuf; 2],
    snapshot_disk: Arc<dyn Disk>,
    log_disk: Arc<dyn Disk>,
    snapshots: Vec<NamedFile>,
    logs: Vec<NamedFile>,
    /// Those of them, and of the epochs' files, that are no regular files. They are never opened: whoever writes to a
    /// pipe would go on.
    irregular: Vec<String>,
    /// currentEpoch and acceptedEpoch.
    epochs: [Option<Epoch>; 2],
    /// The first of the files that tells no epoch, though it is there.
    bad_epoch: Option<String>,
    findings: Vec<Finding>,
}

impl ZkDirectory {
    /// Lists the files. `data` is a server's `dataDir` or the `version-2` in it; `log` its `dataLogDir`, if it has one.
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`]: a log, a snapshot or an epoch's file by its name is no regular file.
    /// - [`ErrorKind::Io`].
    pub fn open(data: &Path, log: Option<&Path>) -> Result<ZkDirectory> {
        let mut directory = ZkDirectory::list_both(data, log)?;
        if let Some(name) = directory.irregular.first() {
            // A server follows a link. To leave it out would be to lose what it leads to.
            return Err(irregular().in_file(name));
        }
        for (at, name) in EPOCH_NAMES.into_iter().enumerate() {
            directory.epochs[at] = directory.epoch(name)?;
        }
        Ok(directory)
    }

    /// As [`open`](ZkDirectory::open), for who looks at each file by itself: a log or a snapshot by its name that is no
    /// regular file is listed as well, and it is [`open_log`](ZkDirectory::open_log) or
    /// [`open_snapshot`](ZkDirectory::open_snapshot) that refuses it. An epoch's file that cannot be read is a finding;
    /// of one that is no regular file, [`irregular_epochs`](ZkDirectory::irregular_epochs) tells.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: a directory cannot be listed.
    pub fn survey(data: &Path, log: Option<&Path>) -> Result<ZkDirectory> {
        let mut directory = ZkDirectory::list_both(data, log)?;
        for (at, name) in EPOCH_NAMES.into_iter().enumerate() {
            directory.epochs[at] = directory.epoch(name).unwrap_or_else(|error| {
                directory.bad_epoch.get_or_insert_with(|| name.to_owned());
                directory.findings.push(Finding::of_error(FindingKind::Epoch, &error));
                None
            });
        }
        Ok(directory)
    }

    fn list_both(data: &Path, log: Option<&Path>) -> Result<ZkDirectory> {
        let data_dir = versioned(data)?;
        let mut log_dir = log.map_or_else(|| Ok(data_dir.clone()), versioned)?;
        // A server's configuration may have two names for it.
        if place(&log_dir)? == place(&data_dir)? {
            log_dir.clone_from(&data_dir);
        }
        let snapshot_disk = open(&data_dir)?;
        let log_disk = if log_dir == data_dir { snapshot_disk.clone() } else { open(&log_dir)? };
        let mut directory = ZkDirectory {
            snapshots: Vec::new(),
            logs: Vec::new(),
            irregular: Vec::new(),
            epochs: [None; 2],
            bad_epoch: None,
            findings: Vec::new(),
            snapshot_disk,
            log_disk,
            dirs: [data_dir, log_dir],
        };
        let one_place = directory.dirs[0] == directory.dirs[1];
        directory.list(&directory.snapshot_disk.clone(), true, one_place)?;
        if !one_place {
            directory.list(&directory.log_disk.clone(), false, true)?;
        }
        directory.snapshots.sort();
        directory.logs.sort();
        Ok(directory)
    }

    fn list(&mut self, disk: &Arc<dyn Disk>, for_snapshots: bool, for_logs: bool) -> Result<()> {
        let dir = &self.dirs[usize::from(!for_snapshots)];
        let wrap = |e| Error::io("list a directory", e).in_file(&dir.display().to_string());
        let mut entries = disk.list().map_err(wrap)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            let name = entry.name;
            let (is_file, len_bytes) = (entry.kind == EntryKind::File, entry.len);
            let log = log_zxid(&name).filter(|_| for_logs);
            let snapshot = snapshot_zxid(&name).filter(|_| for_snapshots).map(|(zxid, _)| zxid);
            let is_epoch = for_snapshots && EPOCH_NAMES.contains(&name.as_str());
            if !is_file && (is_epoch || log.or(snapshot).is_some()) {
                self.irregular.push(name.clone());
            }
            if let Some(zxid) = log {
                self.logs.push(NamedFile { zxid, name, len_bytes });
            } else if let Some(zxid) = snapshot {
                self.snapshots.push(NamedFile { zxid, name, len_bytes });
            } else if name.starts_with("log.") || name.starts_with("snapshot.") {
                // A server takes `log.5.bak` for a log, and one with a zxid in capitals.
                let what =
                    "not read: the name is none that a server gives here, though it may take it for one";
                self.findings.push(Finding::new(FindingKind::ForeignFile, what).in_file(&name));
            } else if !OTHER_NAMES.contains(&name.as_str()) && is_file {
                self.findings
                    .push(Finding::new(FindingKind::ForeignFile, "no file of a server's").in_file(&name));
            }
        }
        Ok(())
    }

    fn epoch(&mut self, name: &str) -> Result<Option<Epoch>> {
        self.check_regular(name)?;
        let wrap = |e| Error::io("read an epoch", e).in_file(name);
        let file = match self.snapshot_disk.open(name, OpenMode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(not_opened(e, name, "read an epoch")),
        };
        let mut bytes = [0; EPOCH_BYTES_MAX + 1];
        let len = file.read_at(0, &mut bytes).map_err(wrap)?;
        let text = bytes.get(..len).filter(|_| len <= EPOCH_BYTES_MAX).map_or(Ok(""), std::str::from_utf8);
        let text = text.unwrap_or("").lines().next().unwrap_or("").trim();
        // An epoch of ZooKeeper's has 31 bits: the zxid has a sign.
        let epoch = text.parse::<i32>().ok().and_then(|epoch| u32::try_from(epoch).ok());
        let epoch = epoch.map(|epoch| Epoch::new(epoch.into()));
        if epoch.is_none() {
            self.bad_epoch.get_or_insert_with(|| name.to_owned());
            self.findings.push(Finding::new(FindingKind::Epoch, "it tells no epoch").in_file(name));
        }
        Ok(epoch)
    }

    /// Where the snapshots are: the directory that was given, or the `version-2` in it.
    pub fn dir(&self) -> &Path {
        &self.dirs[0]
    }

    /// Where the logs are.
    pub fn log_dir(&self) -> &Path {
        &self.dirs[1]
    }

    /// The snapshots, in the order of their zxids.
    pub fn snapshots(&self) -> &[NamedFile] {
        &self.snapshots
    }

    /// The logs, in the order of their zxids.
    pub fn logs(&self) -> &[NamedFile] {
        &self.logs
    }

    /// The epoch of the last leader that the server followed, if it was one of an ensemble.
    pub fn current_epoch(&self) -> Option<Epoch> {
        self.epochs[0]
    }

    /// The newest epoch whose leader it was promised to.
    pub fn accepted_epoch(&self) -> Option<Epoch> {
        self.epochs[1]
    }

    /// The name of an epoch's file that tells none.
    pub(super) fn bad_epoch(&self) -> Option<&str> {
        self.bad_epoch.as_deref()
    }

    /// For each epoch's file that is no regular file, the error that says so.
    pub fn irregular_epochs(&self) -> impl Iterator<Item = Error> {
        EPOCH_NAMES.into_iter().filter_map(|name| self.check_regular(name).err())
    }

    /// What is odd about the files by their names.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Opens a log.
    ///
    /// # Errors
    /// As [`LogFile::open`].
    pub fn open_log(&self, name: &str, limit: u32) -> Result<LogFile<OnDisk>> {
        self.check_regular(name)?;
        LogFile::new(OnDisk(open_file(self.log_disk.as_ref(), name, "open a log")?), name, limit)
    }

    /// Opens a snapshot.
    ///
    /// # Errors
    /// As [`SnapshotFile::open`].
    pub fn open_snapshot(&self, name: &str, limit: u32) -> Result<SnapshotFile<OnDisk>> {
        self.check_regular(name)?;
        let file = open_file(self.snapshot_disk.as_ref(), name, "open a snapshot")?;
        let compression = snapshot_zxid(name).map_or(Compression::None, |(_, compression)| compression);
        SnapshotFile::new(OnDisk(file), name, compression, limit)
    }

    fn check_regular(&self, name: &str) -> Result<()> {
        if self.irregular.iter().any(|irregular| irregular == name) {
            return Err(irregular().in_file(name));
        }
        Ok(())
    }
}

impl LogFile<OnDisk> {
    /// Opens the log at `path`, wherever that is. `limit` as in [`new`](LogFile::new).
    ///
    /// # Errors
    /// - As [`new`](LogFile::new).
    /// - [`ErrorKind::Invalid`]: it is no regular file; links are not followed.
    pub fn open(path: &Path, limit: u32) -> Result<LogFile<OnDisk>> {
        let (file, name) = open_path(path)?;
        LogFile::new(OnDisk(file), &name, limit)
    }
}

impl SnapshotFile<OnDisk> {
    /// Opens the snapshot at `path`, wherever that is; its name tells how it is compressed. `limit` as in
    /// [`new`](SnapshotFile::new).
    ///
    /// # Errors
    /// - As [`new`](SnapshotFile::new).
    /// - [`ErrorKind::Invalid`]: it is no regular file; links are not followed.
    pub fn open(path: &Path, limit: u32) -> Result<SnapshotFile<OnDisk>> {
        let (file, name) = open_path(path)?;
        let compression = if name.ends_with(".gz") {
            Compression::Gz
        } else if name.ends_with(".snappy") {
            Compression::Snappy
        } else {
            Compression::None
        };
        SnapshotFile::new(OnDisk(file), &name, compression, limit)
    }
}

/// The file at a path, and its name.
fn open_path(path: &Path) -> Result<(Arc<dyn File>, String)> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let disk = open(above.unwrap_or(Path::new(".")))?;
    Ok((open_file(disk.as_ref(), name, "open a file")?, name.to_owned()))
}

fn open_file(disk: &dyn Disk, name: &str, doing: &str) -> Result<Arc<dyn File>> {
    disk.open(name, OpenMode::Read).map_err(|e| not_opened(e, name, doing))
}

fn not_opened(e: std::io::Error, name: &str, doing: &str) -> Error {
    // The disk says so of what is no regular file, and of what is no name.
    let is_irregular = e.kind() == std::io::ErrorKind::InvalidInput && !name.is_empty();
    let error = if is_irregular { irregular() } else { Error::io(doing, e) };
    error.in_file(name)
}

fn irregular() -> Error {
    let why = "it is no regular file, and links are not followed".to_owned();
    Error::new(ErrorKind::Invalid, "zk_irregular", why)
}

fn open(path: &Path) -> Result<Arc<dyn Disk>> {
    open_dir_to_read(path).map_err(|e| Error::io("open a directory", e).in_file(&path.display().to_string()))
}

/// The directory itself, or the one in it that has the files.
fn versioned(path: &Path) -> Result<PathBuf> {
    let names =
        names_in(path).map_err(|e| Error::io("list a directory", e).in_file(&path.display().to_string()))?;
    Ok(if names.iter().any(|name| name == VERSION_DIR) { path.join(VERSION_DIR) } else { path.to_owned() })
}

/// The zxid of a log's name: `log.` and lower-case digits of base 16 without a zero before them.
pub(super) fn log_zxid(name: &str) -> Option<Zxid> {
    zxid(name.strip_prefix("log.")?)
}

/// The zxid of a snapshot's name, and how it is compressed.
pub(super) fn snapshot_zxid(name: &str) -> Option<(Zxid, Compression)> {
    let rest = name.strip_prefix("snapshot.")?;
    let (digits, compression) = match rest.split_once('.') {
        None => (rest, Compression::None),
        Some((digits, "gz")) => (digits, Compression::Gz),
        Some((digits, "snappy")) => (digits, Compression::Snappy),
        Some(_) => return None,
    };
    Some((zxid(digits)?, compression))
}

fn zxid(digits: &str) -> Option<Zxid> {
    // Servers read a signed number.
    let raw = i64::from_str_radix(digits, 16).ok().filter(|raw| format!("{raw:x}") == digits)?;
    u64::try_from(raw).ok().map(Zxid::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        assert_eq!(log_zxid("log.1f"), Some(Zxid::new(0x1f)));
        assert_eq!(snapshot_zxid("snapshot.0"), Some((Zxid::ZERO, Compression::None)));
        assert_eq!(snapshot_zxid("snapshot.a.gz"), Some((Zxid::new(10), Compression::Gz)));
        assert_eq!(snapshot_zxid("snapshot.a.snappy"), Some((Zxid::new(10), Compression::Snappy)));
        for other in ["log.1F", "log.01", "log.+1", "log.-1", "log.", "log.5.bak", "log.8000000000000000"] {
            assert_eq!(log_zxid(other), None, "{other}");
        }
        for other in ["snapshot.5.tmp", "snapshot.5.gz.tmp", "snapshot.", "snapshots.1"] {
            assert_eq!(snapshot_zxid(other), None, "{other}");
        }
    }
}
