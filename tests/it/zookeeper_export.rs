//! What is written for ZooKeeper: read again, it is the same state, with the parts that its releases have.

use std::fs;
use std::path::Path;

use arborlog::zookeeper::{
    Compression, ExportOptions, ImportOptions, LogFile, ZkFormat, export, import, read_state,
};
use arborlog::{
    Acl, Caller, CreateMode, CreateRequest, DataTree, EngineOptions, Epoch, ErrorKind, Execution, Request,
    RestoreTarget, Zxid,
};
use tempfile::TempDir;

use super::zookeeper_import::recorded;
use super::zookeeper_made::{create, directory, log, of_one, open_session, put, snapshot_of};

/// Everything that a tree is: nodes with data, ACLs and Stats, sessions, digest, zxid.
fn everything(tree: &DataTree) -> Vec<String> {
    let nodes = tree.get("/").into_iter().chain(tree.descendants("/", None));
    let mut all: Vec<String> =
        nodes.map(|n| format!("{} {:?} {:?} {:?}", n.path(), n.data(), n.acl(), n.stored())).collect();
    all.push(format!("{:?} {:#x} {}", tree.sessions(), tree.digest(), tree.last_zxid()));
    all
}

fn imported(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    import(recorded(name), dir.path(), &EngineOptions::new(), &ImportOptions::new()).unwrap();
    dir
}

/// The bytes behind a snapshot's first checksum.
fn tail(dir: &Path, name: &str) -> usize {
    let bytes = fs::read(dir.join("version-2").join(name)).unwrap();
    let end = (5..bytes.len() - 12)
        .find(|at| {
            let sum = u64::from(adler2::adler32_slice(&bytes[..*at]));
            bytes[at - 5..*at] == *b"\0\0\0\x01/" && bytes[*at..at + 8] == sum.to_be_bytes()
        })
        .expect("a first checksum");
    bytes.len() - end - 13
}

#[test]
fn every_recorded_state_comes_back_from_every_format() {
    let names = [
        "basic/data",
        "ephemerals/data",
        "epochs/node1",
        "multi/data",
        "quota/data",
        "snapcount/data",
        "fmt-39",
    ];
    for name in names {
        let (engine, (tree, source)) =
            (imported(name), read_state(recorded(name), &ImportOptions::new()).unwrap());
        for format in ZkFormat::ALL {
            let dir = tempfile::tempdir().unwrap();
            let written = export(engine.path(), dir.path(), &ExportOptions::new(format));
            let has_extended = ["fmt-39", "multi/data"].contains(&name);
            if format == ZkFormat::V3_4 && has_extended {
                assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid, "{name}");
                assert!(!dir.path().join("version-2").exists());
                continue;
            }
            let report = written.unwrap_or_else(|e| panic!("{name} {format}: {e}"));
            let (read, again) = read_state(dir.path(), &ImportOptions::new().snapshot_alone(true)).unwrap();
            let mut expected = everything(&tree);
            if format == ZkFormat::V3_4 && tree.get("/zookeeper/config").unwrap().stored().mzxid == Zxid::ZERO
            {
                expected.retain(|line| !line.starts_with("/zookeeper/config "));
            }
            assert_eq!(everything(&read), expected, "{name} {format}");
            let length = [0, 0, 33, 54][ZkFormat::ALL.iter().position(|f| *f == format).unwrap()];
            assert_eq!(tail(dir.path(), &report.snapshot), length, "{name} {format}");
            assert_eq!((again.findings, again.accepted), (vec![], source.accepted), "{name} {format}");
            assert_eq!(again.digests_held, u64::from(format >= ZkFormat::V3_6));
        }
    }
}

