use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::state::{read_manifest_state, read_state};
use super::{DamagedBytes, Progress, Selection, Verdict};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, limits};
use crate::format::layout::is_zero;
use crate::format::{
    DatabaseId, GROUP_HEADER_BYTES, GroupHeader, MANIFEST_NAME, Manifest, Name, SegmentHeader, segment_name,
};
use crate::io::{Disk, File};
use crate::log::directory::open_segment;
use crate::log::read::{Records, check_owner};
use crate::log::walk::{Step, Until, Walk, after};

/// What a [`RecordStream`] comes upon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// A record that was verified.
    Record(FoundRecord<'a>),
    /// Bytes of the log that are damaged; the stream goes on behind them.
    Damage(DamagedBytes),
}

/// A record, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FoundRecord<'a> {
    /// Its identifier.
    pub zxid: Zxid,
    /// The epoch in which it was appended.
    pub epoch: Epoch,
    /// The leader's clock, in milliseconds since 1970.
    pub time_ms: i64,
    /// The opaque bytes.
    pub payload: &'a [u8],
    /// The file that holds it.
    pub file: &'a str,
    /// Where its payload begins in that file.
    pub offset: u64,
}

/// A segment to read.
#[derive(Debug)]
struct Planned {
    seq: u64,
    name: String,
    head: std::result::Result<SegmentHeader, Error>,
    /// What its first group says came before it.
    floor: Option<Zxid>,
    /// Where its first group belongs there are zeros: it was prepared, and never used.
    is_blank: bool,
}

/// A record, before it is borrowed: its group, and where in it its payload stands.
#[derive(Debug)]
struct Found {
    group: GroupHeader,
    at: usize,
    len: usize,
    zxid: Zxid,
    time_ms: i64,
}

/// The records of a log, or of one file, in order.
pub struct RecordStream {
    disk: Arc<dyn Disk>,
    selection: Selection,
    manifest: Option<Manifest>,
    planned: VecDeque<Planned>,
    name: String,
    walk: Option<Walk>,
    group: Option<(GroupHeader, Records)>,
    /// The last record of what was read, where it is known.
    last: Option<Zxid>,
    /// What is wrong with the manifest, to be told first.
    pending: Option<DamagedBytes>,
    /// Whether damage was looked at with the whole log in view: it tells damage from a torn end.
    judged: bool,
    over: bool,
    done_bytes: u64,
    total_bytes: u64,
}

impl RecordStream {
    pub(super) fn new(disk: Arc<dyn Disk>, selection: Selection) -> Result<RecordStream> {
        let mut stream = RecordStream {
            disk,
            selection,
            manifest: None,
            planned: VecDeque::new(),
            name: String::new(),
            walk: None,
            group: None,
            last: None,
            pending: None,
            judged: false,
            over: false,
            done_bytes: 0,
            total_bytes: 0,
        };
        match stream.selection.file.clone() {
            Some(name) => stream.plan_file(&name)?,
            None => stream.plan_log()?,
        }
        Ok(stream)
    }

    fn plan_file(&mut self, name: &str) -> Result<()> {
        let (Name::Segment(seq) | Name::Aside(seq)) = Name::parse(name) else {
            return Err(Error::invalid(format!("{name} is no name of a segment")));
        };
        self.judged = true;
        let planned = peek(self.disk.as_ref(), name, seq, None).map_err(|error| match error.code() {
            // Asked for by name: that it is not there is no damage of the log.
            "segment_missing" => {
                Error::new(ErrorKind::NotInLog, "no_such_file", "there is no such file here".into())
                    .in_file(name)
            }
            _ => error,
        })?;
        self.planned.push_back(planned);
        Ok(())
    }

    fn plan_log(&mut self) -> Result<()> {
        let read = read_manifest_state(self.disk.as_ref())?;
        let seqs: Vec<(u64, u64)> = if let Ok(Some(manifest)) = read {
            let entries = self.disk.list().map_err(|e| Error::io("list the log's directory", e))?;
            let mut seqs: Vec<_> = entries
                .iter()
                .filter_map(|e| match Name::parse(&e.name) {
                    Name::Segment(seq) => Some((seq, e.len)),
                    _ => None,
                })
                .filter(|(seq, _)| *seq >= manifest.first_seq && !manifest.is_cut_away(*seq))
                .collect();
            seqs.sort_unstable();
            self.last = Some(manifest.floor_zxid);
            self.manifest = Some(manifest);
            seqs
        } else {
            // Without its manifest, the segments themselves say what the log must have been.
            let state = read_state(&self.disk, &mut |_| {})?;
            self.judged = true;
            if matches!(state.verdict, Verdict::NoLog) {
                let why = "there is no log in this directory".into();
                return Err(Error::new(ErrorKind::Io, "no_log", why));
            }
            if let Verdict::Refused(error) = &state.verdict {
                self.pending = Some(DamagedBytes {
                    file: error.at().file.clone().unwrap_or_else(|| MANIFEST_NAME.into()),
                    code: error.code(),
                    offset: 0,
                    end_offset: None,
                    first_zxid: None,
                    last_zxid: None,
                });
            }
            self.manifest.clone_from(&state.effective);
            state.log_segments().into_iter().map(|seq| (seq, state.survey.segments[&seq].file_len)).collect()
        };
        let owner = self.manifest.as_ref().map(|m| m.database_id);
        for (seq, len) in seqs {
            match peek(self.disk.as_ref(), &segment_name(seq), seq, owner) {
                Ok(planned) => self.planned.push_back(planned),
                // Purged since the listing.
                Err(error) if error.code() == "segment_missing" => continue,
                Err(error) => return Err(error),
            }
            self.total_bytes += len;
        }
        self.skip_before_selection();
        Ok(())
    }

