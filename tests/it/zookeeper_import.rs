//! Directories that real servers wrote, read and held against what the servers told of them, and damaged copies.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use arborlog::zookeeper::{FindingKind, ImportOptions, ImportReport, import, read_state};
use arborlog::{DataTree, EngineOptions, Epoch, Error, ErrorKind, Owner, RestoreTarget, Zxid};
use serde_json::Value;

use super::zookeeper_state::{Expected, base16};

/// A recorded directory: where its data are, what a client was told, what ZooKeeper's restore gave.
const RECORDED: &[(&str, &str, &str)] = &[
    ("basic/data", "basic/expected.json", "basic/restore.json"),
    ("containers-ttl/data", "containers-ttl/expected.json", "containers-ttl/restore.json"),
    ("ephemerals/data", "ephemerals/expected.json", "ephemerals/restore.json"),
    ("epochs/node1", "epochs/restore-node1.json", "epochs/restore-node1.json"),
    ("gz-snapshot/data", "gz-snapshot/expected.json", "gz-snapshot/restore.json"),
    ("kill9/data", "kill9/expected.json", "kill9/restore.json"),
    ("multi/data", "multi/expected.json", "multi/restore.json"),
    ("old-follower-trunc/before", "", "old-follower-trunc/restore-before.json"),
    ("old-follower-trunc/synced", "", "old-follower-trunc/restore-synced.json"),
    (
        "old-follower-trunc/after",
        "old-follower-trunc/expected-after.json",
        "old-follower-trunc/restore-after.json",
    ),
    ("old-follower-trunc/newleader", "", "old-follower-trunc/restore-newleader.json"),
    ("quota/data", "quota/expected.json", "quota/restore.json"),
    ("snapcount/data", "snapcount/expected.json", "snapcount/restore.json"),
    ("snappy-snapshot/data", "snappy-snapshot/expected.json", "snappy-snapshot/restore.json"),
    ("fmt-36", "fmt-36/expected.json", ""),
    ("fmt-39", "fmt-39/expected.json", ""),
    ("fmt-39-gz", "fmt-39-gz/expected.json", ""),
];

pub(crate) fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zookeeper").join(name)
}

