//! The device's own limit: direct dsync writes to a zeroed file with no engine around them, so many bytes
//! each and so many in flight. What a log reaches is read against this, measured in the same run.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::histogram::Histogram;

/// Zeroed before the clock starts; writes go round in it.
const FILE_BYTES: u64 = 64 << 20;
/// Direct writes start at multiples of this, in memory and on disk.
const BLOCK_BYTES: usize = 4096;

/// What one load reached.
#[derive(Debug)]
pub(crate) struct DeviceLimit {
    /// Durable writes per second.
    pub(crate) writes_per_second: f64,
    /// From before each write to after it.
    pub(crate) latencies: Histogram,
}

/// Writes `bytes` (whole blocks) at rising offsets, `in_flight` at a time, for `duration`. Each write in
/// flight is a thread of its own: nothing but the kernel between it and the device.
pub(crate) fn measure(
    dir: &Path,
    bytes: usize,
    in_flight: usize,
    duration: Duration,
) -> std::io::Result<DeviceLimit> {
    assert!(bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES), "direct writes are whole blocks");
    let path = dir.join(format!("device-limit-{}", std::process::id()));
    let file = zeroed_file(&path)?;
    let next = AtomicU64::new(0);
    let started = now();
    let results: Vec<std::io::Result<Histogram>> = std::thread::scope(|scope| {
        let write = || write_until(&file, bytes, &next, started + duration);
        let writers: Vec<_> = (0..in_flight).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer panicked")).collect()
    });
    let seconds = now().duration_since(started).as_secs_f64();
    std::fs::remove_file(&path)?;
    let mut latencies = Histogram::new();
    for result in results {
        latencies.merge(&result?);
    }
    Ok(DeviceLimit { writes_per_second: latencies.count() as f64 / seconds, latencies })
}

fn write_until(file: &File, bytes: usize, next: &AtomicU64, end: Instant) -> std::io::Result<Histogram> {
    let mut buffer = vec![0x5a; bytes + BLOCK_BYTES];
    let aligned = aligned_part(&mut buffer, bytes);
    let mut latencies = Histogram::new();
    loop {
        let started = now();
        if started >= end {
            return Ok(latencies);
        }
        let offset = next.fetch_add(bytes as u64, Ordering::Relaxed) % (FILE_BYTES - bytes as u64);
        let offset = offset - offset % BLOCK_BYTES as u64;
        file.write_all_at(aligned, offset)?;
        latencies.record(now().duration_since(started).as_nanos() as u64);
    }
}

/// A file whose blocks have all been written once, open for direct dsync writes.
fn zeroed_file(path: &Path) -> std::io::Result<File> {
    const CHUNK_BYTES: usize = 1 << 20;
    let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC;
    let flags = i32::try_from(flags.bits()).expect("open flags are an int in C");
    let file = OpenOptions::new().create(true).truncate(true).write(true).custom_flags(flags).open(path)?;
    let mut buffer = vec![0; CHUNK_BYTES + BLOCK_BYTES];
    let zeros = aligned_part(&mut buffer, CHUNK_BYTES);
    for offset in (0..FILE_BYTES).step_by(CHUNK_BYTES) {
        file.write_all_at(zeros, offset)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The part of a buffer that starts at a block's multiple in memory.
fn aligned_part(buffer: &mut [u8], len: usize) -> &mut [u8] {
    let skip = buffer.as_ptr().align_offset(BLOCK_BYTES);
    &mut buffer[skip..skip + len]
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
