//! Looking at an engine's directory.

use arborlog::{Acl, Caller, CreateMode, CreateRequest, Engine, EngineOptions, LogOptions, Request};

use crate::sample::arborlog;

fn sample() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = LogOptions::new().segment_bytes(1 << 20);
    let (engine, _) = EngineOptions::new().log(log).open(dir.path()).unwrap();
    let acl = [Acl::open()];
    let session = Caller { session_id: 0x77, ..Caller::default() };
    let ask = |engine: &Engine, request: &Request<'_>| {
        assert!(engine.submit(request, &session).unwrap().wait().unwrap().code().is_ok());
    };
    ask(&engine, &Request::CreateSession { timeout_ms: 4000 });
    for path in ["/b", "/a", "/a/x", "/a/x/deep"] {
        ask(&engine, &Request::Create(CreateRequest::new(path, b"hello", &acl)));
    }
    engine.snapshot().unwrap().join().unwrap();
    let mode = CreateMode::Ephemeral;
    ask(&engine, &Request::Create(CreateRequest { mode, ..CreateRequest::new("/a/e", b"", &acl) }));
    engine.close().unwrap();
    dir
}

#[test]
fn stat_tells_the_state() {
    let dir = sample();
    let told = arborlog("stat --json DIR", dir.path());
    assert_eq!(told.code, 0, "{told:?}");
    let stat = &told.json()[0];
    assert_eq!((stat["last_zxid"].as_str(), stat["replayed"].as_i64()), (Some("0x6"), Some(1)), "{stat}");
    assert_eq!((stat["began_with"].as_str(), stat["sessions"].as_i64()), (Some("0x5"), Some(1)));
    assert_eq!(stat["snapshots"][0]["zxid"], "0x5");
    let text = arborlog("stat DIR", dir.path()).out;
    assert!(text.contains("last zxid          0x6") && text.contains("and 1 txn of the log"), "{text}");
}

#[test]
fn a_damaged_snapshot_is_told_and_the_rest_is_read() {
    let dir = sample();
    let snapshots = dir.path().join("snapshots-1");
    let file = std::fs::read_dir(snapshots).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let told = arborlog("stat --json DIR", dir.path());
    assert_eq!(told.code, 1, "{told:?}");
    let stat = &told.json()[0];
    assert_eq!((stat["last_zxid"].as_str(), stat["replayed"].as_i64()), (Some("0x6"), Some(6)), "{stat}");
    assert!(stat["snapshots"][0]["error"]["code"].is_string());
}

#[test]
fn tree_prints_nodes_in_order() {
    let dir = sample();
    let told = arborlog("tree --json --path /a DIR", dir.path());
    let nodes = told.json();
    let paths: Vec<_> = nodes.iter().map(|node| node["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/a", "/a/e", "/a/x", "/a/x/deep"]);
    assert_eq!((&nodes[0]["data"], &nodes[0]["stat"]["numChildren"]), (&"aGVsbG8=".into(), &2.into()));
    assert_eq!(nodes[1]["stat"]["ephemeralOwner"], "0x77");
    assert_eq!(nodes[0]["acl"][0]["scheme"], "world");
    let shallow = arborlog("tree --path /a --depth 1 DIR", dir.path()).out;
    assert_eq!(shallow.lines().count(), 3, "{shallow}");
    let sessions = arborlog("tree --sessions DIR", dir.path()).out;
    assert!(sessions.contains("0x77") && sessions.contains("/a/e"), "{sessions}");
    assert_eq!(arborlog("tree --path /none DIR", dir.path()).code, 3);
}

#[test]
fn no_engine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let told = arborlog("stat DIR", dir.path());
    assert_eq!(told.code, 3);
    assert!(told.err.contains("[no_log]"), "{told:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
