//! Snapshots on the simulated disk: fuzzy walks, damage at every byte, crashes and failures at every operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{LoadProgress, SnapshotFile, SnapshotStore, StoreReport, load};
use crate::base::{Error, ErrorKind, Random, Result, Zxid};
use crate::format::{DatabaseId, Numbering, TxnBuf};
use crate::io::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use crate::tree::{DataTree, SharedTree, StoredStat, Walk, random_txns};

const ID: DatabaseId = DatabaseId::from_bytes([7; 16]);

fn open_as(disk: &SimDisk, id: DatabaseId) -> (SnapshotStore, StoreReport) {
    let random = Random::from_seed(disk.operations());
    SnapshotStore::open(disk.handle(), id, Numbering::Index, random).expect("the directory opens")
}

fn open(disk: &SimDisk) -> SnapshotStore {
    open_as(disk, ID).0
}

fn apply(tree: &SharedTree, txn: &TxnBuf) {
    tree.apply(&txn.as_txn(), &mut ());
}

/// A snapshot of a tree that goes on: `during` are applied while the walk is under way, a few places at a time.
fn write(store: &SnapshotStore, tree: &SharedTree, during: &[TxnBuf]) -> Result<super::Sealed> {
    let start = tree.read().last_zxid();
    let mut writer = store.begin(start, 1)?;
    let (mut walk, mut txns) = (Walk::new(), during.iter());
    while writer.walk(tree, &mut walk, if during.is_empty() { 2000 } else { 2 })? {
        txns.next().into_iter().for_each(|txn| apply(tree, txn));
    }
    let sessions = tree.read().sessions();
    sessions.into_iter().try_for_each(|(id, timeout_ms)| writer.session(id, timeout_ms))?;
    txns.for_each(|txn| apply(tree, txn));
    during.iter().try_for_each(|txn| writer.txn(txn.zxid(), txn.time_ms(), txn.as_bytes()))?;
    let (end, digest) = (tree.read().last_zxid(), tree.read().digest());
    writer.seal(end, digest)
}

fn publish(store: &SnapshotStore, tree: &SharedTree, during: &[TxnBuf]) -> Result<Zxid> {
    let mut sealed = write(store, tree, during)?;
    sealed.verify()?;
    sealed.publish().map(|info| info.end)
}

fn loaded(store: &SnapshotStore, end: Zxid) -> Result<DataTree> {
    load(&store.open_file(end)?, &mut |_| ()).map(|(tree, _)| tree)
}

/// Ten txns that come after all of the tree's.
fn later(tree: &SharedTree) -> Vec<TxnBuf> {
    let last = tree.read().last_zxid().get();
    let renumbered = random_txns(99, 60).into_iter().skip(50).zip(last + 1..);
    let txn = |(txn, zxid): (TxnBuf, u64)| TxnBuf::from_bytes(Zxid::new(zxid), txn.time_ms(), txn.as_bytes());
    renumbered.map(|pair| txn(pair).expect("a txn")).collect()
}

type Content = (BTreeMap<String, (Option<Vec<u8>>, String, StoredStat)>, Vec<(i64, i32)>, u64, Zxid);

/// All of a tree.
fn content(tree: &DataTree) -> Content {
    let root = tree.get("/").expect("a root");
    let nodes = std::iter::once(root).chain(tree.descendants("/", None));
    let node = |n: crate::tree::NodeRef<'_>| {
        (n.path(), (n.data().map(<[u8]>::to_vec), format!("{:?}", n.acl()), n.stored()))
    };
    (nodes.map(node).collect(), tree.sessions(), tree.digest(), tree.last_zxid())
}

/// A store with snapshots at the 20th and the 40th of 40 txns, and their trees.
fn two_snapshots(disk: &SimDisk) -> Vec<(Zxid, Content)> {
    let (store, tree, txns) = (open(disk), SharedTree::default(), random_txns(3, 40));
    let snapshot = |txns: &[TxnBuf]| {
        txns[..10].iter().for_each(|txn| apply(&tree, txn));
        let end = publish(&store, &tree, &txns[10..]).expect("a disk without faults");
        (end, content(&tree.read()))
    };
    vec![snapshot(&txns[..20]), snapshot(&txns[20..])]
}

