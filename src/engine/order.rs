use std::sync::Arc;

use super::answer::Found;
use super::pipeline::{Pending, Pipeline};
use super::slot::Slot;
use super::ticket::Ticket;
use super::trigger::SnapshotTrigger;
use crate::base::{Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::TxnBuf;
use crate::log::{Log, Record};
use crate::tree::{Identity, NodePlace, Proposal, Proposer, Request, RequestContext};

/// Who asks for a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller<'a> {
    /// The session; 0 for the server itself.
    pub session_id: i64,
    /// The client's number of the request.
    pub cxid: i32,
    /// Who is behind the session, for ACLs.
    pub identities: &'a [Identity],
}

/// The one place where txns get their order: proposed, numbered and logged under one lock.
#[derive(Debug)]
pub(super) struct Order {
    proposer: Proposer,
    /// The last txn that was logged.
    last: Zxid,
    /// The last txn that came from elsewhere, of which the proposer knows nothing.
    last_foreign: Zxid,
    trigger: SnapshotTrigger,
    is_snapshot_due: bool,
    random: Random,
    /// In which txns are encoded; a large one's room is given back.
    buffer: Vec<u8>,
}

/// Where a request's answer will be: made before the order is taken, which many wait for.
pub(super) struct Place {
    slot: Arc<Slot>,
    /// When it was asked for.
    since_ns: u64,
}

impl Place {
    pub(super) fn new(pipeline: &Pipeline) -> Place {
        Place { slot: Arc::new(Slot::default()), since_ns: pipeline.counters.now_ns() }
    }
}

/// So much room is kept for encoding.
const BUFFER_KEPT: usize = 64 * 1024;

impl Order {
    pub(super) fn new(proposer: Proposer, last: Zxid, trigger: SnapshotTrigger, random: Random) -> Order {
        Order {
            proposer,
            last,
            last_foreign: Zxid::ZERO,
            trigger,
            is_snapshot_due: false,
            random,
            buffer: Vec::new(),
        }
    }

    /// Whether it is time for a snapshot.
    pub(super) fn is_snapshot_due(&self) -> bool {
        self.is_snapshot_due
    }

    /// Begins to count anew.
    pub(super) fn snapshot_begins(&mut self) {
        self.is_snapshot_due = false;
        self.trigger.reset(&mut self.random);
    }

    /// Makes the txn of a request and logs it.
    pub(super) fn submit(
        &mut self,
        log: &Log,
        pipeline: &Pipeline,
        request: &Request<'_>,
        caller: &Caller<'_>,
        (time_ms, mut place): (i64, Place),
    ) -> Result<Ticket> {
        loop {
            let applied = pipeline.applied();
            if self.last_foreign > applied {
                let why = format!("txns up to {} were appended and are not yet applied", self.last_foreign);
                return Err(Error::new(ErrorKind::Busy, "not_applied", why));
            }
            self.proposer.applied(applied);
            let zxid = self.next_zxid(log.epoch())?;
            let Caller { session_id, cxid, identities } = *caller;
            let context = RequestContext { zxid, time_ms, session_id, cxid, identities };
            let proposal = self.proposer.propose(&pipeline.tree.read_again(), request, &context);
            let is_unfinished = proposal.is_unfinished();
            let found = (found(&proposal, request), proposal.place());
            let txn = proposal.encoded_by(&mut self.buffer);
            let ticket = self.log(log, pipeline, txn, found, place).inspect_err(|_| {
                self.proposer.roll_back(zxid);
            })?;
            if !is_unfinished {
                return Ok(ticket);
            }
            place = Place::new(pipeline);
        }
    }

    /// Logs a txn that was made elsewhere: the next one.
    pub(super) fn append(
        &mut self,
        log: &Log,
        pipeline: &Pipeline,
        txn: TxnBuf,
        place: Place,
    ) -> Result<Ticket> {
        let zxid = txn.zxid();
        check_follows(self.last, zxid)?;
        if zxid.epoch() > log.epoch() {
            // History of an epoch that began elsewhere.
            log.advance_epoch(zxid.epoch())?;
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(txn.as_bytes());
        let ticket = self.log(log, pipeline, txn, (None, None), place)?;
        self.last_foreign = zxid;
        Ok(ticket)
    }

    fn next_zxid(&self, epoch: Epoch) -> Result<Zxid> {
        if epoch > self.last.epoch() {
            let epoch = u32::try_from(epoch.get()).map_err(|_| Error::invalid("the epoch has 32 bits"))?;
            return Ok(Zxid::from_parts(epoch, 1));
        }
        self.last.next_in_epoch()
    }

    /// Logs the txn, whose bytes are in the buffer as well.
    fn log(
        &mut self,
        log: &Log,
        pipeline: &Pipeline,
        txn: TxnBuf,
        (found, node): (Option<Box<Found>>, Option<NodePlace>),
        place: Place,
    ) -> Result<Ticket> {
        let (zxid, time_ms) = (txn.zxid(), txn.time_ms());
        let Place { slot, since_ns } = place;
        let bytes = self.buffer.len() as u64;
        // First: when the log says that it is durable, it must be found.
        pipeline.push(Pending { txn, found, node, slot: slot.clone(), since_ns });
        let logged = log.append(&Record::new(zxid, time_ms, &self.buffer));
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEPT);
        match logged {
            Ok(durable) => {
                self.last = zxid;
                pipeline.logged(zxid);
                pipeline.counters.logged(bytes);
                self.is_snapshot_due |= self.trigger.count(1, bytes);
                Ok(Ticket::new(durable, slot))
            }
            Err(error) => {
                pipeline.pop_newest(zxid);
                Err(error)
            }
        }
    }
}

/// Refuses a txn that does not follow the last one.
pub(super) fn check_follows(last: Zxid, zxid: Zxid) -> Result<()> {
    let follows = if zxid.epoch() == last.epoch() {
        last.next_in_epoch().is_ok_and(|next| next == zxid)
    } else {
        // An epoch's txns begin with 1: what comes later shows that some are missing.
        zxid > last && zxid.counter() == 1
    };
    if !follows {
        let why = format!("{zxid} does not follow {last}");
        return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", why).with_zxids(zxid, zxid));
    }
    Ok(())
}

/// What the answer will tell beside what the txn does.
fn found(proposal: &Proposal<'_>, request: &Request<'_>) -> Option<Box<Found>> {
    let ops = if let Request::Multi(ops) = request { *ops } else { std::slice::from_ref(request) };
    let mut found = Found::default();
    for (op, request) in ops.iter().enumerate() {
        if let Request::Create(_) | Request::CreateIfAbsent(_) | Request::Upsert(_) = request {
            found.created.resize(op, None);
            found.created.push(proposal.created_path(op).map(str::to_owned));
            if let Some(stat) = proposal.existing_stat(op) {
                found.existing.resize(op, None);
                found.existing.push(Some(stat));
            }
        }
    }
    (found != Found::default()).then(|| Box::new(found))
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
