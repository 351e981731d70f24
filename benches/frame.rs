//! Small operations in memory: what an append costs before it waits (encoding and checksums), and what reading
//! a record back costs (verifying its group, and finding it).
//!
//! `cargo bench --features sim --bench frame`

use std::hint::black_box;
use std::time::{Duration, Instant};

use arborlog::sim::SimDisk;
use arborlog::{Epoch, Log, LogOptions, Retention, Zxid};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_main};

#[path = "../tests/it/allocations.rs"]
#[allow(dead_code, reason = "the bench only counts")]
mod allocations;

/// Appends between two flushes: fewer than fill a group, so that nothing but the append itself is timed.
const BURST: u64 = 500;
const PAYLOAD_BYTES: [usize; 3] = [16, 200, 1000];

/// What is read over and over.
const RECORDS: u64 = 10_000;

/// On the simulated disk: its memory is the only device.
fn open() -> Log {
    let options = LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(1 << 40);
    options.open_sim(&SimDisk::new(1)).expect("open a log on the simulated disk").0
}

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append_without_waiting");
    for bytes in PAYLOAD_BYTES {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::from_parameter(bytes), &bytes, |bencher, &bytes| {
            let log = open();
            let payload = vec![0x61; bytes];
            bencher.iter_custom(|appends| time_appends(&log, &payload, appends));
        });
    }
    group.finish();
}

/// Appends in bursts; the writing between them is not timed, and what was written is purged.
fn time_appends(log: &Log, payload: &[u8], appends: u64) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = appends;
    while left > 0 {
        let burst = left.min(BURST);
        let started = now();
        for _ in 0..burst {
            drop(black_box(log.append_next(Epoch::ZERO, 1, black_box(payload)).expect("append")));
        }
        spent += now().duration_since(started);
        left -= burst;
        let last = log.flush().expect("flush");
        log.purge(last, &Retention::new()).expect("purge");
    }
    spent
}

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read_and_verify");
    for bytes in PAYLOAD_BYTES {
        let log = open();
        let payload = vec![0x61; bytes];
        for _ in 0..RECORDS {
            drop(log.append_next(Epoch::ZERO, 1, &payload).expect("append"));
        }
        log.flush().expect("flush");
        group.throughput(Throughput::Elements(RECORDS));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| {
                let mut reader = log.reader(Zxid::ZERO).expect("open a reader");
                while let Some(record) = reader.next_record().expect("read") {
                    black_box(record.payload);
                }
            });
        });
    }
    group.finish();
}

/// No figure but a fact: an append on a warm log takes no memory.
fn count_allocations(_criterion: &mut Criterion) {
    let log = open();
    let burst = |log: &Log| {
        (0..BURST).for_each(|_| drop(log.append_next(Epoch::ZERO, 1, &[7; 200]).expect("append")));
    };
    burst(&log);
    log.flush().expect("flush");
    let ((), count) = allocations::allocations(|| burst(&log));
    println!("append_without_waiting: {count} allocations in {BURST} appends");
    assert_eq!(count, 0, "an append allocates");
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// In a module of its own: the macro makes a public function without a doc.
mod group {
    criterion::criterion_group!(benches, super::count_allocations, super::append, super::read);
}

criterion_main!(group::benches);