/// All that is listed of these can be loaded, and is what it was; nothing else but `also` is listed.
fn assert_holds(disk: &SimDisk, expected: &[(Zxid, Content)], also: Option<Zxid>) {
    let store = open(disk);
    for end in store.snapshots() {
        let tree = loaded(&store, end).unwrap_or_else(|e| panic!("{end} is listed and damaged: {e}"));
        match expected.iter().find(|(known, _)| *known == end) {
            Some((_, was)) => assert_eq!(&content(&tree), was, "{end}"),
            None => assert_eq!(Some(end), also, "it came from nowhere"),
        }
    }
    expected.iter().for_each(|(end, _)| assert!(store.snapshots().contains(end), "{end} is lost"));
}

#[test]
fn a_fuzzy_snapshot_loads_as_the_tree_was_at_its_end() {
    for seed in 0..60 {
        let disk = SimDisk::new(seed);
        let (store, tree, txns) = (open(&disk), SharedTree::default(), random_txns(seed, 120));
        let (before, during) = txns.split_at(usize::try_from(seed).expect("small") * 2);
        before.iter().for_each(|txn| apply(&tree, txn));
        let end = publish(&store, &tree, during).expect("a disk without faults");
        let mut told = Vec::new();
        let file = store.open_file(end).expect("published");
        let (again, info) = load(&file, &mut |p| told.push(p)).expect("whole");
        assert_eq!(content(&again), content(&tree.read()), "seed {seed}");
        assert_eq!((info.txns, info.digest), (during.len() as u64, again.digest()));
        assert!(told.iter().is_sorted_by_key(|p: &LoadProgress| p.done_bytes) && !told.is_empty());
        assert_eq!(disk.names(), [format!("{:016x}.snap", end.get())]);
    }
}

#[test]
fn large_and_many_nodes_fill_many_blocks() {
    let (disk, tree) = (SimDisk::new(1), SharedTree::default());
    let mut live = tree.into_inner();
    for n in 1..=6000_u64 {
        let data = vec![n.to_le_bytes()[0]; if n % 1000 == 0 { 600_000 } else { 100 }];
        let create = crate::format::Create {
            path: &format!("/n{n}"),
            data: Some(&data),
            acl: crate::format::AclList::EMPTY,
            kind: crate::format::CreateKind::Plain { ephemeral: false },
            parent_cversion: None,
        };
        let body = crate::format::TxnBody::Create(create);
        let zxid = Zxid::new(n);
        let txn = crate::format::Txn { zxid, time_ms: 1, session_id: 0, cxid: 0, digest: None, body };
        live.apply(&txn, &mut ());
    }
    let (store, tree) = (open(&disk), SharedTree::new(live));
    let end = publish(&store, &tree, &[]).expect("a disk without faults");
    let file = store.open_file(end).expect("published");
    // Large nodes stand together in the store, so that several may be met in one stride.
    assert!(file.blocks.len() >= 4, "{}", file.blocks.len());
    assert_eq!(content(&loaded(&store, end).expect("whole")), content(&tree.read()));
}

#[test]
fn sn_06_every_flipped_byte_and_every_truncation_is_refused() {
    let disk = SimDisk::new(1);
    let (store, tree) = (open(&disk), SharedTree::default());
    let txns = random_txns(5, 12);
    txns[..6].iter().for_each(|txn| apply(&tree, txn));
    let end = publish(&store, &tree, &txns[6..]).expect("a disk without faults");
    let name = format!("{:016x}.snap", end.get());
    let whole = disk.read_file(&name).expect("there");
    let refused = |bytes: &[u8]| -> Error {
        disk.write_file(&name, bytes);
        loaded(&store, end).map(|_| ()).expect_err("it is damaged")
    };
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 0x40;
        let error = refused(&bad);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        assert_eq!(error.at().file.as_deref(), Some(name.as_str()), "byte {at}: {error}");
    }
    for len in 0..whole.len() {
        assert_eq!(refused(&whole[..len]).code(), "snapshot_truncated", "{len} bytes");
    }
    let longer = [&whole[..], b"x"].concat();
    assert_eq!(refused(&longer).code(), "snapshot_trailing");
    let twice = [&whole[..], &whole[whole.len() - 128..]].concat();
    assert_eq!(refused(&twice).code(), "snapshot_trailing", "the trailer's bytes once more are no trailer");
    disk.write_file(&name, &whole);
    assert!(loaded(&store, end).is_ok());
}

#[test]
fn snapshots_of_another_database_or_name_are_refused() {
    let disk = SimDisk::new(1);
    let expected = two_snapshots(&disk);
    let (first, second) = (expected[0].0, expected[1].0);
    let (other, _) = open_as(&disk, DatabaseId::from_bytes([8; 16]));
    assert_eq!(other.verify(first).unwrap_err().code(), "snapshot_foreign");
    disk.copy_file(&format!("{:016x}.snap", first.get()), &format!("{:016x}.snap", second.get()));
    assert_eq!(open(&disk).verify(second).unwrap_err().code(), "snapshot_misnamed");
    disk.remove_file(&format!("{:016x}.snap", second.get()));
    assert_eq!(open(&disk).verify(second).unwrap_err().code(), "snapshot_missing");
}