fn text_of(name: &str) -> String {
    fs::read_to_string(recorded(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn read(name: &str) -> (DataTree, ImportReport) {
    read_state(recorded(name), &ImportOptions::new()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Everything in which a state is not what the server told.
fn differences(tree: &DataTree, report: &ImportReport, expected: &str, restore: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !expected.is_empty() {
        found = Expected::parse(&text_of(expected)).differences(tree);
    }
    if restore.is_empty() {
        return found;
    }
    let json: Value = serde_json::from_str(&text_of(restore)).unwrap();
    let told = Expected::parse(&text_of(restore));
    if told.nodes.is_empty() {
        let only = Expected { nodes: Expected::parse(&text_of(expected)).nodes, ..told };
        found.extend(only.differences(tree));
    } else {
        found.extend(told.differences(tree));
    }
    let snapshot = format!("snapshot.{:x}", base16(json["snapshot_used_zxid"].as_str().unwrap()));
    if !report.snapshot.as_ref().is_some_and(|name| name.starts_with(&snapshot)) {
        found.push(format!("snapshot: {:?}, and the server took {snapshot}", report.snapshot));
    }
    if json["txns_replayed"] != report.replayed {
        found.push(format!("replayed {}, and the server {}", report.replayed, json["txns_replayed"]));
    }
    let bytes = json["approx_data_size"].as_u64().unwrap();
    if bytes != tree.approximate_bytes() {
        found.push(format!("{} bytes, and the server counted {bytes}", tree.approximate_bytes()));
    }
    found
}

#[test]
fn every_recorded_directory_is_the_state_that_its_server_told() {
    for (data, expected, restore) in RECORDED {
        let (tree, report) = read(data);
        assert_eq!(differences(&tree, &report, expected, restore), Vec::<String>::new(), "{data}");
        assert_eq!(report.findings, [], "{data}");
        assert!(report.digests_held > 0, "{data}: no digest was compared");
    }
}

#[test]
fn the_largest_node_of_a_server_is_read() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&recorded("bignode/data.tar.gz"), dir.path());
    let (tree, report) = read_state(dir.path().join("data"), &ImportOptions::new()).unwrap();
    // The client told its length only.
    let found = differences(&tree, &report, "bignode/expected.json", "bignode/restore.json");
    let others: Vec<&String> = found.iter().filter(|line| !line.starts_with("/max: data:")).collect();
    assert!(others.is_empty(), "{} differences", others.len());
    assert_eq!(tree.get("/max").unwrap().data().map(<[u8]>::len), Some(1_048_524));
}

/// The files of a gzipped tar.
fn unpack(archive: &Path, dest: &Path) {
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(archive).unwrap()).read_to_end(&mut tar).unwrap();
    let mut at = 0;
    while at < tar.len() && tar[at] != 0 {
        let word = |from: usize, to: usize| {
            let field = &tar[at + from..at + to];
            String::from_utf8(field.iter().take_while(|b| **b != 0).copied().collect()).unwrap()
        };
        let (name, len) = (word(0, 100), usize::from_str_radix(word(124, 136).trim(), 8).unwrap());
        if tar[at + 156] == b'5' {
            fs::create_dir_all(dest.join(&name)).unwrap();
        } else {
            fs::write(dest.join(&name), &tar[at + 512..at + 512 + len]).unwrap();
        }
        at += 512 + len.next_multiple_of(512);
    }
}

#[test]
fn fz_01_older_fuzzy_snapshots_of_a_server_give_the_same_state() {
    let (newest, _) = read("snapcount/data");
    for removed in [1, 2] {
        let dir = copy("snapcount/data");
        for name in ["snapshot.e08", "snapshot.dca"].iter().take(removed) {
            fs::remove_file(dir.path().join("version-2").join(name)).unwrap();
        }
        let (tree, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
        let replayed = [105, 431][removed - 1];
        assert_eq!((tree.digest(), report.replayed), (newest.digest(), replayed));
        assert_eq!(
            differences(&tree, &report, "snapcount/expected.json", ""),
            Vec::<String>::new(),
            "{removed} removed"
        );
    }
}

#[test]
fn what_a_killed_server_had_told_its_clients_is_there() {
    let (tree, _) = read("kill9/data");
    let acked: Value = serde_json::from_str(&text_of("kill9/acked.json")).unwrap();
    let ops = acked["ops"].as_array().unwrap();
    assert_eq!(ops.len(), 920);
    for op in ops {
        let (path, zxid) = (op[1].as_str().unwrap(), op[2].as_u64().unwrap());
        let node = tree.get(path).unwrap_or_else(|| panic!("{path} is lost"));
        assert!(node.stored().mzxid.get() >= zxid, "{path}");
    }
}

/// A copy of a recorded directory, to be damaged.
pub(crate) fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = recorded(name).join("version-2");
    let to = dir.path().join("version-2");
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    dir
}

fn edit(dir: &tempfile::TempDir, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = dir.path().join("version-2").join(name);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn refused(dir: &tempfile::TempDir) -> Error {
    read_state(dir.path(), &ImportOptions::new()).map(|(_, report)| report).unwrap_err()
}

/// The offsets of the entries of a log, and its end.
fn entries(bytes: &[u8]) -> Vec<usize> {
    let mut offsets = vec![16];
    loop {
        let at = *offsets.last().unwrap();
        let len = u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap());
        if len == 0 {
            return offsets;
        }
        offsets.push(at + 13 + len as usize);
    }
}

/// How an entry is damaged.
type Damage = fn(&mut [u8]);

const DAMAGES: &[(&str, Damage)] = &[
    ("checksum", |entry| entry[7] ^= 1),
    ("payload", |entry| entry[30] ^= 0x10),
    ("no length", |entry| entry[8..12].fill(0)),
    ("negative length", |entry| entry[8] = 0x80),
    ("length beyond the file", |entry| entry[8] = 0x7f),
    ("end", |entry| *entry.last_mut().unwrap() = 0),
    ("zeros", |entry| entry.fill(0)),
];

#[test]
fn ix_05_damage_before_other_entries_is_refused_at_its_place_and_salvaged_up_to_there() {
    for (what, damage) in DAMAGES {
        let dir = copy("multi/data");
        let mut at = 0;
        edit(&dir, "log.1", |bytes| {
            let offsets = entries(bytes);
            at = offsets[20];
            damage(&mut bytes[at..offsets[21]]);
        });
        let error = refused(&dir);
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "zk_log_damage"), "{what}: {error}");
        assert_eq!(
            (error.at().file.as_deref(), error.at().offset),
            (Some("log.1"), Some(at as u64)),
            "{what}"
        );
        let (_, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
        assert_eq!((report.last_zxid, report.replayed), (Zxid::new(20), 20), "{what}");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::LogDamage), "{what}");
    }
}

