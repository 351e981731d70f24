use std::collections::BTreeMap;

use super::survey::Survey;
use super::table::{EndState, Facts, FileState, Verdict, decide};
use crate::base::{Epoch, Error, Result, Zxid};
use crate::format::{Manifest, segment_name};
use crate::log::commit::RetiredSegment;
use crate::log::read::{SegmentScan, StopKind};

/// What the log is, as far as its files tell.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    pub(crate) manifest: Manifest,
    /// The segments of the log, oldest first. The last one is where the log ends.
    pub(crate) segments: Vec<RetiredSegment>,
    pub(crate) ending: Ending,
    pub(crate) last_zxid: Zxid,
    /// The last record that something proves durable.
    pub(crate) proven: Zxid,
    pub(crate) epoch: Epoch,
    pub(crate) time_max_ms: i64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// How the log ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Cleanly; the last segment takes more groups.
    InPlace,
    /// Nothing after the last record of segment `seq` counts; the log goes on in a new segment.
    Cut {
        seq: u64,
        offset: u64,
        /// Bytes behind the end that are not zeros and not known to be durable, up to the end of the file.
        torn_bytes: u64,
        /// Whether groups of later segments go with it.
        later: bool,
    },
}

/// Why a log is refused, and what of it stands before the damage.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// The valid log up to the damage. Its `ending` says nothing.
    pub(crate) kept: Judgement,
    /// The last record that is known to be lost with everything behind the damage.
    pub(crate) lost_until: Zxid,
}

/// Walks the segments from the oldest on, and decides by the table where the log ends, or that it is damaged.
pub(crate) fn judge(survey: &Survey, manifest: &Manifest) -> Result<Judgement> {
    judge_or_keep(survey, manifest).map_err(|refusal| refusal.error)
}

/// The same, for those who go on from what stands before the damage.
pub(crate) fn judge_or_keep(
    survey: &Survey,
    manifest: &Manifest,
) -> std::result::Result<Judgement, Box<Refusal>> {
    let out = Judgement::start(manifest);
    let mut walk =
        Walk { survey, manifest, later: Later::of_all(survey, manifest), out, seq: manifest.first_seq };
    loop {
        let scan = survey.segments.get(&walk.seq);
        let facts = walk.facts(scan);
        match decide(facts) {
            Verdict::NextSegment => walk.pass(scan.expect("a whole segment is there")),
            Verdict::Continue => return Ok(walk.end_in_place(scan.expect("a clean end is in a file"))),
            Verdict::CutHere
                if crate::planted("unclean_in_place") && scan.is_some_and(|s| s.header.is_ok()) =>
            {
                return Ok(walk.end_in_place(scan.expect("just seen")));
            }
            Verdict::CutHere => return Ok(walk.end_by_cut(scan, facts.later)),
            Verdict::Refuse(code) => {
                let error = walk.refuse(code, scan);
                return Err(walk.keep(scan, error));
            }
            Verdict::Impossible => {
                let error =
                    Error::corrupt("log_damaged", format!("what was found contradicts itself: {facts:?}"));
                let error = error.in_file(&segment_name(walk.seq));
                return Err(walk.keep(scan, error));
            }
        }
    }
}

impl Judgement {
    fn start(manifest: &Manifest) -> Judgement {
        Judgement {
            manifest: manifest.clone(),
            segments: Vec::new(),
            ending: Ending::InPlace,
            last_zxid: manifest.floor_zxid,
            proven: manifest.durable_zxid,
            epoch: manifest.epoch,
            time_max_ms: i64::MIN,
            records: 0,
            bytes: 0,
        }
    }

    /// Whether the log ends exactly where a clean close, or a truncation, says that it does.
    pub(crate) fn is_clean(&self) -> bool {
        let nothing_behind =
            matches!(self.ending, Ending::InPlace | Ending::Cut { torn_bytes: 0, later: false, .. });
        nothing_behind && self.manifest.clean && self.manifest.durable_zxid == self.last_zxid
    }
}

