//! A log-linear histogram of latencies: fixed memory, no allocation after `new`, 1.6 % resolution.

/// Bits of linear resolution inside each power of two: 64 steps, so a bucket is at most 1/64 wide.
const STEP_BITS: u32 = 6;
/// Linear steps per power of two.
const STEPS: usize = 1 << STEP_BITS;
/// Powers of two above the linear part: values up to 2^42 ns, more than an hour.
const OCTAVES: usize = 36;
/// All buckets; the last one also takes everything larger.
const BUCKETS: usize = STEPS * (OCTAVES + 1);

/// Counts of nanosecond values in buckets whose width grows with the value.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram; this is the only allocation it ever makes.
    pub(crate) fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }

    /// Counts one value.
    pub(crate) fn record(&mut self, nanos: u64) {
        self.counts[bucket_of(nanos)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds everything that another histogram counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The largest value, exact.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The mean in nanoseconds, 0 when empty.
    pub(crate) fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// The value below which the share `q` (0..=1) of the values lies: the middle of its bucket, never
    /// more than the largest value. 0 when empty.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        assert!((0.0..=1.0).contains(&q), "a quantile is a share");
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(bucket).min(self.max);
            }
        }
        self.max
    }

    /// The same in microseconds, as tables print it.
    pub(crate) fn quantile_micros(&self, q: f64) -> f64 {
        self.quantile(q) as f64 / 1000.0
    }
}

/// The bucket a value falls into: exact below `STEPS`, then `STEPS` buckets for each power of two.
fn bucket_of(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    let step = (nanos >> shift) as usize - STEPS;
    (STEPS * (shift as usize + 1) + step).min(BUCKETS - 1)
}

/// The value that stands for a bucket.
fn middle_of(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = (bucket / STEPS - 1) as u32;
    let low = ((STEPS + bucket % STEPS) as u64) << shift;
    low + ((1_u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    #[allow(unused_imports, reason = "a bench has no test harness, so the tests below vanish")]
    use super::*;

    /// Every bucket's middle falls back into the bucket, and values are kept within 1.6 %.
    #[test]
    fn buckets_and_their_middles_agree() {
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
        for nanos in [1, 63, 64, 65, 1_000, 123_456, 987_654_321] {
            let kept = middle_of(bucket_of(nanos));
            assert!(kept.abs_diff(nanos) * 64 <= nanos, "{nanos} kept as {kept}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// Quantiles of two merged halves are those of the whole.
    #[test]
    fn quantiles_survive_a_merge() {
        let (mut low, mut high) = (Histogram::new(), Histogram::new());
        (1..=500).for_each(|micros| low.record(micros * 1_000));
        (501..=1000).for_each(|micros| high.record(micros * 1_000));
        low.merge(&high);
        assert_eq!(low.count(), 1000);
        assert_eq!(low.max(), 1_000_000);
        assert_eq!(low.mean(), 500_500);
        for (q, micros) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = low.quantile_micros(q);
            assert!((got - micros).abs() <= micros / 60.0, "q{q}: {got}");
        }
    }
}
