use std::sync::Arc;

use super::state::{LogState, read_state};
use super::tally::Tally;
use super::{DamagedBytes, ManifestState, Note, Progress, SegmentInfo, SegmentState, Verdict};
use crate::base::{Error, Result, Zxid, counted, limits};
use crate::format::{Name, SegmentHeader, segment_name};
use crate::io::{DirEntry, Disk, File};
use crate::log::directory::open_segment;
use crate::log::walk::{Step, Until, Walk};

/// A whole directory, read from end to end and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The manifest.
    pub manifest: ManifestState,
    /// What opening the log would make of it.
    pub verdict: Verdict,
    /// All segments, those moved aside included, in the order of their numbers.
    pub segments: Vec<SegmentInfo>,
    /// Other files of the log: the lock, the reserve, damaged manifests that were kept, temporary files.
    pub other_files: Vec<(String, u64)>,
    /// What is odd and takes nothing from the log.
    pub notes: Vec<Note>,
    /// Names that are not the log's. Never read, never changed.
    pub foreign: Vec<String>,
}

impl Examination {
    /// The segments that make up the log.
    pub fn log(&self) -> impl Iterator<Item = &SegmentInfo> {
        self.segments.iter().filter(|s| s.state.is_in_log())
    }

    /// All damage of the log, by file.
    pub fn damages(&self) -> impl Iterator<Item = &DamagedBytes> {
        self.log().flat_map(|s| &s.damages)
    }

    /// The last record before the log and its last one; none if it does not open, or there is none.
    pub fn range(&self) -> Option<(Zxid, Zxid)> {
        let ManifestState::Present(manifest) = &self.manifest else { return None };
        let last = self.log().filter_map(|segment| segment.last_zxid).max();
        let opens = self.verdict.opens() && !matches!(self.verdict, Verdict::NoLog);
        opens.then(|| (manifest.floor_zxid, last.unwrap_or(manifest.floor_zxid)))
    }

    /// Whether the log would open and none of its bytes is damaged.
    pub fn is_sound(&self) -> bool {
        self.verdict.opens() && self.damages().next().is_none()
    }

    pub(super) fn of(disk: &Arc<dyn Disk>, progress: &mut dyn FnMut(Progress)) -> Result<Examination> {
        let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
        let bytes = |aside: bool| -> u64 {
            let named = |name: &str| matches!(Name::parse(name), Name::Aside(_)) == aside && is_segment(name);
            entries.iter().filter(|e| named(&e.name)).map(|e| e.len).sum()
        };
        // The log's own segments are read twice: to judge them, and to count what is in them.
        let total_bytes = 2 * bytes(false) + bytes(true);
        let mut done_bytes = 0;
        let mut read = |bytes: u64| {
            done_bytes += bytes;
            progress(Progress { done_bytes: done_bytes.min(total_bytes), total_bytes });
        };
        let state = read_state(disk, &mut read)?;
        let (mut segments, mut notes) = (Vec::new(), Vec::new());
        for entry in &state.entries {
            let info = match Name::parse(&entry.name) {
                Name::Segment(seq) | Name::Aside(seq) => examine(disk, &state, entry, seq, &mut notes)?,
                _ => continue,
            };
            read(entry.len);
            segments.extend(info);
        }
        let other = state.entries.iter().filter(|e| {
            !is_segment(&e.name) && !matches!(Name::parse(&e.name), Name::Foreign | Name::Manifest)
        });
        Ok(Examination {
            other_files: other.map(|e| (e.name.clone(), e.len)).collect(),
            notes,
            foreign: state.survey.foreign.clone(),
            manifest: state.manifest,
            verdict: state.verdict,
            segments,
        })
    }
}

fn is_segment(name: &str) -> bool {
    matches!(Name::parse(name), Name::Segment(_) | Name::Aside(_))
}