#[test]
fn ix_05_the_last_entry_is_torn_however_it_is_damaged() {
    for (what, damage) in DAMAGES {
        let dir = copy("multi/data");
        edit(&dir, "log.1", |bytes| {
            let offsets = entries(bytes);
            let last = offsets.len() - 2;
            damage(&mut bytes[offsets[last]..offsets[last + 1]]);
        });
        let (tree, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
        assert_eq!(tree.last_zxid(), Zxid::new(0x1b), "{what}");
        let torn = report.findings.iter().filter(|f| f.kind == FindingKind::TornTail).count();
        // Zeros cannot be told from those that a server writes ahead.
        assert_eq!(torn, usize::from(*what != "zeros"), "{what}: {:?}", report.findings);
    }
}

#[test]
fn a_log_that_ends_anywhere_is_torn_there() {
    let whole = fs::read(recorded("multi/data/version-2/log.1")).unwrap();
    let offsets = entries(&whole);
    let dir = copy("multi/data");
    for end in (0..=offsets[4]).chain(offsets[5] - 2..=offsets[5]) {
        fs::write(dir.path().join("version-2/log.1"), &whole[..end]).unwrap();
        let (tree, _) =
            read_state(dir.path(), &ImportOptions::new()).unwrap_or_else(|e| panic!("{end}: {e}"));
        let entries = offsets[1..].iter().filter(|offset| **offset <= end).count();
        assert_eq!(tree.last_zxid(), Zxid::new(entries as u64), "cut at {end}");
    }
}

#[test]
fn no_byte_of_a_snapshot_can_change_unnoticed() {
    let whole = fs::read(recorded("fmt-39/version-2/snapshot.20")).unwrap();
    let dir = copy("fmt-39");
    let expected = read("fmt-39").0.digest();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        fs::write(dir.path().join("version-2/snapshot.20"), bytes).unwrap();
        let (tree, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
        // The one before and the whole log take its place.
        assert_eq!((report.snapshot.as_deref(), tree.digest()), (Some("snapshot.0"), expected), "byte {at}");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::SnapshotSkipped), "byte {at}");
    }
    for len in 0..whole.len() {
        fs::write(dir.path().join("version-2/snapshot.20"), &whole[..len]).unwrap();
        let (_, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
        // Where a trailer ends, a file of an older server ends.
        let is_whole = [54, 21].contains(&(whole.len() - len));
        assert_eq!(report.snapshot.as_deref() == Some("snapshot.20"), is_whole, "length {len}");
    }
}

#[test]
fn a_damaged_snapshot_that_no_log_makes_up_for_is_refused() {
    let dir = copy("gz-snapshot/data");
    edit(&dir, "snapshot.1b3.gz", |bytes| bytes.truncate(bytes.len() - 9));
    fs::remove_file(dir.path().join("version-2/log.1b4")).unwrap();
    let (_, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
    assert_eq!(report.last_zxid, Zxid::new(0x1b3));
    edit(&dir, "log.1", |bytes| {
        let offsets = entries(bytes);
        bytes.truncate(offsets[400]);
    });
    let error = refused(&dir);
    assert_eq!((error.code(), error.at().file.as_deref()), ("zk_gap", Some("log.1")), "{error}");
    let told = error.to_string();
    assert!(told.contains("snapshot.1b3.gz") && told.contains("[zk_snapshot]"), "{told}");
    let (_, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
    assert_eq!(report.last_zxid, Zxid::new(400));
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::LogDamage), "{:?}", report.findings);
}