    /// Leaves out the segments whose records all come before the selection, as the next one's floor tells.
    fn skip_before_selection(&mut self) {
        while self.planned.get(1).and_then(|next| next.floor).is_some_and(|floor| floor < self.selection.from)
        {
            self.planned.pop_front();
            self.last = None;
        }
    }

    /// How far the stream has come.
    pub fn progress(&self) -> Progress {
        let walked = self.walk.as_ref().map_or(0, |w| w.offset);
        let done_bytes = (self.done_bytes + walked).min(self.total_bytes);
        Progress { done_bytes, total_bytes: self.total_bytes }
    }

    /// The next record or damage, or `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if something cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        if let Some(damage) = self.pending.take() {
            return Ok(Some(Item::Damage(damage)));
        }
        loop {
            if let Some(found) = self.next_in_group()? {
                let Found { group, at, len, zxid, time_ms } = found;
                let Some(walk) = self.walk.as_mut() else { return Ok(None) };
                let offset = group.offset + at as u64;
                let payload = &walk.group_bytes(&group)?[at..at + len];
                let (epoch, file) = (group.epoch, self.name.as_str());
                return Ok(Some(Item::Record(FoundRecord { zxid, epoch, time_ms, payload, file, offset })));
            }
            if self.over {
                return Ok(None);
            }
            if let Some(damage) = self.advance()? {
                return Ok(Some(Item::Damage(damage)));
            }
        }
    }

    /// The next record of the group at hand that is wanted: its group, where it is, and what it is.
    fn next_in_group(&mut self) -> Result<Option<Found>> {
        let Some((group, mut records)) = self.group.take() else { return Ok(None) };
        let Some(walk) = self.walk.as_mut() else { return Ok(None) };
        let end = self.manifest.as_ref().and_then(|m| m.cut_of(walk.header.seq)).map(|c| c.last_zxid);
        let end = end.filter(|_| self.selection.file.is_none()).unwrap_or(Zxid::MAX);
        let bytes = walk.group_bytes(&group)?;
        while let Some(record) = records.next(bytes).filter(|r| r.zxid <= end) {
            if record.zxid > self.selection.to {
                self.over = true;
                return Ok(None);
            }
            if self.selection.takes(record.zxid, record.time_ms) {
                let at = record.payload.as_ptr().addr() - bytes.as_ptr().addr();
                let (len, zxid, time_ms) = (record.payload.len(), record.zxid, record.time_ms);
                let found = Found { group, at, len, zxid, time_ms };
                self.group = Some((group, records));
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Goes on to the next group, or tells of damage on the way.
    fn advance(&mut self) -> Result<Option<DamagedBytes>> {
        let Some(walk) = self.walk.as_mut() else { return self.enter() };
        let (offset, last) = (walk.offset, walk.last);
        match walk.step()? {
            Some(Step::Group(group, records)) => {
                if group.first_zxid > self.selection.to {
                    self.over = true;
                } else if group.last_zxid >= self.selection.from {
                    self.group = Some((group, records));
                }
                Ok(None)
            }
            Some(Step::Damage(_)) if !self.judged => {
                self.judge()?;
                if let Some(walk) = self.walk.as_mut() {
                    walk.back_to(offset, last)?;
                }
                Ok(None)
            }
            Some(Step::Damage(damage)) => Ok(Some(self.complete(damage))),
            None => {
                self.last = walk.last;
                self.done_bytes += walk.file_len();
                self.walk = None;
                Ok(None)
            }
        }
    }

    /// Damage that nothing valid follows in its file takes all up to where the log goes on, or up to the last record
    /// that is known to have been durable. That range is told with it, and not once more where it ends.
    fn complete(&mut self, damage: DamagedBytes) -> DamagedBytes {
        let (Some(first), None, Some(walk)) = (damage.first_zxid, damage.end_offset, self.walk.as_mut())
        else {
            return damage;
        };
        let seq = walk.header.seq;
        let cut = self.manifest.as_ref().and_then(|manifest| manifest.cut_of(seq));
        let next_seq = cut.map_or(seq + 1, |cut| cut.next_seq);
        let last = match self.planned.iter().find(|planned| !planned.is_blank) {
            Some(next) if next.seq == next_seq => next.floor,
            Some(_) => None,
            None => self.manifest.as_ref().map(|m| m.durable_zxid),
        };
        let Some(last) = last.filter(|last| *last >= first) else { return damage };
        // Where the file's own bytes tell of more, they are right.
        let last = damage.last_zxid.map_or(last, |told| told.max(last));
        walk.last = Some(last);
        DamagedBytes { last_zxid: Some(last), ..damage }
    }

    /// Enters the next segment.
    fn enter(&mut self) -> Result<Option<DamagedBytes>> {
        let Some(planned) = self.planned.pop_front() else { return Ok(self.finish()) };
        let gap = matches!((self.last, planned.floor), (Some(last), Some(floor)) if last != floor);
        if (gap || planned.head.is_err()) && !self.judged {
            self.planned.push_front(planned);
            self.judge()?;
            return Ok(None);
        }
        self.name.clone_from(&planned.name);
        let header = match planned.head {
            Ok(header) => header,
            Err(error) => {
                let next = self.planned.iter().find_map(|p| p.floor);
                let first_zxid = self.last.map(after).filter(|first| next.is_none_or(|next| *first <= next));
                let last_zxid = next.filter(|_| first_zxid.is_some());
                self.last = next;
                let (file, code) = (planned.name, error.code());
                return Ok(Some(DamagedBytes {
                    file,
                    code,
                    offset: 0,
                    end_offset: None,
                    first_zxid,
                    last_zxid,
                }));
            }
        };
        let file = open_segment(self.disk.as_ref(), &planned.name)?;
        let cut = self.manifest.as_ref().and_then(|m| m.cut_of(planned.seq)).map(|c| c.last_zxid);
        let until = Until { zxid: cut.filter(|_| self.selection.file.is_none()), offset: None };
        self.walk = Some(Walk::new(file, header, self.last, until)?);
        Ok(None)
    }

    /// Behind the last segment: whether the manifest knows of more than there was.
    fn finish(&mut self) -> Option<DamagedBytes> {
        self.over = true;
        let durable = self.manifest.as_ref().map(|m| m.durable_zxid)?;
        let last = self.last.filter(|last| *last < durable && self.selection.to > *last)?;
        if self.selection.file.is_some() {
            return None;
        }
        Some(DamagedBytes {
            file: self.name.clone(),
            code: "log_damaged",
            offset: 0,
            end_offset: None,
            first_zxid: Some(after(last)),
            last_zxid: Some(durable),
        })
    }

    /// Looks at the whole log once, to tell damage from a torn end: if opening would take the log, what is
    /// behind its end is no damage, and no part of it.
    fn judge(&mut self) -> Result<()> {
        self.judged = true;
        let state = read_state(&self.disk, &mut |_| {})?;
        let Some((seq, offset)) = state.log_end() else { return Ok(()) };
        self.planned.retain(|p| p.seq <= seq);
        if let Some(walk) = self.walk.as_mut() {
            match walk.header.seq.cmp(&seq) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => walk.end_at(offset),
                std::cmp::Ordering::Greater => self.walk = None,
            }
        }
        Ok(())
    }
}

/// Reads what a segment's first bytes say.
fn peek(disk: &dyn Disk, name: &str, seq: u64, owner: Option<DatabaseId>) -> Result<Planned> {
    let file = match open_segment(disk, name) {
        Ok(file) => file,
        Err(error) if error.code() == "not_a_file" => {
            return Ok(Planned {
                seq,
                name: name.to_owned(),
                head: Err(error),
                floor: None,
                is_blank: false,
            });
        }
        Err(error) => return Err(error),
    };
    let wrap = |e| Error::io("read a segment's header", e).in_file(name);
    let mut page = vec![0; usize::try_from(limits::SEGMENT_HEADER_BYTES).expect("a page")];
    let read = file.read_at(0, &mut page).map_err(wrap)?;
    let head = SegmentHeader::decode(&page[..read])
        .and_then(|header| check_owner(header, seq, owner.unwrap_or(header.database_id)));
    let (floor, is_blank) = match &head {
        Ok(header) => {
            let bytes = first_bytes(file.as_ref(), header)?;
            let group = GroupHeader::decode(&bytes, header.seed(), header.seq, header.first_group_offset());
            (group.map(|group| group.prev_zxid), is_zero(&bytes))
        }
        Err(_) => (None, false),
    };
    Ok(Planned { seq, name: name.to_owned(), head, floor, is_blank })
}

/// The bytes where the header of the first group belongs.
fn first_bytes(file: &dyn File, header: &SegmentHeader) -> Result<Vec<u8>> {
    let (offset, mut bytes) = (header.first_group_offset(), vec![0; GROUP_HEADER_BYTES]);
    let wrap = |e| Error::io("read a segment", e).in_file(file.name()).at_offset(offset);
    let read = file.read_at(offset, &mut bytes).map_err(wrap)?;
    bytes.truncate(read);
    Ok(bytes)
}

impl fmt::Debug for RecordStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordStream").field("file", &self.name).finish_non_exhaustive()
    }
}
