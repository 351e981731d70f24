//! A learner that carries out the plans of a leader, with the power cut at each operation.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use super::home::Room;
use super::pipeline::Unobserved;
use super::sim_home::{Cut, SimHome, image_of};
use super::simulation::{Sent, send};
use super::*;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{Acl, Txn, TxnBody, TxnBuf};
use crate::log::LogOptions;
use crate::sim::CrashImage;
use crate::tree::{CreateRequest, Request};

/// Later than all txns: only entering it makes it the current one.
const LEADER: Epoch = Epoch::new(4);

/// The digest behind each txn.
type History = BTreeMap<Zxid, u64>;

fn options(commit: Commit) -> EngineOptions {
    let log = LogOptions::new().segment_bytes(16 << 10).idle_mark(None);
    EngineOptions::new().log(log).snap_count(0).commit(commit)
}

fn open(home: &Arc<SimHome>, commit: Commit) -> Result<(Engine, OpenReport)> {
    options(commit).open_home(home.clone(), Box::new(Unobserved))
}

/// Makes so many txns in an epoch, as its leader.
fn grow(engine: &Engine, epoch: u64, txns: u64, tag: &str, history: &mut History) {
    engine.enter_epoch(Epoch::new(epoch)).unwrap();
    for n in 0..txns {
        let (path, acl) = (format!("/{tag}-{epoch}-{n}"), [Acl::open()]);
        let create = Request::Create(CreateRequest::new(&path, b"data", &acl));
        let zxid = engine.submit_at(&create, &Caller::default(), 1).unwrap().wait().unwrap().zxid;
        history.insert(zxid, engine.tree().digest());
    }
}

fn history() -> History {
    BTreeMap::from([(Zxid::ZERO, crate::tree::DataTree::new().digest())])
}

/// Synchronises until it is done, from wherever the learner stands.
fn follow(leader: &Engine, home: &Arc<SimHome>, commit: Commit, old: &History, new: &History) {
    let (engine, report) = open(home, commit).expect("the power is back");
    let (last, digest) = (report.last_zxid, report.digest);
    assert!(old.get(&last) == Some(&digest) || new.get(&last) == Some(&digest), "the state at {last}");
    let plan = leader.sync_plan(last).decision.plan;
    let (engine, report) = engine.learn(LEADER, plan, &mut send(leader, plan)).expect("nothing fails");
    assert_eq!(report.acknowledged, leader.applied_zxid(), "{plan:?}");
    assert_eq!(engine.tree().digest(), leader.tree().digest());
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (LEADER, LEADER));
    drop(engine);
    home.cut_all(CrashImage::DropUnsynced);
    let (engine, again) = open(home, commit).unwrap();
    assert_eq!((again.last_zxid, again.digest), (report.acknowledged, leader.tree().digest()));
    assert_eq!(engine.current_epoch(), LEADER);
}

struct Case {
    name: &'static str,
    learner: SimHome,
    old: History,
    expected: fn(&SyncPlan) -> bool,
}

fn learner(
    name: &'static str,
    expected: fn(&SyncPlan) -> bool,
    live: impl FnOnce(&Engine, &mut History),
) -> Case {
    let (home, mut old) = (Arc::new(SimHome::new(5)), history());
    let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
    live(&engine, &mut old);
    engine.close().unwrap();
    Case { name, learner: home.fork(), old, expected }
}

