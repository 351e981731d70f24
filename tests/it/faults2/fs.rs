//! Syncs, the order of what becomes durable, read-only file systems.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{
    AppendTicket, BackendChoice, Epoch, ErrorKind, Health, LogOptions, TailState, WriteMode, Zxid,
};

use super::children::Process;
use super::support::{
    EROFS, append, content, eventually, in_epoch_1, model, pause, put_range, refused, seen, small, t, tens,
};

fn images() -> impl Iterator<Item = CrashImage> {
    [CrashImage::DropUnsynced, CrashImage::KeepAll].into_iter().chain((1..=6).map(CrashImage::Random))
}

/// The k-th sync fails and its pages are gone at the power cut, though reads show them and later syncs report
/// success. Its group and all behind it are not acknowledged; after the cut everything that was is there.
#[test]
fn fs_01_a_failed_sync_is_final() {
    for mode in [WriteMode::DirectThenSync, WriteMode::BufferedThenSync] {
        for k in 1..=24 {
            let disk = SimDisk::new(k);
            let (log, _) = tens().write_mode(mode).open_sim(&disk).unwrap();
            let log = in_epoch_1(log);
            let fault = Fault::next(FaultOp::Sync, Effect::SyncFailsAndDropsPages).nth(k);
            disk.inject(fault.on(NamePattern::Suffix(".seg".into())));
            let mut acked = 0;
            for n in 1..=30 {
                match append(&log, t(n)).and_then(AppendTicket::wait) {
                    Ok(_) => {
                        assert_eq!(acked + 1, n, "acknowledged behind a failed sync");
                        acked = n;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned),
                }
            }
            assert_eq!(disk.fault_hits(), 1);
            assert!(acked < 30 && matches!(log.health(), Health::Failed(_)));
            for image in images() {
                let (log, _) =
                    tens().open_sim(&disk.fork(image)).unwrap_or_else(|e| panic!("{k} {image:?}: {e}"));
                let is = content(&log);
                assert!(
                    is.len() >= acked as usize,
                    "{k} {image:?}: {acked} acknowledged, {} there",
                    is.len()
                );
                assert_eq!(is, model((1..=u32::try_from(is.len()).unwrap()).map(t)), "{k} {image:?}");
            }
        }
    }
}

/// Power goes at every operation of appends that cross the end of a segment, with both groups and the seal
/// dropped independently: no hole, and what was acknowledged is there.
#[test]
fn fs_03_a_roll_leaves_no_hole() {
    for mode in [WriteMode::DirectDsync, WriteMode::DirectThenSync, WriteMode::BufferedThenSync] {
        for step in 1..=40 {
            for image in images() {
                let disk = SimDisk::new(step);
                let (log, _) = tens().write_mode(mode).open_sim(&disk).unwrap();
                let log = in_epoch_1(log);
                put_range(&log, 1..=8);
                disk.crash_at(disk.operations() + step, image);
                let tickets: Vec<_> = (9..=13).map(|n| append(&log, t(n))).collect();
                let acked = tickets.into_iter().filter_map(|x| x.and_then(AppendTicket::wait).ok()).max();
                let acked = acked.map_or(8, Zxid::counter);
                disk.crash(image);
                drop(log);
                let (log, report) =
                    tens().open_sim(&disk).unwrap_or_else(|e| panic!("{mode:?} {step} {image:?}: {e}"));
                let last = report.last_zxid.counter();
                assert!(last >= acked, "{mode:?} {step} {image:?}: {acked} acknowledged, {last} there");
                assert_eq!(content(&log), model((1..=last).map(t)), "{mode:?} {step} {image:?}");
            }
        }
    }
}

/// The directory cannot be synced while the next segment is made. Another sync would report success and prove
/// nothing, so the log takes no more; nothing was acknowledged in a segment whose name is not durable.
#[test]
fn fs_05_no_append_goes_to_a_segment_without_a_durable_name() {
    for effect in [Effect::EIO, Effect::SyncFailsAndDropsPages] {
        for nth in 1..=4 {
            let disk = SimDisk::new(nth);
            let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
            eventually("the next segment is ready", || segments(&disk) == 2);
            disk.inject(Fault::next(FaultOp::SyncDir, effect).nth(nth));
            let mut acked = 0;
            let error = loop {
                match append(&log, t(acked + 1)).and_then(AppendTicket::wait) {
                    Ok(_) => acked += 1,
                    Err(error) => break error,
                }
                assert!(acked < 100, "a failed sync of the directory was passed over");
            };
            assert_eq!((error.kind(), disk.fault_hits()), (ErrorKind::Poisoned, 1), "{error}");
            assert!(acked >= 10, "what is prepared is used: {acked}");
            assert_eq!(log.stats().prepare_failures, 1);
            for image in images() {
                let image = disk.fork(image);
                let (log, report) =
                    tens().open_sim(&image).unwrap_or_else(|e| panic!("{effect:?} {nth}: {e}"));
                let last = report.last_zxid.counter();
                assert!(last >= acked, "{effect:?} {nth}: {acked} acknowledged, {last} there");
                assert_eq!(content(&log), model((1..=last).map(t)));
                put_range(&log, last + 1..=last + 25);
            }
        }
    }
}

