use std::sync::Arc;

use super::{ManifestInfo, ManifestState, Verdict};
use crate::base::{Error, ErrorKind, Result};
use crate::format::{Manifest, segment_name};
use crate::io::{DirEntry, Disk};
use crate::log::directory::read_manifest;
use crate::log::looks::until_believed;
use crate::log::recover::{Ending, Judgement, Survey, catch_up, judge, scan_one, sort_names, survey};
use crate::log::retain::rebuild;

/// A directory as one look found it.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) entries: Vec<DirEntry>,
    pub(super) manifest: ManifestState,
    /// The manifest, or what the segments say that it must have been; none if they say nothing.
    pub(super) effective: Option<Manifest>,
    pub(super) survey: Survey,
    /// The log, if opening would take it.
    pub(super) judged: Option<Judgement>,
    pub(super) verdict: Verdict,
}

/// Reads and judges a directory. `read` is told of bytes that were read.
///
/// A live writer makes any look inconsistent: a later segment may prove what an earlier one had not shown
/// yet. So a refusal counts only if a second look finds the same at the same place.
pub(super) fn read_state(disk: &Arc<dyn Disk>, read: &mut dyn FnMut(u64)) -> Result<LogState> {
    until_believed(
        || look_once(disk, read),
        |state| match &state.verdict {
            Verdict::Refused(error) => Some(error),
            _ => None,
        },
    )
}

fn look_once(disk: &Arc<dyn Disk>, read: &mut dyn FnMut(u64)) -> Result<LogState> {
    let manifest = read_manifest_state(disk.as_ref())?;
    let mut entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let odd = entries.iter().find_map(odd_name);
    let regular: Vec<DirEntry> = entries.iter().filter(|e| odd_name(e).is_none()).cloned().collect();
    let (mut found, segments) = sort_names(regular)?;
    let mut effective = None;
    if let Ok(Some(manifest)) = &manifest {
        for (seq, len) in &segments {
            found.segments.insert(*seq, scan_one(disk.as_ref(), manifest, *seq)?);
            read(*len);
        }
        catch_up(disk.as_ref(), manifest, &mut found)?;
        effective = Some(manifest.clone());
    } else if !segments.is_empty() {
        match rebuild(disk, &entries, &segments, None) {
            Ok(rebuilt) => {
                found.segments = rebuilt.scans;
                effective = Some(rebuilt.manifest);
            }
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            // Nothing to go by: each file is then looked at alone.
            Err(_) => {}
        }
        read(segments.iter().map(|(_, len)| len).sum());
    }
    let (verdict, judged) = match (odd, &manifest) {
        (Some(error), _) => (Verdict::Refused(error), None),
        (None, Err(error)) => (Verdict::Refused(error.clone()), None),
        (None, Ok(None)) => (without_manifest(disk)?, None),
        (None, Ok(Some(manifest))) => match judge(&found, manifest) {
            Ok(judged) => (verdict_of(&judged), Some(judged)),
            Err(error) => (Verdict::Refused(error), None),
        },
    };
    let manifest = match manifest {
        Ok(Some(manifest)) => ManifestState::Present(ManifestInfo::of(&manifest)),
        Ok(None) => ManifestState::Missing,
        Err(error) => ManifestState::Unreadable(error),
    };
    Ok(LogState { entries, manifest, effective, survey: found, judged, verdict })
}

/// The outer error is the disk's, the inner one the manifest's.
pub(super) fn read_manifest_state(disk: &dyn Disk) -> Result<std::result::Result<Option<Manifest>, Error>> {
    match read_manifest(disk) {
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        state => Ok(state),
    }
}

/// Why this name refuses the log whatever stands in it: a name of the log on something that is no file, or
/// a segment's with a number that no log reaches.
fn odd_name(entry: &DirEntry) -> Option<Error> {
    sort_names(vec![entry.clone()]).err()
}

fn without_manifest(disk: &Arc<dyn Disk>) -> Result<Verdict> {
    match survey(disk) {
        // A manifest came into being meanwhile: the next look finds it.
        Ok(found) if found.manifest.is_some() => Ok(Verdict::Unclean),
        Ok(_) => Ok(Verdict::NoLog),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(error) => Ok(Verdict::Refused(error)),
    }
}

fn verdict_of(judged: &Judgement) -> Verdict {
    match judged.ending {
        _ if judged.is_clean() => Verdict::Clean,
        Ending::InPlace => Verdict::Clean,
        Ending::Cut { torn_bytes: 0, later: false, .. } => Verdict::Unclean,
        Ending::Cut { seq, offset, torn_bytes, .. } => {
            Verdict::Torn { file: segment_name(seq), offset, bytes: torn_bytes }
        }
    }
}

impl LogState {
    /// The segments of the log in their order: as judged, or as the manifest names them.
    pub(super) fn log_segments(&self) -> Vec<u64> {
        if let Some(judged) = &self.judged {
            return judged.segments.iter().map(|s| s.header.seq).collect();
        }
        let Some(manifest) = &self.effective else { return Vec::new() };
        let ours = self.survey.segments.range(manifest.first_seq..);
        let ours = ours.filter(|(seq, scan)| !manifest.is_cut_away(**seq) && !scan.is_blank());
        ours.map(|(seq, _)| *seq).collect()
    }

    /// Where the log ends, if opening would take it: the segment, and the offset in it.
    pub(super) fn log_end(&self) -> Option<(u64, u64)> {
        let judged = self.judged.as_ref()?;
        Some(judged.segments.last().map_or((0, 0), |s| (s.header.seq, s.end_offset)))
    }
}
