//! `arborlog snapshot`, and what it has in common with `arborlog tree dump`.

use std::collections::BTreeMap;
use std::fs;

use arborlog::{Acl, Caller, CreateMode, CreateRequest, EngineOptions, LogOptions, ProposeOptions, Request};
use serde_json::Value;

use crate::engine_sample::{all_files, all_unchanged, engine, snapshot, zxid};
use crate::sample::{arborlog, flip};

/// An engine at rest with one snapshot of several blocks: its nodes are those of the tree.
fn at_rest() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions::new()
        .log(LogOptions::new().segment_bytes(4 << 20))
        .snap_count(0)
        .propose(ProposeOptions::new().extended_types(true));
    let (engine, _) = options.open(dir.path()).unwrap();
    let (acl, big) = ([Acl::open()], vec![b'x'; 8_000]);
    let caller = Caller { session_id: 0x77, ..Caller::default() };
    let mut requests = vec![
        Request::CreateSession { timeout_ms: 4000 },
        Request::Create(CreateRequest::new("/app", b"", &acl)),
        Request::Create(CreateRequest::new("/big", b"", &acl)),
    ];
    let paths: Vec<String> = (0..20).map(|n| format!("/app/n{n:02}")).collect();
    let bigs: Vec<String> = (0..100).map(|n| format!("/big/n{n:02}")).collect();
    requests.extend(paths.iter().map(|path| Request::Create(CreateRequest::new(path, b"hello", &acl))));
    requests.extend(bigs.iter().map(|path| Request::Create(CreateRequest::new(path, &big, &acl))));
    for (path, mode) in [
        ("/app/e", CreateMode::Ephemeral),
        ("/app/c", CreateMode::Container),
        ("/app/t", CreateMode::Ttl { ttl_ms: 5000 }),
    ] {
        requests.push(Request::Create(CreateRequest { mode, ..CreateRequest::new(path, b"!", &acl) }));
    }
    for request in &requests {
        assert!(engine.submit(request, &caller).unwrap().wait().unwrap().code().is_ok(), "{request:?}");
    }
    engine.snapshot().unwrap().join().unwrap();
    engine.close().unwrap();
    dir
}

#[test]
fn ls_tells_each_with_what_it_holds() {
    let dir = engine();
    let before = all_files(dir.path());
    let listed = arborlog("snapshot ls --json DIR", dir.path()).exits(0).json();
    let ends: Vec<_> = listed.iter().map(|o| o["end_zxid"].as_str().unwrap()).collect();
    assert_eq!(ends, ["0x300000028", "0x300000014"]);
    assert_eq!(
        (&listed[0]["nodes"], &listed[0]["sessions"], &listed[0]["verified"]),
        (&41.into(), &3.into(), &true.into())
    );
    let text = arborlog("snapshot ls DIR", dir.path()).exits(0).out;
    assert_eq!(text.matches(": whole\n").count(), 2, "{text}");
    assert!(arborlog("snapshot ls --quick DIR", dir.path()).exits(0).out.contains(": unread\n"));
    // The directory of snapshots alone does as well, as in a backup.
    assert_eq!(arborlog("snapshot ls DIR/snapshots-1", dir.path()).exits(0).out, text);
    // A quick look does not see what a whole one sees.
    all_unchanged(&before, dir.path());
    let path = snapshot(dir.path(), zxid(40));
    let at = fs::read(&path).unwrap().windows(6).position(|w| w == b"data 9").unwrap();
    flip(&path, at);
    let listed = arborlog("snapshot ls --json DIR", dir.path()).exits(1).json();
    assert_eq!(
        (&listed[0]["error"]["code"], &listed[0]["verified"]),
        (&"snapshot_checksum".into(), &false.into())
    );
    assert_eq!(listed[1]["error"], Value::Null);
    arborlog("snapshot ls --quick DIR", dir.path()).exits(0);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let text = arborlog("snapshot ls --quick DIR", dir.path()).exits(1).out;
    assert!(text.contains("[snapshot_truncated]") && text.lines().count() == 2, "{text}");
}

#[test]
fn verify_names_each_damaged_range_and_nothing_else() {
    let dir = at_rest();
    let path = fs::read_dir(dir.path().join("snapshots-1")).unwrap().next().unwrap().unwrap().path();
    assert!(arborlog("snapshot verify --deep DIR", dir.path()).exits(0).out.ends_with("snap: sound\n"));
    // In the first block and in the last one before the sessions', of several.
    let bytes = fs::read(&path).unwrap();
    let runs: Vec<usize> = bytes
        .windows(5000)
        .enumerate()
        .step_by(1000)
        .filter(|(_, w)| w.iter().all(|b| *b == b'x'))
        .map(|(at, _)| at)
        .collect();
    let places = [runs[0], *runs.last().unwrap()];
    places.iter().for_each(|at| flip(&path, *at));
    let object = arborlog("snapshot verify --json DIR", dir.path()).exits(1).json().remove(0);
    let damages = object["damages"].as_array().unwrap();
    assert_eq!(damages.len(), 2, "{object}");
    for (damage, at) in damages.iter().zip(places) {
        let (from, to) = (damage["offset"].as_u64().unwrap(), damage["end_offset"].as_u64().unwrap());
        assert!(from <= at as u64 && (at as u64) < to && to - from < 500_000, "{damage}, {at}");
        assert_eq!(damage["code"], "snapshot_checksum");
    }
    let text = arborlog("snapshot verify DIR", dir.path()).exits(1).out;
    assert_eq!(text.lines().filter(|line| line.contains("whole again from byte")).count(), 2, "{text}");
    let end = object["end_zxid"].as_str().unwrap();
    arborlog(&format!("snapshot verify DIR --zxid {end}"), dir.path()).exits(1);
    arborlog("snapshot verify DIR --zxid 0x1", dir.path()).exits(3);
    // What was printed before the damage is right; that it ends is told.
    let dumped = arborlog("snapshot dump DIR", dir.path()).exits(1).json();
    assert_eq!(dumped.last().unwrap()["error"]["code"], "snapshot_checksum");
}