fn cases() -> [Case; 4] {
    [
        learner(
            "behind",
            |plan| matches!(plan, SyncPlan::Diff { .. }),
            |engine, old| {
                grow(engine, 1, 15, "a", old);
            },
        ),
        learner(
            "forked",
            |plan| *plan == SyncPlan::Snapshot,
            |engine, old| {
                grow(engine, 1, 20, "a", old);
                engine.snapshot().unwrap().join().unwrap();
                grow(engine, 1, 6, "mine", old);
                engine.snapshot().unwrap().join().unwrap();
            },
        ),
        learner(
            "ahead",
            |plan| matches!(plan, SyncPlan::Truncate { .. }),
            |engine, old| {
                grow(engine, 1, 20, "a", old);
                grow(engine, 3, 8, "a", old);
                grow(engine, 3, 4, "b", old);
                grow(engine, 3, 5, "mine", old);
            },
        ),
        learner(
            "foreign",
            |plan| *plan == SyncPlan::Snapshot,
            |engine, old| {
                grow(engine, 2, 9, "mine", old);
                engine.snapshot().unwrap().join().unwrap();
            },
        ),
    ]
}

#[test]
fn ls_06_a_learner_is_crash_safe_at_each_operation_of_each_plan() {
    let home = Arc::new(SimHome::new(6));
    let mut new = history();
    let (leader, _) = open(&home, Commit::WhenDurable).unwrap();
    grow(&leader, 1, 20, "a", &mut new);
    grow(&leader, 3, 8, "a", &mut new);
    leader.snapshot().unwrap().join().unwrap();
    grow(&leader, 3, 4, "b", &mut new);
    leader.enter_epoch(LEADER).unwrap();
    for case in cases() {
        let last = *case.old.last_key_value().unwrap().0;
        let plan = leader.sync_plan(last).decision.plan;
        assert!((case.expected)(&plan), "{}: {plan:?}", case.name);
        // A leader truncates within an epoch only; this learner can be truncated beyond one as well.
        let plan = match case.name {
            "forked" => {
                SyncPlan::TruncateDiff { to: Zxid::from_parts(1, 20), through: leader.applied_zxid() }
            }
            _ => plan,
        };
        let mut cuts = vec![Cut::Disk(0), Cut::Disk(1), Cut::Disk(2)];
        if plan == SyncPlan::Snapshot {
            cuts.extend([Cut::Next(Room::Log), Cut::Next(Room::Snapshots)]);
        }
        let mut points = 0;
        for (cut, commit) in cuts.into_iter().flat_map(|c| [(c, Commit::WhenDurable), (c, Commit::ByServer)])
        {
            for operations in 1.. {
                let image = image_of(operations);
                let home = Arc::new(case.learner.fork());
                home.cut_at(cut, operations, image);
                let learnt = open(&home, commit)
                    .and_then(|(engine, _)| engine.learn(LEADER, plan, &mut send(&leader, plan)));
                let acknowledged = learnt.as_ref().map(|(_, report)| report.acknowledged);
                let acknowledged = acknowledged.map_err(Clone::clone);
                drop(learnt);
                home.cut_all(image);
                if acknowledged.is_ok() {
                    let (engine, report) = open(&home, commit).unwrap();
                    assert_eq!(report.digest, leader.tree().digest(), "acknowledged, and lost");
                    assert_eq!(engine.current_epoch(), LEADER);
                }
                follow(&leader, &home, commit, &case.old, &new);
                points += 1;
                if acknowledged.is_ok() {
                    break;
                }
                assert!(operations < 300, "{}: it does not end at {cut:?}", case.name);
            }
        }
        println!("{}: {points} crash points", case.name);
        assert!(points > 20, "{}: {points}", case.name);
    }
}

