use std::sync::Arc;

use super::active::RetiredSegment;
use super::forming::Forming;
use super::group_commit::{Flight, GroupCommit};
use super::policy::{Leader, Readiness};
use crate::base::{Zxid, checksum};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, Seal};
use crate::io::{Buffer, Durability, File, WriteOp};

/// What to write now.
#[derive(Debug)]
pub(crate) enum Start {
    /// Nothing to do, or enough under way.
    Nothing,
    /// Worth waiting until this time for more records.
    WaitUntil(u64),
    Group(Started),
}

/// A group to hand to the disk.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) write: WriteOp,
    pub(crate) rolled: Option<Box<Rolled>>,
}

/// A segment that the log leaves with this group: the write that seals it, and what is known of it.
#[derive(Debug)]
pub(crate) struct Rolled {
    pub(crate) seal: WriteOp,
    pub(crate) retired: RetiredSegment,
}

impl GroupCommit {
    /// Takes the forming group for the disk if the policy lets it start.
    pub(crate) fn start(&mut self, leader: Leader, now_ns: u64) -> Start {
        if self.failure.is_some() || self.forming.count == 0 || !self.can_fly() {
            return Start::Nothing;
        }
        let urgent = self.shut.is_some() || self.is_full();
        match self.policy.readiness(leader, self.forming.count, self.forming.opened_ns, now_ns) {
            Readiness::At(at) if !urgent => Start::WaitUntil(at),
            _ => Start::Group(self.launch(GroupKind::Records, now_ns)),
        }
    }

    /// A group that only tells how far the log is durable, if nothing durable tells it yet and the log is idle.
    pub(crate) fn start_mark(&mut self, now_ns: u64) -> Start {
        if self.wants_mark() { Start::Group(self.launch(GroupKind::Mark, now_ns)) } else { Start::Nothing }
    }

    /// Whether a mark would tell something new. Not while the log is shut: who shut it has seen it idle, and counts on
    /// that until it is open again.
    pub(crate) fn wants_mark(&self) -> bool {
        let open = self.failure.is_none() && self.shut.is_none();
        let idle = open && self.forming.count == 0 && self.flights.is_empty();
        idle && self.proven < self.claim() && self.active.groups > 0 && self.active.takes(0)
    }

    /// Whether one more group may be in flight.
    pub(crate) fn can_fly(&self) -> bool {
        self.flights.len() < self.bounds.in_flight_max && !self.spare.is_empty()
    }

    /// Whether the forming group takes hardly anything more.
    fn is_full(&self) -> bool {
        self.forming.buffer.len() * 8 > self.bounds.group_bytes_max * 7
            || self.forming.count >= self.bounds.group_records_max
    }

    /// Whether what a committer waits for is here: the group starts however early it is.
    pub(crate) fn is_gathered(&self) -> bool {
        self.policy.are_all_here(self.forming.count) || self.is_full()
    }

    fn launch(&mut self, kind: GroupKind, now_ns: u64) -> Started {
        let body = self.forming.body_bytes() as u64;
        // A group that was admitted before the roll was asked for may find no next segment: then a later one rolls.
        let asked = self.roll_due && kind == GroupKind::Records && self.next.is_some();
        let rolled = if self.active.takes(body) && !asked { None } else { Some(Box::new(self.roll())) };
        let spare = self.spare.pop().expect("checked by can_fly");
        let fresh = Forming::new(spare, self.forming.time_max_ms);
        let group = std::mem::replace(&mut self.forming, fresh);
        let last = self.logged;
        let first = if group.count > 0 { group.first_zxid } else { last };
        let offset = self.active.book(body, group.count, first, self.launched_time_max_ms);
        let header = GroupHeader {
            kind,
            record_count: group.count,
            body_bytes: body,
            first_zxid: first,
            last_zxid: last,
            body_check: if group.count > 0 { group.fold.value() } else { 0 },
            ..self.header_at(self.active.header.seq, offset)
        };
        let mut buffer = group.buffer;
        buffer.as_mut_slice()[..GROUP_HEADER_BYTES].copy_from_slice(&header.encode(self.active.seed));
        buffer.resize_zeroed(usize::try_from(self.active.group_bytes(body)).expect("a group fits memory"));
        self.flights.push_back(Flight {
            batch: self.forming_batch,
            last_zxid: last,
            claims: header.durable_zxid,
            records: group.count,
            parts_left: 1 + u8::from(rolled.is_some() && !crate::planted("acknowledged_before_seal")),
            started_ns: now_ns,
        });
        let write = self.write(self.forming_batch * 2, self.active.file.clone(), offset, buffer);
        self.forming_batch += 1;
        self.launched_time_max_ms = group.time_max_ms;
        self.policy.started(group.count, group.attended);
        Started { write, rolled }
    }

    /// Leaves the active segment for the next one.
    fn roll(&mut self) -> Rolled {
        let mut next =
            self.next.take().expect("an append that needs the next segment is not admitted before");
        let last = self.launched_zxid();
        self.roll_due = false;
        next.floor_zxid = last;
        let mut old = std::mem::replace(&mut self.active, next);
        let body = Seal::encode(old.records, &old.index);
        let offset = old.book(body.len() as u64, 0, last, self.launched_time_max_ms);
        let header = GroupHeader {
            kind: GroupKind::Seal,
            body_bytes: body.len() as u64,
            body_check: u64::from(checksum::crc32(old.seed, &body)),
            ..self.header_at(old.header.seq, offset)
        };
        let bytes = usize::try_from(old.group_bytes(body.len() as u64)).expect("a seal fits memory");
        let mut buffer = Buffer::with_capacity(bytes);
        buffer.extend(&header.encode(old.seed));
        buffer.extend(&body);
        buffer.resize_zeroed(bytes);
        let seal = self.write(self.forming_batch * 2 + 1, old.file.clone(), offset, buffer);
        Rolled { seal, retired: old.retire(last, self.launched_time_max_ms) }
    }

    /// The last record that was handed to the disk.
    fn launched_zxid(&self) -> Zxid {
        self.flights.back().map_or(self.durable, |f| f.last_zxid)
    }

    /// The header of an empty group here and now: what comes before it, and how far the log is durable.
    fn header_at(&self, seq: u64, offset: u64) -> GroupHeader {
        let last = self.launched_zxid();
        GroupHeader {
            kind: GroupKind::Mark,
            record_count: 0,
            body_bytes: 0,
            offset,
            seq,
            first_zxid: last,
            last_zxid: last,
            prev_zxid: last,
            durable_zxid: self.claim(),
            epoch: self.epoch,
            time_max_before_ms: self.launched_time_max_ms,
            body_check: 0,
        }
    }

    /// What a group may claim to be durable. Where nothing is synced, that is what was durable at the start:
    /// a claim beyond it would turn the loss of a power cut into proof of damage.
    fn claim(&self) -> Zxid {
        if crate::planted("claims_nothing") {
            return Zxid::ZERO;
        }
        if crate::planted("claims_what_is_logged") {
            return self.launched_zxid();
        }
        if self.bounds.durability == Durability::None { self.proven } else { self.durable }
    }

    fn write(&self, tag: u64, file: Arc<dyn File>, offset: u64, buffer: Buffer) -> WriteOp {
        WriteOp { tag, file, offset, buffer, durability: self.bounds.durability }
    }
}
