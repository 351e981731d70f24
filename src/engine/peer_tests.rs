//! What peers and readers of changes are promised: that a plan is of all that is applied, and that nothing of it is
//! purged before it was sent.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::home::Room;
use super::pipeline::Unobserved;
use super::sim_home::SimHome;
use super::*;
use crate::base::{Clock, Epoch, ErrorKind, Zxid};
use crate::format::Acl;
use crate::log::{LogOptions, Retention};
use crate::tree::{CreateRequest, Request};

fn options() -> EngineOptions {
    let log = LogOptions::new().segment_bytes(16 << 10).idle_mark(None);
    EngineOptions::new().log(log).snap_count(0).snapshots_kept(1)
}

fn simulated(options: &EngineOptions) -> (Arc<SimHome>, Engine) {
    let home = Arc::new(SimHome::new(7));
    let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    (home, engine)
}

fn submit(engine: &Engine, path: &str, data: &[u8]) -> Ticket {
    let acl = [Acl::open()];
    let request = Request::Create(CreateRequest::new(path, data, &acl));
    engine.submit_at(&request, &Caller::default(), 1).unwrap()
}

fn grow(engine: &Engine, name: &str, count: u32) -> Zxid {
    for n in 0..count {
        assert!(submit(engine, &format!("/{name}-{n}"), &[7; 300]).wait().unwrap().code().is_ok());
    }
    engine.applied_zxid()
}

/// A snapshot, and what it lets go of.
fn snapshot(engine: &Engine) -> Zxid {
    engine.snapshot().unwrap().join().unwrap().end
}

fn between(engine: &Engine, after: Zxid, through: Zxid) -> crate::Result<Vec<Zxid>> {
    let mut sent = Vec::new();
    engine.txns_between(after, through, |txn| sent.push(txn.zxid)).map(|()| sent)
}

fn is_all(sent: &[Zxid], after: Zxid, through: Zxid) -> bool {
    sent.iter().map(|zxid| zxid.get()).eq(after.get() + 1..=through.get())
}

/// Found by reading, for a plan without the newest txns: what is applied was told before it was in memory, so that a
/// peer which had it too was asked to remove it, as if it were ahead.
#[test]
fn ls_12_what_is_applied_is_in_memory_for_a_plan() {
    let (_home, engine) = simulated(&options());
    let last = grow(&engine, "a", 3);
    let pipeline = &engine.shared().pipeline;
    // As whoever makes a plan holds it.
    let recent = pipeline.recent.lock();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| grow(&engine, "b", 1));
        let (clock, begin) = (Clock::real(), Clock::real().nanos());
        while clock.nanos() - begin < 50_000_000 || engine.durable_zxid() == last {
            assert_eq!(pipeline.applied(), last, "it is not in memory yet");
            std::thread::yield_now();
        }
        drop(recent);
        assert_eq!(writing.join().unwrap(), Zxid::new(4));
    });
    assert_eq!(pipeline.applied_and_recent(), (Zxid::new(4), (1..=4).map(Zxid::new).collect()));
    // The same beside a writer: a peer that has what is applied here is never told to remove it.
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let tickets: Vec<Ticket> = (0..3000).map(|n| submit(&engine, &format!("/c-{n}"), b"")).collect();
            tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
        });
        while !writer.is_finished() {
            let peer = Zxid::new(engine.applied_zxid().get() - 1);
            let plan = engine.sync_plan(peer).decision.plan;
            assert!(matches!(plan, SyncPlan::Diff { after, .. } if after == peer), "{peer}: {plan:?}");
        }
    });
}

#[test]
fn pu_07_what_a_plan_sends_is_kept_as_long_as_its_answer() {
    let (_home, engine) = simulated(&options().recent(0, 0));
    let peer = grow(&engine, "a", 20);
    let last = grow(&engine, "b", 60);
    let answer = engine.sync_plan(peer);
    assert_eq!(answer.decision.plan, SyncPlan::Diff { after: peer, through: last });
    assert_eq!(snapshot(&engine), last);
    assert!(engine.shared().log.floor_zxid() <= peer, "it would have gone");
    assert!(is_all(&between(&engine, peer, last).unwrap(), peer, last));
    drop(answer);
    grow(&engine, "c", 1);
    snapshot(&engine);
    assert!(engine.shared().log.floor_zxid() > peer, "nobody needs it any more");
    assert_eq!(between(&engine, peer, last).unwrap_err().kind(), ErrorKind::NotInLog);
    let later = engine.sync_plan(peer);
    assert_eq!((later.decision.plan, later.decision.reason), (SyncPlan::Snapshot, SyncReason::Purged));
    // Whoever has all of it, too much, or too little for a diff, is sent nothing of the log.
    for peer in [engine.applied_zxid(), Zxid::new(500), peer] {
        assert!(engine.sync_plan(peer).pin.is_none(), "{peer}");
    }
}

