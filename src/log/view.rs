use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Clock, Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{DatabaseId, Numbering};
use crate::io::{Disk, open_dir_to_read};
use crate::log::options::LogOptions;
use crate::log::recover::{Judgement, RecoveryReport, Survey, check_owner, judge, start_report, survey};
use crate::log::view_reader::ViewReader;

/// How often a log is looked at again that seems damaged: it may have grown under the look.
const LOOKS_MAX: usize = 6;

/// A log as it stood at one moment, to be read only.
///
/// Nothing is locked, made or changed, so it works on a full or read-only file system and beside a process
/// that has the log open. Beside such a process, it ends at some group that was whole on disk; the last of
/// these may not have been acknowledged yet. What the process purges or cuts off later can no longer be read.
pub struct LogView {
    disk: Arc<dyn Disk>,
    judged: Arc<Judgement>,
}

impl LogOptions {
    /// Looks at the log in directory `dir` without changing one byte, and verifies all of it. Of the options
    /// only [`expected_database_id`](LogOptions::expected_database_id) counts.
    ///
    /// The report tells what [`open`](LogOptions::open) would find; what it would cut or remove is not.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::Unsupported`], [`ErrorKind::WrongOwner`] as
    /// [`open`](LogOptions::open). [`ErrorKind::Io`], with the code `no_log` if there is none.
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<(LogView, RecoveryReport)> {
        let dir = dir.as_ref();
        let disk = open_dir_to_read(dir)
            .map_err(|e| Error::io("open the log's directory", e).in_file(&dir.display().to_string()))?;
        self.view_on(&disk)
    }

    /// The same on a simulated disk.
    ///
    /// # Errors
    /// As [`open_read_only`](LogOptions::open_read_only).
    #[cfg(any(test, feature = "sim"))]
    pub fn open_read_only_sim(&self, disk: &crate::sim::SimDisk) -> Result<(LogView, RecoveryReport)> {
        self.view_on(&disk.handle())
    }

    /// The same in a directory that is open already.
    pub(crate) fn view_on(&self, disk: &Arc<dyn Disk>) -> Result<(LogView, RecoveryReport)> {
        let clock = Clock::real();
        let start = clock.nanos();
        let (found, judged) = look(disk, self)?;
        let mut report = start_report(disk.as_ref(), &found, &judged);
        report.read_ns = clock.nanos() - start;
        report.total_ns = report.read_ns;
        Ok((LogView { disk: disk.clone(), judged: Arc::new(judged) }, report))
    }
}

/// Looks until what is seen is believed. A log that is being written shows things that no log at rest shows:
/// a group that was read before it came, with one behind it that claims it. Damage stays where it is, so it
/// is believed when two looks in a row find it in the same place.
fn look(disk: &Arc<dyn Disk>, options: &LogOptions) -> Result<(Survey, Judgement)> {
    let mut doubted: Option<Error> = None;
    for _ in 1..LOOKS_MAX {
        match look_once(disk, options) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let same = |e: &Error| e.code() == error.code() && e.at() == error.at();
                if doubted.as_ref().is_some_and(same) {
                    return Err(error);
                }
                doubted = Some(error);
            }
            done => return done,
        }
    }
    look_once(disk, options).map_err(|error| match error.kind() {
        // No two looks agreed: that is no damage.
        ErrorKind::Corrupt => {
            let why = "the log is being written faster than it can be looked at; try again";
            Error::new(ErrorKind::Busy, "busy", why.into())
        }
        _ => error,
    })
}

fn look_once(disk: &Arc<dyn Disk>, options: &LogOptions) -> Result<(Survey, Judgement)> {
    let found = survey(disk)?;
    let Some(manifest) = &found.manifest else {
        return Err(Error::new(ErrorKind::Io, "no_log", "there is no log in this directory".into()));
    };
    check_owner(manifest, options)?;
    let judged = judge(&found, manifest)?;
    Ok((found, judged))
}

impl LogView {
    /// Reads the records after `after`, in order, to the end of the view. Each group is verified again.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if some of them were purged.
    pub fn records(&self, after: Zxid) -> Result<ViewReader> {
        ViewReader::new(&self.disk, &self.judged, after)
    }

    /// The last record that was purged: the view holds what comes after it.
    pub fn floor_zxid(&self) -> Zxid {
        self.judged.manifest.floor_zxid
    }

    /// The last record; the floor if there is none.
    pub fn last_zxid(&self) -> Zxid {
        self.judged.last_zxid
    }

    /// The newest durable epoch.
    pub fn epoch(&self) -> Epoch {
        self.judged.epoch
    }

    /// The database that the log belongs to.
    pub fn database_id(&self) -> DatabaseId {
        self.judged.manifest.database_id
    }

    /// What the identifiers are.
    pub fn numbering(&self) -> Numbering {
        self.judged.manifest.numbering
    }
}

impl fmt::Debug for LogView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogView").field("last", &self.last_zxid()).finish_non_exhaustive()
    }
}