#[test]
fn ix_01_the_log_that_begins_before_the_snapshot_is_read_and_a_missing_one_is_a_gap() {
    let dir = copy("fmt-36");
    let (_, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
    assert_eq!((report.snapshot.as_deref(), report.replayed), (Some("snapshot.20"), 4));
    let dir = copy("snapcount/data");
    fs::remove_file(dir.path().join("version-2/log.def")).unwrap();
    // It held what stands behind snapshot.e08 too.
    let error = refused(&dir);
    assert_eq!((error.code(), error.at().file.as_deref()), ("zk_gap", Some("log.e13")), "{error}");
    let dir = copy("snapcount/data");
    fs::copy(dir.path().join("version-2/log.e13"), dir.path().join("version-2/log.e14")).unwrap();
    assert_eq!(refused(&dir).code(), "zk_order");
}

#[test]
fn ix_03_no_list_and_the_open_list_stay_apart_and_missing_lists_are_refused() {
    let (tree, _) = read("basic/data");
    assert!(tree.get("/").unwrap().acl().is_empty());
    assert!(!tree.get("/zookeeper/config").unwrap().acl().is_empty());
    // The table's number 2 becomes one that no node asks for.
    let dir = copy("fmt-39");
    fs::remove_file(dir.path().join("version-2/snapshot.0")).unwrap();
    edit(&dir, "snapshot.20", |bytes| reseal(bytes, |body| replace_acl_id(body, 2, 77)));
    let error = refused(&dir);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "zk_acl"), "{error}");
    let (tree, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::AclMissing));
    let closed = tree.get("/a").unwrap().acl();
    assert!(closed.iter().all(|e| e.scheme != "world"), "nobody gets in: {closed:?}");
}

/// Gives the list of a number in the table another number.
fn replace_acl_id(body: &mut [u8], from: i64, to: i64) {
    let sessions = usize::try_from(i32::from_be_bytes(body[16..20].try_into().unwrap())).unwrap();
    let table = 20 + sessions * 12;
    let at = (table..body.len() - 8).find(|at| body[*at..*at + 8] == from.to_be_bytes()).unwrap();
    body[at..at + 8].copy_from_slice(&to.to_be_bytes());
}

