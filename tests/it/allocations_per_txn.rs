//! A txn is encoded into the caller's buffer and read where it lies: neither takes memory.

use std::hint::black_box;

use arborlog::{Create, CreateKind, Ops, Paths, Txn, TxnBody, Zxid};

use crate::allocations::allocations;

const ROUNDS: usize = 1_000;
const DATA: [u8; 200] = [7; 200];
const PATH: &str = "/app/config";

fn txn(body: TxnBody<'_>) -> Txn<'_> {
    Txn { zxid: Zxid::new(1), time_ms: 2, session_id: 3, cxid: 4, digest: Some(5), body }
}

/// Encodes, decodes and looks at everything, again and again.
fn round_trips(body: TxnBody<'_>, out: &mut Vec<u8>) {
    for _ in 0..ROUNDS {
        out.clear();
        txn(black_box(body)).encode(out);
        let back = Txn::decode(Zxid::new(1), 2, out).expect("what was encoded");
        assert!(back == txn(body));
    }
}

#[test]
fn set_data_takes_no_memory_and_few_bytes() {
    let body = TxnBody::SetData { path: PATH, data: Some(&DATA), version: 8 };
    let mut out = Vec::with_capacity(1024);
    let ((), count) = allocations(|| round_trips(body, &mut out));
    assert_eq!(count, 0, "allocations in {ROUNDS} round trips");
    // Beside path and data: 6 of the head, session, digest, 2 of the operation, two lengths, the version.
    assert_eq!(out.len(), PATH.len() + DATA.len() + 6 + 8 + 8 + 2 + 4 + 4 + 4);
}

#[test]
fn lists_take_no_memory() {
    let paths = ["/a/b", "/a"].map(str::to_owned);
    let kind = CreateKind::Container;
    let acl = arborlog::AclList::EMPTY;
    let ops = [
        TxnBody::Create(Create { path: PATH, data: Some(&DATA), acl, kind, parent_cversion: Some(1) }),
        TxnBody::DeleteAll { paths: Paths::from_slice(&paths) },
        TxnBody::SetData { path: PATH, data: None, version: 8 },
    ];
    let mut out = Vec::with_capacity(1024);
    let ((), count) = allocations(|| {
        round_trips(TxnBody::Multi(Ops::from_slice(&ops)), &mut out);
        round_trips(TxnBody::CloseSession { paths: Some(Paths::from_slice(&paths)) }, &mut out);
    });
    assert_eq!(count, 0, "allocations in {ROUNDS} round trips");
}
