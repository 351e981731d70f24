//! The backends under a whole log. What concerns a ring alone is tested in `src/io`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arborlog::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{Backend, BackendChoice, Epoch, ErrorKind, GroupPolicy, Health, Log, LogOptions};

use super::children::Process;
use super::support::{
    append, content, eventually, files, in_epoch_1, model, now, pause, put_range, refused, small, t, tens,
};

/// The backends that this machine grants.
fn granted() -> Vec<BackendChoice> {
    let dir = tempfile::tempdir().unwrap();
    let uring = match small().backend(BackendChoice::IoUring).open(dir.path()) {
        Ok((log, _)) => {
            assert_eq!(log.backend().backend, Backend::IoUring);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.to_string().contains("io_uring"), "{error}");
            false
        }
    };
    let all = [BackendChoice::Threads, BackendChoice::Auto, BackendChoice::IoUring];
    all.into_iter().filter(|choice| uring || *choice != BackendChoice::IoUring).collect()
}

/// One directory, another backend at each open.
#[test]
fn iu_07_a_log_changes_its_backend_between_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut next = 1;
    for round in 0..3 {
        for choice in granted() {
            // With one group in flight nothing asks for a ring but `IoUring`.
            let several = small().group(GroupPolicy::new().in_flight_max(2));
            let (log, report) = several.backend(choice).open(dir.path()).unwrap();
            assert_eq!(report.backend.backend, log.backend().backend);
            let threads = log.backend().backend == Backend::Threads;
            assert_eq!(
                choice == BackendChoice::Auto && threads,
                log.backend().refused.is_some(),
                "{:?}",
                log.backend()
            );
            assert_eq!(content(&log), model((1..next).map(t)), "{choice:?}");
            let log = in_epoch_1(log);
            put_range(&log, next..next + 40);
            next += 40;
            if round == 1 { drop(log) } else { log.close().unwrap() }
        }
    }
}

/// Threads that append and end at once, waited for by others or by nobody.
#[test]
fn iu_09_a_thread_that_ends_takes_no_append_with_it() {
    for choice in granted() {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = small().backend(choice).open(dir.path()).unwrap();
        let log = Arc::new(in_epoch_1(log));
        let told = Arc::new(AtomicU32::new(0));
        for n in 0..150 {
            let (own, told) = (log.clone(), told.clone());
            let ticket = std::thread::scope(|scope| {
                scope
                    .spawn(move || {
                        let first = own.append_next(Epoch::new(1), 0, &[1; 500]).unwrap();
                        let second = own.append_next(Epoch::new(1), 0, &[2; 500]).unwrap();
                        second.on_durable(move |outcome| {
                            outcome.unwrap();
                            told.fetch_add(1, Ordering::SeqCst);
                        });
                        drop(own.append_next(Epoch::new(1), 0, &[3; 500]).unwrap());
                        first
                    })
                    .join()
                    .unwrap()
            });
            if n % 3 != 0 {
                ticket.wait().unwrap();
            }
        }
        eventually("all callbacks", || told.load(Ordering::SeqCst) == 150);
        eventually("all records", || log.durable_zxid() == t(450));
        let log = Arc::into_inner(log).unwrap();
        let start = now();
        log.close().unwrap();
        assert!(start.elapsed() < Duration::from_secs(1), "{choice:?}");
    }
}

fn stuck_log(disk: &SimDisk, stuck_after: Duration, groups: usize) -> Log {
    let options = tens().stuck_after(stuck_after).group(GroupPolicy::new().in_flight_max(groups));
    let log = in_epoch_1(options.open_sim(disk).unwrap().0);
    put_range(&log, 1..=5);
    disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
    log
}