#[test]
fn compressed_snapshots_come_back() {
    let engine = imported("snapcount/data");
    let (tree, _) = read_state(recorded("snapcount/data"), &ImportOptions::new()).unwrap();
    for compression in [Compression::Gz, Compression::Snappy] {
        let dir = tempfile::tempdir().unwrap();
        let what = ExportOptions::new(ZkFormat::V3_9).compression(compression);
        let report = export(engine.path(), dir.path(), &what).unwrap();
        assert!(report.snapshot.ends_with(compression.suffix()));
        let (read, _) = read_state(dir.path(), &ImportOptions::new().snapshot_alone(true)).unwrap();
        assert_eq!(everything(&read), everything(&tree));
        let refused = export(engine.path(), dir.path(), &what).unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::Invalid, "restore_not_empty"));
        let old = ExportOptions::new(ZkFormat::V3_5).compression(compression);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(export(engine.path(), dir.path(), &old).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// An engine with a snapshot at its 20th txn, and all sorts of txns behind it.
fn worked() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = EngineOptions::new().snap_count(0).open(dir.path()).unwrap();
    engine.enter_epoch(Epoch::new(3)).unwrap();
    let acls = [[Acl::open()], [Acl::new(arborlog::Perms::READ, "digest", "smile\u{1f600}:x")]];
    let submit = |request: &Request<'_>, session_id: i64| {
        let caller = Caller { session_id, ..Caller::default() };
        engine.submit(request, &caller).unwrap().wait().unwrap().code()
    };
    assert!(submit(&Request::CreateSession { timeout_ms: 900 }, 7).is_ok());
    for n in 0..60 {
        let mode = [CreateMode::Persistent, CreateMode::Ephemeral, CreateMode::Container][n % 3];
        let (path, data) = (format!("/n\u{e4}-{n}"), format!("{n}"));
        let create = CreateRequest { mode, ..CreateRequest::new(&path, data.as_bytes(), &acls[n % 2]) };
        assert!(submit(&Request::Create(create), 7).is_ok());
        // Fails, and takes a zxid all the same.
        assert!(!submit(&Request::Create(create), 7).is_ok());
        if n == 10 {
            engine.snapshot().unwrap().join().unwrap();
        }
    }
    assert!(submit(&Request::CloseSession, 7).is_ok());
    engine.close().unwrap();
    dir
}