#[test]
fn sn_03_a_failure_anywhere_harms_no_older_snapshot_and_leaves_no_file() {
    let disk = SimDisk::new(1);
    let expected = two_snapshots(&disk);
    let (mut failed, ops) = (0, [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename]);
    for (op, nth, effect) in ops.into_iter().flat_map(|op| {
        (1..9).flat_map(move |nth| [Effect::ENOSPC, Effect::EIO].map(|effect| (op, nth, effect)))
    }) {
        let store = open(&disk);
        let tree = SharedTree::new(loaded(&store, expected[1].0).expect("whole"));
        disk.inject(Fault::next(op, effect).nth(nth).on(NamePattern::Suffix(".tmp".to_owned())));
        let done = publish(&store, &tree, &later(&tree));
        disk.clear_faults();
        match done {
            Ok(end) => disk.remove_file(&format!("{:016x}.snap", end.get())),
            Err(_) => failed += 1,
        }
        assert_eq!(disk.names().len(), 2, "{op:?} {nth}: {:?}", disk.names());
        assert_holds(&disk, &expected, None);
        assert!(store.begin(Zxid::new(1), 0).is_ok(), "the next attempt is free");
    }
    assert!(failed >= 10, "{failed}");
}

#[test]
fn sn_04_a_crash_anywhere_leaves_older_snapshots_and_never_half_a_file() {
    let base = SimDisk::new(1);
    let expected = two_snapshots(&base);
    let last = Zxid::new(expected[1].0.get() + 10);
    let mut crashes = 0;
    for image in [CrashImage::KeepAll, CrashImage::DropUnsynced, CrashImage::Random(4)] {
        for operation in 0.. {
            let disk = base.fork(CrashImage::KeepAll);
            let store = open(&disk);
            let tree = SharedTree::new(loaded(&store, expected[1].0).expect("whole"));
            disk.crash_at(disk.operations() + operation, image);
            let done = publish(&store, &tree, &later(&tree));
            assert!(operation < 100, "without end");
            if done.is_ok() {
                assert!(operation > 5, "{operation}");
                break;
            }
            crashes += 1;
            drop(store);
            assert_holds(&disk, &expected, Some(last));
            let temporary = disk.names().into_iter().filter(|name| name.ends_with(".tmp")).count();
            assert_eq!(temporary, 0, "opening cleans");
        }
    }
    assert!(crashes > 15, "{crashes}");
}

#[test]
fn sn_09_temporary_files_are_cleaned_and_foreign_ones_stay() {
    let disk = SimDisk::new(1);
    let expected = two_snapshots(&disk);
    for name in ["0000000000000001.snap.tmp", "foo.tmp", "0000000000000001.seg", "snapshot.5"] {
        disk.write_file(name, b"x");
    }
    let (store, report) = open_as(&disk, ID);
    assert_eq!(report.cleaned, ["0000000000000001.snap.tmp"]);
    assert_eq!(report.foreign, ["foo.tmp", "snapshot.5"]);
    assert_eq!(store.snapshots(), [expected[1].0, expected[0].0]);
    assert_eq!(disk.names().len(), 5);
}

/// Snapshots 1 to `count` of a tree without txns of its own time.
fn row_of_snapshots(store: &SnapshotStore, count: usize) -> Vec<Zxid> {
    let tree = SharedTree::default();
    let snapshot = |txn: &TxnBuf| {
        apply(&tree, txn);
        publish(store, &tree, &[]).expect("a disk without faults")
    };
    random_txns(8, count).iter().map(snapshot).collect()
}

#[test]
fn sn_06_retention_counts_verified_snapshots_only() {
    let disk = SimDisk::new(1);
    let ends = row_of_snapshots(&open(&disk), 6);
    for end in &ends[3..] {
        let name = format!("{:016x}.snap", end.get());
        disk.chop(&name, disk.read_file(&name).expect("there").len() as u64 / 2);
    }
    let store = open(&disk);
    let report = store.retain(2).expect("a disk without faults");
    assert_eq!((report.removed, report.oldest_kept), (vec![ends[0]], Some(ends[1])));
    assert!(report.troubled.iter().map(|(end, _)| *end).eq(ends[3..].iter().rev().copied()));
    for end in &ends[1..3] {
        disk.flip(&format!("{:016x}.snap", end.get()), 600, 1);
    }
    let report = open(&disk).retain(1).expect("a disk without faults");
    assert_eq!((report.removed.len(), report.oldest_kept), (0, None), "nothing is known to be well");
}

