use std::sync::Arc;

use super::judge::{Ending, Judgement, judge};
use super::report::{CutReport, RecoveryReport, TailState};
use super::settle::settle;
use super::survey::{Survey, survey_made};
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::{
    Cut, DatabaseId, MANIFEST_TEMP_NAME, Manifest, Numbering, SegmentHeader, aside_name, segment_name,
    segment_temp_name,
};
use crate::io::{Disk, File, OpenMode};
use crate::log::commit::{ActiveSegment, Position};
use crate::log::directory::{
    LogDirectory, keep_reserve, or_with_reserve, remove_if_there, sync_dir, write_manifest,
};
use crate::log::options::LogOptions;
use crate::log::prepare::{SegmentPlan, prepare_now};
use crate::log::read::StopKind;
use crate::log::segments::SegmentSet;

/// After a crash the log goes on in a segment of at most this size: who starts again waits for its writing, and
/// the next one, of the full size, is written in the background.
const FRESH_BYTES: u64 = 4 << 20;

/// A log that is ready to take appends.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) directory: LogDirectory,
    pub(crate) plan: SegmentPlan,
    pub(crate) segments: SegmentSet,
    pub(crate) active: ActiveSegment,
    pub(crate) next: Option<ActiveSegment>,
    pub(crate) position: Position,
    pub(crate) next_seq: u64,
    /// For the preparer, which has the time.
    pub(crate) leftovers: Vec<Leftover>,
    pub(crate) report: RecoveryReport,
}

/// Makes a new log in a directory that has none, and says what stands there now. The manifest is what makes it one: it
/// comes last.
pub(crate) fn create(
    disk: &Arc<dyn Disk>,
    survey: &Survey,
    options: &LogOptions,
    clock: &Clock,
    random: &mut Random,
) -> Result<(Survey, Judgement)> {
    let database_id = options.expected_database_id.unwrap_or_else(|| DatabaseId::random(random));
    for seq in survey.nameless.iter().chain(&survey.segment_temps) {
        remove_if_there(disk.as_ref(), &segment_name(*seq))?;
        remove_if_there(disk.as_ref(), &segment_temp_name(*seq))?;
    }
    let plan = SegmentPlan::of(options, database_id, disk.as_ref());
    let made = prepare_now(disk, &plan, 1, clock, random)?;
    let after = options.created_after;
    let manifest = Manifest {
        database_id,
        version: 1,
        numbering: options.numbering,
        epoch: if options.numbering == Numbering::Zxid { after.epoch() } else { Epoch::ZERO },
        durable_zxid: after,
        clean: true,
        first_seq: 1,
        floor_zxid: after,
        cuts: Vec::new(),
    };
    write_manifest(disk, &manifest)?;
    let again = survey_made(disk, &manifest, made.header.seq)?;
    let judged = judge(&again, &manifest)?;
    Ok((again, judged))
}

/// Carries out what was judged. Every step may be interrupted: judging again leads to the same.
pub(crate) fn open_recovered(
    disk: &Arc<dyn Disk>,
    survey: &Survey,
    judged: &Judgement,
    options: &LogOptions,
    clock: &Clock,
    random: &mut Random,
) -> Result<Opened> {
    check_asked(&judged.manifest, options)?;
    let plan = SegmentPlan::of(options, judged.manifest.database_id, disk.as_ref());
    let mut report = start_report(disk.as_ref(), survey, judged);
    let (active, mut next) = match &judged.ending {
        Ending::InPlace => {
            (continue_in_place(disk.as_ref(), judged, &plan)?, take_next(disk, survey, judged, &plan)?)
        }
        Ending::Cut { .. } => {
            let mut fresh = prepare_at_any_rate(disk, &plan, survey.seq_max + 1, clock, random)?;
            fresh.floor_zxid = judged.last_zxid;
            (fresh, None)
        }
    };
    let directory = LogDirectory::new(disk.clone(), judged.manifest.clone());
    settle(disk.as_ref(), judged)?;
    let manifest = commit_opening(&directory, judged, active.header.seq)?;
    let temps = survey.segment_temps.iter().map(|seq| segment_temp_name(*seq));
    report.removed.extend(temps.clone());
    let leftovers = temps.map(Leftover::Temp).chain(unused_tail(survey, judged)).collect();
    tidy(disk.as_ref(), survey, &manifest, &active, &mut next, &mut report)?;
    keep_reserve(disk.as_ref());
    let mut segments = SegmentSet::new();
    let ended = judged.segments.len() - usize::from(judged.ending == Ending::InPlace);
    judged.segments.iter().take(ended).for_each(|s| segments.push_ended(s.clone()));
    segments.push_active(active.header, active.floor_zxid);
    let next_seq = next.as_ref().map_or(active.header.seq, |n| n.header.seq) + 1;
    Ok(Opened {
        directory,
        plan,
        segments,
        active,
        next,
        position: Position {
            last_zxid: judged.last_zxid,
            epoch: judged.epoch,
            time_max_ms: judged.time_max_ms,
        },
        next_seq,
        leftovers,
        report,
    })
}

