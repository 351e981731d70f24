use std::collections::VecDeque;

use super::active::{ActiveSegment, RetiredSegment};
use super::forming::Forming;
use super::policy::{Policy, Readiness};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, checksum, limits};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, Numbering, Seal, frame_bytes};
use crate::io::{Buffer, Completion, Durability, WriteOp};
use crate::log::options::LogOptions;

/// What an append may carry and a group may hold.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) record_bytes_max: u64,
    pub(crate) group_bytes_max: usize,
    pub(crate) group_records_max: u32,
    pub(crate) in_flight_max: usize,
    pub(crate) numbering: Numbering,
    pub(crate) durability: Durability,
}

impl Bounds {
    pub(crate) fn of(options: &LogOptions) -> Bounds {
        Bounds {
            record_bytes_max: options.record_bytes_max,
            group_bytes_max: usize::try_from(options.group.bytes_max).expect("bounded by 64 MiB"),
            group_records_max: options.group.records_max,
            in_flight_max: options.group.in_flight_max,
            numbering: options.numbering,
            durability: options.write_mode.durability(),
        }
    }
}

/// Where a log stands when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) last_zxid: Zxid,
    pub(crate) epoch: Epoch,
    pub(crate) time_max_ms: i64,
}

/// A record on its way in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    /// `None`: the one after the last.
    pub(crate) zxid: Option<Zxid>,
    pub(crate) epoch: Epoch,
    pub(crate) time_ms: i64,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_crc: u32,
}

/// What became of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// Ordered. `batch` numbers the group it is in.
    Logged { last_zxid: Zxid, batch: u64 },
    /// The forming group is full; a group has to start first.
    GroupFull,
    /// It needs the next segment, which is not ready yet.
    SegmentFull,
}

/// What to write now.
#[derive(Debug)]
pub(crate) enum Start {
    /// Nothing to do, or enough under way.
    Nothing,
    /// Worth waiting until this time for more records.
    WaitUntil(u64),
    Group(Started),
}

/// A group to hand to the disk, and the seal of the segment it leaves behind.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) batch: u64,
    pub(crate) write: WriteOp,
    pub(crate) seal: Option<WriteOp>,
    pub(crate) retired: Option<RetiredSegment>,
}

/// What a completion made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Groups `first_batch..end_batch` are acknowledged now.
    pub(crate) first_batch: u64,
    pub(crate) end_batch: u64,
    pub(crate) durable_zxid: Zxid,
    pub(crate) records: u64,
}

/// A group under way.
#[derive(Debug)]
struct Flight {
    batch: u64,
    last_zxid: Zxid,
    /// What its header claims to be durable.
    claims: Zxid,
    records: u32,
    parts_left: u8,
    started_ns: u64,
}

/// The state machine of group commit.
///
/// Invariants, asserted where they could break: zxids rise; `durable <= logged`; groups are acknowledged in
/// the order in which they were formed, whatever the order of their completions; a group's header never
/// claims more than what was durable when it was made; after a failure nothing is acknowledged any more.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    bounds: Bounds,
    seed: u32,
    logged: Zxid,
    durable: Zxid,
    epoch: Epoch,
    forming: Forming,
    forming_batch: u64,
    flights: VecDeque<Flight>,
    spare: Vec<Buffer>,
    active: ActiveSegment,
    next: Option<ActiveSegment>,
    policy: Policy,
    /// The running maximum of the times of all groups that were launched.
    launched_time_max_ms: i64,
    /// The last record that a durable group header proves durable.
    proven: Zxid,
    failure: Option<Error>,
    /// No more appends: closing, or an epoch change is under way.
    shut: Option<ErrorKind>,
}

impl GroupCommit {
    pub(crate) fn new(
        options: &LogOptions,
        database_seed: u32,
        position: Position,
        active: ActiveSegment,
        next: Option<ActiveSegment>,
    ) -> GroupCommit {
        let bounds = Bounds::of(options);
        let room = padded(bounds.group_bytes_max);
        GroupCommit {
            seed: database_seed,
            logged: position.last_zxid,
            durable: position.last_zxid,
            epoch: position.epoch,
            forming: Forming::new(Buffer::with_capacity(room), position.time_max_ms),
            forming_batch: 0,
            flights: VecDeque::with_capacity(bounds.in_flight_max),
            spare: (0..bounds.in_flight_max).map(|_| Buffer::with_capacity(room)).collect(),
            active,
            next,
            policy: Policy::new(&options.group),
            launched_time_max_ms: position.time_max_ms,
            proven: position.last_zxid,
            failure: None,
            shut: None,
            bounds,
        }
    }

