use std::collections::BTreeMap;
use std::sync::Arc;

use super::scan_all::{scan_all, scan_one};
use crate::base::{Error, Result, limits};
use crate::format::{MANIFEST_NAME, Manifest, Name, RESERVE_NAME, segment_name};
use crate::io::{DirEntry, Disk, EntryKind};
use crate::log::directory::{open_segment, read_manifest};
use crate::log::read::{Replay, SegmentScan, StopKind, is_blank_file, scan_prepared};

/// How often a look goes after a log that moves on. Each time there is less to read.
const CATCH_UPS_MAX: usize = 64;

/// What stands in a log's directory, read but not changed.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) manifest: Option<Manifest>,
    /// Every segment that has a name, whether it belongs to the log or not; scanned where a manifest says
    /// which database this is.
    pub(crate) segments: BTreeMap<u64, SegmentScan>,
    /// Blank segments of a creation that was interrupted before its manifest.
    pub(crate) nameless: Vec<u64>,
    /// Segments that were being prepared.
    pub(crate) segment_temps: Vec<u64>,
    /// Segments that were cut away and kept, and damaged manifests.
    pub(crate) asides: Vec<String>,
    /// Names that are not ours; never read, never changed.
    pub(crate) foreign: Vec<String>,
    /// The highest segment number that any name carries.
    pub(crate) seq_max: u64,
}

/// Reads a directory.
pub(crate) fn survey(disk: &Arc<dyn Disk>) -> Result<Survey> {
    survey_replaying(disk, None)
}

/// The same, and hands the records of the log out while it is at it.
pub(crate) fn survey_replaying(disk: &Arc<dyn Disk>, replay: Option<&mut Replay<'_>>) -> Result<Survey> {
    let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    let has_reserve = entries.iter().any(|e| e.name == RESERVE_NAME);
    let (mut survey, found) = sort_names(entries)?;
    survey.manifest = read_manifest(disk.as_ref())?;
    if let Some(manifest) = survey.manifest.clone() {
        let is_replay = replay.is_some();
        survey.segments = scan_all(disk, &manifest, &found, replay)?;
        if !is_replay {
            catch_up(disk.as_ref(), &manifest, &mut survey)?;
        }
    } else {
        found.iter().try_for_each(|(seq, _)| refuse_without_manifest(disk, *seq))?;
        if has_reserve {
            // The reserve comes after the first manifest: a log was here. Its segments may be blank, but its
            // epoch and its floor are gone with the manifest.
            let what = "there is a reserve but no manifest: a log was here";
            return Err(Error::corrupt("manifest_missing", what).in_file(MANIFEST_NAME));
        }
        survey.nameless = found.iter().map(|(seq, _)| *seq).collect();
    }
    Ok(survey)
}

/// The same, of a log that was made just now, whose segment `made` was prepared for it: its zeros are not read again.
pub(super) fn survey_made(disk: &Arc<dyn Disk>, manifest: &Manifest, made: u64) -> Result<Survey> {
    let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    let (mut survey, found) = sort_names(entries)?;
    survey.manifest = read_manifest(disk.as_ref())?;
    for (seq, _) in found {
        let scan = if seq == made {
            let file = open_segment(disk.as_ref(), &segment_name(seq))?;
            scan_prepared(file.as_ref(), seq, manifest.database_id)?
        } else {
            scan_one(disk.as_ref(), manifest, seq)?
        };
        survey.segments.insert(seq, scan);
    }
    Ok(survey)
}

/// Follows a log that is being written while it is looked at: a segment that was sealed after the listing has a
/// successor which was not listed, and one that was read before its last groups came looks cut short beside the next
/// one. Only what may have moved is read again, so this ends soon even beside a fast writer; of a log at rest, nothing
/// is, unless it is damaged.
pub(crate) fn catch_up(disk: &dyn Disk, manifest: &Manifest, survey: &mut Survey) -> Result<()> {
    let is_ours = |seq: u64| seq >= manifest.first_seq && !manifest.is_cut_away(seq);
    for _ in 0..CATCH_UPS_MAX {
        let mut used = survey.segments.iter().filter(|(seq, scan)| is_ours(**seq) && scan.has_groups());
        let Some(last) = used.next_back().map(|(seq, _)| *seq) else { return Ok(()) };
        let mut moved = false;
        let is_open = |scan: &SegmentScan| matches!(scan.stop.kind, StopKind::Zeros | StopKind::Garbage);
        let open = survey
            .segments
            .range(..last)
            .filter(|(seq, scan)| is_ours(**seq) && manifest.cut_of(**seq).is_none() && is_open(scan));
        for seq in open.map(|(seq, _)| *seq).collect::<Vec<_>>() {
            let again = scan_one(disk, manifest, seq)?;
            moved |= again.stop.kind == StopKind::Sealed;
            survey.segments.insert(seq, again);
        }
        if survey.segments.get(&last).is_some_and(|scan| scan.stop.kind == StopKind::Sealed) {
            let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
            let (later, found) = sort_names(entries)?;
            let known = survey.segments.last_key_value().map_or(0, |(seq, _)| *seq);
            for (seq, _) in found.into_iter().filter(|(seq, _)| *seq > known) {
                survey.segments.insert(seq, scan_one(disk, manifest, seq)?);
                moved = true;
            }
            // The next one was blank when it was read; it may not be any more.
            if let Some((&next, _)) = survey.segments.range(last + 1..).next().filter(|(_, s)| s.is_blank()) {
                let again = scan_one(disk, manifest, next)?;
                moved |= again.has_groups();
                survey.segments.insert(next, again);
            }
            survey.seq_max = survey.seq_max.max(later.seq_max);
        }
        if !moved {
            return Ok(());
        }
    }
    Ok(())
}

