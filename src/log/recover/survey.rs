use std::collections::BTreeMap;
use std::sync::Arc;

use super::scan_all::scan_all;
use crate::base::{Error, Result, limits};
use crate::format::{MANIFEST_NAME, Manifest, Name, RESERVE_NAME, segment_name};
use crate::io::{DirEntry, Disk, EntryKind};
use crate::log::directory::{open_segment, read_manifest};
use crate::log::read::{Replay, SegmentScan, is_blank_file};

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
    if let Some(manifest) = &survey.manifest {
        survey.segments = scan_all(disk, manifest, &found, replay)?;
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