/// Changes a snapshot of 3.9 before its checksums, and makes these right.
fn reseal(bytes: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let first = bytes.len() - 54 - 13;
    change(&mut bytes[..first]);
    for at in [first, first + 33, first + 54] {
        let sum = u64::from(adler2::adler32_slice(&bytes[..at]));
        bytes[at..at + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

#[test]
fn fz_13_a_snapshot_with_a_node_whose_parent_is_not_in_it_is_passed_over() {
    let dir = copy("fmt-39");
    let expected = read("fmt-39").0.digest();
    edit(&dir, "snapshot.20", |bytes| {
        reseal(bytes, |body| {
            // The first path below another one: its parent's name becomes one that is nowhere.
            let at = body.windows(3).position(|w| w == b"/a/").expect("a node below /a");
            body[at + 1] = b'!';
        });
    });
    let (tree, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
    assert_eq!((report.snapshot.as_deref(), tree.digest()), (Some("snapshot.0"), expected));
    let what = &report.findings[0].what;
    assert!(what.contains("1 node has no parent: /!/"), "{what}");
}

#[test]
fn a_snapshot_that_is_ahead_of_the_logs_is_refused() {
    // snapshot.e08 has effects up to 0xe0b.
    let dir = copy("snapcount/data");
    let version = dir.path().join("version-2");
    fs::remove_file(version.join("log.e13")).unwrap();
    edit(&dir, "log.def", |bytes| {
        let offsets = entries(bytes);
        // 0xdef is the first, so this one is 0xe0a.
        bytes.truncate(offsets[0xe0a - 0xdef + 1]);
    });
    let error = refused(&dir);
    assert_eq!(error.code(), "zk_snapshot_ahead", "{error}");
    let (_, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
    assert_eq!(report.last_zxid, Zxid::new(0xe0a));
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::SnapshotAhead));
}

#[test]
fn a_tree_with_another_digest_than_the_server_had_is_refused() {
    let dir = copy("fmt-39");
    fs::remove_file(dir.path().join("version-2/snapshot.0")).unwrap();
    edit(&dir, "snapshot.20", |bytes| {
        reseal(bytes, |body| {
            let mzxid = body.len() - 5 - 60 + 8;
            body[mzxid + 7] ^= 1;
        });
    });
    let error = refused(&dir);
    assert_eq!(error.code(), "zk_digest", "{error}");
    let (_, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
    assert_eq!(report.findings.iter().filter(|f| f.kind == FindingKind::Digest).count(), 1);
}

#[test]
fn files_that_are_no_servers_are_told_and_not_read() {
    let dir = copy("fmt-39");
    let version = dir.path().join("version-2");
    for name in ["log.2.bak", "snapshot.22.tmp", "log.1A", "notes.txt"] {
        fs::write(version.join(name), b"?").unwrap();
    }
    let (_, report) = read_state(dir.path(), &ImportOptions::new()).unwrap();
    let foreign = report.findings.iter().filter(|f| f.kind == FindingKind::ForeignFile);
    assert_eq!(foreign.count(), 4, "{:?}", report.findings);
    fs::rename(version.join("snapshot.0"), version.join("old.0")).unwrap();
    fs::rename(version.join("snapshot.20"), version.join("old.20")).unwrap();
    assert_eq!(refused(&dir).code(), "zk_no_snapshot");
}

#[test]
fn a_state_before_the_newest_is_found_by_zxid_and_by_time() {
    let state = |target| read_state(recorded("snapcount/data"), &ImportOptions::new().target(target));
    let (_, newest) = state(RestoreTarget::Newest).unwrap();
    for raw in [0xcae_u64, 0xdca, 0xe0b, 0xe33] {
        let (tree, report) = state(RestoreTarget::Zxid(Zxid::new(raw))).unwrap();
        assert_eq!((tree.last_zxid().get(), report.findings.len()), (raw, report.findings.len()));
        assert!(report.digests_held > 0, "{raw:x}");
    }
    // snapshot.e08 has effects up to 0xe0b, so the one before is taken.
    let (_, report) = state(RestoreTarget::Zxid(Zxid::new(0xe0a))).unwrap();
    assert_eq!(report.snapshot.as_deref(), Some("snapshot.dca"));
    for raw in [0xc84_u64, 0xcad, 0xe34] {
        let error = state(RestoreTarget::Zxid(Zxid::new(raw))).map(|(_, report)| report).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInLog, "{raw:x}: {error}");
    }
    let time_ms = newest.source_time_ms.unwrap();
    let (_, report) = state(RestoreTarget::TimeMs(time_ms)).unwrap();
    assert_eq!(report.last_zxid, newest.last_zxid);
    let (_, report) = state(RestoreTarget::TimeMs(time_ms - 1)).unwrap();
    assert!(report.last_zxid < newest.last_zxid && report.source_time_ms.unwrap() < time_ms);
    assert_eq!(state(RestoreTarget::TimeMs(0)).map(|(_, r)| r).unwrap_err().kind(), ErrorKind::NotInLog);
}

#[test]
fn an_engine_goes_on_where_the_server_ended() {
    for (data, _, _) in RECORDED {
        let (tree, read) = read(data);
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions::new();
        let mut report = import(recorded(data), dir.path(), &options, &ImportOptions::new()).unwrap();
        assert!(report.database_id.take().is_some(), "{data}");
        assert_eq!(report, read, "{data}");
        let (engine, opened) = options.open(dir.path()).unwrap();
        assert_eq!((opened.last_zxid, opened.digest), (tree.last_zxid(), tree.digest()), "{data}");
        assert_eq!(engine.accepted_epoch(), report.accepted, "{data}");
        engine.close().unwrap();
        let again = import(recorded(data), dir.path(), &options, &ImportOptions::new()).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Invalid, "{again}");
    }
    assert_eq!(read("epochs/node1").1.accepted, Epoch::new(3));
}

#[test]
fn without_sessions_their_nodes_go_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions::new();
    let what = ImportOptions::new().sessions(false);
    let report = import(recorded("ephemerals/data"), dir.path(), &options, &what).unwrap();
    assert_eq!((report.closed_sessions, report.sessions), (1, 0));
    assert_eq!((report.source_zxid, report.last_zxid), (Zxid::new(0x19), Zxid::new(0x1a)));
    let (engine, _) = options.open(dir.path()).unwrap();
    let tree = engine.tree();
    assert!(tree.get("/e/A1").is_none() && tree.get("/svc").is_some());
    drop(tree);
    engine.close().unwrap();
}

#[test]
fn a_refused_import_leaves_nothing_in_the_way_of_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = copy("multi/data");
    edit(&damaged, "log.1", |bytes| bytes[40] ^= 1);
    let options = EngineOptions::new();
    import(damaged.path(), dir.path(), &options, &ImportOptions::new()).unwrap_err();
    import(recorded("multi/data"), dir.path(), &options, &ImportOptions::new()).unwrap();
}

