//! What the process has used: processor time and memory, as the kernel counts them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads, in user and kernel mode.
pub(crate) fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(spent).expect("processor time does not run backwards")
}

/// Forgets the peak of resident memory, so that the next reading is that of what follows. Where the kernel
/// does not allow it, the peak is that of the whole process.
pub(crate) fn forget_peak_memory() {
    std::fs::write("/proc/self/clear_refs", "5").ok();
}

/// The peak of resident memory in bytes; 0 where the kernel does not tell.
pub(crate) fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
