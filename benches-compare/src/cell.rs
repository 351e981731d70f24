//! One cell of the table, measured in a process of its own: one log, one number of writers.

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::logs::{DurableLog, Kind};
use crate::machine::{self, Device};
use crate::sample::Sample;
use crate::writer::{Phase, WriterLoop};

/// Enough for a writer, and 256 of them stay small.
const STACK_BYTES: usize = 256 << 10;
/// Prepared space per second of run for logs that write into zeroed blocks.
const ZEROED_BYTES_PER_SECOND: f64 = 128e6;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The log.
    pub kind: Kind,
    /// Writers.
    pub threads: usize,
    /// Records that each writer keeps in flight; 1 waits for each.
    pub depth: usize,
    /// Record length.
    pub bytes: usize,
    /// Measured time.
    pub seconds: f64,
    /// Time between the opening and the first record.
    pub rest: f64,
    /// Time between the first record and the measured ones.
    pub warm_up: f64,
    /// An existing, empty directory.
    pub dir: PathBuf,
}

impl Cell {
    /// Runs the writers and returns what they saw.
    pub fn measure(&self) -> Sample {
        #[cfg(feature = "arborlog")]
        if self.kind == Kind::ArborlogTasks {
            return self.measure_tasks();
        }
        let zeroed = ((self.seconds + self.warm_up) * ZEROED_BYTES_PER_SECOND) as u64;
        let log = self.kind.open(&self.dir, zeroed);
        thread::sleep(Duration::from_secs_f64(self.rest));
        let (phase, start) = (Phase::new(), Barrier::new(self.threads + 1));
        let mut sample = Sample::new();
        let (latencies, total) = thread::scope(|scope| {
            let writers: Vec<_> = (0..self.threads)
                .map(|writer| {
                    let (log, phase, start) = (&*log, &phase, &start);
                    let run = move || self.write(log, phase, start, writer);
                    let builder = thread::Builder::new().stack_size(STACK_BYTES);
                    builder.spawn_scoped(scope, run).expect("start a writer")
                })
                .collect();
            start.wait();
            self.watch(&phase, &mut sample);
            let (mut latencies, mut total) = (Histogram::new(), 0);
            for writer in writers {
                let (its_latencies, its_total) = writer.join().expect("a writer panicked");
                latencies.merge(&its_latencies);
                total += its_total;
            }
            (latencies, total)
        });
        summed(sample, &latencies, total)
    }

    /// The same with tasks of a runtime that has a thread for each processor.
    #[cfg(feature = "arborlog")]
    fn measure_tasks(&self) -> Sample {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("start a runtime");
        let log = std::sync::Arc::new(crate::logs::arborlog_log::ArborlogLog::open(&self.dir));
        thread::sleep(Duration::from_secs_f64(self.rest));
        // As long as the process, which is for this one run.
        let phase: &'static Phase = Box::leak(Box::new(Phase::new()));
        let mut sample = Sample::new();
        let writers: Vec<_> = (0..self.threads)
            .map(|writer| {
                let (log, mut writer_loop) = (log.clone(), WriterLoop::new(phase, writer, self.bytes));
                runtime.spawn(async move {
                    writer_loop.run_awaiting(|record| log.submit(record)).await;
                    (writer_loop.latencies, writer_loop.total)
                })
            })
            .collect();
        self.watch(phase, &mut sample);
        let (mut latencies, mut total) = (Histogram::new(), 0);
        for writer in writers {
            let (its_latencies, its_total) = runtime.block_on(writer).expect("a writer panicked");
            latencies.merge(&its_latencies);
            total += its_total;
        }
        summed(sample, &latencies, total)
    }

    fn write(&self, log: &dyn DurableLog, phase: &Phase, start: &Barrier, writer: usize) -> (Histogram, u64) {
        let mut writer_loop = WriterLoop::new(phase, writer, self.bytes);
        start.wait();
        if self.depth > 1 {
            log.pipeline(&mut writer_loop, self.depth);
        } else {
            writer_loop.run_blocking(|record| log.commit(writer, record));
        }
        (writer_loop.latencies, writer_loop.total)
    }

    /// Moves the run through its phases and takes the machine's counters at both ends of the window.
    fn watch(&self, phase: &Phase, sample: &mut Sample) {
        let device = Device::of(&self.dir);
        thread::sleep(Duration::from_secs_f64(self.warm_up));
        let (cpu, counters) = (machine::cpu_seconds(), device.counters());
        let started = Instant::now();
        phase.set(Phase::MEASURE);
        thread::sleep(Duration::from_secs_f64(self.seconds));
        phase.set(Phase::STOP);
        let seconds = started.elapsed().as_secs_f64();
        let after = device.counters();
        sample.set("seconds", seconds);
        sample.set("cpu_seconds", machine::cpu_seconds() - cpu);
        sample.set("device_bytes", after.bytes - counters.bytes);
        sample.set("flushes", after.flushes - counters.flushes);
    }
}

/// The writers' counts with the machine's.
fn summed(mut sample: Sample, latencies: &Histogram, total: u64) -> Sample {
    sample.set("commits", latencies.count() as f64);
    sample.set("total", total as f64);
    for (name, q) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
        sample.set(name, latencies.quantile_micros(q));
    }
    sample
}
