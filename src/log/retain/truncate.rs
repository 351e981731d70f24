use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, Result, Zxid};
use crate::format::{Cut, Manifest, aside_name, segment_name};
use crate::io::{BackendChoice, Disk};
use crate::log::commit::RetiredSegment;
use crate::log::directory::{
    LogDirectory, open_log_dir, open_log_dir_to_read, open_segment, sync_dir, take_lock_unless,
};
use crate::log::looks::until_believed;
use crate::log::read::{each_record, not_in_log};
use crate::log::recover::{Judgement, judge, settle, survey};

/// What a truncation cut off, and where it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TruncateReport {
    /// The last record now: the one asked for, or the last one before it if it was never in the log.
    pub last_zxid: Zxid,
    /// The last record before.
    pub was_zxid: Zxid,
    /// Whether the zxid asked for was a record of the log.
    pub exact: bool,
    /// Segments that were moved aside whole. They are no part of the log any more and may be removed by hand.
    pub moved_aside: Vec<String>,
    /// The segment that ends early now; the bytes behind its end stay in the file.
    pub shortened: Option<String>,
}

/// Whether something is done, or only told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Execution {
    /// Take no lock, change nothing, tell what would be done.
    DryRun,
    /// Do it.
    Real,
}

/// Opens the directory of a log that nobody has open, for what is to be done or only told.
pub(super) fn open_for(execution: Execution, dir: &Path) -> Result<Arc<dyn Disk>> {
    match execution {
        Execution::DryRun => open_log_dir_to_read(dir),
        Execution::Real => open_log_dir(dir, BackendChoice::Threads),
    }
}

/// Cuts everything after `to` off the log in `dir`, which nobody has open: for tools. A server that has the
/// log open uses [`Log::truncate`](crate::Log::truncate).
///
/// # Errors
/// [`ErrorKind::NotInLog`](crate::ErrorKind::NotInLog) if there is no log, or if `to` lies before its first
/// record or after its last one; else as [`LogOptions::open`](crate::LogOptions::open). After any error of
/// these kinds the log is as it was.
pub fn truncate_dir(dir: impl AsRef<Path>, to: Zxid, execution: Execution) -> Result<TruncateReport> {
    let disk = open_for(execution, dir.as_ref())?;
    if execution == Execution::DryRun {
        return until_believed(|| truncate_on(&disk, to, execution), |_| None);
    }
    let rehearse = || truncate_on(&disk, to, Execution::DryRun).map(drop);
    let _lock = take_lock_unless(disk.as_ref(), rehearse)?;
    truncate_on(&disk, to, execution)
}

/// Truncates the log of a directory that is locked and not open.
pub(crate) fn truncate_on(disk: &Arc<dyn Disk>, to: Zxid, execution: Execution) -> Result<TruncateReport> {
    let found = survey(disk)?;
    let Some(manifest) = &found.manifest else { return Err(not_in_log(to, "there is no log here")) };
    let judged = judge(&found, manifest)?;
    truncate(disk, &judged, to, found.seq_max + 1, execution).map(|(_, report)| report)
}

/// Cuts everything after `to` off a log that nobody is writing to.
///
/// The new manifest is the truncation: before it nothing has happened, after it the log ends at `to`. Moving
/// the files aside comes later and is made up for by the next open if it was interrupted.
fn truncate(
    disk: &Arc<dyn Disk>,
    judged: &Judgement,
    to: Zxid,
    next_seq: u64,
    execution: Execution,
) -> Result<(Manifest, TruncateReport)> {
    let floor = judged.manifest.floor_zxid;
    if to < floor {
        return Err(not_in_log(to, "it was purged, so the log cannot be cut there"));
    }
    if to > judged.last_zxid {
        return Err(not_in_log(to, "the log ends before it"));
    }
    let keep = judged.segments.iter().rposition(|s| s.floor_zxid < to).unwrap_or(0);
    let Some(segment) = judged.segments.get(keep) else {
        return Err(not_in_log(to, "the log has no segment yet"));
    };
    let last_zxid = last_at_or_before(disk, judged, keep, to)?;
    let aside = |later: &RetiredSegment| aside_name(later.header.seq, judged.manifest.version + 1);
    let report = TruncateReport {
        last_zxid,
        was_zxid: judged.last_zxid,
        exact: last_zxid == to,
        moved_aside: judged.segments[keep + 1..].iter().map(aside).collect(),
        shortened: Some(segment_name(segment.header.seq)),
    };
    if execution == Execution::DryRun {
        return Ok((judged.manifest.clone(), report));
    }
    settle(disk.as_ref(), judged)?;
    let directory = LogDirectory::new(disk.clone(), judged.manifest.clone());
    let cut = Cut { seq: segment.header.seq, last_zxid, next_seq };
    let manifest = directory.commit(|m| {
        if !crate::planted("truncate_keeps_durable") {
            m.durable_zxid = last_zxid;
        }
        m.epoch = judged.epoch;
        m.clean = true;
        m.cuts.retain(|c| c.seq < cut.seq);
        if !crate::planted("truncate_keeps_tail") {
            m.cuts.push(cut);
        }
    })?;
    for (later, aside) in judged.segments[keep + 1..].iter().zip(&report.moved_aside) {
        let name = segment_name(later.header.seq);
        disk.rename(&name, aside).map_err(|e| Error::io("move a segment aside", e).in_file(&name))?;
    }
    sync_dir(disk.as_ref())?;
    Ok((manifest, report))
}