/// What segments hold together.
#[derive(Clone, Copy, Default, Debug)]
struct Later {
    /// The most that one of them claims to have been durable.
    claims: Zxid,
    has_groups: bool,
}

impl Later {
    /// From the newest segment back, so that a log of many segments is walked in a time that grows with them
    /// and not with their square.
    fn of_all(survey: &Survey, manifest: &Manifest) -> BTreeMap<u64, Later> {
        let mut sum = Later::default();
        let kept = survey.segments.iter().rev().filter(|(seq, _)| !manifest.is_cut_away(**seq));
        kept.map(|(seq, scan)| {
            sum.claims = sum.claims.max(scan.claims_anywhere());
            sum.has_groups |= scan.has_groups();
            (*seq, sum)
        })
        .collect()
    }
}

struct Walk<'s> {
    survey: &'s Survey,
    manifest: &'s Manifest,
    /// For each segment that is not cut away, what it and those behind it hold.
    later: BTreeMap<u64, Later>,
    out: Judgement,
    seq: u64,
}

impl Walk<'_> {
    fn facts(&self, scan: Option<&SegmentScan>) -> Facts {
        let last = self.last_with(scan);
        let later = self.later.range(self.seq + 1..).next().map_or(Later::default(), |(_, later)| *later);
        let own_claims = scan.map_or(Zxid::ZERO, SegmentScan::claims_anywhere);
        let durable = self.manifest.durable_zxid.max(later.claims).max(own_claims);
        Facts {
            file: match scan {
                None => FileState::Absent,
                Some(scan) if scan.header.is_err() => FileState::BadHeader,
                Some(scan) if scan.is_short() => FileState::Short,
                Some(_) => FileState::Usable,
            },
            end: self.end(scan, last),
            later: scan.is_some_and(|s| s.beyond.is_some()) || later.has_groups,
            proof: durable > last,
            settled: self.manifest.clean && self.manifest.durable_zxid == last,
        }
    }

    fn end(&self, scan: Option<&SegmentScan>, last: Zxid) -> EndState {
        let Some(scan) = scan.filter(|s| s.header.is_ok()) else { return EndState::Zeros };
        if scan.floor_zxid.is_some_and(|floor| floor != self.out.last_zxid) {
            return EndState::Misfit;
        }
        // A segment without a group that the manifest ends at what came before it.
        let ended_unused = self.manifest.cut_of(self.seq).is_some_and(|c| c.last_zxid == last);
        match scan.stop.kind {
            StopKind::Sealed | StopKind::Limit => EndState::Ended,
            StopKind::Zeros | StopKind::Garbage if ended_unused => EndState::Ended,
            StopKind::Zeros | StopKind::Header => EndState::Zeros,
            StopKind::Garbage => EndState::Garbage,
            StopKind::Misfit => EndState::Misfit,
        }
    }

    /// Segments behind this one that are not known to be cut away.
    fn later(&self) -> impl Iterator<Item = (&u64, &SegmentScan)> {
        self.survey.segments.range(self.seq + 1..).filter(|(seq, _)| !self.manifest.is_cut_away(**seq))
    }

    fn last_with(&self, scan: Option<&SegmentScan>) -> Zxid {
        scan.and_then(|s| s.last_zxid).unwrap_or(self.out.last_zxid)
    }

    fn take(&mut self, scan: &SegmentScan) {
        let header = *scan.header.as_ref().expect("taken only with a good header");
        let floor_zxid = self.out.last_zxid;
        self.out.last_zxid = self.last_with(Some(scan));
        self.out.proven = self.out.proven.max(scan.claims);
        self.out.epoch = self.out.epoch.max(scan.epoch);
        if scan.groups > 0 {
            // The segment's own running maximum, which its next group must carry on.
            self.out.time_max_ms = scan.time_max_ms;
        }
        self.out.records += scan.records;
        self.out.bytes += scan.end_offset;
        self.out.segments.push(RetiredSegment {
            header,
            floor_zxid,
            last_zxid: self.out.last_zxid,
            end_offset: scan.end_offset,
            records: scan.records,
            time_max_ms: self.out.time_max_ms,
            index: scan.index.clone(),
        });
    }

    fn pass(&mut self, scan: &SegmentScan) {
        self.take(scan);
        self.seq = self.manifest.cut_of(self.seq).map_or(self.seq + 1, |c| c.next_seq);
    }

    fn end_in_place(mut self, scan: &SegmentScan) -> Judgement {
        self.take(scan);
        self.out
    }

    fn end_by_cut(mut self, scan: Option<&SegmentScan>, later: bool) -> Judgement {
        let usable = scan.filter(|s| s.header.is_ok());
        if let Some(scan) = usable {
            self.take(scan);
            let torn_bytes = match scan.stop.kind {
                StopKind::Zeros => 0,
                _ => scan.file_len.saturating_sub(scan.end_offset),
            };
            self.out.ending = Ending::Cut { seq: self.seq, offset: scan.end_offset, torn_bytes, later };
            return self.out;
        }
        // The segment itself is unusable: the log ends with the one before, which it was to follow.
        let (seq, offset) = self.out.segments.last().map_or((0, 0), |s| (s.header.seq, s.end_offset));
        let torn_bytes = scan.map_or(0, |s| s.file_len);
        self.out.ending = Ending::Cut { seq, offset, torn_bytes, later: scan.is_some() };
        self.out
    }

    /// What stands before the damage: the valid groups of this segment too, if they follow the last one.
    fn keep(mut self, scan: Option<&SegmentScan>, error: Error) -> Box<Refusal> {
        let lost_until = self.lost_until(self.last_with(scan));
        let follows = |s: &&SegmentScan| s.floor_zxid.is_none_or(|floor| floor == self.out.last_zxid);
        if let Some(scan) = scan.filter(|s| s.header.is_ok()).filter(follows) {
            self.take(scan);
        }
        Box::new(Refusal { error, kept: self.out, lost_until })
    }

    fn refuse(&self, code: &'static str, scan: Option<&SegmentScan>) -> Error {
        let name = segment_name(self.seq);
        let last = self.last_with(scan);
        let Some(scan) = scan else {
            let what = format!("the segment is missing; the log must go on here after {last}");
            return Error::corrupt(code, what).in_file(&name).with_zxids(after(last), self.lost_until(last));
        };
        let header = match &scan.header {
            Ok(header) => header,
            Err(error) => {
                return Error::new(error.kind(), error.code(), error.message().to_owned())
                    .in_file(&name)
                    .at_offset(error.at().offset.unwrap_or(0))
                    .with_zxids(after(last), self.lost_until(last));
            }
        };
        let (offset, first, until) = match scan.stop.bad {
            Some(bad) => (scan.stop.offset + bad.offset, bad.first_zxid, bad.last_zxid),
            None => (scan.stop.offset, after(last), self.lost_until(last)),
        };
        let what = match (code, scan.stop.bad) {
            ("segment_short", _) => {
                format!(
                    "the segment was written through to {} bytes and has {}",
                    header.capacity, scan.file_len
                )
            }
            ("group_misplaced", _) => format!("a valid group stands here that does not follow {last}"),
            (_, Some(bad)) => format!("bytes that were durable have changed ({})", bad.code),
            (_, None) => format!("the valid bytes end here after {last}, but more was durable"),
        };
        Error::corrupt(code, what).in_file(&name).at_offset(offset).with_zxids(first, until)
    }

    /// The last record that is known to be lost when the log ends after `last`.
    fn lost_until(&self, last: Zxid) -> Zxid {
        let own = self.survey.segments.get(&self.seq);
        let behind = own.and_then(|s| s.beyond).map_or(last, |b| b.claims);
        let next_floor = self.later().find_map(|(_, s)| s.floor_zxid).unwrap_or(last);
        let known = behind.max(next_floor).max(self.manifest.durable_zxid);
        known.max(after(last))
    }
}

fn after(zxid: Zxid) -> Zxid {
    Zxid::new(zxid.get().saturating_add(1))
}