/// Between a purge's look at the pins and its new manifest the txns are still there, and will not be.
#[test]
fn pu_07_what_is_being_purged_is_in_no_plan() {
    let (_home, engine) = simulated(&options().recent(0, 0));
    let last = grow(&engine, "a", 80);
    let (log, peer) = (&engine.shared().log, Zxid::new(3));
    assert_eq!(engine.sync_plan(peer).decision.plan, SyncPlan::Diff { after: peer, through: last });
    let held = log.hold_manifest();
    std::thread::scope(|scope| {
        let purge = scope.spawn(|| log.purge(Zxid::new(70), &Retention::new()).unwrap());
        let (clock, begin) = (Clock::real(), Clock::real().nanos());
        // Not by trying to pin it: a purge that sees the pin keeps everything, and ends.
        while !log.is_leaving(peer) {
            assert!(clock.nanos() - begin < 10_000_000_000 && !purge.is_finished(), "it can be pinned");
            std::thread::yield_now();
        }
        let answer = engine.sync_plan(peer);
        let plan = (answer.decision.plan, answer.decision.reason, answer.pin.is_some());
        assert_eq!(plan, (SyncPlan::Snapshot, SyncReason::Purged, false));
        drop(held);
        assert!(purge.join().unwrap().floor_zxid > peer);
    });
}

#[test]
fn pu_07_a_reader_of_changes_keeps_what_it_has_not_read() {
    let (_home, engine) = simulated(&options());
    grow(&engine, "a", 20);
    let mut feed = engine.changes(Zxid::new(5), "/").unwrap();
    let last = grow(&engine, "b", 60);
    snapshot(&engine);
    let mut seen = Vec::new();
    while let Some(zxid) = feed.next_txn(|txn| txn.zxid).unwrap() {
        seen.push(zxid);
    }
    assert!(is_all(&seen, Zxid::new(5), last), "{seen:?}");
    // What it has read it keeps no longer, though it goes on.
    grow(&engine, "c", 60);
    while feed.next_txn(|_| ()).unwrap().is_some() {}
    snapshot(&engine);
    assert!(engine.shared().log.floor_zxid() > last, "it keeps what it has read");
    let more = grow(&engine, "d", 1);
    assert_eq!(feed.next_txn(|txn| txn.zxid).unwrap(), Some(more));
    assert_eq!(engine.changes(Zxid::new(5), "/").unwrap_err().kind(), ErrorKind::NotInLog);
}

/// Found by this: without the answer that keeps them, what of a diff was purged was left out, and the rest was sent.
#[test]
fn ls_03_a_diff_that_was_purged_in_part_is_none() {
    let (_home, engine) = simulated(&options().recent(0, 0));
    let (peer, last) = (grow(&engine, "a", 20), grow(&engine, "b", 60));
    let plan = engine.sync_plan(peer).decision.plan;
    assert_eq!(plan, SyncPlan::Diff { after: peer, through: last });
    let report = engine.shared().log.purge(Zxid::new(60), &Retention::new()).unwrap();
    assert!(report.floor_zxid > peer && report.floor_zxid < last, "{report:?}");
    assert_eq!(between(&engine, peer, last).unwrap_err().kind(), ErrorKind::NotInLog);
    assert!(is_all(&between(&engine, report.floor_zxid, last).unwrap(), report.floor_zxid, last));
}

/// A diff out of the log ends where the plan does, also if no txn of that zxid is there.
#[test]
fn ls_01_a_diff_ends_where_its_plan_does() {
    let (_home, engine) = simulated(&options().recent(0, 0));
    for epoch in [1, 3] {
        engine.enter_epoch(Epoch::new(epoch)).unwrap();
        grow(&engine, &format!("e{epoch}"), 10);
    }
    let zxid = Zxid::from_parts;
    let cases = [
        (zxid(1, 8), zxid(1, 10), vec![zxid(1, 9), zxid(1, 10)]),
        (zxid(1, 9), zxid(3, 2), vec![zxid(1, 10), zxid(3, 1), zxid(3, 2)]),
        (zxid(1, 9), zxid(2, 7), vec![zxid(1, 10)]),
        (zxid(3, 0), zxid(3, 1), vec![zxid(3, 1)]),
        (zxid(3, 1), zxid(3, 1), vec![]),
    ];
    for (after, through, expected) in cases {
        assert_eq!(between(&engine, after, through).unwrap(), expected, "{after} to {through}");
    }
}

/// A leader that lets a quorum decide has txns on its disk that nobody may see yet.
#[test]
fn ls_07_what_is_not_applied_here_is_not_told_of() {
    for recent in [0, 100] {
        let (_home, engine) = simulated(&options().commit(Commit::ByServer).recent(recent, 1 << 20));
        for n in 1..=5 {
            submit(&engine, &format!("/{n}"), b"").wait_durable().unwrap();
        }
        let (three, five) = (Zxid::new(3), Zxid::new(5));
        engine.apply(three).unwrap();
        assert_eq!((engine.applied_zxid(), engine.durable_zxid()), (three, five));
        let plan = |peer| engine.sync_plan(Zxid::new(peer)).decision.plan;
        assert_eq!(plan(1), SyncPlan::Diff { after: Zxid::new(1), through: three }, "{recent}");
        assert_eq!(plan(3), SyncPlan::UpToDate, "{recent}");
        assert_eq!(plan(5), SyncPlan::Truncate { to: three }, "{recent}: no quorum has it for sure");
    }
}