/// Sorts the names of a directory by what they are, with no file opened yet; the segments come by themselves,
/// with their lengths, in the order of their numbers.
pub(crate) fn sort_names(entries: Vec<DirEntry>) -> Result<(Survey, Vec<(u64, u64)>)> {
    let mut survey = Survey {
        manifest: None,
        segments: BTreeMap::new(),
        nameless: Vec::new(),
        segment_temps: Vec::new(),
        asides: Vec::new(),
        foreign: Vec::new(),
        seq_max: 0,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = Name::parse(&entry.name);
        if let Name::Segment(seq) | Name::SegmentTemp(seq) | Name::Aside(seq) = name {
            if seq >= limits::SEGMENT_SEQ_MAX {
                let what = "no log has this many segments; take the file away";
                return Err(Error::corrupt("segment_number", what).in_file(&entry.name));
            }
            survey.seq_max = survey.seq_max.max(seq);
        }
        match name {
            Name::Segment(_) | Name::SegmentTemp(_) if entry.kind != EntryKind::File => {
                return Err(
                    Error::corrupt("not_a_file", "the segment is no regular file").in_file(&entry.name)
                );
            }
            Name::Lock | Name::ManifestTemp if entry.kind != EntryKind::File => {
                // Opening would fail at it: better before it has begun, and with a word that helps.
                let what = "a file of the log belongs here, and this is none";
                return Err(Error::corrupt("not_a_file", what).in_file(&entry.name));
            }
            Name::Segment(seq) => found.push((seq, entry.len)),
            Name::SegmentTemp(seq) => survey.segment_temps.push(seq),
            Name::Aside(_) | Name::DamagedManifest => survey.asides.push(entry.name),
            Name::Foreign => survey.foreign.push(entry.name),
            Name::Lock | Name::Manifest | Name::ManifestTemp | Name::Reserve => {}
        }
    }
    survey.foreign.sort();
    survey.asides.sort();
    found.sort_unstable();
    Ok((survey, found))
}