#[test]
fn ls_04_a_learner_refuses_what_is_not_its_plan() {
    let home = Arc::new(SimHome::new(6));
    let mut new = history();
    let (leader, _) = open(&home, Commit::WhenDurable).unwrap();
    grow(&leader, 1, 20, "a", &mut new);
    let [case, ..] = cases();
    let last = *case.old.last_key_value().unwrap().0;
    let plan = leader.sync_plan(last).decision.plan;
    let fresh = || open(&Arc::new(case.learner.fork()), Commit::WhenDurable).unwrap().0;
    let refused = |engine: Engine, epoch, plan, sent: &mut Sent| {
        engine.learn(Epoch::new(epoch), plan, sent).map(drop).unwrap_err().kind()
    };
    let engine = fresh();
    engine.accept_epoch(Epoch::new(2)).unwrap();
    assert_eq!(refused(engine, 1, plan, &mut send(&leader, plan)), ErrorKind::Fenced);
    // One txn is missing: at the begin, in the middle, at the end.
    for missing in [0, 2, 4] {
        let mut sent = send(&leader, plan);
        sent.txns.remove(missing).unwrap();
        assert_eq!(refused(fresh(), 1, plan, &mut sent), ErrorKind::OutOfOrder, "{missing}");
    }
    // Nor the first one of an epoch.
    let newer = Arc::new(SimHome::new(8));
    let (newer, _) = open(&newer, Commit::WhenDurable).unwrap();
    grow(&newer, 1, 15, "a", &mut history());
    grow(&newer, 2, 3, "b", &mut history());
    let diff = newer.sync_plan(last).decision.plan;
    assert!(matches!(diff, SyncPlan::Diff { .. }), "{diff:?}");
    let mut sent = send(&newer, diff);
    sent.txns.pop_front().unwrap();
    assert_eq!(refused(fresh(), 2, diff, &mut sent), ErrorKind::OutOfOrder);
    let (after, through) = (Zxid::from_parts(1, 3), Zxid::from_parts(1, 20));
    let other = SyncPlan::Diff { after, through };
    assert_eq!(refused(fresh(), 1, other, &mut send(&leader, other)), ErrorKind::OutOfOrder);
    // Nothing behind the plan's end is taken.
    let end = Zxid::from_parts(1, 18);
    let longer = SyncPlan::Diff { after: last, through: end };
    let home = Arc::new(case.learner.fork());
    let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
    assert_eq!(refused(engine, 1, longer, &mut send(&leader, plan)), ErrorKind::OutOfOrder);
    assert!(open(&home, Commit::WhenDurable).unwrap().1.last_zxid <= end);
    // Beyond the log, across an epoch, before its begin, and where nothing of it stands: nothing is removed.
    for to in [Zxid::from_parts(1, 99), Zxid::from_parts(2, 1), Zxid::new(7), Zxid::from_parts(1, 0)] {
        for plan in [SyncPlan::Truncate { to }, SyncPlan::TruncateDiff { to, through }] {
            let home = Arc::new(case.learner.fork());
            let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
            assert_eq!(refused(engine, 1, plan, &mut send(&leader, SyncPlan::UpToDate)), ErrorKind::NotInLog);
            assert_eq!(open(&home, Commit::WhenDurable).unwrap().1.last_zxid, last, "{to}");
        }
    }
    // The right one, by a server that decides.
    let home = Arc::new(case.learner.fork());
    let (engine, _) = open(&home, Commit::ByServer).unwrap();
    let (engine, report) = engine.learn(Epoch::new(1), plan, &mut send(&leader, plan)).unwrap();
    assert_eq!((report.txns, engine.applied_zxid(), engine.waiting_txns()), (5, through, 0));
    assert_eq!(engine.tree().digest(), leader.tree().digest());
}

/// A connection that breaks after so many txns.
struct Broken(Sent, usize);

impl SyncSource for Broken {
    fn next_txn(&mut self) -> Result<Option<TxnBuf>> {
        self.1 = self
            .1
            .checked_sub(1)
            .ok_or_else(|| Error::io("receive", std::io::Error::from(std::io::ErrorKind::ConnectionReset)))?;
        self.0.next_txn()
    }

    fn snapshot(&mut self) -> &mut dyn Read {
        self.0.snapshot()
    }
}

