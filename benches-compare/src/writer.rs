//! What one writer thread does: append, wait, note the latency; or the same with several in flight.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use crate::histogram::Histogram;

/// Where a run stands; writers look at it once per record.
#[derive(Debug)]
pub struct Phase(AtomicU8);

impl Phase {
    /// Records are written but not counted.
    pub const WARM_UP: u8 = 0;
    /// Records are counted.
    pub const MEASURE: u8 = 1;
    /// Writers return.
    pub const STOP: u8 = 2;

    /// A run starts warming up.
    pub fn new() -> Phase {
        Phase(AtomicU8::new(Phase::WARM_UP))
    }

    /// Moves on.
    pub fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Release);
    }

    fn now(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
}

/// One writer's record and its counts.
#[derive(Debug)]
pub struct WriterLoop<'run> {
    phase: &'run Phase,
    record: Vec<u8>,
    /// Latencies of the records that became durable while the run was measured.
    pub latencies: Histogram,
    /// All records, those of the warm-up too.
    pub total: u64,
}

impl<'run> WriterLoop<'run> {
    /// A writer with a record of its own, `bytes` long and incompressible.
    pub fn new(phase: &'run Phase, writer: usize, bytes: usize) -> WriterLoop<'run> {
        WriterLoop { phase, record: record(writer as u64, bytes), latencies: Histogram::new(), total: 0 }
    }

    /// Appends and waits until the run stops.
    pub fn run_blocking(&mut self, commit: impl Fn(&[u8])) {
        while self.phase.now() != Phase::STOP {
            self.stamp_record();
            let started = Instant::now();
            commit(&self.record);
            self.note(started);
        }
    }

    /// Appends and awaits until the run stops: the same for a task.
    #[cfg(feature = "arborlog")]
    pub async fn run_awaiting<F: Future<Output = ()>>(&mut self, commit: impl Fn(&[u8]) -> F) {
        while self.phase.now() != Phase::STOP {
            self.stamp_record();
            let started = Instant::now();
            commit(&self.record).await;
            self.note(started);
        }
    }

    #[cfg_attr(not(feature = "arborlog"), expect(dead_code, reason = "no other log has tickets"))]
    /// Keeps `depth` records in flight until the run stops, waiting for the oldest each time.
    pub fn run_pipelined<T>(&mut self, depth: usize, submit: impl Fn(&[u8]) -> T, wait: impl Fn(T)) {
        let mut in_flight = VecDeque::with_capacity(depth);
        while self.phase.now() != Phase::STOP {
            while in_flight.len() < depth {
                self.stamp_record();
                let started = Instant::now();
                in_flight.push_back((started, submit(&self.record)));
            }
            let (started, ticket) = in_flight.pop_front().expect("the pipeline was just filled");
            wait(ticket);
            self.note(started);
        }
        for (_, ticket) in in_flight {
            wait(ticket);
            self.total += 1;
        }
    }

    fn note(&mut self, started: Instant) {
        self.total += 1;
        if self.phase.now() == Phase::MEASURE {
            self.latencies.record(started.elapsed().as_nanos() as u64);
        }
    }

    /// No two records are alike.
    fn stamp_record(&mut self) {
        self.record[..8].copy_from_slice(&self.total.to_le_bytes());
    }
}

/// A record of pseudo-random bytes (xorshift), at least 16 of them.
pub fn record(seed: u64, bytes: usize) -> Vec<u8> {
    assert!(bytes >= 16, "records have at least 16 bytes");
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}
