//! The order of txns: what is refused, and what a refusal leaves behind.

use super::super::{Commit, Engine, EngineOptions};
use super::*;
use crate::base::Code;
use crate::engine::pipeline::Unobserved;
use crate::engine::sim_home::SimHome;
use crate::format::{Acl, Txn, TxnBody};
use crate::log::LogOptions;
use crate::tree::{CreateMode, CreateRequest, ProposeOptions};

fn open(options: &EngineOptions) -> Engine {
    options.open_home(Arc::new(SimHome::new(3)), Box::new(Unobserved)).unwrap().0
}

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10)).snap_count(0)
}

fn create(engine: &Engine, path: &str, data: &[u8]) -> Result<Ticket> {
    let acl = [Acl::open()];
    engine.submit(&Request::Create(CreateRequest::new(path, data, &acl)), &Caller::default())
}

/// The proposer knows nothing of a txn that came from elsewhere, and would number and check without it.
#[test]
fn nothing_is_proposed_beside_a_txn_from_elsewhere_that_is_not_applied() {
    let engine = open(&options().commit(Commit::ByServer));
    engine.enter_epoch(Epoch::new(2)).unwrap();
    let zxid = Zxid::from_parts(2, 1);
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid, time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    engine.append(Epoch::new(2), &txn).unwrap().wait_durable().unwrap();
    let error = create(&engine, "/a", b"").map(drop).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Busy, "not_applied"));
    engine.apply(zxid).unwrap();
    assert_eq!(create(&engine, "/a", b"").unwrap().zxid(), Zxid::from_parts(2, 2));
}

#[test]
fn a_txn_that_could_not_be_logged_leaves_nothing_behind() {
    let log = LogOptions::new().segment_bytes(64 << 10).record_bytes_max(500);
    let engine = open(&EngineOptions::new().log(log).snap_count(0));
    let error = create(&engine, "/a", &[7; 600]).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!((engine.waiting_txns(), engine.logged_zxid()), (0, Zxid::ZERO));
    // Nobody takes the node for one that is there, or on its way.
    let answer = create(&engine, "/a", b"small").unwrap().wait().unwrap();
    assert_eq!((answer.zxid, answer.code()), (Zxid::new(1), Code::OK));
    assert_eq!(engine.tree().get("/a").unwrap().data(), Some(&b"small"[..]));
}

#[test]
fn what_is_applied_is_kept_in_the_tree_alone() {
    let engine = open(&options());
    for n in 0..50 {
        create(&engine, &format!("/{n}"), b"").unwrap().wait().unwrap();
    }
    let order = engine.shared().order.lock();
    // The last one, and its parent, are forgotten with the next one.
    assert!(order.proposer.outstanding_len() < 8, "{}", order.proposer.outstanding_len());
}

#[test]
fn a_snapshot_that_begins_is_due_no_more_and_all_is_counted_anew() {
    let mut random = Random::from_seed(5);
    let trigger = SnapshotTrigger::new(10, 0, &mut random);
    let mut order = Order::new(Proposer::new(ProposeOptions::default()), Zxid::ZERO, trigger, random);
    order.is_snapshot_due |= order.trigger.count(10, 0);
    assert!(order.is_snapshot_due());
    order.snapshot_begins();
    assert!(!order.is_snapshot_due() && !order.trigger.count(1, 0));
}

#[test]
fn only_the_next_txn_follows_and_an_epoch_begins_with_its_first() {
    let last = Zxid::from_parts(3, 7);
    for (epoch, counter) in [(3, 8), (4, 1), (9, 1)] {
        check_follows(last, Zxid::from_parts(epoch, counter)).unwrap();
    }
    for (epoch, counter) in [(3, 6), (3, 7), (3, 9), (4, 0), (4, 2), (2, 1), (2, 8), (0, 1)] {
        let error = check_follows(last, Zxid::from_parts(epoch, counter)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfOrder, "{epoch} {counter}");
    }
}

/// The answer names the nodes of a multi by the places of their operations.
#[test]
fn what_a_multi_has_made_and_found_is_told_by_the_place_of_its_operation() {
    let engine = open(&options());
    create(&engine, "/there", b"").unwrap().wait().unwrap();
    let acl = [Acl::open()];
    let sequential =
        CreateRequest { mode: CreateMode::PersistentSequential, ..CreateRequest::new("/s-", b"", &acl) };
    let ops = [
        Request::SetData { path: "/there", data: None, version: -1 },
        Request::CreateIfAbsent(CreateRequest::new("/there", b"", &acl)),
        Request::SetData { path: "/there", data: None, version: -1 },
        Request::Create(sequential),
    ];
    let answer = engine.submit(&Request::Multi(&ops), &Caller::default()).unwrap().wait().unwrap();
    assert_eq!(answer.code(), Code::OK);
    let made: Vec<_> = (0..5).map(|op| answer.created_path(op)).collect();
    assert_eq!(made, [None, None, None, Some("/s-0000000001"), None]);
    let found: Vec<_> = (0..5).map(|op| answer.existing_stat(op).is_some()).collect();
    assert_eq!(found, [false, true, false, false, false]);
}

#[test]
fn the_room_that_a_large_txn_took_is_given_back() {
    let engine = open(&options().log(LogOptions::new().segment_bytes(4 << 20)));
    let room = || engine.shared().order.lock().buffer.capacity();
    create(&engine, "/small", b"x").unwrap().wait().unwrap();
    assert!((1..=BUFFER_KEPT).contains(&room()), "{}", room());
    create(&engine, "/large", &vec![7; 900_000]).unwrap().wait().unwrap();
    assert!(room() <= BUFFER_KEPT, "{}", room());
    create(&engine, "/next", b"x").unwrap().wait().unwrap();
    assert_eq!(engine.tree().get("/large").unwrap().data().map(<[u8]>::len), Some(900_000));
}
