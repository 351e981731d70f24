use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times are kept in buckets of an eighth of a power of two, from 1 us on.
pub(crate) const BUCKETS: usize = 8 * 32;

/// How long something took, each time: counts in buckets whose bounds never change, each an eighth of a power of two
/// wide, from a microsecond on. So a time is known to within an eighth, and two histograms can be added or subtracted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    sum: Duration,
    max: Duration,
}

impl Histogram {
    /// How many times there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The longest one, exactly.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// So many in a thousand took no longer than this, to within an eighth. Zero if there were none.
    pub fn quantile(&self, permille: u64) -> Duration {
        Duration::from_nanos(quantile_ns(&self.counts, permille))
    }

    /// The buckets that are not empty: the longest time that falls into each, and how many did.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| (Duration::from_nanos(upper_bound_ns(at)), *count))
    }
}

/// Takes times in, from any thread, without a lock and without memory.
#[derive(Debug)]
pub(crate) struct Times {
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            counts: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl Times {
    pub(crate) fn add(&self, ns: u64) {
        self.counts[bucket(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// The times so far. Some that come meanwhile may be in one number and not in another.
    pub(crate) fn histogram(&self) -> Histogram {
        Histogram {
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
            max: Duration::from_nanos(self.max_ns.load(Ordering::Relaxed)),
        }
    }
}

pub(crate) fn quantile_ns(counts: &[u64], permille: u64) -> u64 {
    let total: u64 = counts.iter().sum();
    let mut left = (total * permille).div_ceil(1000);
    for (at, count) in counts.iter().enumerate() {
        if *count >= left && left > 0 {
            return upper_bound_ns(at);
        }
        left -= count;
    }
    0
}

pub(crate) fn bucket(ns: u64) -> usize {
    let us = (ns / 1000).max(1);
    let power = us.ilog2() as usize;
    let eighth = ((us << 3 >> power) & 7) as usize;
    (power * 8 + eighth).min(BUCKETS - 1)
}

fn upper_bound_ns(bucket: usize) -> u64 {
    let (power, eighth) = (bucket / 8, (bucket % 8) as u64);
    (((8 + eighth + 1) << power) * 1000).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_everything_within_an_eighth() {
        for us in [1u64, 2, 3, 7, 8, 9, 145, 1000, 123_456, 4_000_000_000] {
            let bound = upper_bound_ns(bucket(us * 1000));
            assert!(bound >= us * 1000 && bound <= us * 1000 * 5 / 4 + 1000, "{us} us -> {bound} ns");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn times_are_counted_and_ranked() {
        let times = Times::default();
        assert_eq!((times.histogram().count(), times.histogram().quantile(990)), (0, Duration::ZERO));
        for us in 1..=1000 {
            times.add(us * 1000);
        }
        let histogram = times.histogram();
        assert_eq!((histogram.count(), histogram.max()), (1000, Duration::from_millis(1)));
        assert_eq!(histogram.sum(), Duration::from_micros(500_500));
        for (permille, us) in [(500, 500), (990, 990), (1000, 1000)] {
            let found = histogram.quantile(permille);
            let us = Duration::from_micros(us);
            assert!(found >= us && found <= us * 5 / 4, "{permille}: {found:?}");
        }
        assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(histogram.buckets().is_sorted());
    }
}
