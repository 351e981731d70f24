use std::ops::Range;

use super::progress::Told;
use crate::base::{Error, Result, Zxid};
use crate::format::Txn;
use crate::log::Record;
use crate::tree::{DataTree, Outcome};

/// Txns are applied so many at a time: what they touch is fetched from memory together.
const TXNS_MAX: usize = 64;
/// Or so many bytes of them. One can have more.
const BYTES_MAX: usize = 256 * 1024;
/// Bytes of txns between two words of progress.
const TOLD_AT_ONCE: u64 = 256 * 1024;

/// Applies the records of a log to a tree, in their order.
pub(super) struct Replay<'t> {
    tree: &'t mut DataTree,
    told: &'t Told,
    told_bytes: u64,
    done: Replayed,
    /// The payloads of those that wait.
    bytes: Vec<u8>,
    waiting: Vec<(Zxid, i64, Range<usize>)>,
    error: Option<Error>,
}

/// What the replay of the log has done.
#[derive(Default)]
pub(crate) struct Replayed {
    pub(crate) txns: u64,
    pub(crate) bytes: u64,
    /// Txns that did not fit the state.
    pub(crate) failures: u64,
}

impl<'t> Replay<'t> {
    pub(super) fn new(tree: &'t mut DataTree, told: &'t Told) -> Replay<'t> {
        let done = Replayed::default();
        Replay { tree, told, told_bytes: 0, done, bytes: Vec::new(), waiting: Vec::new(), error: None }
    }

    /// Takes the next record. After one that is no txn, none is taken.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        if self.error.is_some() {
            return;
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.waiting.push((record.zxid, record.time_ms, from..self.bytes.len()));
        if self.waiting.len() >= TXNS_MAX || self.bytes.len() >= BYTES_MAX {
            self.apply();
        }
    }

    /// Whether a record was no txn, as far as is known by now.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Applies what is left. An error if a record was no txn: the txns before it are applied.
    pub(super) fn end(mut self) -> Result<Replayed> {
        self.apply();
        self.tell(1);
        self.error.map_or(Ok(self.done), Err)
    }

    fn apply(&mut self) {
        let mut txns = Vec::with_capacity(self.waiting.len());
        for (zxid, time_ms, range) in self.waiting.drain(..) {
            match Txn::decode(zxid, time_ms, &self.bytes[range]) {
                Ok(txn) => txns.push(txn),
                Err(error) => {
                    self.error = Some(error.with_zxids(zxid, zxid));
                    break;
                }
            }
        }
        let done = &mut self.done;
        self.tree.apply_together(&txns, &mut (), |txn, outcome| {
            done.txns += 1;
            // The state before was whole, so nothing that was right when it was logged can fail now.
            if !txn.body.may_fail() && matches!(outcome, Outcome::Failed(_)) {
                done.failures += 1;
            }
        });
        done.bytes += self.bytes.len() as u64;
        self.bytes.clear();
        self.tell(TOLD_AT_ONCE);
    }

    /// Tells how far it has come, if there are so many bytes since the last time.
    fn tell(&mut self, bytes: u64) {
        if self.done.bytes - self.told_bytes >= bytes {
            self.told_bytes = self.done.bytes;
            self.told.replayed(self.done.txns, self.done.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Code, ErrorKind};
    use crate::format::TxnBody;

    /// That nothing fails is what every simulation asks of a replay: what does not fit has to count.
    #[test]
    fn txns_that_do_not_fit_are_counted_and_those_of_errors_are_not() {
        let (mut tree, told) = (DataTree::new(), Told::default());
        let mut replay = Replay::new(&mut tree, &told);
        let bodies = [
            TxnBody::CreateSession { timeout_ms: 1 },
            TxnBody::Delete { path: "/none" },
            TxnBody::Error { code: Code::NO_NODE },
            TxnBody::SetData { path: "/none", data: None, version: 1 },
        ];
        for (zxid, body) in (1..).zip(bodies) {
            let txn = Txn { zxid: Zxid::new(zxid), time_ms: 0, session_id: 7, cxid: 0, digest: None, body };
            replay.record(&Record::new(txn.zxid, 0, txn.to_buf().as_bytes()));
        }
        let done = replay.end().expect("all are txns");
        assert_eq!((done.txns, done.failures), (4, 2));
    }

    /// Skipped, it would leave a hole in the history; what stands before it is applied, and what comes behind is not.
    #[test]
    fn tx_01_a_record_that_is_no_txn_ends_a_replay_and_is_named() {
        let (mut tree, told) = (DataTree::new(), Told::default());
        let mut replay = Replay::new(&mut tree, &told);
        for zxid in 1..=200 {
            let body = TxnBody::CreateSession { timeout_ms: 1 };
            let txn = Txn { zxid: Zxid::new(zxid), time_ms: 0, session_id: 7, cxid: 0, digest: None, body };
            let bytes = txn.to_buf();
            replay.record(&Record::new(txn.zxid, 0, if zxid == 100 { b"\xff" } else { bytes.as_bytes() }));
        }
        assert!(replay.has_failed());
        let error = replay.end().map(drop).expect_err("it is none");
        assert_eq!((error.kind(), error.at().zxid), (ErrorKind::Unsupported, Some(Zxid::new(100))));
        assert_eq!(tree.last_zxid(), Zxid::new(99));
    }
}
