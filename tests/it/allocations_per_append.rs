//! An append on a warm log takes no memory: not to encode, not for its ticket, not to wait, and not to write
//! the group itself, which a thread that waits does.

use arborlog::{BackendChoice, Epoch, GroupPolicy, Log, LogOptions};

use crate::allocations::allocations;

const APPENDS: u64 = 2_000;
const PAYLOAD: [u8; 200] = [7; 200];

#[test]
fn an_append_and_its_wait_allocate_nothing() {
    // A ring is there for several groups in flight.
    for (backend, groups) in [(BackendChoice::Auto, 1), (BackendChoice::Auto, 2), (BackendChoice::Threads, 1)]
    {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a directory");
        let options = LogOptions::new().backend(backend).group(GroupPolicy::new().in_flight_max(groups));
        let (log, report) = options.open(dir.path()).expect("open a log");
        let backend = report.backend.backend;
        append_and_wait(&log, APPENDS);
        let ((), count) = allocations(|| append_and_wait(&log, APPENDS));
        assert_eq!(count, 0, "allocations in {APPENDS} appends that waited, on {backend}");
        append_all(&log, APPENDS);
        let ((), count) = allocations(|| append_all(&log, APPENDS));
        assert_eq!(count, 0, "allocations in {APPENDS} appends whose tickets were let go of, on {backend}");
        log.close().expect("close");
    }
}

fn append_and_wait(log: &Log, appends: u64) {
    for _ in 0..appends {
        log.append_next(Epoch::ZERO, 1, &PAYLOAD).expect("append").wait().expect("wait until durable");
    }
}

/// Tickets that are let go of do not allocate either.
fn append_all(log: &Log, appends: u64) {
    for _ in 0..appends {
        drop(log.append_next(Epoch::ZERO, 1, &PAYLOAD).expect("append"));
    }
    log.flush().expect("flush");
}
