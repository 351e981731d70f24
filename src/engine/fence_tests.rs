//! Promises to leaders, where a step of making one fails, is late, or was made by somebody else.

use std::sync::Arc;

use super::home::{Home, Room};
use super::manifest_file::ManifestFile;
use super::pipeline::Unobserved;
use super::sim_home::SimHome;
use super::*;
use crate::base::{Clock, Epoch, ErrorKind};
use crate::format::Acl;
use crate::log::LogOptions;
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
