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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment_name;
    use crate::io::OpenMode;
    use crate::log::{Record, Retention};
    use crate::sim::{CrashImage, SimDisk};

    fn options() -> LogOptions {
        LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None)
    }

    fn zxid(counter: u32) -> Zxid {
        Zxid::from_parts(1, counter)
    }

    /// A log of 80 records in four segments; the first three end with the 23rd, the 46th and the 69th.
    fn log_on(disk: &SimDisk) -> crate::Log {
        let (log, _) = options().open_sim(disk).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        for n in 1..=80 {
            log.append(&Record::new(zxid(n), 0, b"record")).unwrap().wait().unwrap();
        }
        log
    }

    fn first_record(view: &LogView) -> Option<Zxid> {
        let mut reader = view.records(view.floor_zxid()).unwrap();
        reader.next_record().unwrap().map(|record| record.zxid)
    }

    #[test]
    fn a_view_is_of_the_database_that_was_asked_for() {
        let disk = SimDisk::new(1);
        let id = log_on(&disk).database_id();
        let other = DatabaseId::from_bytes([9; 16]);
        assert!(options().expected_database_id(id).open_read_only_sim(&disk).is_ok());
        let error = options().expected_database_id(other).open_read_only_sim(&disk).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongOwner);
    }

    /// Only who can do without them is shown a log without its oldest segments.
    #[test]
    fn sg_01_a_view_of_a_log_without_its_oldest_segments_is_for_who_asks_for_it() {
        let disk = SimDisk::new(1);
        log_on(&disk).close().unwrap();
        let lenient = LogOptions { oldest_may_be_missing: true, ..options() };
        let (view, _) = lenient.open_read_only_sim(&disk).unwrap();
        assert_eq!((view.floor_zxid(), first_record(&view)), (Zxid::ZERO, Some(zxid(1))), "all is there");
        for (seq, floor) in [(1, 23), (2, 46)] {
            disk.handle().remove(&segment_name(seq)).unwrap();
            let error = options().open_read_only_sim(&disk).map(drop).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "segment_missing"));
            let (view, _) = lenient.open_read_only_sim(&disk).unwrap();
            assert_eq!((view.floor_zxid(), first_record(&view)), (zxid(floor), Some(zxid(floor + 1))));
        }
        // One that is missing between others is asked for by nobody.
        disk.handle().remove(&segment_name(4)).unwrap();
        assert!(lenient.open_read_only_sim(&disk).is_err());
    }

    /// By the log and by a view of it.
    #[test]
    fn a_record_is_in_one_segment_and_what_is_not_there_is_in_none() {
        let disk = SimDisk::new(1);
        let log = log_on(&disk);
        let mut purged = 0;
        for _ in 0..2 {
            let (view, _) = options().open_read_only_sim(&disk).unwrap();
            let salts: Vec<_> = [24, 46, 47, 69, 70, 80].iter().map(|n| log.segment_of(zxid(*n))).collect();
            assert!(salts.iter().all(Option::is_some));
            assert!(salts[0] == salts[1] && salts[2] == salts[3] && salts[4] == salts[5], "{salts:?}");
            assert!(salts[1] != salts[2] && salts[3] != salts[4], "{salts:?}");
            for n in 1..=90 {
                let (by_log, by_view) = (log.segment_of(zxid(n)), view.segment_of(zxid(n)));
                assert_eq!((by_log.is_some(), by_log), (n > purged && n <= 80, by_view), "{n}");
            }
            purged = log.purge(zxid(30), &Retention::new()).unwrap().floor_zxid.counter();
            assert_eq!(purged, 23);
        }
    }

    /// A view is verified when it is made, and once more when it is read: what has changed since is damage, unless the
    /// log has gone on without it.
    #[test]
    fn mm_03_what_changes_under_a_view_is_no_record_and_what_went_with_the_log_is_no_damage() {
        let disk = SimDisk::new(1);
        log_on(&disk).close().unwrap();
        let (view, _) = options().open_read_only_sim(&disk).unwrap();
        let read = |view: &LogView, after| {
            let mut reader = view.records(zxid(after)).unwrap();
            reader.next_record().map(|record| record.map(|record| record.zxid))
        };
        // The payload of the third record of the second segment, which is the 26th.
        let name = segment_name(2);
        let file = disk.handle().open(&name, OpenMode::Write { direct: false }).unwrap();
        file.write_all_at(4096 + 2 * 512 + 96 + 32, b"R").unwrap();
        let error = read(&view, 25).unwrap_err();
        assert_eq!((error.kind(), error.at().zxid), (ErrorKind::Corrupt, Some(zxid(26))), "{error}");
        file.write_all_at(4096 + 2 * 512 + 96 + 32, b"r").unwrap();
        assert_eq!(read(&view, 25).unwrap(), Some(zxid(26)));
        // Taken away by somebody, and cut off by the log.
        let fork = disk.fork(CrashImage::KeepAll);
        let (view, _) = options().open_read_only_sim(&fork).unwrap();
        fork.handle().remove(&segment_name(3)).unwrap();
        assert_eq!(read(&view, 50).unwrap_err().kind(), ErrorKind::Corrupt);
        let (view, _) = options().open_read_only_sim(&disk).unwrap();
        let (log, _) = options().open_sim(&disk).unwrap();
        let _cut = log.truncate(zxid(30)).unwrap();
        assert_eq!(read(&view, 50).unwrap_err().kind(), ErrorKind::NotInLog);
    }
}