#[test]
fn times_to_live_are_sessions_of_a_server_that_knows_none() {
    let (tree, _) = read("fmt-39");
    let paths: Vec<String> = tree.descendants("/", None).map(|n| n.path()).collect();
    let ttl = paths.iter().find(|p| matches!(tree.get(p).unwrap().owner(), Owner::Ttl { .. })).unwrap();
    let dir = copy("fmt-39");
    let what = ImportOptions::new().extended_types(false);
    let (tree, report) = read_state(dir.path(), &what).unwrap();
    assert!(matches!(tree.get(ttl).unwrap().owner(), Owner::Session(_)));
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::OwnerWithoutSession));
}

/// Test data of the Apache project, which is used where it is.
fn third_party(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("ARBORLOG_ZOOKEEPER_DATA") else {
        eprintln!("skipped: ARBORLOG_ZOOKEEPER_DATA does not tell where ZooKeeper's own test data are");
        return None;
    };
    Some(Path::new(&root).join(name))
}

#[test]
fn a_directory_of_the_oldest_servers_is_read_past_its_damaged_snapshot() {
    let Some(path) = third_party("invalidsnap") else { return };
    let (tree, report) = read_state(&path, &ImportOptions::new()).unwrap();
    assert_eq!((report.snapshot.as_deref(), report.replayed), (Some("snapshot.639"), 518));
    assert_eq!((tree.last_zxid().get(), tree.digest(), tree.len()), (0x83f, 4_535_416_136_165, 2113));
    assert!(tree.get("/9/9/8").is_some());
    let skipped = report.findings.iter().find(|f| f.kind == FindingKind::SnapshotSkipped).unwrap();
    assert!(skipped.what.contains("977468229"), "{skipped}");
}

#[test]
fn lengths_beyond_the_limit_are_refused_as_servers_do() {
    let states =
        [("create", 3, 4, 2_700_927_298), ("set", 4, 4, 4_726_096_774), ("snapshot", 3, 4, 2_977_255_962)];
    for (name, zxid, nodes, digest) in states {
        let Some(path) = third_party(&format!("buffersize/{name}")) else { return };
        let (tree, _) = read_state(&path, &ImportOptions::new()).unwrap();
        assert_eq!((tree.last_zxid().get(), tree.len(), tree.digest()), (zxid, nodes, digest), "{name}");
        let error = read_state(&path, &ImportOptions::new().length_limit(1124)).map(|(_, r)| r).unwrap_err();
        assert_eq!(error.code(), "zk_length", "{name}: {error}");
    }
}
