//! All integration tests, as modules of one binary.

mod allocations;
mod allocations_per_append;
mod allocations_per_txn;
#[cfg(feature = "sim")]
mod faults;
#[cfg(feature = "sim")]
mod faults2;
#[cfg(feature = "sim")]
mod fuzz_replay;
mod golden;
mod golden_snapshot;
mod golden_txns;
mod kill_loop;
mod large_segments;
mod recovery_codes;
mod replaying_open;
mod snapshot_memory;
mod tidy;
mod watch_memory;
mod zookeeper_export;
mod zookeeper_faults;
mod zookeeper_import;
mod zookeeper_made;
mod zookeeper_state;
