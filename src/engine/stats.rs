use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::base::{Clock, Histogram, Result, Times};
use crate::log::LogStats;
use crate::snapshot::SnapshotInfo;

/// What an engine has done since it was opened, as numbers.
///
/// Source: the counters are those that ZooKeeper's `ServerMetrics` has for the same events, as far as they are here.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EngineStats {
    /// Requests that were submitted, also those that were refused.
    pub requests: u64,
    /// Txns that were logged, whoever made them.
    pub txns: u64,
    /// The bytes of these.
    pub txn_bytes: u64,
    /// Txns that were applied.
    pub applied: u64,
    /// Those of them that changed nothing: requests that failed.
    pub error_txns: u64,
    /// Txns that are logged and not yet applied.
    pub waiting_txns: u64,
    /// The newest txns that are in memory for peers.
    pub recent_txns: u64,
    /// How long it took from a request, before it had its place in the order, to its answer: durable and applied.
    pub answer_time: Histogram,
    /// Snapshots that were written.
    pub snapshots: u64,
    /// Snapshots that failed.
    pub snapshot_failures: u64,
    /// Removals of old snapshots and log that failed behind a snapshot that did not.
    pub clean_up_failures: u64,
    /// The bytes of the snapshots that were written.
    pub snapshot_bytes: u64,
    /// How long the snapshots took that were written.
    pub snapshot_time: Histogram,
    /// When the last one was finished, in milliseconds since 1970; none if none was.
    pub last_snapshot_ms: Option<i64>,
    /// What the log has done.
    pub log: LogStats,
}

/// Counts, from any thread and without a lock.
#[derive(Debug)]
pub(super) struct Counters {
    clock: Clock,
    requests: AtomicU64,
    txns: AtomicU64,
    txn_bytes: AtomicU64,
    applied: AtomicU64,
    error_txns: AtomicU64,
    answers: Times,
    snapshots: AtomicU64,
    snapshot_failures: AtomicU64,
    clean_up_failures: AtomicU64,
    snapshot_bytes: AtomicU64,
    snapshot_times: Times,
    last_snapshot_ms: AtomicI64,
}

/// No snapshot yet.
const NEVER_MS: i64 = i64::MIN;

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn new(clock: Clock) -> Counters {
        let zero = || AtomicU64::new(0);
        Counters {
            clock,
            requests: zero(),
            txns: zero(),
            txn_bytes: zero(),
            applied: zero(),
            error_txns: zero(),
            answers: Times::default(),
            snapshots: zero(),
            snapshot_failures: zero(),
            clean_up_failures: zero(),
            snapshot_bytes: zero(),
            snapshot_times: Times::default(),
            last_snapshot_ms: AtomicI64::new(NEVER_MS),
        }
    }

    /// Monotonic nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.clock.nanos()
    }

    pub(super) fn requested(&self) {
        count(&self.requests, 1);
    }

    pub(super) fn logged(&self, bytes: u64) {
        count(&self.txns, 1);
        count(&self.txn_bytes, bytes);
    }

    /// A group of txns was applied, some of them errors.
    pub(super) fn applied(&self, txns: u64, errors: u64) {
        count(&self.applied, txns);
        if errors > 0 {
            count(&self.error_txns, errors);
        }
    }

    /// A txn that was logged at `since_ns` is answered at `now_ns`.
    pub(super) fn answered(&self, since_ns: u64, now_ns: u64) {
        self.answers.add(now_ns.saturating_sub(since_ns));
    }

    /// A snapshot that was begun at `since_ns` has ended.
    pub(super) fn snapshot_ended(&self, since_ns: u64, outcome: &Result<SnapshotInfo>) {
        match outcome {
            Ok(info) => {
                count(&self.snapshots, 1);
                count(&self.snapshot_bytes, info.file_bytes);
                self.snapshot_times.add(self.now_ns().saturating_sub(since_ns));
                self.last_snapshot_ms.store(self.clock.wall_ms(), Ordering::Relaxed);
            }
            Err(_) => count(&self.snapshot_failures, 1),
        }
    }

    pub(super) fn clean_up_failed(&self) {
        count(&self.clean_up_failures, 1);
    }

    /// The numbers so far; the lengths of queues are the caller's to add.
    pub(super) fn stats(&self, log: LogStats) -> EngineStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_ms = self.last_snapshot_ms.load(Ordering::Relaxed);
        EngineStats {
            requests: read(&self.requests),
            txns: read(&self.txns),
            txn_bytes: read(&self.txn_bytes),
            applied: read(&self.applied),
            error_txns: read(&self.error_txns),
            waiting_txns: 0,
            recent_txns: 0,
            answer_time: self.answers.histogram(),
            snapshots: read(&self.snapshots),
            snapshot_failures: read(&self.snapshot_failures),
            clean_up_failures: read(&self.clean_up_failures),
            snapshot_bytes: read(&self.snapshot_bytes),
            snapshot_time: self.snapshot_times.histogram(),
            last_snapshot_ms: Some(last_ms).filter(|ms| *ms != NEVER_MS),
            log,
        }
    }
}