fn segments(disk: &SimDisk) -> usize {
    disk.names().iter().filter(|name| name.ends_with(".seg")).count()
}

/// Power goes at every operation of the first open.
#[test]
fn fs_06_a_crash_in_the_making_of_a_log_leaves_none_or_a_whole_one() {
    for step in 1..100 {
        let mut done = false;
        for image in images() {
            let disk = SimDisk::new(step);
            disk.crash_at(step, image);
            done = tens().open_sim(&disk).is_ok();
            disk.crash(image);
            let (log, report) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{step} {image:?}: {e}"));
            assert_eq!((report.records, report.last_zxid), (0, Zxid::ZERO), "{step} {image:?}");
            put_range(&in_epoch_1(log), 1..=12);
            let (log, _) = tens().open_sim(&disk).unwrap();
            assert_eq!(content(&log), model((1..=12).map(t)), "{step} {image:?}");
        }
        if done {
            assert!((5..60).contains(&step), "{step} operations");
            return;
        }
    }
    panic!("the log was never made");
}

#[test]
fn fs_08_a_read_only_file_system_can_be_read_and_refuses_to_be_written() {
    let writing = [
        FaultOp::Create,
        FaultOp::Write,
        FaultOp::Rename,
        FaultOp::Remove,
        FaultOp::SetLen,
        FaultOp::Allocate,
    ];
    // From the start.
    let disk = SimDisk::new(8);
    put_range(&in_epoch_1(tens().open_sim(&disk).unwrap().0), 1..=25);
    disk.remove_file("LOCK");
    for op in writing {
        disk.inject(Fault::next(op, Effect::Error(EROFS)).times(u64::MAX));
    }
    disk.inject(Fault::next(FaultOp::Lock, Effect::Error(EROFS)).times(u64::MAX));
    let before = disk.snapshot_bytes();
    let (view, report) = LogOptions::new().open_read_only_sim(&disk).unwrap();
    assert_eq!((seen(&view), report.tail), (model((1..=25).map(t)), TailState::Unclean));
    let error = refused(tens().open_sim(&disk));
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(EROFS)), "{error}");
    assert!(disk.snapshot_bytes() == before);

    // In the middle of its life.
    let disk = SimDisk::new(9);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    put_range(&log, 1..=95);
    eventually("the next segment is ready", || segments(&disk) == 11);
    for op in writing {
        disk.inject(Fault::next(op, Effect::Error(EROFS)).times(u64::MAX));
    }
    let error = refused(append(&log, t(96)).and_then(AppendTicket::wait));
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Poisoned, Some(EROFS)), "{error}");
    assert_eq!(content(&log), model((1..=95).map(t)));
    match log.health() {
        Health::Failed(error) => assert_eq!(error.raw_os_error(), Some(EROFS)),
        health => panic!("{health:?}"),
    }
}

/// Four threads append while the disk is looked at as it would come up after a power cut, again and again:
/// what was acknowledged before the look is in it.
#[test]
fn fs_10_what_is_acknowledged_is_in_every_image() {
    for mode in [WriteMode::DirectDsync, WriteMode::DirectThenSync, WriteMode::BufferedThenSync] {
        let disk = SimDisk::new(10);
        let (log, _) = tens().write_mode(mode).open_sim(&disk).unwrap();
        let log = in_epoch_1(log);
        let (acked, done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let ticket = log.append_next(Epoch::new(1), 0, &[7; 600]).unwrap();
                        acked.fetch_max(ticket.wait().unwrap().get(), Ordering::SeqCst);
                        // So that the log stays small enough to be read sixty times.
                        pause(Duration::from_millis(2));
                    }
                });
            }
            for n in 0..60 {
                let known = Zxid::new(acked.load(Ordering::SeqCst));
                let image = if n % 2 == 0 { CrashImage::DropUnsynced } else { CrashImage::Random(n) };
                let (log, report) =
                    tens().open_sim(&disk.fork(image)).unwrap_or_else(|e| panic!("{mode:?} {image:?}: {e}"));
                assert!(
                    report.last_zxid >= known,
                    "{mode:?} {image:?}: {known} acknowledged, {} there",
                    report.last_zxid
                );
                assert_eq!(content(&log).len() as u64, report.records);
            }
            eventually("sixty records are acknowledged", || acked.load(Ordering::SeqCst) > t(60).get());
            done.store(true, Ordering::Relaxed);
        });
    }
}

