use std::time::Duration;

use crate::base::{Error, Result, Zxid, limits};
use crate::format::{DatabaseId, Numbering, SegmentFill};
use crate::io::{BackendChoice, WriteMode};

/// When a group starts and how large it may grow.
///
/// The defaults were chosen by measurement: see `docs/decisions/0002-group-commit.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupPolicy {
    pub(crate) bytes_max: u64,
    pub(crate) records_max: u32,
    pub(crate) delay: Duration,
    pub(crate) gather: Gather,
    pub(crate) in_flight_max: usize,
}

/// Whether a group waits a moment for the writers that the last group has just woken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Gather {
    /// Start as soon as a write may start.
    Off,
    /// Wait up to the given bound whenever writers are expected back.
    Always(Duration),
    /// Wait for those who were just woken, 60 us and 4 us for each, at most 300: for all of up to 64 threads; for one half of
    /// more that [`commit`](crate::Log::commit), so that the other half is woken while its group is written; for all who wait
    /// on tickets; not for more than 64 tasks that await theirs, which cost little to wake. Who stays away twice in a row is not
    /// waited for in the next 256 groups. Writers that do something else now and then between two records and come back
    /// while they are waited for cost the others some of their 99th percentile: [`Off`](Gather::Off) is for these. The default of a log.
    #[default]
    Adaptive,
    /// The same, but 2 us for each, and for one half from 17 writers on, whatever they wait with (for so many tasks not at all): for writers to
    /// whom a record costs so much of the processor that a write should be under way meanwhile. The default of an engine.
    Overlapping,
}

impl Default for GroupPolicy {
    fn default() -> GroupPolicy {
        GroupPolicy {
            bytes_max: limits::GROUP_BYTES_DEFAULT,
            records_max: limits::GROUP_RECORDS_MAX,
            delay: Duration::ZERO,
            gather: Gather::Adaptive,
            in_flight_max: 1,
        }
    }
}

impl GroupPolicy {
    /// The defaults: start when idle, gather adaptively, one group in flight, one MiB a group.
    pub fn new() -> GroupPolicy {
        GroupPolicy::default()
    }

    /// Most bytes of a group, framing included (4 KiB to 64 MiB; default 1 MiB). A larger single record
    /// or batch travels in a group of its own.
    #[must_use]
    pub fn bytes_max(mut self, bytes: u64) -> GroupPolicy {
        self.bytes_max = bytes;
        self
    }

    /// Most records of a group (1 to 1,048,576, the default).
    #[must_use]
    pub fn records_max(mut self, records: u32) -> GroupPolicy {
        self.records_max = records;
        self
    }

    /// A fixed delay after the first record of a group before it starts, unless the group is full first
    /// (0 to 1 s; default 0). For those who want throughput of slow disks at the price of latency.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> GroupPolicy {
        self.delay = delay;
        self
    }

    /// Whether a group waits for the writers that were just woken (default [`Gather::Adaptive`]).
    #[must_use]
    pub fn gather(mut self, gather: Gather) -> GroupPolicy {
        self.gather = gather;
        self
    }

    /// Most groups that are being written at once (1 to 16; default 1). They may end in any order; they are
    /// acknowledged in order.
    #[must_use]
    pub fn in_flight_max(mut self, groups: usize) -> GroupPolicy {
        self.in_flight_max = groups;
        self
    }

    fn check(&self) -> Result<()> {
        let bytes = limits::GROUP_BYTES_MIN..=limits::GROUP_BYTES_MAX;
        check(bytes.contains(&self.bytes_max), "group bytes_max", "4 KiB to 64 MiB")?;
        let records = 1..=limits::GROUP_RECORDS_MAX;
        check(records.contains(&self.records_max), "group records_max", "1 to 1,048,576")?;
        check(self.delay <= Duration::from_secs(1), "group delay", "0 to 1 s")?;
        let gather = if let Gather::Always(bound) = self.gather { bound } else { Duration::ZERO };
        check(gather <= Duration::from_millis(100), "gather bound", "0 to 100 ms")?;
        let groups = 1..=limits::GROUPS_IN_FLIGHT_MAX;
        check(groups.contains(&self.in_flight_max), "groups in flight", "1 to 16")
    }
}

