//! The policies that `group_commit` puts side by side: each is the default but for what its name says.

use std::time::Duration;

use arborlog::{BackendChoice, Gather, GroupPolicy, LogOptions, SegmentFill, WriteMode};

/// A named way to open a log.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) options: LogOptions,
    pub(crate) mode: WriteMode,
    pub(crate) in_flight: usize,
    /// Whether a short run has it too.
    pub(crate) quick: bool,
}

/// The policy that not every machine grants.
pub(crate) const IO_URING: &str = "io-uring";

/// Groups in flight where nothing else is said.
const IN_FLIGHT_DEFAULT: usize = 1;

impl Policy {
    fn new(name: &'static str, options: LogOptions) -> Policy {
        let mode = WriteMode::DirectDsync;
        Policy { name, options, mode, in_flight: IN_FLIGHT_DEFAULT, quick: false }
    }

    fn grouped(name: &'static str, group: GroupPolicy) -> Policy {
        Policy::new(name, LogOptions::new().group(group))
    }

    fn in_flight(name: &'static str, groups: usize) -> Policy {
        let policy = Policy::grouped(name, GroupPolicy::new().in_flight_max(groups));
        Policy { in_flight: groups, ..policy }
    }

    fn written(name: &'static str, mode: WriteMode) -> Policy {
        Policy { mode, ..Policy::new(name, LogOptions::new().write_mode(mode)) }
    }

    fn quick(self) -> Policy {
        Policy { quick: true, ..self }
    }
}

/// All of them, in the order of the table.
pub(crate) fn policies() -> Vec<Policy> {
    let micros = Duration::from_micros;
    let (group, options) = (GroupPolicy::new, LogOptions::new);
    vec![
        Policy::new("default", options()).quick(),
        Policy::grouped("gather-off", group().gather(Gather::Off)).quick(),
        Policy::grouped("gather-30us", group().gather(Gather::Always(micros(30)))),
        Policy::grouped("gather-60us", group().gather(Gather::Always(micros(60)))),
        Policy::grouped("gather-overlapping", group().gather(Gather::Overlapping)),
        Policy::in_flight("in-flight-2", 2),
        Policy::in_flight("in-flight-4", 4),
        Policy::grouped("delay-1ms", group().delay(Duration::from_millis(1))).quick(),
        Policy::written("direct-then-sync", WriteMode::DirectThenSync),
        Policy::written("buffered-then-sync", WriteMode::BufferedThenSync).quick(),
        Policy::new("fill-allocated", options().fill(SegmentFill::Allocated)),
        Policy::new("fill-growing", options().fill(SegmentFill::Growing)),
        Policy::new("block-512", options().block_bytes(512)),
        Policy::new("block-4096", options().block_bytes(4096)),
        Policy::new(IO_URING, options().backend(BackendChoice::IoUring)).quick(),
        // What the log costs without a disk. Its syncs are 0, and it says so.
        Policy::written("unsynced", WriteMode::Unsynced),
    ]
}