/// Looked at again while old ones are removed, as a running engine's are.
#[test]
fn sn_06_a_snapshot_that_went_while_it_was_read_does_not_come_back() {
    let disk = SimDisk::new(5);
    let store = open(&disk);
    let ends = row_of_snapshots(&store, 3);
    let listed = store.snapshots();
    assert_eq!(store.retain(1).expect("a clean-up").removed, [ends[1], ends[0]]);
    for end in listed {
        assert_eq!(store.examine(end).0.is_ok(), end == ends[2], "{end}");
    }
    assert_eq!(store.snapshots(), [ends[2]]);
    let (other, again) = (SimDisk::new(6), store.retain(1).expect("a clean-up"));
    assert!(again.troubled.is_empty(), "{:?}", again.troubled);
    store.duplicate_to(other.handle().as_ref()).expect("all that are listed are there");
}

#[test]
fn sn_10_a_snapshot_that_cannot_be_removed_is_tried_again() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    let ends = row_of_snapshots(&store, 4);
    disk.remove_file(&format!("{:016x}.snap", ends[0].get()));
    disk.inject(Fault::next(FaultOp::Remove, Effect::EIO));
    let report = store.retain(1).expect("that is no failure");
    assert_eq!((report.removed, report.troubled.len()), (vec![ends[1]], 2));
    let report = store.retain(1).expect("that is no failure");
    assert_eq!((report.removed, report.oldest_kept), (vec![ends[2]], Some(ends[3])));
}

#[test]
fn tr_05_snapshots_above_a_target_go_newest_first() {
    let base = SimDisk::new(1);
    let ends = row_of_snapshots(&open(&base), 5);
    for operation in 1..5 {
        let disk = base.fork(CrashImage::KeepAll);
        let store = open(&disk);
        disk.crash_at(disk.operations() + operation, CrashImage::KeepAll);
        let done = store.remove_newer_than(ends[1]);
        assert!(done.is_err(), "{operation}");
        let left = open(&disk).snapshots();
        assert!(left.iter().rev().eq(&ends[..left.len()]), "{left:?}");
        assert_eq!(open(&disk).remove_newer_than(ends[1]).expect("again").len(), left.len() - 2);
    }
}

#[test]
fn sn_07_one_snapshot_at_a_time_and_the_newest_is_the_highest() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    let (tree, txns) = (SharedTree::default(), random_txns(4, 30));
    let writer = store.begin(Zxid::ZERO, 0).expect("free");
    assert_eq!(store.begin(Zxid::ZERO, 0).unwrap_err().code(), "snapshot_busy");
    assert_eq!(store.remove_newer_than(Zxid::ZERO).unwrap_err().kind(), ErrorKind::Busy);
    drop(writer);
    assert_eq!(disk.names(), [""; 0]);
    let end = publish(&store, &tree, &txns).expect("free again");
    let sealed = write(&store, &SharedTree::default(), &txns[..10]).expect("free again");
    let older = sealed.publish().expect("older than another").end;
    assert_eq!(store.snapshots(), [end, older]);
}

#[test]
fn a_snapshot_of_the_same_zxid_is_replaced_by_a_verified_one() {
    let disk = SimDisk::new(1);
    let expected = two_snapshots(&disk);
    let store = open(&disk);
    let tree = SharedTree::new(loaded(&store, expected[1].0).expect("whole"));
    // A write that is lost: the new one is not what was written.
    disk.inject(Fault::next(FaultOp::Write, Effect::LostWrite).nth(2));
    let sealed = write(&store, &tree, &[]).expect("nobody has noticed");
    assert!(sealed.publish().is_err() && disk.fault_hits() == 1);
    assert_holds(&disk, &expected, None);
    write(&store, &tree, &[]).expect("well").publish().expect("in place of the old one");
    assert_holds(&disk, &expected, None);
}

#[test]
fn fz_11_a_digest_of_another_moment_is_refused() {
    let disk = SimDisk::new(1);
    let (store, tree, txns) = (open(&disk), SharedTree::default(), random_txns(6, 20));
    let mut writer = store.begin(Zxid::ZERO, 0).expect("free");
    while writer.walk(&tree, &mut Walk::new(), 1000).expect("a disk without faults") {}
    txns.iter().try_for_each(|t| writer.txn(t.zxid(), t.time_ms(), t.as_bytes())).expect("in order");
    let error = writer.txn(txns[3].zxid(), 0, b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfOrder);
    assert!(writer.session(1, 1).is_err(), "sessions come before txns");
    let end = txns[19].zxid();
    let digest = tree.read().digest();
    writer.seal(end, digest).expect("sealed").publish().expect("published");
    assert_eq!(loaded(&store, end).unwrap_err().code(), "snapshot_digest");
}