/// How to open a log. Each option's doc has its default and bounds; opening checks them.
///
/// # Memory
/// An open log holds at most `(in_flight_max + 1) x max(group bytes_max, record_bytes_max + 8 KiB)` for
/// groups, 24 bytes for each 64 KiB of retained log for the index, and 64 KiB while a segment is being
/// prepared (1 MiB while the log is being opened). A reader adds 64 KiB, or the size of the largest group it meets.
/// While a log is being opened, up to eight processors read ahead: `(2 x processors + 2) x 1.5 MiB` at most, about a
/// third of it where groups are small, and the size of the largest group.
#[derive(Clone, Debug)]
pub struct LogOptions {
    pub(crate) segment_bytes: u64,
    pub(crate) record_bytes_max: u64,
    pub(crate) block_bytes: Option<u64>,
    pub(crate) fill: SegmentFill,
    pub(crate) write_mode: WriteMode,
    pub(crate) backend: BackendChoice,
    pub(crate) group: GroupPolicy,
    pub(crate) numbering: Numbering,
    pub(crate) expected_database_id: Option<DatabaseId>,
    pub(crate) prepare_bytes_per_second: u64,
    pub(crate) idle_mark: Option<Duration>,
    pub(crate) slow_sync: Duration,
    pub(crate) stuck_after: Duration,
    /// Where a log begins that is created: after the state of a snapshot that was installed.
    pub(crate) created_after: Zxid,
    /// Whether a directory without a log is refused instead of taken for a new one.
    pub(crate) must_exist: bool,
    /// Whether a view takes a log whose oldest segments are missing for one that was purged up to the first one that is
    /// there. Only for whoever makes another state of it, and says so.
    pub(crate) oldest_may_be_missing: bool,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: limits::SEGMENT_BYTES_DEFAULT,
            record_bytes_max: limits::RECORD_BYTES_DEFAULT,
            block_bytes: None,
            fill: SegmentFill::Zeroed,
            write_mode: WriteMode::DirectDsync,
            backend: BackendChoice::Auto,
            group: GroupPolicy::default(),
            numbering: Numbering::Zxid,
            expected_database_id: None,
            prepare_bytes_per_second: 100 * 1024 * 1024,
            idle_mark: Some(Duration::from_millis(100)),
            slow_sync: Duration::from_secs(1),
            stuck_after: Duration::from_secs(30),
            created_after: Zxid::ZERO,
            must_exist: false,
            oldest_may_be_missing: false,
        }
    }
}

impl LogOptions {
    /// The defaults.
    pub fn new() -> LogOptions {
        LogOptions::default()
    }