/// Segments without a manifest: the leftovers of a creation that was interrupted hold nothing; anything else
/// has lost its manifest.
fn refuse_without_manifest(disk: &Arc<dyn Disk>, seq: u64) -> Result<()> {
    let name = segment_name(seq);
    let file = open_segment(disk.as_ref(), &name)?;
    if is_blank_file(file.as_ref())? {
        return Ok(());
    }
    Err(Error::corrupt("manifest_missing", "there are segments but no manifest that says what they are")
        .in_file(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Epoch, Zxid};
    use crate::format::{LOCK_NAME, MANIFEST_TEMP_NAME, aside_name, segment_temp_name};
    use crate::sim::SimDisk;
    use crate::{Log, LogOptions, Record, WriteMode};

    fn append(log: &Log, counters: std::ops::RangeInclusive<u32>) {
        for counter in counters {
            let record = Record::new(Zxid::from_parts(1, counter), 5, b"payload");
            log.append(&record).expect("append").wait().expect("durable");
        }
    }

    /// What of a survey tells of the log's records.
    fn seen(survey: &Survey) -> Vec<(u64, StopKind, Option<Zxid>, u64)> {
        let used = survey.segments.iter().filter(|(_, scan)| scan.has_groups());
        used.map(|(seq, scan)| (*seq, scan.stop.kind, scan.last_zxid, scan.records)).collect()
    }

    /// Looks at a log that grows from `before` records by `more` under the look: the listing and the segments of
    /// `early` are as they were before, the others as they were after. Returns what the look has come to, and what a
    /// look at rest sees.
    fn caught_up(before: u32, more: u32, is_early: impl Fn(u64) -> bool) -> (Survey, Survey) {
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let disk = SimDisk::new(5);
        let (log, _) = options.write_mode(WriteMode::BufferedThenSync).open_sim(&disk).expect("open");
        log.advance_epoch(Epoch::new(1)).expect("an epoch");
        append(&log, 1..=before);
        let handle = disk.handle();
        let mut torn = survey(&handle).expect("a look");
        append(&log, before + 1..=before + more);
        let now = survey(&handle).expect("a look at rest");
        let manifest = now.manifest.clone().expect("it has one");
        for (seq, scan) in torn.segments.iter_mut().filter(|(seq, _)| !is_early(**seq)) {
            *scan = scan_one(handle.as_ref(), &manifest, *seq).expect("a segment");
        }
        catch_up(handle.as_ref(), &manifest, &mut torn).expect("catch up");
        (torn, now)
    }

    fn entry(name: String, kind: EntryKind) -> DirEntry {
        DirEntry { name, len: 0, kind }
    }

    /// What was cut off and what was being prepared have numbers that are not given again.
    #[test]
    fn sg_06_every_kind_of_name_counts_for_the_highest_number() {
        for (name, seq_max) in
            [(segment_name(3), 3), (segment_temp_name(5), 5), (aside_name(7, 2), 7), ("9.other".into(), 0)]
        {
            let (survey, _) = sort_names(vec![entry(name.clone(), EntryKind::File)]).unwrap();
            assert_eq!(survey.seq_max, seq_max, "{name}");
        }
        let last = limits::SEGMENT_SEQ_MAX;
        for (seq, is_taken) in [(last - 1, true), (last, false), (u64::MAX, false)] {
            let sorted = sort_names(vec![entry(segment_name(seq), EntryKind::File)]);
            assert_eq!(sorted.is_ok(), is_taken, "{seq}");
        }
    }

    #[test]
    fn hz_08_a_directory_in_the_place_of_a_file_is_told_before_anything_is_opened() {
        let names = [segment_name(1), segment_temp_name(1), LOCK_NAME.into(), MANIFEST_TEMP_NAME.into()];
        for name in names {
            let error = sort_names(vec![entry(name.clone(), EntryKind::Other)]).unwrap_err();
            assert_eq!((error.code(), error.at().file.as_deref()), ("not_a_file", Some(&name[..])));
        }
    }

    /// Blank segments are all that an interrupted creation leaves, too; but that has no reserve yet.
    #[test]
    fn ep_03_a_log_without_a_record_that_has_lost_its_manifest_is_no_new_one() {
        let disk = SimDisk::new(5);
        let (log, _) = LogOptions::new().open_sim(&disk).unwrap();
        log.advance_epoch(Epoch::new(4)).unwrap();
        log.close().unwrap();
        disk.handle().remove(MANIFEST_NAME).unwrap();
        let error = LogOptions::new().open_sim(&disk).map(drop).unwrap_err();
        assert_eq!((error.kind(), error.code()), (crate::ErrorKind::Corrupt, "manifest_missing"), "{error}");
    }

    #[test]
    fn the_zeros_of_a_new_log_are_not_read_again_and_those_of_an_old_one_are() {
        const SEGMENT_BYTES: u64 = 4 << 20;
        let disk = SimDisk::new(5);
        let options = LogOptions::new().segment_bytes(SEGMENT_BYTES);
        let (log, report) = options.open_sim(&disk).expect("a new log");
        let read_new = disk.counters().bytes_read;
        assert!(report.created && read_new < SEGMENT_BYTES / 16, "{read_new} bytes were read");
        log.close().expect("close");
        let before = disk.counters().bytes_read;
        let (_log, report) = options.open_sim(&disk).expect("the same log");
        let read_old = disk.counters().bytes_read - before;
        assert!(!report.created && read_old >= SEGMENT_BYTES - (64 << 10), "{read_old} bytes were read");
    }

    #[test]
    fn lk_01_a_look_at_a_log_that_moves_on_catches_up() {
        // Segments of this size take 31 records. Every place in one, and up to three segments further.
        for before in 1..=32 {
            for more in [1, 30, 31, 32, 64, 96] {
                let last = u64::from(1 + (before - 1) / 31);
                for early in [0, last] {
                    let (torn, now) = caught_up(before, more, |seq| seq == early);
                    let has_moved = seen(&now).len() as u64 > last;
                    // The last segment, read too early, is all there is: that is a look at an earlier time.
                    if early == 0 || has_moved && torn.segments.contains_key(&(last + 1)) {
                        assert_eq!(seen(&torn), seen(&now), "{before} and {more}, {early} read early");
                    }
                }
            }
        }
    }
}
