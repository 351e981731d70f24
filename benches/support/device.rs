//! The device's own limit: direct dsync writes to a zeroed file with no engine around them, so many bytes
//! each and so many in flight. What a log reaches is read against this, measured in the same run.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::aligned::{AlignedBuffer, BLOCK_BYTES, zero};
use super::histogram::Histogram;
use super::now;

/// Zeroed before the clock starts; writes go round in it.
const FILE_BYTES: u64 = 64 << 20;

/// What one load reached.
#[derive(Debug)]
pub(crate) struct DeviceLimit {
    /// Durable writes per second.
    pub(crate) writes_per_second: f64,
    /// From before each write to after it.
    pub(crate) latencies: Histogram,
}

/// A zeroed file of a directory, to be measured under several loads. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    path: PathBuf,
}

impl Device {
    /// Zeroes a file whose blocks will be overwritten, open for direct dsync writes.
    pub(crate) fn prepare(dir: &Path) -> std::io::Result<Device> {
        let path = dir.join(format!("device-limit-{}", std::process::id()));
        let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC;
        let flags = i32::try_from(flags.bits()).expect("open flags are an int in C");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(true).write(true).custom_flags(flags).open(&path)?;
        zero(&file, FILE_BYTES)?;
        Ok(Device { file, path })
    }

    /// Writes `bytes` (whole blocks) at rising offsets, `in_flight` at a time, for `duration`. Each write in
    /// flight is a thread of its own: nothing but the kernel between it and the device.
    pub(crate) fn measure(
        &self,
        bytes: usize,
        in_flight: usize,
        duration: Duration,
    ) -> std::io::Result<DeviceLimit> {
        assert!(bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES), "direct writes are whole blocks");
        let next = AtomicU64::new(0);
        let started = now();
        let results: Vec<std::io::Result<Histogram>> = std::thread::scope(|scope| {
            let write = || write_until(&self.file, bytes, &next, started + duration);
            let writers: Vec<_> = (0..in_flight).map(|_| scope.spawn(write)).collect();
            writers.into_iter().map(|writer| writer.join().expect("a writer panicked")).collect()
        });
        let seconds = now().duration_since(started).as_secs_f64();
        let mut latencies = Histogram::new();
        for result in results {
            latencies.merge(&result?);
        }
        Ok(DeviceLimit { writes_per_second: latencies.count() as f64 / seconds, latencies })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A file left behind in a bench's directory is no reason to lose the figures.
        std::fs::remove_file(&self.path).ok();
    }
}

fn write_until(file: &File, bytes: usize, next: &AtomicU64, end: Instant) -> std::io::Result<Histogram> {
    let mut buffer = AlignedBuffer::with_capacity(bytes);
    buffer.extend(&vec![0x5a; bytes]);
    let mut latencies = Histogram::new();
    loop {
        let started = now();
        if started >= end {
            return Ok(latencies);
        }
        let offset = next.fetch_add(bytes as u64, Ordering::Relaxed) % (FILE_BYTES - bytes as u64);
        let offset = offset - offset % BLOCK_BYTES as u64;
        file.write_all_at(buffer.as_slice(), offset)?;
        latencies.record(now().duration_since(started).as_nanos() as u64);
    }
}