    /// The size of a segment (16 KiB to 16 GiB; default 64 MiB). A record larger than a segment is fine:
    /// that segment grows.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> LogOptions {
        self.segment_bytes = bytes;
        self
    }

    /// Largest payload that an append takes (1 byte to 1 GiB; default 1 MiB + 64 KiB, ZooKeeper's request
    /// limit and its server's slack). Reading has no such limit: what was accepted once stays readable when
    /// the limit is lowered.
    #[must_use]
    pub fn record_bytes_max(mut self, bytes: u64) -> LogOptions {
        self.record_bytes_max = bytes;
        self
    }

    /// The unit that groups are padded to (a power of two, 512 to 65,536). The default is what the medium
    /// writes as one, as the kernel tells it, usually 4,096: a torn write then never touches the block of an
    /// acknowledged group. 512 saves space at few writers on a disk that is known to keep neighbouring
    /// sectors intact.
    #[must_use]
    pub fn block_bytes(mut self, bytes: u64) -> LogOptions {
        self.block_bytes = Some(bytes);
        self
    }

    /// How segments are prepared (default [`SegmentFill::Zeroed`]).
    #[must_use]
    pub fn fill(mut self, fill: SegmentFill) -> LogOptions {
        self.fill = fill;
        self
    }

    /// How groups reach the disk (default [`WriteMode::DirectDsync`]).
    #[must_use]
    pub fn write_mode(mut self, mode: WriteMode) -> LogOptions {
        self.write_mode = mode;
        self
    }

    /// Which machinery carries the writes (default [`BackendChoice::Auto`]).
    #[must_use]
    pub fn backend(mut self, backend: BackendChoice) -> LogOptions {
        self.backend = backend;
        self
    }

    /// When groups start and how large they grow.
    #[must_use]
    pub fn group(mut self, policy: GroupPolicy) -> LogOptions {
        self.group = policy;
        self
    }

    /// What the identifiers are (default [`Numbering::Zxid`]). Fixed when the log is created; opening with
    /// another is an error.
    #[must_use]
    pub fn numbering(mut self, numbering: Numbering) -> LogOptions {
        self.numbering = numbering;
        self
    }

    /// Refuse any other database than this one (default: take the one that is there).
    #[must_use]
    pub fn expected_database_id(mut self, id: DatabaseId) -> LogOptions {
        self.expected_database_id = Some(id);
        self
    }

    /// Pace of the background writing of zeros (1 MiB to 1 TiB a second; default 100 MiB). It goes faster by
    /// itself when the segment in use fills up sooner. The zeros are written as soon as nothing else was for 20 ms; else
    /// from the time on when a quarter of the segment in use is full.
    #[must_use]
    pub fn prepare_bytes_per_second(mut self, bytes: u64) -> LogOptions {
        self.prepare_bytes_per_second = bytes;
        self
    }

    /// After this long without an append, write one small mark that proves the last group durable, so that
    /// later damage to it is told from a torn write (1 ms to 1 h, or `None` for never; default 100 ms).
    #[must_use]
    pub fn idle_mark(mut self, after: Option<Duration>) -> LogOptions {
        self.idle_mark = after;
        self
    }

    /// A durable write that takes longer counts as slow in [`LogStats`](crate::LogStats) and turns the
    /// health to slow (default 1 s).
    #[must_use]
    pub fn slow_sync(mut self, bound: Duration) -> LogOptions {
        self.slow_sync = bound;
        self
    }

    /// A durable write that takes longer is given up: the log is poisoned and those who wait are told
    /// (1 ms to 1 day; default 30 s). The write's memory is kept until the kernel answers.
    #[must_use]
    pub fn stuck_after(mut self, bound: Duration) -> LogOptions {
        self.stuck_after = bound;
        self
    }

    /// What to open the directory with. A ring ends a durable direct write in the kernel's workers, each of which waits for a
    /// processor; with one group in flight nothing is gained for it. (A write that a sync has to follow takes one call with it.)
    pub(crate) fn backend_choice(&self) -> BackendChoice {
        let is_one_call = matches!(self.write_mode, WriteMode::DirectDsync | WriteMode::Unsynced);
        match self.backend {
            BackendChoice::Auto if self.group.in_flight_max == 1 && is_one_call => BackendChoice::Threads,
            choice => choice,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.group.check()?;
        let segment = limits::SEGMENT_BYTES_MIN..=limits::SEGMENT_BYTES_MAX;
        check(segment.contains(&self.segment_bytes), "segment_bytes", "16 KiB to 16 GiB")?;
        let record = 1..=limits::RECORD_BYTES_MAX;
        check(record.contains(&self.record_bytes_max), "record_bytes_max", "1 byte to 1 GiB")?;
        if let Some(block) = self.block_bytes {
            let sizes = limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX;
            check(
                block.is_power_of_two() && sizes.contains(&block),
                "block_bytes",
                "a power of two, 512 to 65,536",
            )?;
        }
        let pace = 1 << 20..=1 << 40;
        check(pace.contains(&self.prepare_bytes_per_second), "prepare_bytes_per_second", "1 MiB to 1 TiB")?;
        let mark = self.idle_mark.unwrap_or(Duration::from_millis(1));
        let marks = Duration::from_millis(1)..=Duration::from_hours(1);
        check(marks.contains(&mark), "idle_mark", "1 ms to 1 h")?;
        let stuck = Duration::from_millis(1)..=Duration::from_hours(24);
        check(stuck.contains(&self.stuck_after), "stuck_after", "1 ms to 1 day")
    }
}

fn check(holds: bool, option: &str, bounds: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::invalid(format!("{option} is out of bounds: {bounds}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn lc_04_bounds_are_checked_without_wrapping() {
        assert!(LogOptions::new().check().is_ok());
        assert!(LogOptions::new().record_bytes_max(1 << 30).check().is_ok());
        for bytes in [0, (1 << 30) + 1, i32::MAX as u64, 1 << 31, u32::MAX.into(), u64::MAX] {
            let error = LogOptions::new().record_bytes_max(bytes).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{bytes}");
        }
        for bad in [
            LogOptions::new().segment_bytes(0),
            LogOptions::new().segment_bytes(u64::MAX),
            LogOptions::new().block_bytes(513),
            LogOptions::new().block_bytes(1 << 20),
            LogOptions::new().prepare_bytes_per_second(0),
            LogOptions::new().idle_mark(Some(Duration::ZERO)),
            LogOptions::new().stuck_after(Duration::ZERO),
            LogOptions::new().group(GroupPolicy::new().bytes_max(1)),
            LogOptions::new().group(GroupPolicy::new().records_max(0)),
            LogOptions::new().group(GroupPolicy::new().delay(Duration::MAX)),
            LogOptions::new().group(GroupPolicy::new().in_flight_max(0)),
            LogOptions::new().group(GroupPolicy::new().in_flight_max(17)),
            LogOptions::new().group(GroupPolicy::new().gather(Gather::Always(Duration::MAX))),
        ] {
            assert_eq!(bad.check().unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
        }
    }
}