/// The last record of segment `keep` that is not after `to`.
fn last_at_or_before(disk: &Arc<dyn Disk>, judged: &Judgement, keep: usize, to: Zxid) -> Result<Zxid> {
    let segment = &judged.segments[keep];
    if to >= segment.last_zxid {
        return Ok(segment.last_zxid);
    }
    if to == segment.floor_zxid {
        return Ok(to);
    }
    let name = segment_name(segment.header.seq);
    let file = open_segment(disk.as_ref(), &name)?;
    let mut last = segment.floor_zxid;
    each_record(file.as_ref(), &segment.header, segment.end_offset, &mut |record| {
        if record.zxid <= to {
            last = record.zxid;
        }
        record.zxid < to
    })?;
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Epoch;
    use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
    use crate::{LogOptions, Record, WriteMode};

    /// A log that was killed is cut before it was ever opened again: what is kept may be in a cache only, and becomes
    /// durable before the manifest says that it is.
    #[test]
    fn tr_03_what_a_cut_keeps_is_durable_before_it_counts() {
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let options = options.write_mode(WriteMode::BufferedThenSync);
        let zxid = |n| Zxid::from_parts(1, n);
        for effect in [Effect::EIO, Effect::SyncFailsAndDropsPages] {
            let disk = SimDisk::new(1);
            let (log, _) = options.open_sim(&disk).unwrap();
            log.advance_epoch(Epoch::new(1)).unwrap();
            for n in 1..=5 {
                log.append(&Record::new(zxid(n), 0, b"record")).unwrap().wait().unwrap();
            }
            disk.inject(Fault::next(FaultOp::Sync, effect).on(NamePattern::Suffix(".seg".into())));
            let batch = [6, 7, 8].map(|n| Record::new(zxid(n), 0, b"record"));
            log.append_batch(&batch).unwrap().wait().unwrap_err();
            drop(log);
            let report = truncate_on(&disk.handle(), zxid(7), Execution::Real).unwrap();
            assert_eq!((report.last_zxid, report.was_zxid), (zxid(7), zxid(8)), "{effect:?}");
            disk.crash(CrashImage::DropUnsynced);
            let (log, report) = options.open_sim(&disk).unwrap_or_else(|e| panic!("{effect:?}: {e}"));
            assert_eq!(report.last_zxid, zxid(7), "{effect:?}");
            log.close().unwrap();
        }
    }

    /// A log of 80 records in four segments; the first three end with the 23rd, the 46th and the 69th.
    fn closed_log() -> (LogOptions, SimDisk) {
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let disk = SimDisk::new(1);
        let (log, _) = options.open_sim(&disk).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        for n in 1..=80 {
            log.append(&Record::new(Zxid::from_parts(1, n), 0, b"record")).unwrap().wait().unwrap();
        }
        log.close().unwrap();
        (options, disk)
    }

    /// The files of a cut that was interrupted still have their names when the next one comes: they stay cut away.
    #[test]
    fn tr_08_what_an_interrupted_cut_has_left_stays_cut_off_by_the_next_one() {
        let (options, disk) = closed_log();
        let zxid = |n| Zxid::from_parts(1, n);
        disk.inject(Fault::next(FaultOp::Rename, Effect::EIO).on(NamePattern::Suffix(".seg".into())));
        truncate_on(&disk.handle(), zxid(20), Execution::Real).unwrap_err();
        let report = truncate_on(&disk.handle(), zxid(10), Execution::Real).unwrap();
        assert_eq!((report.last_zxid, report.was_zxid), (zxid(10), zxid(20)));
        for last in [10, 11] {
            let (log, opened) = options.open_sim(&disk).unwrap();
            assert_eq!(opened.last_zxid, zxid(last));
            log.append(&Record::new(zxid(last + 1), 0, b"record")).unwrap().wait().unwrap();
            log.close().unwrap();
        }
    }

    /// A target that ends a segment leaves that one as the last, and nothing of those behind it.
    #[test]
    fn tr_01_a_target_at_the_end_of_a_segment_takes_all_later_ones_away() {
        let (_, disk) = closed_log();
        let report = truncate_on(&disk.handle(), Zxid::from_parts(1, 23), Execution::DryRun).unwrap();
        assert_eq!((report.shortened, report.moved_aside.len()), (Some(segment_name(1)), 3));
        assert!(report.exact);
    }
}