fn check_asked(manifest: &Manifest, options: &LogOptions) -> Result<()> {
    check_owner(manifest, options)?;
    if options.numbering != manifest.numbering {
        let (is, asked) = (manifest.numbering, options.numbering);
        return Err(Error::invalid(format!("the log is numbered by {is:?}, not by {asked:?}")));
    }
    Ok(())
}

/// Whether this is the database that was asked for.
pub(crate) fn check_owner(manifest: &Manifest, options: &LogOptions) -> Result<()> {
    if let Some(expected) = options.expected_database_id.filter(|id| *id != manifest.database_id) {
        return Err(Error::new(
            ErrorKind::WrongOwner,
            "database_foreign",
            format!("the log belongs to database {}, not to {expected}", manifest.database_id),
        ));
    }
    Ok(())
}

/// Prepares a segment, if need be in the place of the reserve: a full disk must not keep a log that has
/// crashed from being opened, since only an open log can be purged.
fn prepare_at_any_rate(
    disk: &Arc<dyn Disk>,
    plan: &SegmentPlan,
    seq: u64,
    clock: &Clock,
    random: &mut Random,
) -> Result<ActiveSegment> {
    let small = SegmentPlan { segment_bytes: plan.segment_bytes.min(FRESH_BYTES), ..plan.clone() };
    or_with_reserve(disk.as_ref(), || prepare_now(disk, &small, seq, clock, random))
}

/// Records that the log is open and, after a crash, where it was cut.
fn commit_opening(directory: &LogDirectory, judged: &Judgement, active_seq: u64) -> Result<Manifest> {
    directory.commit(|m| {
        m.clean = m.clean && crate::planted("clean_mark_kept");
        m.durable_zxid = judged.last_zxid;
        m.epoch = judged.epoch;
        if let Ending::Cut { seq, .. } = judged.ending {
            m.cuts.retain(|c| c.seq < seq);
            if seq > 0 {
                if crate::planted("cut_not_recorded") {
                    return;
                }
                m.cuts.push(Cut { seq, last_zxid: judged.last_zxid, next_seq: active_seq });
            } else {
                // Not even the first segment is usable, and nothing is lost by it: begin anew.
                m.first_seq = active_seq;
            }
        }
    })
}

fn continue_in_place(disk: &dyn Disk, judged: &Judgement, plan: &SegmentPlan) -> Result<ActiveSegment> {
    let last = judged.segments.last().expect("a log that ends in place has a segment");
    let file = open_for_writing(disk, &last.header, plan.direct)?;
    let mut active = ActiveSegment::fresh(last.header, file, last.floor_zxid);
    active.offset = last.end_offset;
    active.records = last.records;
    active.groups = (last.end_offset - last.header.first_group_offset()).div_ceil(last.header.block_bytes);
    active.index.extend_from_slice(&last.index);
    Ok(active)
}

fn open_for_writing(disk: &dyn Disk, header: &SegmentHeader, direct: bool) -> Result<Arc<dyn File>> {
    let name = segment_name(header.seq);
    let wrap = |e| Error::io("open a segment for writing", e).in_file(&name);
    let file = disk.open(&name, OpenMode::Write { direct }).map_err(wrap)?;
    // Made with smaller blocks than this device takes directly: go through the page cache.
    if header.block_bytes.is_multiple_of(file.align_bytes()) {
        return Ok(file);
    }
    disk.open(&name, OpenMode::Write { direct: false }).map_err(wrap)
}

