//! What a log must hold, in the simplest terms there are.

use std::sync::Arc;

use crate::base::{Epoch, Zxid};
use crate::log::read::Record;

/// One record, as it was appended.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Appended {
    pub(super) zxid: Zxid,
    pub(super) epoch: Epoch,
    pub(super) time_ms: i64,
    pub(super) payload: Vec<u8>,
}

impl Appended {
    pub(super) fn of(record: &Record<'_>) -> Appended {
        let Record { zxid, epoch, time_ms, payload } = *record;
        Appended { zxid, epoch, time_ms, payload: payload.to_vec() }
    }
}

impl std::fmt::Debug for Appended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of epoch {} at {} with {} bytes",
            self.zxid,
            self.epoch,
            self.time_ms,
            self.payload.len()
        )
    }
}

/// A record of the model, and whether a crash may leave the log ending with it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) record: Arc<Appended>,
    pub(super) ends_batch: bool,
}

/// A group that was handed to the disk: what it proves once it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launched {
    pub(super) is_mark: bool,
    /// Whether it ended well. A mark has no record whose acknowledgement would tell.
    pub(super) ended: bool,
    pub(super) last: Zxid,
    pub(super) claims: Zxid,
}

/// A log as it was opened and read back.
#[derive(Clone, Debug)]
pub(super) struct Recovered {
    pub(super) floor: Zxid,
    pub(super) epoch: Epoch,
    pub(super) last: Zxid,
    pub(super) records: Vec<Arc<Appended>>,
}

/// The log as its users know it: what was appended, and what was promised of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// After the floor, oldest first.
    pub(super) records: Vec<Kept>,
    /// Acknowledged up to here.
    pub(super) acked: Zxid,
    pub(super) floor: Zxid,
    /// A purge that was not answered may have come this far.
    pub(super) floor_max: Zxid,
    pub(super) epoch: Epoch,
    /// An epoch change that was not answered.
    pub(super) epoch_max: Epoch,
    /// A truncation that was not answered.
    pub(super) truncating: Option<Zxid>,
    /// Groups of this life of the process, in their order.
    pub(super) launched: Vec<Launched>,
    /// What the newest manifest that was answered for knows to be durable.
    pub(super) manifest_durable: Zxid,
}

impl Model {
    pub(super) fn last(&self) -> Zxid {
        self.records.last().map_or(self.floor, |k| k.record.zxid)
    }

    pub(super) fn push_batch(&mut self, batch: Vec<Appended>) {
        let count = batch.len();
        for (at, record) in batch.into_iter().enumerate() {
            assert!(record.zxid > self.last(), "the log took {record:?} after {}", self.last());
            self.records.push(Kept { record: Arc::new(record), ends_batch: at + 1 == count });
        }
    }

    /// Takes in what the log says is durable.
    pub(super) fn acknowledge(&mut self, durable: Zxid) {
        assert!(durable >= self.acked, "the durable watermark fell from {} to {durable}", self.acked);
        assert!(durable <= self.last(), "{durable} is durable, but {} is the last record", self.last());
        self.acked = durable;
    }

    /// The log starts after `floor` from now on.
    pub(super) fn purged(&mut self, floor: Zxid) {
        assert!(floor >= self.floor && floor <= self.floor_max, "the floor went to {floor}");
        self.records.retain(|k| k.record.zxid > floor);
        (self.floor, self.floor_max) = (floor, floor);
    }

    /// The record at which a truncation to `to` ends the log.
    pub(super) fn end_of_truncation(&self, to: Zxid) -> Zxid {
        self.records.iter().rev().map(|k| k.record.zxid).find(|z| *z <= to).unwrap_or(self.floor)
    }

    /// A truncation was answered.
    pub(super) fn truncated(&mut self, last: Zxid) {
        self.records.retain(|k| k.record.zxid <= last);
        if let Some(k) = self.records.last_mut() {
            k.ends_batch = true;
        }
        self.acked = last;
        self.truncating = None;
        self.launched.clear();
        self.manifest_durable = last;
    }

    /// What the groups that are durable, and the manifest, prove to be durable: the newest acknowledged
    /// groups may not be proven yet. Groups of which `lost` says so prove nothing.
    pub(super) fn evidence(&self, lost: impl Fn(&Launched) -> bool) -> Zxid {
        let proofs = self.launched.iter().filter(|g| g.ended && !lost(g)).map(|g| g.claims);
        proofs.max().unwrap_or(Zxid::ZERO).max(self.manifest_durable)
    }

    /// What is recovered is what there is: from now on all of it counts as acknowledged.
    pub(super) fn adopt(&mut self, got: &Recovered) {
        *self = Model {
            records: got.records.iter().map(|r| Kept { record: r.clone(), ends_batch: true }).collect(),
            acked: got.last,
            floor: got.floor,
            floor_max: got.floor,
            epoch: got.epoch,
            epoch_max: got.epoch,
            truncating: None,
            launched: Vec::new(),
            manifest_durable: got.last,
        };
    }
}