#[test]
fn ls_06_a_snapshot_takes_nothing_back_that_was_acknowledged() {
    let (mut new, mut old) = (history(), history());
    let (leader, _) = open(&Arc::new(SimHome::new(6)), Commit::WhenDurable).unwrap();
    grow(&leader, 1, 20, "a", &mut new);
    let end = leader.snapshot().unwrap().join().unwrap().end;
    grow(&leader, 1, 10, "b", &mut new);
    let base = Arc::new(SimHome::new(5));
    let (engine, _) = open(&base, Commit::WhenDurable).unwrap();
    grow(&engine, 1, 20, "a", &mut old);
    grow(&engine, 1, 5, "b", &mut old);
    engine.close().unwrap();
    let (acknowledged, digest) = old.last_key_value().unwrap();
    assert!(end < *acknowledged && new[acknowledged] == *digest);
    for txns in 0..=10 {
        let home = Arc::new(base.fork());
        let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
        let mut source = Broken(send(&leader, SyncPlan::Snapshot), txns);
        let error = engine.learn(LEADER, SyncPlan::Snapshot, &mut source).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{txns}");
        let (engine, report) = open(&home, Commit::WhenDurable).unwrap();
        assert_eq!((report.last_zxid, report.digest), (*acknowledged, *digest), "{txns}");
        assert_eq!(engine.accepted_epoch(), LEADER, "promised before anything else");
        let mut whole = send(&leader, SyncPlan::Snapshot);
        let missing = whole.txns.remove(3).unwrap();
        let error = engine.learn(LEADER, SyncPlan::Snapshot, &mut whole).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfOrder, "{} is missing", missing.zxid());
        let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
        let mut whole = send(&leader, SyncPlan::Snapshot);
        let (engine, report) = engine.learn(LEADER, SyncPlan::Snapshot, &mut whole).unwrap();
        assert_eq!((report.acknowledged, report.txns), (leader.applied_zxid(), 10));
        assert_eq!(engine.tree().digest(), leader.tree().digest());
    }
}

#[test]
fn ls_06_what_is_older_than_the_entered_epoch_comes_with_a_snapshot() {
    let (leader, _) = open(&Arc::new(SimHome::new(6)), Commit::WhenDurable).unwrap();
    grow(&leader, 1, 12, "a", &mut history());
    leader.snapshot().unwrap().join().unwrap();
    grow(&leader, 1, 8, "a-more", &mut history());
    leader.enter_epoch(LEADER).unwrap();
    let home = Arc::new(SimHome::new(5));
    let mut old = history();
    let (engine, _) = open(&home, Commit::WhenDurable).unwrap();
    grow(&engine, 1, 12, "a", &mut old);
    // With a leader that had no more, and that no quorum has followed.
    engine.enter_epoch(Epoch::new(2)).unwrap();
    let last = engine.applied_zxid();
    let plan = leader.sync_plan(last).decision.plan;
    assert_eq!(plan, SyncPlan::Diff { after: last, through: leader.applied_zxid() });
    let error = engine.learn(LEADER, plan, &mut send(&leader, plan)).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInLog, "{error}");
    let (engine, report) = open(&home, Commit::WhenDurable).unwrap();
    assert_eq!((report.last_zxid, report.digest), (last, old[&last]), "nothing was changed");
    let mut sent = send(&leader, SyncPlan::Snapshot);
    let (engine, report) = engine.learn(LEADER, SyncPlan::Snapshot, &mut sent).unwrap();
    assert_eq!((report.acknowledged, report.txns), (leader.applied_zxid(), 8));
    assert_eq!((engine.tree().digest(), engine.current_epoch()), (leader.tree().digest(), LEADER));
    grow(&engine, LEADER.get(), 3, "c", &mut old);
    engine.close().unwrap();
    assert_eq!(open(&home, Commit::WhenDurable).unwrap().1.last_zxid, Zxid::from_parts(4, 3));
}

