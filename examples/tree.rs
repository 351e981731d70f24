//! The tree alone, without a log: change it by txns, read it, share it, watch it.
//!
//! `cargo run --release --example tree`

use std::sync::{Mutex, PoisonError};

use arborlog::{
    Acl, AclBuf, AclList, Change, Create, CreateKind, DataTree, Ops, SharedTree, Txn, TxnBody, WatchKind,
    WatchTable, Zxid,
};

fn main() {
    let acl: AclBuf = [Acl::open().as_entry()].into_iter().collect();
    let mut tree = DataTree::new();

    // A txn holds results, not requests: the new version, the parent's new count of created children. So applying
    // it a second time does no harm. A `Proposer` makes txns of requests.
    tree.apply(&txn(1, create("/app", b"", acl.as_list(), 1)), &mut ());
    let ops = [
        create("/app/a", b"first", acl.as_list(), 1),
        create("/app/b", b"second", acl.as_list(), 2),
        TxnBody::SetData { path: "/app/a", data: Some(b"changed"), version: 1 },
    ];
    let outcome = tree.apply(&txn(2, TxnBody::Multi(Ops::from_slice(&ops))), &mut ());
    assert!(outcome.code().is_ok());

    // Read: a node, its children by name, all that is below a node in the order of paths.
    let app = tree.get("/app").expect("was created");
    println!("/app has {} children, digest {:#x}", app.child_count(), tree.digest());
    for child in app.children(None) {
        let data = String::from_utf8_lossy(child.data().unwrap_or_default());
        println!("{} = {data:?}, version {}", child.name(), child.stat().version);
    }
    let paths: Vec<String> = tree.descendants("/", None).map(|node| node.path()).collect();
    println!("all: {}", paths.join(" "));

    // Share: many threads read while one applies. Look and watch under one lock, so that nothing happens between.
    let (tree, watches) = (SharedTree::new(tree), Mutex::new(WatchTable::new()));
    let lock = || watches.lock().unwrap_or_else(PoisonError::into_inner);
    let client = 17;
    let reader = tree.read();
    if reader.exists("/app/c").is_none() {
        lock().add(client, "/app/c", WatchKind::Data).expect("this table has no limit");
    }
    drop(reader);

    // The events are told inside of `apply`: before anybody can read the new state.
    let txn = txn(3, create("/app/c", b"third", acl.as_list(), 3));
    tree.apply(&txn, &mut |change: Change<'_>| {
        lock().trigger(txn.zxid, change, &mut |event| {
            println!("tell {}: {:?} {}", event.watcher, event.kind, event.path);
        });
    });
    assert!(lock().is_empty(), "a data watch fires once");
}

fn txn(zxid: u64, body: TxnBody<'_>) -> Txn<'_> {
    let time_ms = 1_700_000_000_000; // the leader's clock, whatever it is
    Txn { zxid: Zxid::new(zxid), time_ms, session_id: 0, cxid: 0, digest: None, body }
}

fn create<'a>(path: &'a str, data: &'a [u8], acl: AclList<'a>, cversion: i32) -> TxnBody<'a> {
    let kind = CreateKind::Plain { ephemeral: false };
    TxnBody::Create(Create { path, data: Some(data), acl, kind, parent_cversion: Some(cversion) })
}
