//! What the machine says about a run: CPU time, peak memory, and what reached the block device.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// CPU seconds of this process so far, user and system, all threads.
pub fn cpu_seconds() -> f64 {
    // SAFETY: an all-zero rusage is a valid value, and the call only writes into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0, "getrusage(self) cannot fail");
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Writes back what earlier runs left in the page cache, so that no run pays for another.
pub fn settle() {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::sync() }
}

/// Peak resident memory of this process in MB. From the memory map's own high-water mark, since
/// `ru_maxrss` of a child starts at its parent's peak.
pub fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("read /proc/self/status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the status has VmHWM");
    let kilobytes = line.split_whitespace().nth(1).expect("VmHWM has a value");
    kilobytes.parse::<f64>().expect("VmHWM is a number") / 1024.0
}

/// Counters of the block device below a directory; the whole device's, so the machine must be quiet.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceCounters {
    /// Bytes written.
    pub bytes: f64,
    /// Flush requests completed.
    pub flushes: f64,
}

/// Where a directory's device counters are read.
#[derive(Debug)]
pub struct Device {
    stat: PathBuf,
}

impl Device {
    /// The device that holds `dir`.
    pub fn of(dir: &Path) -> Device {
        let number = std::fs::metadata(dir).expect("stat the data directory").dev();
        let (major, minor) = (libc::major(number), libc::minor(number));
        Device { stat: PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat")) }
    }

    /// The counters now; zeros where the file system has no block device of its own.
    pub fn counters(&self) -> DeviceCounters {
        let Ok(text) = std::fs::read_to_string(&self.stat) else { return DeviceCounters::default() };
        let fields: Vec<f64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or(0.0);
        // Sectors of this file are always 512 bytes, whatever the device's own size.
        DeviceCounters { bytes: field(6) * 512.0, flushes: field(15) }
    }
}