/// With syncs there is one for each group at least; without, there is none, and every way to ask for one or
/// the other is honoured.
#[test]
fn fs_11_the_way_of_syncing_is_honoured() {
    for (mode, per_group) in [
        (WriteMode::DirectDsync, 1),
        (WriteMode::DirectThenSync, 1),
        (WriteMode::BufferedThenSync, 1),
        (WriteMode::Unsynced, 0),
    ] {
        let disk = SimDisk::new(11);
        let (log, _) = tens().segment_bytes(1 << 20).write_mode(mode).open_sim(&disk).unwrap();
        let log = in_epoch_1(log);
        eventually("the next segment is ready", || {
            disk.names().iter().filter(|n| n.ends_with(".seg")).count() == 2
        });
        let before = disk.counters();
        put_range(&log, 1..=50);
        let after = disk.counters();
        assert_eq!(after.writes - before.writes, 50, "{mode:?}");
        assert_eq!(after.durable_writes - before.durable_writes, 50 * per_group, "{mode:?}");
        let synced = after.syncs - before.syncs;
        let expected = if matches!(mode, WriteMode::DirectDsync | WriteMode::Unsynced) { 0 } else { 50 };
        assert_eq!(synced, expected, "{mode:?}");
    }
    assert_eq!(format!("{:?}", WriteMode::default()), "DirectDsync");
}

/// Without syncs a power cut may take any part of what was not written back: the log opens all the same, with
/// the records up to the first that is missing. A clean close makes all of it durable.
#[test]
fn fs_11_without_syncs_a_power_cut_leaves_a_clean_prefix() {
    let unsynced = || tens().write_mode(WriteMode::Unsynced);
    let mut shorter = 0;
    for seed in 1..=40 {
        let disk = SimDisk::new(seed);
        let log = in_epoch_1(unsynced().open_sim(&disk).unwrap().0);
        put_range(&log, 1..=15);
        log.advance_epoch(Epoch::new(2)).unwrap();
        super::support::put(&log, (1..=20).map(|n| Zxid::from_parts(2, n)));
        let all: Vec<_> = (1..=15).map(t).chain((1..=20).map(|n| Zxid::from_parts(2, n))).collect();
        for image in [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(seed)] {
            let cut = disk.fork(image);
            let (log, report) = unsynced().open_sim(&cut).unwrap_or_else(|e| panic!("{seed} {image:?}: {e}"));
            let is = content(&log);
            assert_eq!(is, model(all[..is.len()].iter().copied()), "{seed} {image:?}");
            assert!(image != CrashImage::KeepAll || is.len() == 35);
            assert_eq!(log.epoch(), Epoch::new(2), "an epoch is durable in every mode");
            shorter += u32::from(is.len() < 35);
            // What was recovered is durable from now on.
            drop(log);
            cut.crash(CrashImage::DropUnsynced);
            let (log, again) = unsynced().open_sim(&cut).unwrap();
            assert_eq!((content(&log), again.last_zxid), (is, report.last_zxid), "{seed} {image:?}");
        }
        log.close().unwrap();
        disk.crash(CrashImage::DropUnsynced);
        let (log, _) = tens().open_sim(&disk).unwrap();
        assert_eq!(content(&log), model(all), "{seed}: a clean close is durable");
    }
    assert!(shorter >= 40, "{shorter}");
}

#[test]
fn fs_11_without_syncs_a_kill_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut acked = 0;
    for _ in 0..3 {
        let mut process =
            Process::start("appends_until_it_is_killed", dir.path(), BackendChoice::Threads, true);
        for _ in 0..500 {
            acked = acked.max(process.next("acked").unwrap().parse().unwrap());
        }
        process.kill();
        while let Some(last) = process.next("acked") {
            acked = acked.max(last.parse().unwrap());
        }
        let (log, report) = small().open(dir.path()).unwrap();
        assert!(report.last_zxid >= t(acked), "{acked} acknowledged, {} there", report.last_zxid);
        assert_eq!(content(&log).len() as u64, u64::from(report.last_zxid.counter()));
    }
}