#[test]
fn lengths_are_not_believed() {
    let disk = SimDisk::new(1);
    let expected = two_snapshots(&disk);
    let end = expected[1].0;
    let file: Arc<dyn crate::io::File> =
        disk.handle().open(&format!("{:016x}.snap", end.get()), crate::io::OpenMode::Read).expect("there");
    let snapshot = SnapshotFile::open(file, ID, Numbering::Index).expect("whole");
    assert!(snapshot.blocks.iter().all(|place| place.end() <= snapshot.info.file_bytes));
}

/// Writes the golden snapshot of the present version; only together with a new version of the format. Then
/// `ARBORLOG_WRITE_GOLDEN=1 cargo test --test it golden_snapshot_write -- --ignored` tells what must be read from it.
#[test]
#[ignore = "writes tests/golden; ARBORLOG_WRITE_GOLDEN=1 cargo test --lib golden_snapshot_write -- --ignored"]
fn golden_snapshot_write() {
    if std::env::var_os("ARBORLOG_WRITE_GOLDEN").is_none() {
        return;
    }
    let snapshot = |seed| {
        let disk = SimDisk::new(seed);
        let (store, tree, txns) = (open(&disk), SharedTree::default(), random_txns(seed, 90));
        txns[..60].iter().for_each(|txn| apply(&tree, txn));
        let end = publish(&store, &tree, &txns[60..]).expect("a disk without faults");
        let info = store.open_file(end).expect("published").info;
        let is_full = info.sessions > 0 && info.nodes > 12;
        is_full.then(|| disk.read_file(&info.file).expect("there"))
    };
    let bytes = (0..300).filter_map(snapshot).min_by_key(Vec::len).expect("one has sessions");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1/snapshot.snap");
    std::fs::write(path, bytes).expect("written");
}

/// `cargo test --release --lib how_fast_a_million_nodes -- --ignored --nocapture`
#[test]
#[ignore = "a measurement, on the disk of the temporary directory"]
fn how_fast_a_million_nodes_are_written_and_loaded() {
    const NODES: u32 = 1_000_000;
    let clock = crate::base::Clock::real();
    let mut loader = DataTree::loader();
    let mut add = |path: &str, czxid: u64| {
        let data = [czxid.to_le_bytes()[0]; 100];
        let czxid = Zxid::new(czxid);
        let stat = StoredStat {
            czxid,
            mzxid: czxid,
            pzxid: czxid,
            ctime_ms: 1_700_000_000_000,
            ..StoredStat::default()
        };
        let acl = crate::format::AclList::EMPTY;
        loader.node(&crate::tree::WalkedNode { path, data: Some(&data), acl, stat });
    };
    add("/", 0);
    (0..1000).for_each(|parent| add(&format!("/parent-{parent:08}"), 1));
    let mut random = Random::from_seed(1);
    for n in 0..NODES {
        add(&format!("/parent-{:08}/child-{n:08}", random.below(1000)), u64::from(n) + 2);
    }
    let tree = SharedTree::new(loader.finish(Zxid::new(9_000_000)).tree);
    let folder = tempfile::tempdir().expect("a folder");
    let disk = crate::io::open_dir(folder.path(), crate::io::BackendChoice::Threads).expect("a directory");
    let (store, _) = SnapshotStore::open(disk, ID, Numbering::Index, Random::from_seed(1)).expect("empty");
    for _ in 0..2 {
        let from = clock.nanos();
        let sealed = write(&store, &tree, &[]).expect("written");
        let written = clock.nanos();
        let end = sealed.publish().expect("published").end;
        let published = clock.nanos();
        let file = store.open_file(end).expect("there");
        let (again, info) = load(&file, &mut |_| ()).expect("whole");
        let finished = clock.nanos();
        assert_eq!(again.digest(), tree.read().digest());
        let rate = |nanos: u64| u64::from(NODES) * 1_000_000 / (nanos / 1000);
        println!(
            "{} bytes; {} nodes/s written and synced, {} nodes/s loaded; published in {} ms",
            info.file_bytes,
            rate(written - from),
            rate(finished - published),
            (published - written) / 1_000_000
        );
    }
}