/// The prepared segment behind the one in use, if the last process left one that fits.
fn take_next(
    disk: &Arc<dyn Disk>,
    survey: &Survey,
    judged: &Judgement,
    plan: &SegmentPlan,
) -> Result<Option<ActiveSegment>> {
    let last = judged.segments.last().expect("a log that ends in place has a segment").header.seq;
    let prepared = survey.segments.get(&(last + 1)).filter(|s| s.is_blank());
    let Some(header) = prepared.and_then(|s| s.header.as_ref().ok()).filter(|h| plan.made(h)) else {
        return Ok(None);
    };
    let file = open_for_writing(disk.as_ref(), header, plan.direct)?;
    Ok(Some(ActiveSegment::fresh(*header, file, Zxid::ZERO)))
}

/// What is left to do after an open that costs time, changes no content and may fail: it saves space.
#[derive(Debug)]
pub(crate) enum Leftover {
    /// A segment that was being prepared when the last process ended.
    Temp(String),
    /// Unused zeros behind the new end of a segment.
    Zeros { name: String, from: u64 },
}

impl Leftover {
    /// Clears it away. What fails here costs space, nothing else; a temporary file is met again at the next open.
    pub(crate) fn clear(&self, disk: &dyn Disk) {
        let _space_only = match self {
            Leftover::Temp(name) => disk.remove(name),
            Leftover::Zeros { name, from } => {
                disk.open(name, OpenMode::Write { direct: false }).and_then(|file| file.set_len(*from))
            }
        };
    }
}

/// Gives the unused zeros behind a segment's new end back to the file system. Only once the manifest says
/// where the segment ends, and only zeros: bytes that were cut stay.
fn unused_tail(survey: &Survey, judged: &Judgement) -> Option<Leftover> {
    match &judged.ending {
        Ending::Cut { seq: seq @ 1.., offset, .. }
            if survey.segments.get(seq).is_some_and(|s| s.stop.kind == StopKind::Zeros)
                // What stands behind an earlier cut is kept.
                && judged.manifest.cut_of(*seq).is_none() =>
        {
            Some(Leftover::Zeros { name: segment_name(*seq), from: *offset })
        }
        _ => None,
    }
}

/// Clears away what is no part of the log: moves aside what holds groups, removes what holds nothing.
fn tidy(
    disk: &dyn Disk,
    survey: &Survey,
    manifest: &Manifest,
    active: &ActiveSegment,
    next: &mut Option<ActiveSegment>,
    report: &mut RecoveryReport,
) -> Result<()> {
    let kept_next = next.as_ref().map(|n| n.header.seq);
    for (seq, scan) in &survey.segments {
        let name = segment_name(*seq);
        let purged = *seq < manifest.first_seq;
        let beyond = manifest.is_cut_away(*seq) || *seq > active.header.seq && Some(*seq) != kept_next;
        let thrown = beyond && crate::planted("cut_segments_removed");
        if scan.is_blank() && (purged || beyond) || purged && scan.header.is_ok() || thrown {
            remove_if_there(disk, &name)?;
            report.removed.push(name);
        } else if beyond {
            let aside = aside_name(*seq, manifest.version);
            disk.rename(&name, &aside).map_err(|e| Error::io("move a segment aside", e).in_file(&name))?;
            report.moved_aside.push(aside);
        }
        // A purged segment whose header cannot be read stays: it may be somebody's.
    }
    remove_if_there(disk, MANIFEST_TEMP_NAME)?;
    if !report.removed.is_empty() || !report.moved_aside.is_empty() {
        sync_dir(disk)?;
    }
    Ok(())
}

/// What there is to tell before anything is done.
pub(crate) fn start_report(disk: &dyn Disk, survey: &Survey, judged: &Judgement) -> RecoveryReport {
    let (tail, cut) = match &judged.ending {
        _ if judged.is_clean() => (TailState::Clean, None),
        Ending::InPlace => (TailState::Clean, None),
        Ending::Cut { torn_bytes: 0, later: false, .. } => (TailState::Unclean, None),
        Ending::Cut { seq, offset, torn_bytes, .. } => {
            let cut = CutReport { file: segment_name(*seq), offset: *offset, bytes: *torn_bytes };
            (TailState::Torn, Some(cut))
        }
    };
    RecoveryReport {
        database_id: judged.manifest.database_id,
        backend: disk.info().clone(),
        created: false,
        floor_zxid: judged.manifest.floor_zxid,
        last_zxid: judged.last_zxid,
        epoch: judged.epoch,
        segments: judged.segments.len() as u64,
        records: judged.records,
        bytes: judged.bytes,
        tail,
        cut,
        moved_aside: Vec::new(),
        asides: survey.asides.clone(),
        removed: Vec::new(),
        foreign: survey.foreign.clone(),
        read_ns: 0,
        total_ns: 0,
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