/// A write never ends: those who wait for it are told in time, whoever is stuck in it; the log takes no more
/// and tells why; letting go of it returns, but not its lock, for the write may still come.
#[test]
fn iu_11_a_stuck_write_is_told() {
    for groups in [1, 2, 4] {
        for asked_by_callback in [true, false] {
            let disk = SimDisk::new(11);
            let log = Arc::new(stuck_log(&disk, Duration::from_millis(300), groups));
            let told = Arc::new(AtomicU32::new(0));
            let ticket = append(&log, t(6)).unwrap();
            let writer = if asked_by_callback {
                let told = told.clone();
                ticket.on_durable(move |outcome| {
                    assert!(outcome.unwrap_err().to_string().contains("io_stuck"));
                    told.fetch_add(1, Ordering::SeqCst);
                });
                None
            } else {
                // This thread writes the group itself, so it sits in the kernel until the write ends.
                #[expect(
                    clippy::disallowed_methods,
                    reason = "it outlives the log, which a scope would forbid"
                )]
                Some(std::thread::spawn(move || ticket.wait()))
            };
            eventually("the write is under way", || disk.fault_hits() == 1);
            let start = now();
            let later = append(&log, t(7)).unwrap();
            let error = refused(later.wait());
            assert_eq!(error.kind(), ErrorKind::Poisoned);
            assert!(error.to_string().contains("io_stuck"), "{error}");
            assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
            assert!(matches!(log.health(), Health::Failed(_)));
            if asked_by_callback {
                eventually("the callback", || told.load(Ordering::SeqCst) == 1);
            }
            assert_eq!(refused(append(&log, t(8))).kind(), ErrorKind::Poisoned);
            let start = now();
            drop(log);
            assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
            assert_eq!(refused(tens().open_sim(&disk)).kind(), ErrorKind::Locked, "the write may still land");
            // It does land, with the bytes that it was given.
            assert!(disk.release_stalled() >= 1);
            if let Some(writer) = writer {
                refused(writer.join().unwrap());
            }
            eventually("the lock is free", || tens().open_sim(&disk).is_ok());
            let is = content(&tens().open_sim(&disk).unwrap().0);
            assert!(is == model((1..=6).map(t)) || is == model((1..=7).map(t)), "{:?}", is.keys());
        }
    }
}

/// A log is dropped while its write is stuck, before anyone has noticed.
#[test]
fn iu_11_dropping_a_log_waits_for_a_stuck_write_within_bounds() {
    let disk = SimDisk::new(12);
    let log = stuck_log(&disk, Duration::from_millis(400), 2);
    append(&log, t(6)).unwrap().on_durable(|outcome| drop(outcome.unwrap_err()));
    eventually("the write is under way", || disk.fault_hits() == 1);
    let start = now();
    drop(log);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(disk.release_stalled(), 1);
    eventually("the lock is free", || tens().open_sim(&disk).is_ok());
}

/// A write that is slow is not taken for one that is stuck.
#[test]
fn iu_11_a_slow_write_is_no_stuck_one() {
    let disk = SimDisk::new(13);
    let log = stuck_log(&disk, Duration::from_secs(20), 2);
    let ticket = append(&log, t(6)).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| ticket.wait());
        eventually("the write is under way", || disk.fault_hits() == 1);
        pause(Duration::from_millis(400));
        assert!(matches!(log.health(), Health::Fine));
        disk.release_stalled();
        assert_eq!(waiter.join().unwrap().unwrap(), t(6));
    });
    put_range(&log, 7..=20);
}

/// A process under load is killed and the log opened at once, again and again: it opens within two seconds,
/// has all that was acknowledged, and nothing of the dead process is written after that.
#[test]
fn iu_16_a_killed_process_leaves_log_and_lock() {
    for choice in granted() {
        let dir = tempfile::tempdir().unwrap();
        let mut acked = 0;
        for round in 0..8 {
            let mut process = Process::start("appends_until_it_is_killed", dir.path(), choice, false);
            for _ in 0..50 + round * 20 {
                acked = acked.max(process.next("acked").unwrap().parse().unwrap());
            }
            process.kill();
            let start = now();
            let (log, report) = LogOptions::new()
                .segment_bytes(64 * 1024)
                .idle_mark(None)
                .backend(choice)
                .open(dir.path())
                .unwrap_or_else(|e| panic!("{choice:?} {round}: {e}"));
            assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
            while let Some(last) = process.next("acked") {
                acked = acked.max(last.parse().unwrap());
            }
            assert!(report.last_zxid >= t(acked), "{choice:?}: {acked} acknowledged, {}", report.last_zxid);
            assert_eq!(content(&log).len() as u64, u64::from(report.last_zxid.counter()));
            if round == 7 {
                eventually("nothing is being prepared", || {
                    !files(dir.path()).keys().any(|n| n.ends_with(".tmp"))
                });
                pause(Duration::from_millis(300));
                let before = files(dir.path());
                pause(Duration::from_secs(1));
                assert_eq!(files(dir.path()), before, "{choice:?}: a dead process writes");
            }
        }
    }
}
