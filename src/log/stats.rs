use std::time::Duration;

use crate::base::{BUCKETS, Zxid, bucket, quantile_ns};
use crate::io::{Durability, WriteOp};
use crate::log::options::LogOptions;

/// What a log has done since it was opened, as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// Records acknowledged.
    pub records: u64,
    /// Groups handed to the disk, marks included.
    pub groups: u64,
    /// Durable writes: groups and seals. None with [`WriteMode::Unsynced`](crate::WriteMode::Unsynced).
    pub syncs: u64,
    /// Bytes handed to the disk for groups, padding included.
    pub group_bytes: u64,
    /// Segments that were sealed.
    pub rolls: u64,
    /// Preparations of a segment that failed; each is tried again.
    pub prepare_failures: u64,
    /// Durable writes that took longer than [`LogOptions::slow_sync`].
    pub slow_syncs: u64,
    /// Durable writes, half of which took no longer than this.
    pub sync_p50: Duration,
    /// Durable writes, 99 in 100 of which took no longer than this.
    pub sync_p99: Duration,
    /// Durable writes, 999 in 1000 of which took no longer than this.
    pub sync_p999: Duration,
    /// The longest durable write.
    pub sync_max: Duration,
    /// The last record that was ordered.
    pub logged_zxid: Zxid,
    /// The last record that is durable.
    pub durable_zxid: Zxid,
    /// Records that wait to be written.
    pub waiting_records: u64,
    /// How often the health changed between fine and slow.
    pub health_changes: u64,
}

/// Whether the log's disk is well.
#[derive(Clone, Debug)]
pub enum Health {
    /// Durable writes take what they should.
    Fine,
    /// The last durable writes took longer than [`LogOptions::slow_sync`]. A leader may want to step down.
    Slow,
    /// The log takes no more writes until it is opened anew; this is why.
    Failed(crate::Error),
}

/// Counts, under the log's one lock.
#[derive(Debug)]
pub(crate) struct Recorder {
    stats: LogStats,
    buckets: Box<[u64; BUCKETS]>,
    /// Whether a write is durable when it ends.
    durable: bool,
    slow_ns: u64,
    slow: bool,
    /// Durable writes in a row that were quick again.
    quick: u32,
}

impl Recorder {
    pub(crate) fn new(options: &LogOptions) -> Recorder {
        Recorder {
            stats: LogStats::default(),
            buckets: Box::new([0; BUCKETS]),
            slow_ns: u64::try_from(options.slow_sync.as_nanos()).unwrap_or(u64::MAX),
            durable: options.write_mode.durability() != Durability::None,
            slow: false,
            quick: 0,
        }
    }

    pub(crate) fn group_started(&mut self, write: &WriteOp) {
        self.stats.groups += 1;
        self.stats.syncs += u64::from(self.durable);
        self.stats.group_bytes += write.buffer.len() as u64;
    }

    pub(crate) fn rolled(&mut self) {
        self.stats.rolls += 1;
        self.stats.syncs += u64::from(self.durable);
    }

    pub(crate) fn prepare_failed(&mut self) {
        self.stats.prepare_failures += 1;
    }

    pub(crate) fn acknowledged(&mut self, records: u64) {
        self.stats.records += records;
    }

    /// Takes in how long a durable write took. Health turns slow with one slow write, and fine again after
    /// eight in a row that took less than half the bound, so that it does not flutter.
    pub(crate) fn group_ended(&mut self, took_ns: u64) {
        self.buckets[bucket(took_ns)] += 1;
        self.stats.sync_max = self.stats.sync_max.max(Duration::from_nanos(took_ns));
        if took_ns > self.slow_ns {
            self.stats.slow_syncs += 1;
            self.quick = 0;
            self.turn(true);
        } else if self.slow {
            self.quick = if took_ns <= self.slow_ns / 2 { self.quick + 1 } else { 0 };
            if self.quick >= 8 {
                self.turn(false);
            }
        }
    }

    fn turn(&mut self, slow: bool) {
        if self.slow != slow {
            self.slow = slow;
            self.stats.health_changes += 1;
        }
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.slow
    }

    /// The numbers so far; the watermarks are the caller's to add.
    pub(crate) fn snapshot(&self) -> LogStats {
        let quantile = |permille| Duration::from_nanos(quantile_ns(&self.buckets[..], permille));
        LogStats {
            sync_p50: quantile(500),
            sync_p99: quantile(990),
            sync_p999: quantile(999),
            ..self.stats.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::WriteMode;

    #[test]
    fn a_log_that_does_not_sync_counts_no_syncs() {
        for (mode, syncs) in [(WriteMode::DirectDsync, 1), (WriteMode::Unsynced, 0)] {
            let mut recorder = Recorder::new(&LogOptions::new().write_mode(mode));
            recorder.rolled();
            assert_eq!((recorder.stats.rolls, recorder.stats.syncs), (1, syncs), "{mode:?}");
        }
    }

    #[test]
    fn sl_03_a_slow_spell_is_two_changes_of_health() {
        let mut recorder = Recorder::new(&LogOptions::new());
        let ms = 1_000_000;
        for took in [10; 50].into_iter().chain([2000; 5]).chain([10; 50]) {
            recorder.group_ended(took * ms);
        }
        assert_eq!(
            (recorder.stats.health_changes, recorder.is_slow(), recorder.stats.slow_syncs),
            (2, false, 5)
        );
    }
}
