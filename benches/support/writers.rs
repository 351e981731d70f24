//! Writers that load a log: threads that append and wait, one record at a time or a window of tickets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::histogram::Histogram;
use super::now;
use super::process::cpu_time;

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// How many threads, and how many records each keeps in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    /// 1: a closed loop that waits for each record.
    pub(crate) window: usize,
}

impl Load {
    /// As it stands in tables and labels.
    pub(crate) fn name(self) -> String {
        if self.window == 1 { self.threads.to_string() } else { format!("{}x{}", self.threads, self.window) }
    }
}

/// What a load reached between the end of the warm-up and the stop.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// One value per record, from before its append to after its wait.
    pub(crate) latencies: Histogram,
}

/// Loads a log: warms up, measures, stops. `edge` is called when the measured stretch begins and ends, for
/// the log's own counters. `submit` appends and returns a ticket, `wait` waits for it.
pub(crate) fn run<T>(
    load: Load,
    warm_up: Duration,
    measured: Duration,
    submit: impl Fn() -> T + Sync,
    wait: impl Fn(T) + Sync,
    mut edge: impl FnMut(),
) -> Reached {
    let phase = AtomicU8::new(WARM_UP);
    std::thread::scope(|scope| {
        let write = || write_until_stopped(&phase, load.window, &submit, &wait);
        let writers: Vec<_> = (0..load.threads).map(|_| scope.spawn(write)).collect();
        let (seconds, cpu_seconds) = watch(&phase, warm_up, measured, &mut edge);
        let mut latencies = Histogram::new();
        for writer in writers {
            latencies.merge(&writer.join().expect("a writer panicked"));
        }
        Reached { seconds, cpu_seconds, latencies }
    })
}

/// The same with tasks of a runtime that has a thread for each processor, as a server has that does not keep a thread
/// for each client. Each submits, awaits the answer, and goes on.
pub(crate) fn run_tasks<F: Future<Output = ()> + Send>(
    tasks: usize,
    warm_up: Duration,
    measured: Duration,
    submit: impl Fn() -> F + Send + Sync + 'static,
) -> Reached {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("start a runtime");
    let shared = Arc::new((AtomicU8::new(WARM_UP), submit));
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let shared = shared.clone();
            runtime.spawn(async move {
                let (phase, submit) = &*shared;
                let mut latencies = Histogram::new();
                loop {
                    let started = now();
                    submit().await;
                    match phase.load(Ordering::Acquire) {
                        WARM_UP => {}
                        MEASURE => latencies.record(now().duration_since(started).as_nanos() as u64),
                        _ => return latencies,
                    }
                }
            })
        })
        .collect();
    let (seconds, cpu_seconds) = watch(&shared.0, warm_up, measured, || {});
    let mut latencies = Histogram::new();
    for task in tasks {
        latencies.merge(&runtime.block_on(task).expect("a task panicked"));
    }
    Reached { seconds, cpu_seconds, latencies }
}

/// Takes a run through its phases. Returns how long was measured, and the processors' time of that.
fn watch(phase: &AtomicU8, warm_up: Duration, measured: Duration, mut edge: impl FnMut()) -> (f64, f64) {
    pause(warm_up);
    edge();
    let (started, cpu) = (now(), cpu_time());
    phase.store(MEASURE, Ordering::Release);
    pause(measured);
    phase.store(STOP, Ordering::Release);
    let seconds = now().duration_since(started).as_secs_f64();
    let cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
    edge();
    (seconds, cpu_seconds)
}

fn write_until_stopped<T>(
    phase: &AtomicU8,
    window: usize,
    submit: impl Fn() -> T,
    wait: impl Fn(T),
) -> Histogram {
    let mut latencies = Histogram::new();
    let mut in_flight = VecDeque::with_capacity(window);
    loop {
        while in_flight.len() < window {
            in_flight.push_back((now(), submit()));
        }
        let (started, ticket) = in_flight.pop_front().expect("the window was just filled");
        wait(ticket);
        match phase.load(Ordering::Acquire) {
            WARM_UP => {}
            MEASURE => latencies.record(now().duration_since(started).as_nanos() as u64),
            _ => break,
        }
    }
    for (_, ticket) in in_flight {
        wait(ticket);
    }
    latencies
}

#[expect(clippy::disallowed_methods, reason = "the load runs in other threads; this one only keeps the time")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