/// The lines that tell of nodes, by path.
fn nodes(lines: &[Value]) -> BTreeMap<String, Value> {
    let nodes = lines.iter().filter(|line| line.get("path").is_some() && line["op"].is_null());
    nodes.map(|node| (node["path"].as_str().unwrap().to_owned(), node.clone())).collect()
}

#[test]
fn a_dump_has_every_node_as_the_tree_has_it() {
    let dir = at_rest();
    let before = all_files(dir.path());
    let tree = arborlog("tree dump --json DIR", dir.path()).exits(0).json();
    assert_eq!(tree, arborlog("tree --json DIR", dir.path()).exits(0).json());
    let keys = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&tree[0]), ["acl", "data", "path", "stat"]);
    assert_eq!(
        keys(&tree[0]["stat"]),
        [
            "aversion",
            "ctime",
            "cversion",
            "czxid",
            "dataLength",
            "ephemeralOwner",
            "mtime",
            "mzxid",
            "numChildren",
            "pzxid",
            "version",
        ]
    );
    let tree = nodes(&tree);
    assert_eq!((tree.len(), &tree["/app"]["stat"]["numChildren"]), (129, &23.into()));
    assert_eq!(
        (&tree["/app"]["stat"]["cversion"], &tree["/app/n00"]["data"]),
        (&23.into(), &"aGVsbG8=".into())
    );
    // A client sees no owner of these two.
    assert_eq!(tree["/app/t"]["stat"]["ephemeralOwner"], "0x0");
    assert_eq!(tree["/app/c"]["stat"]["ephemeralOwner"], "0x0");
    assert_eq!(tree["/app/e"]["stat"]["ephemeralOwner"], "0x77");
    let exact = arborlog("snapshot dump --exact DIR", dir.path()).exits(0).json();
    let exact_nodes = nodes(&exact);
    assert_eq!(exact_nodes.len(), tree.len());
    for (path, node) in &tree {
        assert_eq!(exact_nodes[path]["stat"], node["stat"], "{path}");
        assert_eq!(exact_nodes[path]["data"], node["data"], "{path}");
        assert_eq!(exact_nodes[path]["acl"], node["acl"], "{path}");
    }
    let raw = arborlog("snapshot dump DIR", dir.path()).exits(0).json();
    let raw_nodes = nodes(&raw);
    assert!(raw_nodes.keys().eq(tree.keys()));
    for (path, node) in &tree {
        for field in [
            "czxid",
            "mzxid",
            "pzxid",
            "ctime",
            "mtime",
            "version",
            "aversion",
            "ephemeralOwner",
            "dataLength",
        ] {
            assert_eq!(raw_nodes[path]["stat"][field], node["stat"][field], "{path} {field}");
        }
        assert_eq!(
            (&raw_nodes[path]["data"], &raw_nodes[path]["acl"]),
            (&node["data"], &node["acl"]),
            "{path}"
        );
    }
    assert_eq!((&raw_nodes["/app/t"]["kind"], &raw_nodes["/app/t"]["ttl_ms"]), (&"ttl".into(), &5000.into()));
    for lines in [&exact, &raw] {
        let sessions: Vec<_> = lines.iter().filter(|line| line["type"] == "session").collect();
        assert_eq!((sessions.len(), &sessions[0]["session"]), (1, &"0x77".into()));
    }
    let sessions = arborlog("tree dump --json --sessions DIR", dir.path()).exits(0).json();
    assert_eq!((&sessions[0]["timeout_ms"], &sessions[0]["ephemerals"][0]), (&4000.into(), &"/app/e".into()));
    all_unchanged(&before, dir.path());
}

#[test]
fn an_analysis_counts_what_is_there() {
    let dir = at_rest();
    let told = arborlog("snapshot analyse --json --top 3 DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!((&told["nodes"], &told["data_bytes"]), (&129.into(), &(100 * 8_000 + 20 * 5 + 3).into()));
    assert_eq!(
        (&told["ephemeral"], &told["container"], &told["ttl"], &told["sessions"]),
        (&1.into(), &1.into(), &1.into(), &1.into())
    );
    assert_eq!((&told["subtrees"][0]["path"], &told["subtrees"][0]["nodes"]), (&"/big".into(), &101.into()));
    assert_eq!((&told["subtrees"][1]["path"], &told["subtrees"][1]["nodes"]), (&"/app".into(), &24.into()));
    let largest: Vec<_> =
        told["largest"].as_array().unwrap().iter().map(|o| o["path"].as_str().unwrap()).collect();
    assert_eq!(largest, ["/big/n00", "/big/n01", "/big/n02"]);
    assert_eq!(
        (&told["most_children"][0]["path"], &told["most_children"][0]["children"]),
        (&"/big".into(), &100.into())
    );
    assert_eq!(told["most_children"][1]["path"], "/app");
    let sizes = told["data_sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|o| o["nodes"].as_u64().unwrap()).sum::<u64>(), 129);
    assert_eq!((&sizes[5]["up_to_bytes"], &sizes[5]["nodes"]), (&(16 << 10).into(), &100.into()));
    // At rest, the walk's figures are the tree's.
    let exact = arborlog("snapshot analyse --json --top 3 --exact DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!(exact, told);
    let text = arborlog("snapshot analyse --depth 2 DIR", dir.path()).exits(0).out;
    assert!(
        text.contains("23 children  /app\n") && text.contains("bytes          1 nodes  /big/n00\n"),
        "{text}"
    );
}