/// What makes a diff too large is the newest snapshot, and never less than 4 MiB.
#[test]
fn ls_12_a_diff_is_bounded_by_a_third_of_the_newest_snapshot() {
    let log = LogOptions::new().segment_bytes(4 << 20).idle_mark(None);
    let (home, engine) = simulated(&options().log(log).recent(0, 0).snapshots_kept(3));
    let large = vec![7; 1_000_000];
    let reason = |behind| engine.sync_plan(Zxid::new(engine.applied_zxid().get() - behind)).decision.reason;
    let first = grow(&engine, "a", 1);
    assert_eq!(
        engine.sync_plan(Zxid::ZERO).decision.reason,
        SyncReason::OnOurHistory,
        "no snapshot, all of the log"
    );
    snapshot(&engine);
    for n in 0..24 {
        submit(&engine, &format!("/{n}"), &large).wait().unwrap();
    }
    assert_eq!(reason(3), SyncReason::OnOurHistory, "3 MB beside a snapshot of nothing");
    assert_eq!(reason(6), SyncReason::TooMuch, "6 MB");
    snapshot(&engine);
    assert_eq!(home.disk(Room::Snapshots, 1).names().len(), 2, "with the one at {first}");
    assert_eq!(reason(6), SyncReason::OnOurHistory, "6 MB beside 24");
    assert_eq!(reason(15), SyncReason::TooMuch, "15 MB beside 24");
}

/// A txn whose ticket nobody kept is applied all the same, and a clean close answers those who wait.
#[test]
fn what_was_logged_is_applied_whoever_waits() {
    let (_home, engine) = simulated(&options());
    drop(submit(&engine, "/nobody", b""));
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while engine.applied_zxid() < Zxid::new(1) {
        assert!(clock.nanos() - begin < 10_000_000_000, "it is applied by nobody");
        std::thread::yield_now();
    }
    let tickets: Vec<Ticket> = (0..20).map(|n| submit(&engine, &format!("/{n}"), b"")).collect();
    engine.close().unwrap();
    for ticket in tickets {
        assert!(ticket.wait().unwrap().code().is_ok());
    }
}

/// A task that awaits a txn of an ensemble is woken when the server has it applied, long after it is durable.
#[test]
fn who_awaits_a_txn_is_woken_when_the_server_applies_it() {
    struct Woken(AtomicBool);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let (_home, engine) = simulated(&options().commit(Commit::ByServer));
    let mut ticket = submit(&engine, "/a", b"");
    let zxid = ticket.wait_durable().unwrap();
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = woken.clone().into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(std::pin::Pin::new(&mut ticket).poll(&mut context).is_pending(), "it is not applied");
    assert!(!woken.0.load(Ordering::Acquire));
    engine.apply(zxid).unwrap();
    assert!(woken.0.load(Ordering::Acquire), "whoever awaits it is not woken");
    let std::task::Poll::Ready(answer) = std::pin::Pin::new(&mut ticket).poll(&mut context) else {
        panic!("it is applied")
    };
    assert!(answer.unwrap().code().is_ok());
}

/// Some executors poll a task right where it is woken. It may look at the engine there, and one that panics is no reason to
/// leave others without their answers.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of the test, which must not be waited for if it hangs"
)]
fn a_task_may_look_at_the_engine_where_it_is_woken() {
    struct Looks(Arc<Engine>);
    impl std::task::Wake for Looks {
        fn wake(self: Arc<Self>) {
            let engine = &self.0;
            assert_eq!(engine.sync_plan(engine.applied_zxid()).decision.plan, SyncPlan::UpToDate);
            engine.txns_between(Zxid::new(1), Zxid::new(2), |_| ()).unwrap();
            engine.apply(engine.applied_zxid()).unwrap();
            panic!("{} txns waited for their turn", engine.stats().recent_txns);
        }
    }
    let (_home, engine) = simulated(&options().commit(Commit::ByServer));
    let engine = Arc::new(engine);
    let mut tickets: Vec<_> = (0..3).map(|n| submit(&engine, &format!("/{n}"), b"")).collect();
    let last = tickets[2].wait_durable().unwrap();
    let waker = Arc::new(Looks(engine.clone())).into();
    let mut context = std::task::Context::from_waker(&waker);
    for ticket in &mut tickets[..2] {
        assert!(std::pin::Pin::new(ticket).poll(&mut context).is_pending());
    }
    // In a thread that nobody waits for, if it never comes back.
    let (applies, done) = (engine.clone(), Arc::new(AtomicBool::new(false)));
    let told = done.clone();
    let thread = std::thread::spawn(move || {
        applies.apply(last).unwrap();
        told.store(true, Ordering::Release);
    });
    let clock = Clock::real();
    let begin = clock.nanos();
    while !done.load(Ordering::Acquire) && !thread.is_finished() {
        assert!(clock.nanos() - begin < 10_000_000_000, "a lock is held while a task is woken");
        std::thread::yield_now();
    }
    thread.join().unwrap();
    assert!(tickets.pop().unwrap().wait().unwrap().code().is_ok());
}
