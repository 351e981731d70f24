//! What is written for ZooKeeper: read again, it is the same state, with the parts that its releases have.

use std::fs;
use std::path::Path;

use arborlog::zookeeper::{
    Compression, ExportOptions, ImportOptions, LogFile, ZkFormat, export, import, read_state,
};
use arborlog::{
    Acl, Caller, CreateMode, CreateRequest, DataTree, EngineOptions, Epoch, ErrorKind, Request,
    RestoreTarget, Zxid,
};
use tempfile::TempDir;

use super::zookeeper_import::recorded;

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
