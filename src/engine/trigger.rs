use crate::base::Random;

/// When it is time for a snapshot: after so many txns, or so many bytes of log.
///
/// Both bounds have ZooKeeper's jitter, drawn anew for each snapshot: the first half for certain, of the second a
/// random part. So the members of an ensemble, which all count the same txns, do not write theirs at once.
///
/// Source: ZooKeeper's `SyncRequestProcessor.shouldSnapshot`.
#[derive(Debug)]
pub(crate) struct SnapshotTrigger {
    snap_count: u64,
    log_bytes: u64,
    txns: u64,
    bytes: u64,
    txns_wanted: u64,
    bytes_wanted: u64,
}

impl SnapshotTrigger {
    /// Zero stands for never.
    pub(crate) fn new(snap_count: u64, log_bytes: u64, random: &mut Random) -> SnapshotTrigger {
        let mut trigger =
            SnapshotTrigger { snap_count, log_bytes, txns: 0, bytes: 0, txns_wanted: 0, bytes_wanted: 0 };
        trigger.reset(random);
        trigger
    }

    /// Counts txns that were logged. Whether a snapshot is due.
    pub(crate) fn count(&mut self, txns: u64, bytes: u64) -> bool {
        self.txns += txns;
        self.bytes += bytes;
        self.txns > self.txns_wanted || self.bytes > self.bytes_wanted
    }

    /// Begins to count anew: a snapshot was begun.
    pub(crate) fn reset(&mut self, random: &mut Random) {
        (self.txns, self.bytes) = (0, 0);
        self.txns_wanted = jittered(self.snap_count, random);
        self.bytes_wanted = jittered(self.log_bytes, random);
    }
}

fn jittered(bound: u64, random: &mut Random) -> u64 {
    match bound {
        0 => u64::MAX,
        1 => 0,
        _ => bound / 2 + random.below(bound / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_between_half_and_the_whole_of_either_bound() {
        let mut random = Random::from_seed(7);
        let mut trigger = SnapshotTrigger::new(1000, 0, &mut random);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let mut txns = 1;
            while !trigger.count(1, 1 << 40) {
                txns += 1;
            }
            assert!((501..=1000).contains(&txns), "{txns}");
            seen.insert(txns);
            trigger.reset(&mut random);
        }
        assert!(seen.len() > 20, "the bound is drawn anew");
        let mut trigger = SnapshotTrigger::new(0, 100, &mut random);
        assert!(!trigger.count(1_000_000, 50) && trigger.count(0, 50));
        assert!(!SnapshotTrigger::new(0, 0, &mut random).count(1 << 50, 1 << 50));
        assert!(SnapshotTrigger::new(1, 0, &mut random).count(1, 0));
    }
}
