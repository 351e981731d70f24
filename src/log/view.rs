use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Clock, Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{DatabaseId, Manifest, Numbering};
use crate::io::Disk;
use crate::log::directory::open_log_dir_to_read;
use crate::log::looks::until_believed;
use crate::log::options::LogOptions;
use crate::log::recover::{Judgement, RecoveryReport, Survey, check_owner, judge, start_report, survey};
use crate::log::view_reader::ViewReader;

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
        let disk = open_log_dir_to_read(dir.as_ref())?;
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
        let (found, judged) = until_believed(|| look_once(disk, self), |_| None)?;
        let mut report = start_report(disk.as_ref(), &found, &judged);
        report.read_ns = clock.nanos() - start;
        report.total_ns = report.read_ns;
        Ok((LogView { disk: disk.clone(), judged: Arc::new(judged) }, report))
    }
}

fn look_once(disk: &Arc<dyn Disk>, options: &LogOptions) -> Result<(Survey, Judgement)> {
    let found = survey(disk)?;
    let Some(manifest) = &found.manifest else {
        return Err(Error::new(ErrorKind::Io, "no_log", "there is no log in this directory".into()));
    };
    check_owner(manifest, options)?;
    let shorter = if options.oldest_may_be_missing { without_missing_oldest(&found, manifest) } else { None };
    let judged = judge(&found, shorter.as_ref().unwrap_or(manifest))?;
    Ok((found, judged))
}

/// The manifest of a log that was purged up to the first segment that is there; none if none is missing before it, or
/// it does not say what it follows.
fn without_missing_oldest(found: &Survey, manifest: &Manifest) -> Option<Manifest> {
    let mut ours = found.segments.range(manifest.first_seq..).filter(|(seq, _)| !manifest.is_cut_away(**seq));
    let (first_seq, scan) = ours.next().filter(|(seq, _)| **seq > manifest.first_seq)?;
    let floor_zxid = scan.floor_zxid.filter(|_| scan.header.is_ok())?;
    Some(Manifest { first_seq: *first_seq, floor_zxid, ..manifest.clone() })
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

    /// The salt of the segment that holds the record; none if it is not there. No two segments have the same: as long
    /// as the record is in the same segment, it is the same record.
    pub(crate) fn segment_of(&self, zxid: Zxid) -> Option<u64> {
        let segments = &self.judged.segments;
        let at = segments.partition_point(|segment| segment.last_zxid < zxid);
        segments.get(at).filter(|segment| segment.floor_zxid < zxid).map(|segment| segment.header.salt)
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
