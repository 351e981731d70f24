//! Reading without opening: on a full disk, on a read-only one, beside a writer.

use std::sync::atomic::{AtomicBool, Ordering};

use arborlog::{ErrorKind, LogOptions, TailState, Zxid};

use super::support::{
    content, eventually, files, in_epoch_1, model, put_range, refused, seen, segments, small, t,
};

/// The view shows what the log shows, from every start, and changes nothing.
#[test]
fn lk_01_a_view_beside_a_writer_shows_all_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = small().idle_mark(None).open(dir.path()).unwrap();
    let log = in_epoch_1(log);
    put_range(&log, 1..=100);
    // The writer's own work in the background must be over.
    eventually("the next segment is ready", || log.stats().rolls + 2 == segments(dir.path()));
    let before = files(dir.path());
    let (view, report) = LogOptions::new().open_read_only(dir.path()).unwrap();
    assert_eq!((view.last_zxid(), view.floor_zxid(), view.epoch()), (t(100), Zxid::ZERO, log.epoch()));
    assert_eq!((report.records, report.tail), (100, TailState::Unclean));
    assert_eq!(seen(&view), model((1..=100).map(t)));
    for after in 0..=100 {
        let mut reader = view.records(if after == 0 { Zxid::ZERO } else { t(after) }).unwrap();
        let next = reader.next_record().unwrap().map(|r| r.zxid);
        assert_eq!(next, (after < 100).then(|| t(after + 1)));
    }
    assert!(report.segments > 2, "{report}");
    assert_eq!(files(dir.path()), before);
    put_range(&log, 101..=102);
    assert_eq!(content(&log).len(), 102);
}

#[test]
fn lk_01_views_beside_a_busy_writer_never_see_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = small().open(dir.path()).unwrap();
    let log = in_epoch_1(log);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            put_range(&log, 1..=600);
            done.store(true, Ordering::Release);
        });
        let mut looks = 0;
        while !done.load(Ordering::Acquire) || looks < 3 {
            let least = log.durable_zxid();
            match LogOptions::new().open_read_only(dir.path()) {
                Ok((view, _)) => {
                    assert!(
                        view.last_zxid() >= least,
                        "{} is acknowledged, the view ends at {}",
                        least,
                        view.last_zxid()
                    );
                    assert_eq!(seen(&view), model((1..=view.last_zxid().counter()).map(t)));
                }
                Err(error) => panic!("a healthy log looks damaged: {error}"),
            }
            looks += 1;
        }
    });
}

/// A dry run takes no lock, so it may meet a log in use: it must not call it damaged, whatever moves or goes.
#[test]
fn lk_01_dry_runs_beside_a_busy_writer_never_see_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = small().open(dir.path()).unwrap();
    let log = in_epoch_1(log);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=600 {
                put_range(&log, [n]);
                if n % 50 == 0 {
                    log.purge(t(n - 30), &arborlog::Retention::new()).unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        let (mut told, mut runs) = (0, 0);
        while !done.load(Ordering::Acquire) || told < 3 {
            runs += 1;
            match arborlog::salvage(dir.path(), &arborlog::SalvageOptions::new()) {
                Ok(report) => {
                    assert!(!report.is_needed(), "run {runs}: {report:?}");
                    told += 1;
                }
                Err(error) => assert_eq!(error.code(), "busy", "run {runs}: {error}"),
            }
            let to = log.durable_zxid();
            match arborlog::truncate_dir(dir.path(), to, arborlog::Execution::DryRun) {
                Ok(_) => told += 1,
                Err(error) => assert!(["busy", "not_in_log"].contains(&error.code()), "run {runs}: {error}"),
            }
        }
    });
}

/// What was purged since is no damage; what is missing without a word of the manifest is.
#[test]
fn pu_07_a_view_of_what_was_purged_since_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = small().open(dir.path()).unwrap();
    let log = in_epoch_1(log);
    put_range(&log, 1..=100);
    let (view, _) = LogOptions::new().open_read_only(dir.path()).unwrap();
    let mut reader = view.records(Zxid::ZERO).unwrap();
    log.purge(t(100), &arborlog::Retention::new()).unwrap();
    assert_eq!(refused(reader.next_record()).kind(), ErrorKind::NotInLog);
    let (view, _) = LogOptions::new().open_read_only(dir.path()).unwrap();
    assert_eq!(view.floor_zxid(), log.floor_zxid());
    assert_eq!(refused(view.records(Zxid::ZERO)).kind(), ErrorKind::NotInLog);
    assert_eq!(seen(&view), content(&log));
    let first = format!("{:016x}.seg", 1);
    assert!(!dir.path().join(&first).exists());
}

#[test]
fn a_directory_without_a_log_has_no_view() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(refused(LogOptions::new().open_read_only(dir.path())).code(), "no_log");
    assert!(files(dir.path()).is_empty());
    assert_eq!(refused(LogOptions::new().open_read_only(dir.path().join("none"))).kind(), ErrorKind::Io);
}

/// One read shows a segment as it was before its last write, as it may beside a writer: looked at once more,
/// the log is whole. Where it stays so, it is damaged.
#[test]
#[cfg(feature = "sim")]
fn lk_01_a_view_believes_damage_only_when_it_stays() {
    use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};

    let base = SimDisk::new(1);
    let (log, _) = super::support::tens().open_sim(&base).unwrap();
    put_range(&in_epoch_1(log), 1..=25);
    let first = NamePattern::Exact(format!("{:016x}.seg", 1));
    let stale = Fault::next(FaultOp::Read, Effect::StaleRead).on(first);
    let disk = base.fork(CrashImage::KeepAll);
    disk.inject(stale.clone());
    let looked = LogOptions::new().open_read_only_sim(&disk);
    assert_eq!(disk.fault_hits(), 1);
    assert_eq!(seen(&looked.unwrap().0), model((1..=25).map(t)));
    let disk = base.fork(CrashImage::KeepAll);
    disk.inject(stale.times(u64::MAX));
    assert_eq!(refused(LogOptions::new().open_read_only_sim(&disk)).kind(), ErrorKind::Corrupt);
    // Two looks, each of which reads a second time what later segments contradict.
    assert_eq!(disk.fault_hits(), 4, "it is not looked at for ever");
}
