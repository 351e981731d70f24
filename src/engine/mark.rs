use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::home::{Home, Room};
use super::options::EngineOptions;
use crate::base::{Error, ErrorKind, Result};
use crate::format::DatabaseId;
use crate::io::{Disk, OpenMode, names_in};
use crate::log::read_manifest;

/// Stands in the directory while an engine is made in it: what else is there then is half of one.
pub(crate) const MARK_NAME: &str = "founding.partial";
/// More than the longest path of a system, so that a longer one is another one.
const PLACE_BYTES_MAX: usize = 8192;
/// The hexadecimal digits of the database's id, before the place.
const ID_BYTES: usize = 32;

/// What an attempt to make an engine says of itself before it makes anything else: the database, and where its log is to
/// be. The next attempt may remove that log, and nothing anywhere else: it may be that of another engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    /// None of a mark that was cut off: nothing else was made then.
    pub(super) database_id: Option<DatabaseId>,
    /// The absolute path of the log's directory; empty if it is the engine's own.
    pub(super) place: Vec<u8>,
}

/// Where the log of the new engine is to be, as a mark tells it.
pub(super) fn place_of(options: &EngineOptions) -> Vec<u8> {
    let Some(dir) = &options.log_dir else { return Vec::new() };
    // Of a path that cannot be made absolute, it is the path.
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    dir.into_os_string().into_encoded_bytes()
}

impl Mark {
    /// The one that stands in the directory, if there is one.
    pub(super) fn read(root: &dyn Disk) -> Result<Option<Mark>> {
        let wrap = |e| Error::io("read the mark", e).in_file(MARK_NAME);
        let file = match root.open(MARK_NAME, OpenMode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(wrap(e)),
        };
        let mut bytes = vec![0; ID_BYTES + PLACE_BYTES_MAX];
        let len = file.read_at(0, &mut bytes).map_err(wrap)?;
        bytes.truncate(len);
        Ok(Some(Mark::decode(&bytes).unwrap_or(Mark { database_id: None, place: Vec::new() })))
    }

    fn decode(bytes: &[u8]) -> Option<Mark> {
        let (digits, place) = bytes.strip_suffix(b"\n")?.split_at_checked(ID_BYTES)?;
        let database_id = DatabaseId::parse(std::str::from_utf8(digits).ok()?)?;
        Some(Mark { database_id: Some(database_id), place: place.to_vec() })
    }

    /// Writes it, before anything else is made; one that is there is the same.
    pub(super) fn write(&self, root: &dyn Disk) -> std::io::Result<()> {
        match root.open(MARK_NAME, OpenMode::CreateNew { direct: false }) {
            Ok(file) => {
                file.write_all_at(0, &self.bytes())?;
                file.sync()?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
        root.sync_dir()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.database_id.map_or_else(Vec::new, |id| id.to_string().into_bytes());
        bytes.extend_from_slice(&self.place);
        bytes.push(b'\n');
        bytes
    }

    pub(super) fn dir(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.place))
    }

    /// Refuses to leave behind, or to take for its own, the log of an attempt that was to have it in another place.
    pub(super) fn check_left_log(&self, number: u64, has_log: bool) -> Result<()> {
        let log = Room::Log.name(number);
        let is_left = if self.place.is_empty() {
            has_log
        } else {
            let names = names_in(self.dir())
                .map_err(|e| Error::io("list a directory", e).in_file(&self.dir().display().to_string()));
            names?.contains(&log)
        };
        if !is_left {
            return Ok(());
        }
        let why = format!(
            "an attempt that was cut off has left {}: have the log in the same directory as it, or remove that first",
            self.dir().join(log).display()
        );
        Err(Error::new(ErrorKind::Invalid, "restore_not_empty", why))
    }

    /// Refuses to remove a log that this attempt has not begun: another engine's may have come in its place since.
    pub(super) fn check_own_log(&self, home: &dyn Home, number: u64) -> Result<()> {
        let Some(log) = home.room_if_there(Room::Log, number)? else { return Ok(()) };
        // Without a manifest, or with half of one, it is nobody's yet.
        let Ok(Some(manifest)) = read_manifest(log.as_ref()) else { return Ok(()) };
        if self.database_id == Some(manifest.database_id) {
            return Ok(());
        }
        let why = format!(
            "{} is the log of database {}, which the attempt that was cut off has not begun: give the new engine another \
             --log-dir, or remove it if you know it to be nobody's",
            self.dir().join(Room::Log.name(number)).display(),
            manifest.database_id
        );
        Err(Error::new(ErrorKind::Invalid, "restore_not_empty", why))
    }
}
