use std::sync::Arc;

use crate::base::{Error, Result, Zxid};
use crate::format::{Cut, Manifest, aside_name, segment_name};
use crate::io::Disk;
use crate::log::directory::{LogDirectory, open_segment, sync_dir};
use crate::log::read::{each_record, not_in_log};
use crate::log::recover::Judgement;

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

/// Cuts everything after `to` off a log that nobody is writing to.
///
/// The new manifest is the truncation: before it nothing has happened, after it the log ends at `to`. Moving
/// the files aside comes later and is made up for by the next open if it was interrupted.
pub(crate) fn truncate(
    disk: &Arc<dyn Disk>,
    judged: &Judgement,
    to: Zxid,
    next_seq: u64,
) -> Result<(Manifest, TruncateReport)> {
    let floor = judged.manifest.floor_zxid;
    if to < floor {
        return Err(not_in_log(to, "it was purged, so the log cannot be cut there"));
    }
    if to > judged.last_zxid {
        return Err(not_in_log(to, "the log ends before it"));
    }
    let keep = judged.segments.iter().rposition(|s| s.floor_zxid < to).unwrap_or(0);
    let segment = &judged.segments[keep];
    let last_zxid = last_at_or_before(disk, judged, keep, to)?;
    let mut report = TruncateReport {
        last_zxid,
        was_zxid: judged.last_zxid,
        exact: last_zxid == to,
        moved_aside: Vec::new(),
        shortened: Some(segment_name(segment.header.seq)),
    };
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
    for later in &judged.segments[keep + 1..] {
        let name = segment_name(later.header.seq);
        let aside = aside_name(later.header.seq, manifest.version);
        disk.rename(&name, &aside).map_err(|e| Error::io("move a segment aside", e).in_file(&name))?;
        report.moved_aside.push(aside);
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