#[test]
fn lg_01_a_log_behind_the_snapshot_leads_to_the_same_state_and_has_every_zxid() {
    let engine = worked();
    let tree = EngineOptions::new().open_read_only(engine.path()).unwrap().tree;
    for format in ZkFormat::ALL.into_iter().skip(1) {
        let dir = tempfile::tempdir().unwrap();
        let what = ExportOptions::new(format).log_tail(true);
        let report = export(engine.path(), dir.path(), &what).unwrap();
        let (read, again) = read_state(dir.path(), &ImportOptions::new().snapshot_alone(true)).unwrap();
        assert_eq!(everything(&read), everything(&tree), "{format}");
        assert_eq!((again.replayed, again.findings), (report.txns, vec![]));
        assert!(report.txns > 90, "{report:?}");
        // A request that failed tells no digest; the snapshot does.
        let failed = 49;
        let held = if format >= ZkFormat::V3_6 { report.txns - failed + 1 } else { 0 };
        assert_eq!(again.digests_held, held, "{format}");
        let bytes = fs::read(dir.path().join("version-2").join(&report.logs[0])).unwrap();
        let mut log = LogFile::new(bytes.as_slice(), &report.logs[0], 1 << 20).unwrap();
        let mut zxids = Vec::new();
        while let Some(entry) = log.next_entry().unwrap() {
            zxids.push(entry.txn.zxid().get());
        }
        assert!(zxids.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
    let half = Zxid::from_parts(3, 60);
    let dir = tempfile::tempdir().unwrap();
    let what = ExportOptions::new(ZkFormat::V3_9).target(RestoreTarget::Zxid(half)).log_tail(true);
    assert_eq!(export(engine.path(), dir.path(), &what).unwrap().last_zxid, half);
    assert_eq!(
        read_state(dir.path(), &ImportOptions::new().snapshot_alone(true)).unwrap().0.last_zxid(),
        half
    );
}

#[test]
fn an_export_that_was_cut_off_is_made_again() {
    let engine = imported("fmt-39");
    let dir = tempfile::tempdir().unwrap();
    let partial = dir.path().join("version-2.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("snapshot.24"), b"half").unwrap();
    export(engine.path(), dir.path(), &ExportOptions::new(ZkFormat::V3_9)).unwrap();
    assert!(!partial.exists() && dir.path().join("version-2/snapshot.24").exists());
    let epochs = ["currentEpoch", "acceptedEpoch"];
    for name in epochs {
        assert_eq!(fs::read_to_string(dir.path().join("version-2").join(name)).unwrap(), "0");
    }
}

/// No byte of a state depends on the order of a hash table, or on the way that led to it.
#[test]
fn tx_07_a_state_becomes_the_same_bytes_whenever_and_however_it_was_imported() {
    let written = |source: &Path, what: &ImportOptions| {
        let (engine, dest) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        import(source, engine.path(), &EngineOptions::new(), what).unwrap();
        export(engine.path(), dest.path(), &ExportOptions::new(ZkFormat::V3_9)).unwrap();
        dest
    };
    let files = |dir: &TempDir| {
        let entries = fs::read_dir(dir.path().join("version-2")).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries.map(|e| (e.file_name(), fs::read(e.path()).unwrap())).collect();
        files.sort();
        files
    };
    for name in ["basic/data", "ephemerals/data", "containers-ttl/data", "quota/data", "multi/data"] {
        let first = written(&recorded(name), &ImportOptions::new());
        let again = written(&recorded(name), &ImportOptions::new());
        let of_it = written(first.path(), &ImportOptions::new().snapshot_alone(true));
        assert!(files(&first) == files(&again), "{name}: another time");
        assert!(files(&first) == files(&of_it), "{name}: from what was written");
    }
    // Many sessions and lists.
    let many: Vec<_> = (0..200).map(|n| (0x1000 + n * 77, open_session())).collect();
    let lists = (0..200).map(|n| create(&format!("/{n}"), n % 32, false, n + 1));
    let txns: Vec<_> = many.into_iter().chain(lists.map(|op| (0x1000, op))).collect();
    let (snapshot, bytes) = (snapshot_of(&DataTree::new()), log(1, &txns));
    let source = directory(&[("snapshot.0", &snapshot), ("log.1", &bytes)]);
    let [first, again] = [(); 2].map(|()| written(source.path(), &ImportOptions::new()));
    assert!(files(&first) == files(&again), "sessions and lists");
}

/// What a dry run tells is what is written, and it refuses what is refused.
#[test]
fn a_dry_run_of_an_export_tells_what_one_would_write_and_writes_nothing() {
    let (engine, dest) = (worked(), TempDir::new().unwrap());
    for (format, tail) in [(ZkFormat::V3_9, false), (ZkFormat::V3_6, true)] {
        let what = ExportOptions::new(format).log_tail(tail);
        let not_there = dest.path().join("not-there");
        let plan = export(engine.path(), &not_there, &what.clone().execution(Execution::DryRun)).unwrap();
        assert!(!not_there.exists());
        fs::create_dir(&not_there).unwrap();
        let done = export(engine.path(), &not_there, &what).unwrap();
        assert_eq!(format!("{plan:?}"), format!("{done:?}"));
        let error = export(engine.path(), &not_there, &what.execution(Execution::DryRun)).unwrap_err();
        assert_eq!(error.code(), "restore_not_empty");
        fs::remove_dir_all(&not_there).unwrap();
    }
}

#[test]
fn an_export_without_sessions_closes_each() {
    let (engine, dest) = (imported("ephemerals/data"), TempDir::new().unwrap());
    let what = ExportOptions::new(ZkFormat::V3_9).sessions(false);
    let done = export(engine.path(), dest.path(), &what).unwrap();
    let (tree, _) = read_state(dest.path(), &ImportOptions::new().snapshot_alone(true)).unwrap();
    assert!(done.closed_sessions > 0 && tree.sessions().is_empty() && tree.ephemeral_owners().is_empty());
    assert_eq!(tree.last_zxid().get(), done.source_zxid.get() + done.closed_sessions);
    let error = export(engine.path(), dest.path(), &what.log_tail(true)).unwrap_err();
    assert_eq!(error.code(), "invalid_option");
}

#[test]
fn a_word_of_an_acl_is_held_to_what_a_server_reads() {
    let with = |len: usize| {
        let mut body = Vec::new();
        put(&mut body, b"/a");
        put(&mut body, b"");
        body.extend([0, 0, 0, 1, 0, 0, 0, 31]);
        put(&mut body, b"digest");
        put(&mut body, &vec![b'x'; len]);
        body.extend([0; 5]);
        let (first, bytes) = (snapshot_of(&DataTree::new()), log(1, &of_one(vec![(1, body)])));
        let source = directory(&[("snapshot.0", &first), ("log.1", &bytes)]);
        let (engine, dest) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        import(source.path(), engine.path(), &EngineOptions::new(), &ImportOptions::new()).unwrap();
        export(engine.path(), dest.path(), &ExportOptions::new(ZkFormat::V3_9)).map(drop)
    };
    with(2_097_150).unwrap();
    let error = with(2_097_151).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("zk_length", ErrorKind::TooLarge), "{error}");
    assert!(error.to_string().contains("an ACL of /a"), "{error}");
}