/// What comes behind a snapshot is held against the state and the leader like any txn, and a request that failed is one.
#[test]
fn ls_04_what_comes_behind_a_snapshot_has_to_fit() {
    let (leader, _) = open(&Arc::new(SimHome::new(6)), Commit::WhenDurable).unwrap();
    grow(&leader, 1, 5, "a", &mut history());
    leader.snapshot().unwrap().join().unwrap();
    let failed = Request::Delete { path: "/none", version: -1 };
    assert!(!leader.submit(&failed, &Caller::default()).unwrap().wait().unwrap().code().is_ok());
    grow(&leader, 1, 2, "b", &mut history());
    let last = leader.applied_zxid();
    grow(&leader, 3, 2, "c", &mut history());
    let learn = |epoch, sent: &mut Sent| {
        let (engine, _) = open(&Arc::new(SimHome::new(5)), Commit::WhenDurable).unwrap();
        engine.learn(Epoch::new(epoch), SyncPlan::Snapshot, sent).map(|(engine, _)| engine.applied_zxid())
    };
    let all = || send(&leader, SyncPlan::Snapshot);
    assert_eq!(learn(3, &mut all()).unwrap(), leader.applied_zxid());
    // The leader of the first epoch has no txns of the third.
    assert_eq!(learn(1, &mut all()).unwrap_err().kind(), ErrorKind::Invalid);
    let mut sent = all();
    sent.txns.retain(|txn| txn.zxid() <= last);
    assert_eq!(learn(1, &mut sent).unwrap(), last);
    // A txn that does what cannot be done to this state.
    let mut sent = all();
    let body = TxnBody::SetData { path: "/none", data: None, version: 7 };
    let zxid = sent.txns[1].zxid();
    sent.txns[1] = Txn { zxid, time_ms: 1, session_id: 0, cxid: 0, digest: None, body }.to_buf();
    let error = learn(3, &mut sent).unwrap_err();
    assert_eq!((error.kind(), error.at().zxid), (ErrorKind::OutOfOrder, Some(zxid)), "{error}");
}

/// A peer that was synced by the leader of an epoch and has none of its txns says so by a number that is no txn.
#[test]
fn ls_01_a_learner_at_the_start_of_an_epoch_takes_the_txns_of_it() {
    let (leader, _) = open(&Arc::new(SimHome::new(6)), Commit::WhenDurable).unwrap();
    grow(&leader, 1, 12, "a", &mut history());
    let (engine, _) = open(&Arc::new(SimHome::new(5)), Commit::WhenDurable).unwrap();
    grow(&engine, 1, 12, "a", &mut history());
    engine.enter_epoch(LEADER).unwrap();
    grow(&leader, LEADER.get(), 5, "b", &mut history());
    let plan = leader.sync_plan(Zxid::from_parts(4, 0)).decision.plan;
    assert_eq!(plan, SyncPlan::Diff { after: Zxid::from_parts(4, 0), through: Zxid::from_parts(4, 5) });
    let (engine, report) = engine.learn(LEADER, plan, &mut send(&leader, plan)).unwrap();
    assert_eq!((report.acknowledged, report.txns), (Zxid::from_parts(4, 5), 5));
    assert_eq!(engine.tree().digest(), leader.tree().digest());
}

/// What is acknowledged is durable and applied, also what was logged before there was a plan.
#[test]
fn ls_06_nothing_is_acknowledged_that_is_only_logged() {
    for commit in [Commit::ByServer, Commit::WhenDurable] {
        let (engine, _) = open(&Arc::new(SimHome::new(5)), commit).unwrap();
        engine.enter_epoch(LEADER).unwrap();
        let zxid = Zxid::from_parts(4, 1);
        let body = TxnBody::CreateSession { timeout_ms: 1 };
        let txn = Txn { zxid, time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
        drop(engine.append(LEADER, &txn).unwrap());
        let plan = SyncPlan::UpToDate;
        let mut nothing = send(&engine, plan);
        let (engine, report) = engine.learn(LEADER, plan, &mut nothing).unwrap();
        assert_eq!((report.acknowledged, engine.durable_zxid(), engine.applied_zxid()), (zxid, zxid, zxid));
    }
}
