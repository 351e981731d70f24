use std::collections::VecDeque;

use super::active::ActiveSegment;
use super::forming::Forming;
use super::policy::Policy;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, limits};
use crate::format::{GROUP_HEADER_BYTES, Numbering, frame_bytes};
use crate::io::{Buffer, Durability};
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
            durability: if crate::planted("groups_unsynced") {
                Durability::None
            } else {
                options.write_mode.durability()
            },
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

/// A group under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) batch: u64,
    pub(super) last_zxid: Zxid,
    /// What its header claims to be durable.
    pub(super) claims: Zxid,
    pub(super) records: u32,
    pub(super) parts_left: u8,
    pub(super) started_ns: u64,
}

/// The state machine of group commit.
///
/// Invariants, asserted where they could break: zxids rise; `durable <= logged`; groups are acknowledged in
/// the order in which they were formed, whatever the order of their completions; a group's header never
/// claims more than what was durable when it was made; after a failure nothing is acknowledged any more.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    pub(super) bounds: Bounds,
    pub(super) seed: u32,
    pub(super) logged: Zxid,
    pub(super) durable: Zxid,
    pub(super) epoch: Epoch,
    pub(super) forming: Forming,
    pub(super) forming_batch: u64,
    pub(super) flights: VecDeque<Flight>,
    pub(super) spare: Vec<Buffer>,
    pub(super) active: ActiveSegment,
    pub(super) next: Option<ActiveSegment>,
    pub(super) policy: Policy,
    /// The next record begins a new segment.
    pub(super) roll_due: bool,
    /// The running maximum of the times of all groups that were launched.
    pub(super) launched_time_max_ms: i64,
    /// The last record that a durable group header proves durable.
    pub(super) proven: Zxid,
    pub(super) failure: Option<Error>,
    /// No more appends: closing, or an epoch change is under way.
    pub(super) shut: Option<ErrorKind>,
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
            roll_due: false,
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
        if (self.roll_due || !self.active.takes(body as u64)) && self.next.is_none() {
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
            Some(ErrorKind::Fenced) => Err(Error::new(
                ErrorKind::Fenced,
                "epoch_changing",
                "a new epoch is being made durable".into(),
            )),
            Some(kind) => Err(Error::new(kind, "closed", "the log is closed".into())),
        }
    }

    /// Checks a record against the last one; returns its zxid.
    fn check(&self, record: &Incoming<'_>, last: Zxid) -> Result<Zxid> {
        if record.epoch != self.epoch && !crate::planted("append_epoch_unchecked") {
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
                // What is advanced to fits; what was read from a damaged or foreign log may not.
                let epoch = u32::try_from(self.epoch.get()).map_err(|_| beyond_numbering(self.epoch))?;
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

    /// The thread that has just appended waits for its record from now on.
    pub(crate) fn attend(&mut self) {
        self.forming.attended += 1;
    }

    /// Whether a thread waits for the forming group, or is on its way to.
    pub(crate) fn is_attended(&self) -> bool {
        self.forming.attended > 0
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

    /// Has the next group of records begin a new segment, unless the one in use is empty still.
    pub(crate) fn roll_next(&mut self) {
        self.roll_due = self.active.groups > 0;
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

    #[cfg(test)]
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn active(&self) -> &ActiveSegment {
        &self.active
    }

    /// Since when the oldest write is under way.
    pub(crate) fn oldest_start_ns(&self) -> Option<u64> {
        self.flights.front().map(|f| f.started_ns)
    }

    /// When the first record of the forming group came.
    pub(crate) fn forming_since_ns(&self) -> Option<u64> {
        (self.forming.count > 0).then_some(self.forming.opened_ns)
    }
}

/// Room for a group of `bytes`, wherever it lands: padded to the largest block.
pub(super) fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(usize::try_from(limits::BLOCK_BYTES_MAX).expect("64 KiB"))
}

#[cold]
fn beyond_numbering(epoch: Epoch) -> Error {
    let why = format!("epoch {epoch} does not fit the 32 bits that a zxid has for it");
    Error::new(ErrorKind::CounterExhausted, "epoch_exhausted", why)
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