    /// Orders `records` behind all others, as one: they share a group, so that a crash keeps all or none.
    ///
    /// Nothing is changed unless the answer is `Logged`.
    pub(crate) fn append(&mut self, records: &[Incoming<'_>], now_ns: u64) -> Result<Admission> {
        self.check_open()?;
        let mut last = self.logged;
        let mut add = 0;
        for record in records {
            last = self.check(record, last)?;
            add += frame_bytes(record.payload.len());
        }
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        if count == 0 || count > self.bounds.group_records_max {
            return Err(Error::invalid(format!("a batch of {} records", records.len())));
        }
        let body = self.forming.body_bytes() + add;
        let full = GROUP_HEADER_BYTES + body > self.bounds.group_bytes_max
            || self.forming.count + count > self.bounds.group_records_max;
        if self.forming.count > 0 && full {
            return Ok(Admission::GroupFull);
        }
        if !self.active.takes(body as u64) && self.next.is_none() {
            return Ok(Admission::SegmentFull);
        }
        self.add(records, body, now_ns);
        Ok(Admission::Logged { last_zxid: self.logged, batch: self.forming_batch })
    }

    fn check_open(&self) -> Result<()> {
        if let Some(first) = &self.failure {
            return Err(Error::poisoned_by(first));
        }
        match self.shut {
            None => Ok(()),
            Some(ErrorKind::Fenced) => {
                Err(Error::new(ErrorKind::Fenced, "epoch_changing", "a new epoch is being made durable".into()))
            }
            Some(kind) => Err(Error::new(kind, "closed", "the log is closed".into())),
        }
    }

    /// Checks a record against the last one; returns its zxid.
    fn check(&self, record: &Incoming<'_>, last: Zxid) -> Result<Zxid> {
        if record.epoch != self.epoch {
            return Err(fenced(record.epoch, self.epoch));
        }
        if record.payload.len() as u64 > self.bounds.record_bytes_max {
            let (is, max) = (record.payload.len(), self.bounds.record_bytes_max);
            return Err(Error::new(
                ErrorKind::TooLarge,
                "record_too_large",
                format!("a record of {is} bytes is above the limit of {max}"),
            ));
        }
        let by_zxid = self.bounds.numbering == Numbering::Zxid;
        let zxid = match record.zxid {
            Some(zxid) => zxid,
            None if by_zxid && last.epoch() < self.epoch => {
                let epoch = u32::try_from(self.epoch.get()).expect("checked when the epoch was set");
                Zxid::from_parts(epoch, 1)
            }
            None if by_zxid => last.next_in_epoch()?,
            None => last.next_index()?,
        };
        if zxid <= last {
            return Err(Error::new(
                ErrorKind::OutOfOrder,
                "out_of_order",
                format!("zxid {zxid} does not come after {last}"),
            ));
        }
        if by_zxid && (zxid.epoch() != self.epoch || zxid.counter() == 0) {
            return Err(Error::new(
                ErrorKind::OutOfOrder,
                "zxid_not_of_epoch",
                format!("zxid {zxid} is no transaction of epoch {}", self.epoch),
            ));
        }
        Ok(zxid)
    }

    fn add(&mut self, records: &[Incoming<'_>], body: usize, now_ns: u64) {
        if self.forming.count == 0 {
            self.forming.opened_ns = now_ns;
            self.forming.buffer.reserve_total(padded(GROUP_HEADER_BYTES + body));
        }
        for record in records {
            let zxid = self.check(record, self.logged).expect("the whole batch was checked before");
            self.forming.add(self.seed, zxid, record.time_ms, record.payload, record.payload_crc);
            self.logged = zxid;
        }
    }

    /// Takes the forming group for the disk if the policy lets it start.
    pub(crate) fn start(&mut self, now_ns: u64) -> Start {
        if self.failure.is_some() || self.forming.count == 0 || !self.can_fly() {
            return Start::Nothing;
        }
        let urgent = self.shut.is_some() || self.is_full();
        match self.policy.readiness(self.forming.count, self.forming.opened_ns, now_ns) {
            Readiness::At(at) if !urgent => Start::WaitUntil(at),
            _ => Start::Group(self.launch(GroupKind::Records, now_ns)),
        }
    }

    /// A group that only tells how far the log is durable, if nothing durable tells it yet and the log is idle.
    pub(crate) fn start_mark(&mut self, now_ns: u64) -> Start {
        let idle = self.failure.is_none() && self.forming.count == 0 && self.flights.is_empty();
        if !idle || self.proven >= self.durable || self.active.groups == 0 || !self.active.takes(0) {
            return Start::Nothing;
        }
        Start::Group(self.launch(GroupKind::Mark, now_ns))
    }

    fn can_fly(&self) -> bool {
        self.flights.len() < self.bounds.in_flight_max && !self.spare.is_empty()
    }

    /// Whether the forming group takes hardly anything more.
    fn is_full(&self) -> bool {
        self.forming.buffer.len() * 8 > self.bounds.group_bytes_max * 7
            || self.forming.count >= self.bounds.group_records_max
    }

    fn launch(&mut self, kind: GroupKind, now_ns: u64) -> Started {
        let body = self.forming.body_bytes() as u64;
        let batch = self.forming_batch;
        let (seal, retired) = if self.active.takes(body) {
            (None, None)
        } else {
            let (seal, retired) = self.roll(batch);
            (Some(seal), Some(retired))
        };
        let spare = self.spare.pop().expect("checked by can_fly");
        let time_max_ms = self.forming.time_max_ms;
        let group = std::mem::replace(&mut self.forming, Forming::new(spare, time_max_ms));
        let prev = self.flights.back().map_or(self.durable, |f| f.last_zxid);
        let last = self.logged;
        let first = if group.count > 0 { group.first_zxid } else { last };
        let offset = self.active.book(body, group.count, first, self.launched_time_max_ms);
        let header = GroupHeader {
            kind,
            record_count: group.count,
            body_bytes: body,
            offset,
            seq: self.active.header.seq,
            first_zxid: first,
            last_zxid: last,
            prev_zxid: prev,
            durable_zxid: self.durable,
            epoch: self.epoch,
            time_max_before_ms: self.launched_time_max_ms,
            body_check: if group.count > 0 { group.fold.value() } else { 0 },
        };
        let mut buffer = group.buffer;
        buffer.as_mut_slice()[..GROUP_HEADER_BYTES].copy_from_slice(&header.encode(self.active.seed));
        buffer.resize_zeroed(usize::try_from(self.active.group_bytes(body)).expect("a group fits memory"));
        self.flights.push_back(Flight {
            batch,
            last_zxid: last,
            claims: self.durable,
            records: group.count,
            parts_left: 1 + u8::from(seal.is_some()),
            started_ns: now_ns,
        });
        self.forming_batch += 1;
        self.launched_time_max_ms = group.time_max_ms;
        self.policy.started(group.count);
        let write = WriteOp {
            tag: batch * 2,
            file: self.active.file.clone(),
            offset,
            buffer,
            durability: self.bounds.durability,
        };
        Started { batch, write, seal, retired }
    }

    /// Leaves the active segment for the next one; returns the write that seals it.
    fn roll(&mut self, batch: u64) -> (WriteOp, RetiredSegment) {
        let mut next = self.next.take().expect("an append that needs the next segment is not admitted before");
        let last = self.flights.back().map_or(self.durable, |f| f.last_zxid);
        next.floor_zxid = last;
        let mut old = std::mem::replace(&mut self.active, next);
        let body = Seal::encode(old.records, &old.index);
        let offset = old.book(body.len() as u64, 0, last, self.launched_time_max_ms);
        let header = GroupHeader {
            kind: GroupKind::Seal,
            record_count: 0,
            body_bytes: body.len() as u64,
            offset,
            seq: old.header.seq,
            first_zxid: last,
            last_zxid: last,
            prev_zxid: last,
            durable_zxid: self.durable,
            epoch: self.epoch,
            time_max_before_ms: self.launched_time_max_ms,
            body_check: u64::from(checksum::crc32(old.seed, &body)),
        };
        let bytes = usize::try_from(old.group_bytes(body.len() as u64)).expect("a seal fits memory");
        let mut buffer = Buffer::with_capacity(bytes);
        buffer.extend(&header.encode(old.seed));
        buffer.extend(&body);
        buffer.resize_zeroed(bytes);
        let seal = WriteOp {
            tag: batch * 2 + 1,
            file: old.file.clone(),
            offset,
            buffer,
            durability: self.bounds.durability,
        };
        (seal, old.retire(last, self.launched_time_max_ms))
    }

    /// Takes in that a write ended. Returns what is acknowledged by it.
    ///
    /// The first failure is kept; nothing is acknowledged after it, not even what was written before it and
    /// answers later, since its order behind the failed group can no longer be kept.
    pub(crate) fn complete(&mut self, completion: Completion, now_ns: u64) -> Option<Progress> {
        let (batch, is_seal) = (completion.tag / 2, completion.tag % 2 == 1);
        if !is_seal {
            self.take_back(completion.buffer);
        }
        if let Err(source) = completion.result {
            self.fail(Error::io("write a group to the log", source));
        }
        let front = self.flights.front()?.batch;
        let at = usize::try_from(batch - front).expect("few groups are under way");
        let flight = &mut self.flights[at];
        assert!(flight.batch == batch && flight.parts_left > 0, "each write is answered once");
        flight.parts_left -= 1;
        if self.failure.is_some() { None } else { self.acknowledge(now_ns) }
    }

    fn take_back(&mut self, buffer: Buffer) {
        let usual = padded(self.bounds.group_bytes_max);
        // A large record's buffer is not kept: memory stays within the stated formula.
        let kept = if buffer.capacity() > usual { Buffer::with_capacity(usual) } else { buffer };
        self.spare.push(kept);
    }

    fn acknowledge(&mut self, now_ns: u64) -> Option<Progress> {
        let first_batch = self.flights.front()?.batch;
        let mut end_batch = first_batch;
        let mut records = 0;
        while let Some(flight) = self.flights.front().filter(|f| f.parts_left == 0) {
            assert!(flight.last_zxid >= self.durable && flight.last_zxid <= self.logged, "the watermark rises");
            self.durable = flight.last_zxid;
            self.proven = self.proven.max(flight.claims);
            records += u64::from(flight.records);
            end_batch = flight.batch + 1;
            self.flights.pop_front();
        }
        if end_batch == first_batch {
            return None;
        }
        let released = u32::try_from(records).unwrap_or(u32::MAX);
        self.policy.released(released, self.forming.count, now_ns);
        Some(Progress { first_batch, end_batch, durable_zxid: self.durable, records })
    }

    /// Takes in a failure: nothing is accepted or acknowledged any more.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// The first failure.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Refuses appends from now on, with errors of this kind; what is logged is still written, at once.
    pub(crate) fn shut(&mut self, kind: ErrorKind) {
        self.shut = Some(kind);
    }

    /// Takes appends again, of this epoch.
    ///
    /// # Panics
    /// If something is still under way: a group holds records of one epoch.
    pub(crate) fn reopen(&mut self, epoch: Epoch) {
        assert!(self.is_idle() && epoch >= self.epoch, "an epoch changes between groups and never back");
        self.epoch = epoch;
        self.shut = None;
    }

    /// Gives the log its next segment.
    pub(crate) fn provide(&mut self, next: ActiveSegment) {
        assert!(self.next.is_none() && next.groups == 0, "one next segment at a time, and unused");
        self.next = Some(next);
    }

    pub(crate) fn wants_next(&self) -> bool {
        self.next.is_none()
    }

    /// Nothing forming, nothing under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.forming.count == 0 && self.flights.is_empty()
    }

    pub(crate) fn forming_batch(&self) -> u64 {
        self.forming_batch
    }

    pub(crate) fn forming_records(&self) -> u32 {
        self.forming.count
    }

    pub(crate) fn logged_zxid(&self) -> Zxid {
        self.logged
    }

    pub(crate) fn durable_zxid(&self) -> Zxid {
        self.durable
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn active(&self) -> &ActiveSegment {
        &self.active
    }

    /// The next segment, if it is ready.
    pub(crate) fn next(&self) -> Option<&ActiveSegment> {
        self.next.as_ref()
    }

    /// Since when the oldest write is under way.
    pub(crate) fn oldest_start_ns(&self) -> Option<u64> {
        self.flights.front().map(|f| f.started_ns)
    }

    /// When the group `batch` was started, while it is under way.
    pub(crate) fn started_ns(&self, batch: u64) -> Option<u64> {
        let front = self.flights.front()?.batch;
        let at = usize::try_from(batch.checked_sub(front)?).ok()?;
        self.flights.get(at).map(|f| f.started_ns)
    }

    /// When the first record of the forming group came.
    pub(crate) fn forming_since_ns(&self) -> Option<u64> {
        (self.forming.count > 0).then_some(self.forming.opened_ns)
    }
}

/// Room for a group of `bytes`, wherever it lands: padded to the largest block.
fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(usize::try_from(limits::BLOCK_BYTES_MAX).expect("64 KiB"))
}

#[cold]
fn fenced(is: Epoch, durable: Epoch) -> Error {
    let (code, why) = if is < durable {
        ("fenced", "a newer leader has taken over")
    } else {
        ("epoch_not_durable", "make the epoch durable first")
    };
    Error::new(ErrorKind::Fenced, code, format!("epoch {is} is not the log's epoch {durable}: {why}"))
}