/// Reads one file; none if it is gone by now.
fn examine(
    disk: &Arc<dyn Disk>,
    state: &LogState,
    entry: &DirEntry,
    seq: u64,
    notes: &mut Vec<Note>,
) -> Result<Option<SegmentInfo>> {
    let name = entry.name.as_str();
    let file = match open_segment(disk.as_ref(), name) {
        Ok(file) => file,
        Err(error) if error.code() == "segment_missing" => return Ok(None),
        Err(error) if error.code() == "not_a_file" => {
            let aside = name != segment_name(seq);
            let state = if aside { SegmentState::Aside } else { SegmentState::Damaged };
            if aside {
                let message = "no regular file, under the name of a segment that was moved aside; left alone";
                let (file, code) = (name.to_owned(), error.code());
                notes.push(Note { file, code, offset: 0, bytes: 0, message: message.into() });
            }
            return Ok(Some(SegmentInfo::new(name.to_owned(), seq, state, 0).with_header(&Err(error))));
        }
        Err(error) => return Err(error),
    };
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(name))?;
    let header = read_header(file.as_ref(), state, seq)?;
    let info = SegmentInfo::new(name.to_owned(), seq, classify(state, name, seq), len.max(entry.len));
    let mut info = info.with_header(&header);
    notes.extend(stale(state, &info, header.as_ref().err()));
    let Ok(header) = header else { return Ok(Some(info)) };
    let named = name == segment_name(seq);
    let cut = state.effective.as_ref().and_then(|m| m.cut_of(seq)).filter(|_| named);
    let until = Until {
        zxid: cut.map(|c| c.last_zxid),
        offset: state.log_end().filter(|(end, _)| named && *end == seq).map(|(_, offset)| offset),
    };
    // What stands behind an early end may be groups that count no more.
    let early = until.zxid.is_some() || until.offset.is_some();
    let before = state.judged.as_ref().and_then(|j| j.segments.iter().find(|s| s.header.seq == seq));
    let before = before.filter(|_| named).map(|s| s.floor_zxid);
    let mut walk = Walk::new(file, header, before, until)?;
    let mut tally = Tally::default();
    let mut end_offset = walk.offset;
    while let Some(step) = walk.step()? {
        match step {
            Step::Group(group, records) => {
                let bytes = walk.group_bytes(&group)?;
                tally.group(&group, records, bytes, until.zxid.unwrap_or(Zxid::MAX));
                end_offset = if tally.damages_count == 0 { walk.offset } else { end_offset };
            }
            Step::Damage(damage) => tally.damage(damage),
        }
    }
    if info.state == SegmentState::Blank && (tally.records > 0 || tally.damages_count > 0) {
        // Put to use since it was judged.
        info.state = SegmentState::Active;
    }
    if info.state.is_in_log() && tally.damages_count > 0 {
        info.state = SegmentState::Damaged;
    }
    let walked = if early || tally.damages_count > 0 { len } else { walk.offset };
    notes.extend(overlong(&info, header.capacity.max(walked), len));
    Ok(Some(info.with_tally(tally, end_offset)))
}

/// What a file is that has a segment's name, holds something, and is no part of the log.
fn stale(state: &LogState, info: &SegmentInfo, error: Option<&Error>) -> Option<Note> {
    if info.state != SegmentState::Stale {
        return None;
    }
    let purged = state.effective.as_ref().is_some_and(|m| info.seq < m.first_seq);
    let (place, fate) = match (purged, error) {
        (true, None) => ("was purged", "opening removes it"),
        (true, Some(_)) => ("has the name of one that was purged", "opening leaves it alone"),
        (false, _) => ("stands behind the end", "opening moves it aside"),
    };
    let what = error.map_or(String::new(), |error| format!(" ({})", error.message()));
    Some(Note {
        file: info.file.clone(),
        code: error.map_or("segment_stale", Error::code),
        offset: 0,
        bytes: info.file_bytes,
        message: format!("no part of the log: it {place}{what}; {fate}"),
    })
}

/// What a file has from `offset` on, where no group can have reached. Behind `data_end` it is a hole.
fn overlong(info: &SegmentInfo, offset: u64, data_end: u64) -> Option<Note> {
    let bytes = info.file_bytes.checked_sub(offset).filter(|bytes| *bytes > 0)?;
    let hole = if data_end <= offset { "all of them a hole" } else { "not all of them a hole" };
    let message = format!(
        "{} behind the end that the segment was made with, {hole}; no part of the log, and left alone",
        counted(bytes, "byte")
    );
    Some(Note { file: info.file.clone(), code: "segment_overlong", offset, bytes, message })
}

/// A segment's header page, checked against the log's identity where that is known.
pub(super) fn read_header(
    file: &dyn File,
    state: &LogState,
    seq: u64,
) -> Result<std::result::Result<SegmentHeader, Error>> {
    let owner = state.effective.as_ref().map(|m| m.database_id);
    let wrap = |e| Error::io("read a segment's header", e).in_file(file.name());
    let mut page = vec![0; usize::try_from(limits::SEGMENT_HEADER_BYTES).expect("a page")];
    let read = file.read_at(0, &mut page).map_err(wrap)?;
    let header = SegmentHeader::decode(&page[..read])
        .and_then(|header| crate::log::read::check_owner(header, seq, owner.unwrap_or(header.database_id)));
    Ok(header.map_err(|e| e.in_file(file.name()).at_offset(0)))
}

fn classify(state: &LogState, name: &str, seq: u64) -> SegmentState {
    if name != segment_name(seq) {
        return SegmentState::Aside;
    }
    let Some(scan) = state.survey.segments.get(&seq) else { return SegmentState::Damaged };
    if !state.log_segments().contains(&seq) {
        return if scan.is_blank() { SegmentState::Blank } else { SegmentState::Stale };
    }
    let refused = match &state.verdict {
        Verdict::Refused(error) => error.at().file.as_deref() == Some(name),
        _ => false,
    };
    let cut = state.effective.as_ref().is_some_and(|m| m.cut_of(seq).is_some());
    match scan.stop.kind {
        _ if refused || scan.header.is_err() => SegmentState::Damaged,
        _ if cut => SegmentState::Cut,
        crate::log::read::StopKind::Sealed => SegmentState::Sealed,
        _ => SegmentState::Active,
    }
}
