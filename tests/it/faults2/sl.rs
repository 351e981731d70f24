//! Slow disks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arborlog::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{AppendTicket, Epoch, ErrorKind, GroupPolicy, Health, Record};

use super::support::{eventually, in_epoch_1, now, pause, t, tens};

/// Each durable write takes 30 ms and more is offered than can be written: the queue stays bounded, the rest
/// is told to come again; the health turns slow once, and fine once when the disk is quick again.
#[test]
fn sl_01_a_slow_disk_bounds_the_queue_and_turns_the_health() {
    let disk = SimDisk::new(1);
    let group = GroupPolicy::new().bytes_max(64 * 1024);
    let options = tens().segment_bytes(4 << 20).slow_sync(Duration::from_millis(15)).group(group);
    let log = in_epoch_1(options.open_sim(&disk).unwrap().0);
    disk.inject(
        Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())).times(u64::MAX),
    );
    let payload = [7; 1000];
    let over = AtomicBool::new(false);
    let (mut busy, mut offered, mut deepest) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                pause(Duration::from_millis(30));
                disk.release_stalled();
            }
            disk.clear_faults();
            disk.release_stalled();
        });
        scope.spawn(|| {
            // Someone who waits, so that groups are written.
            while !over.load(Ordering::Relaxed) {
                log.append_next(Epoch::new(1), 0, &payload).and_then(AppendTicket::wait).unwrap();
            }
        });
        let start = now();
        while start.elapsed() < Duration::from_millis(1500) {
            let next = log.logged_zxid().max(t(0)).next_in_epoch().unwrap();
            match log.try_append(&Record::new(next, 0, &payload)) {
                Ok(ticket) => drop(ticket),
                Err(error) if error.kind() == ErrorKind::Busy => {
                    busy += 1;
                    pause(Duration::from_micros(200));
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfOrder, "{error}"),
            }
            offered += 1;
            let stats = log.stats();
            deepest = deepest.max(stats.logged_zxid.counter() - stats.durable_zxid.counter());
        }
        assert!(matches!(log.health(), Health::Slow), "{:?}", log.stats());
        over.store(true, Ordering::Relaxed);
    });
    assert!(busy > 100, "{busy} of {offered} were told to come again");
    // Two groups under way and one forming, of at most 64 KiB each.
    assert!((2..=3 * 64).contains(&deepest), "{deepest} records were in the queue");
    let start = now();
    eventually("the health is fine again", || {
        log.append_next(Epoch::new(1), 0, &payload).and_then(AppendTicket::wait).unwrap();
        matches!(log.health(), Health::Fine)
    });
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let stats = log.stats();
    assert_eq!(stats.health_changes, 2);
    assert!(stats.slow_syncs > 10 && stats.sync_max >= Duration::from_millis(15), "{stats:?}");
}

/// The disk does not answer at all: an append that must not block does not, however much is offered.
#[test]
fn sl_01_an_append_that_must_not_block_does_not() {
    for groups in [1, 2, 4] {
        let disk = SimDisk::new(3);
        let policy = GroupPolicy::new().bytes_max(16 * 1024).in_flight_max(groups);
        let log = in_epoch_1(tens().segment_bytes(4 << 20).group(policy).open_sim(&disk).unwrap().0);
        let every_write = Fault::next(FaultOp::Write, Effect::Stall).times(u64::MAX);
        disk.inject(every_write.on(NamePattern::Suffix(".seg".into())));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (start, mut next, mut busy) = (now(), 1, 0);
                while start.elapsed() < Duration::from_millis(300) {
                    match log.try_append(&Record::new(t(next), 0, &[7; 1000])) {
                        Ok(ticket) => {
                            drop(ticket);
                            next += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                            busy += 1;
                            pause(Duration::from_micros(100));
                        }
                    }
                }
                assert!(busy > 10 && next > 10, "{busy} {next}");
                over.store(true, Ordering::Release);
            });
            let start = now();
            while !over.load(Ordering::Acquire) && start.elapsed() < Duration::from_secs(5) {
                pause(Duration::from_millis(5));
            }
            let blocked = !over.load(Ordering::Acquire);
            disk.clear_faults();
            eventually("all writes end", || {
                disk.release_stalled();
                over.load(Ordering::Acquire)
            });
            assert!(!blocked, "it waited for the disk");
        });
        disk.release_stalled();
        log.flush().unwrap();
    }
}

/// A thread that appends and finds the queue full is held back, and goes on when the disk does.
#[test]
fn sl_01_an_append_is_held_back_and_goes_on() {
    let disk = SimDisk::new(2);
    let options =
        tens().segment_bytes(4 << 20).group(GroupPolicy::new().bytes_max(16 * 1024).in_flight_max(1));
    let log = in_epoch_1(options.open_sim(&disk).unwrap().0);
    disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
    let through = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                drop(log.append_next(Epoch::new(1), 0, &[7; 1000]).unwrap());
            }
            through.store(true, Ordering::Release);
        });
        pause(Duration::from_millis(200));
        assert!(!through.load(Ordering::Acquire), "a hundred records went into 32 KiB");
        disk.release_stalled();
        eventually("the appends", || through.load(Ordering::Acquire));
    });
    log.flush().unwrap();
    assert_eq!(log.durable_zxid().counter(), 100);
}
