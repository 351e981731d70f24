//! Promises to leaders, where a step of making one fails, is late, or was made by somebody else.

use std::sync::Arc;

use super::home::{Home, Room};
use super::manifest_file::ManifestFile;
use super::pipeline::Unobserved;
use super::sim_home::SimHome;
use super::*;
use crate::base::{Clock, Epoch, ErrorKind, Zxid};
use crate::format::{Acl, Txn, TxnBody};
use crate::log::{LogOptions, Record};
use crate::sim::{Effect, Fault, FaultOp};
use crate::tree::{CreateRequest, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10).idle_mark(None)).snap_count(0)
}

fn simulated() -> (Arc<SimHome>, Engine) {
    let home = Arc::new(SimHome::new(7));
    let (engine, _) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
    (home, engine)
}

fn create(engine: &Engine, path: &str) {
    let acl = [Acl::open()];
    let request = Request::Create(CreateRequest::new(path, b"", &acl));
    engine.submit_at(&request, &Caller::default(), 1).unwrap().wait().unwrap();
}

/// A zxid has 32 bits for its epoch: who promised more would never follow anybody again.
#[test]
fn ep_01_no_epoch_is_accepted_that_no_zxid_can_have() {
    let (_home, engine) = simulated();
    for ask in [Engine::accept_epoch, Engine::enter_epoch] {
        assert_eq!(ask(&engine, Epoch::new(1 << 32)).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::ZERO, Epoch::ZERO));
    }
    engine.enter_epoch(Epoch::new(u64::from(u32::MAX))).unwrap();
    create(&engine, "/last");
}

/// Whoever asks is told of no promise that is not on disk, and no epoch is entered for which there is none.
#[test]
fn ep_03_a_promise_that_could_not_be_written_is_none() {
    for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename, FaultOp::SyncDir] {
        let (home, engine) = simulated();
        engine.enter_epoch(Epoch::new(1)).unwrap();
        let root = home.disks()[0].clone();
        root.inject(Fault::next(op, Effect::EIO).times(u64::MAX));
        let epochs = || (engine.accepted_epoch().get(), engine.current_epoch().get());
        assert_eq!(engine.accept_epoch(Epoch::new(5)).unwrap_err().kind(), ErrorKind::Io, "{op:?}");
        assert_eq!(epochs(), (1, 1), "{op:?}");
        assert_eq!(engine.enter_epoch(Epoch::new(6)).unwrap_err().kind(), ErrorKind::Io, "{op:?}");
        assert_eq!(epochs(), (1, 1), "{op:?}");
        create(&engine, "/of-the-old-leader");
        root.clear_faults();
        engine.enter_epoch(Epoch::new(6)).unwrap();
        create(&engine, "/of-the-new-one");
        assert_eq!(epochs(), (6, 6), "{op:?}");
    }
}

/// An epoch that the log has entered by itself, as a tool may have it do, is a promise from the next open on.
#[test]
fn ep_03_what_the_log_has_entered_is_accepted() {
    let (home, engine) = simulated();
    engine.enter_epoch(Epoch::new(2)).unwrap();
    engine.close().unwrap();
    let (log, _) = options().log.open_sim(&home.disk(Room::Log, 1)).unwrap();
    log.advance_epoch(Epoch::new(7)).unwrap();
    log.close().unwrap();
    let (engine, _) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(7), Epoch::new(7)));
    let written = ManifestFile::read(&home.root()).unwrap().unwrap();
    assert_eq!(written.get().accepted, Epoch::new(7), "durably");
    assert_eq!(engine.accept_epoch(Epoch::new(6)).unwrap_err().kind(), ErrorKind::Fenced);
}

/// Between the look at who leads and the log, nobody else is accepted: a txn of the old leader would come behind the
/// promise to the new one.
#[test]
fn ep_03_nobody_is_accepted_while_a_txn_is_logged() {
    let (_home, engine) = simulated();
    // As whoever logs a txn holds it.
    let order = engine.shared().order.lock();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| engine.accept_epoch(Epoch::new(1)));
        let (clock, begin) = (Clock::real(), Clock::real().nanos());
        while clock.nanos() - begin < 50_000_000 {
            assert_eq!(engine.accepted_epoch(), Epoch::ZERO);
            std::thread::yield_now();
        }
        drop(order);
        accepting.join().unwrap().unwrap();
    });
    assert_eq!(engine.accepted_epoch(), Epoch::new(1));
}

/// The last zxid of an epoch was given. A server that stands alone begins the next epoch, as durably as any; one of an
/// ensemble is elected anew.
#[test]
fn ep_01_a_server_that_stands_alone_goes_on_in_the_next_epoch_and_no_other_does() {
    let (home, engine) = simulated();
    engine.enter_epoch(Epoch::new(1)).unwrap();
    assert_eq!(engine.zxids_left(), u32::MAX, "none of the epoch is given");
    create(&engine, "/first");
    assert_eq!(engine.zxids_left(), u32::MAX - 1);
    engine.close().unwrap();
    let (log, _) = options().log.open_sim(&home.disk(Room::Log, 1)).unwrap();
    let last = Zxid::from_parts(1, u32::MAX);
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid: last, time_ms: 1, session_id: 7, cxid: 0, digest: None, body }.to_buf();
    log.append(&Record::new(last, 1, txn.as_bytes())).unwrap().wait().unwrap();
    log.close().unwrap();
    let by_server = options().commit(Commit::ByServer);
    let (engine, _) = by_server.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    assert_eq!((engine.applied_zxid(), engine.zxids_left()), (last, 0));
    let submit =
        |engine: &Engine| engine.submit(&Request::CreateSession { timeout_ms: 1 }, &Caller::default());
    assert_eq!(submit(&engine).map(drop).unwrap_err().kind(), ErrorKind::CounterExhausted);
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(1), Epoch::new(1)));
    engine.close().unwrap();
    let (engine, _) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
    assert_eq!(submit(&engine).unwrap().wait().unwrap().zxid, Zxid::from_parts(2, 1));
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(2), Epoch::new(2)));
    let written = ManifestFile::read(&home.root()).unwrap().unwrap();
    assert_eq!(written.get().accepted, Epoch::new(2), "accepted before it is entered");
    assert_eq!(engine.zxids_left(), u32::MAX - 1);
    engine.enter_epoch(Epoch::new(3)).unwrap();
    assert_eq!(engine.zxids_left(), u32::MAX, "none of the new epoch is given");
}
