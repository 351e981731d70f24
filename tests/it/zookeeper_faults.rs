//! Faults of real systems, as files of a ZooKeeper server that are imported.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use arborlog::zookeeper::{
    Compression, FindingKind, ImportOptions, ImportReport, LogFile, SnapshotFile, read_state,
};
use arborlog::{DataTree, Error, ErrorKind, RestoreTarget, Zxid};

use super::allocations::peak_bytes;
use super::zookeeper_import::{copy, recorded};
use super::zookeeper_made::*;

fn every_field(line: &str) -> String {
    line.to_owned()
}

fn refused(ops: Vec<Op>) -> Error {
    state_of(ops).map(|(_, report)| report).unwrap_err()
}

#[test]
fn fz_04_fz_05_an_import_keeps_counts_of_children_wherever_the_snapshot_was() {
    let history = of_one(vec![
        create("/p", 31, false, 1),
        create("/p/1", 31, false, 1),
        create("/p/2", 31, false, 2),
        delete("/p/1"),
        create("/p/3", 31, false, 3),
        set("/p/3", b"x", 1),
        delete("/p/2"),
        create("/p/1", 31, false, 4),
    ]);
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

#[test]
fn fz_07_fz_08_fz_14_an_import_keeps_sessions_and_who_owns_what() {
    let (one, two) = (0x1000_0001, 0x2000_0002);
    let history = vec![
        (two, open_session()),
        (one, open_session()),
        (one, create("/p", 31, false, 1)),
        (one, create("/q", 31, false, 2)),
        (one, create("/p/e", 31, true, 1)),
        (one, create("/q/e", 31, true, 1)),
        (one, close_session(Some(&["/p/e", "/q/e"]))),
        (two, create("/p/e", 31, true, 2)),
        (two, set("/p/e", b"two", 1)),
    ];
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

/// Of a close without its list, as it was logged before 3.6, when nothing had a digest, a parent's pzxid cannot be told.
#[test]
fn fz_07_an_import_makes_the_same_nodes_of_a_close_without_its_list() {
    let one = 0x1000_0001;
    let history = vec![
        (one, open_session()),
        (one, create("/p", 31, false, 1)),
        (one, create("/p/e", 31, true, 1)),
        (one, set("/p/e", b"x", 1)),
        (one, close_session(None)),
    ];
    every_fuzzy_snapshot_is_the_live_state(&history, false, |line| match line.split_once(" StoredStat") {
        Some((path, _)) => path.to_owned(),
        None => line.split(" 0x").next().unwrap_or("").to_owned(),
    });
}

#[test]
fn fz_10_an_import_gives_no_node_the_acl_of_another() {
    let history = of_one(vec![
        create("/a0", 6, false, 1),
        delete("/a0"),
        create("/a1", 7, false, 2),
        create("/a2", 8, false, 3),
        create("/a3", 7, false, 4),
        set_acl("/a2", 9, 1),
        delete("/a1"),
        create("/a1", 8, false, 5),
    ]);
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

#[test]
fn fz_02_fz_11_fz_13_an_import_has_no_orphan_and_the_digest_of_its_content() {
    let history = of_one(vec![
        create("/a", 31, false, 1),
        create("/a/b", 31, false, 1),
        multi(&[
            create("/c", 31, false, 2),
            create("/c/d", 31, false, 1),
            set("/a/b", b"m", 1),
            delete("/a/b"),
        ]),
        delete("/a"),
        create("/a", 31, false, 3),
        multi(&[delete("/c/d"), create("/a/x", 31, false, 1), set_acl("/a", 1, 1)][..2]),
        create("/a/b", 31, false, 2),
    ]);
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

#[test]
fn fz_17_totals_of_an_import_are_a_recount() {
    let limits = "/zookeeper/quota/a/zookeeper_limits";
    let history = of_one(vec![
        create("/a", 31, false, 1),
        create("/zookeeper/quota/a", 31, false, 1),
        create(limits, 31, false, 1),
        set(limits, b"count=9,bytes=90", 1),
        create("/zookeeper/quota/a/zookeeper_stats", 31, false, 2),
        create("/a/b", 31, false, 1),
        set("/a/b", b"longer than before", 1),
    ]);
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

/// A learner that was sent the leader's state names its snapshot by the epoch, and has the digest of the one before.
#[test]
fn fz_16_the_snapshot_of_a_learner_at_the_beginning_of_an_epoch_is_taken() {
    let (tree, _) = state_of(vec![create("/a", 31, false, 1)]).unwrap();
    let mut writer = SnapshotWriter::new(&tree, &tree);
    tree.get("/").into_iter().chain(tree.descendants("/", None)).for_each(|node| writer.node(&node));
    let snapshot = writer.end(Some(&tree), Some(1 << 32));
    let behind = log((1 << 32) + 1, &of_one(vec![create("/b", 31, false, 2)]));
    let dir = directory(&[("snapshot.100000000", &snapshot), ("log.100000001", &behind)]);
    let (read, report) = state(dir.path()).unwrap();
    assert_eq!((read.last_zxid().get(), report.findings.len()), ((1 << 32) + 1, 0), "{:?}", report.findings);
    assert!(read.get("/a").is_some() && read.get("/b").is_some());
}

#[test]
fn fz_13_txns_that_cannot_be_done_and_are_not_explained_are_refused() {
    let refused_as = |ops: Vec<Op>, first: u64| {
        let error = refused(ops);
        assert_eq!((error.code(), error.kind()), ("zk_replay", ErrorKind::Corrupt), "{error}");
        assert_eq!(error.at().zxid, Some(Zxid::new(first)), "{error}");
        // Each entry is one of many bytes.
        assert_eq!(error.at().file.as_deref(), Some("log.1"), "{error}");
        assert!(error.at().offset.is_some_and(|offset| (offset > 16) == (first > 1)), "{error}");
    };
    let a = || create("/a", 31, false, 1);
    refused_as(vec![a(), create("/nope/b", 31, false, 1)], 2);
    refused_as(vec![a(), delete("/zzz")], 2);
    refused_as(vec![a(), a()], 2);
    refused_as(vec![a(), set("/qq", b"", 1), a()], 2);
    refused_as(vec![a(), multi(&[set("/qq", b"", 1)])], 2);
    // What a later deletion explains may be.
    state_of(vec![a(), set("/a", b"", 1), delete("/a")]).unwrap();
    // Behind another snapshot, a deletion may have been in it, and nothing else.
    let old = snapshot_of(&DataTree::new());
    let behind = |ops: Vec<Op>| {
        let bytes = log(8, &of_one(ops));
        state(directory(&[("snapshot.7", &old), ("log.8", &bytes)]).path())
    };
    behind(vec![set("/gone", b"", 1), create("/gone/x", 31, false, 1), delete("/gone/x"), delete("/gone")])
        .unwrap();
    let error =
        behind(vec![create("/gone/x", 31, false, 1), close_session(None)]).map(|(_, r)| r).unwrap_err();
    assert_eq!(error.code(), "zk_replay", "{error}");
    let what = ImportOptions::new().salvage(true);
    let bytes = log(8, &of_one(vec![create("/gone/x", 31, false, 1)]));
    let (_, report) =
        read_state(directory(&[("snapshot.7", &old), ("log.8", &bytes)]).path(), &what).unwrap();
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::Replay), "{:?}", report.findings);
}

#[test]
fn fz_13_a_node_that_a_multi_makes_and_deletes_may_be_there_again() {
    let history = of_one(vec![
        create("/a", 31, false, 1),
        multi(&[create("/x", 31, false, 2), set("/a", b"1", 1), delete("/x")]),
        set("/a", b"2", 2),
        create("/x", 31, false, 3),
        set("/x", b"3", 1),
        multi(&[delete("/x"), create("/x", 31, false, 4)]),
        set("/a", b"4", 3),
    ]);
    every_fuzzy_snapshot_is_the_live_state(&history, true, every_field);
}

/// Old servers do not list what a session's end deletes: each end explains all that was missed before it, but parents.
#[test]
fn fz_13_the_ends_of_many_sessions_explain_what_was_missed_before_them() {
    let ops = (0..20_000).flat_map(|n| [set(&format!("/{n}/x"), b"", 1), close_session(None)]);
    let mut ops: Vec<Op> = ops.collect();
    // These are explained by nothing.
    ops.splice(0..0, (0..20_000).map(|n| create(&format!("/{n}/x"), 31, false, 1)));
    let bytes = log(8, &of_one(ops));
    let dir = directory(&[("snapshot.7", &snapshot_of(&DataTree::new())), ("log.8", &bytes)]);
    let (_, report) = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap();
    let finding = report.findings.iter().find(|f| f.kind == FindingKind::Replay).unwrap();
    assert!(finding.what.contains("20000 txns") && finding.what.contains("0x8"), "{finding}");
}

#[test]
fn ix_01_a_renamed_log_is_not_left_out() {
    let ops: Vec<Op> = (1..=6).map(|n| create(&format!("/{n}"), 31, false, n)).collect();
    let (tree, _) = state_of(ops[..4].to_vec()).unwrap();
    let part = |from: usize| log(from as u64 + 1, &of_one(ops.clone())[from..from + 2]);
    let (snapshot, one, third, five) = (snapshot_of(&tree), part(0), part(2), part(4));
    let with = |name: &str| {
        let files = [("snapshot.4", &snapshot[..]), ("log.1", &one), ("log.3", &third), (name, &five)];
        state(directory(&files).path())
    };
    assert_eq!(with("log.5").unwrap().0.last_zxid(), Zxid::new(6));
    let error = with("log.2").map(|(_, report)| report).unwrap_err();
    assert_eq!((error.code(), error.at().file.as_deref()), ("zk_order", Some("log.2")), "{error}");
}

#[test]
fn ix_01_a_directory_without_its_logs_is_refused_unless_it_is_to_have_none() {
    let dir = copy("fmt-39");
    fs::remove_file(dir.path().join("version-2/log.1")).unwrap();
    let error = state(dir.path()).map(|(_, report)| report).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, "zk_no_log"), "{error}");
    let version = dir.path().join("version-2");
    assert!(error.to_string().contains(&format!("no log in {}:", version.display())), "{error}");
    // Which of two places is the one without.
    let empty = tempfile::tempdir().unwrap();
    let what = ImportOptions::new().data_log_dir(empty.path());
    for (data, snapshot) in [(dir.path(), None), (empty.path(), Some(empty.path()))] {
        let error = read_state(data, &what).map(|(_, report)| report).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(&format!("no log in {}", empty.path().display())), "{told}");
        let of_snapshot = snapshot.map(|dir| format!("no snapshot in {}", dir.display()));
        assert!(of_snapshot.is_none_or(|of_snapshot| told.contains(&of_snapshot)), "{told}");
    }
    let (_, report) = read_state(dir.path(), &ImportOptions::new().snapshot_alone(true)).unwrap();
    assert_eq!(report.last_zxid, Zxid::new(0x20));
}

#[test]
fn ix_01_a_link_is_no_reason_to_leave_a_file_out() {
    for name in ["log.1", "snapshot.20"] {
        let dir = copy("fmt-39");
        let (version, elsewhere) = (dir.path().join("version-2"), dir.path().join("elsewhere"));
        fs::rename(version.join(name), &elsewhere).unwrap();
        symlink(&elsewhere, version.join(name)).unwrap();
        let error = state(dir.path()).map(|(_, report)| report).unwrap_err();
        assert_eq!((error.code(), error.at().file.as_deref()), ("zk_irregular", Some(name)), "{error}");
        // So it is of one file by itself.
        let link = version.join(name);
        let error = match name {
            "log.1" => LogFile::open(&link, 1 << 20).map(drop).unwrap_err(),
            _ => SnapshotFile::open(&link, 1 << 20).map(drop).unwrap_err(),
        };
        assert_eq!((error.code(), error.at().file.as_deref()), ("zk_irregular", Some(name)), "{error}");
    }
}

#[test]
fn ix_01_a_renamed_snapshot_is_not_believed() {
    for data in ["fmt-39", "fmt-36"] {
        let dir = copy(data);
        let version = dir.path().join("version-2");
        let (whole, _) = state(&recorded(data)).unwrap();
        fs::copy(version.join("snapshot.20"), version.join("snapshot.24")).unwrap();
        let (tree, report) = state(dir.path()).unwrap();
        assert_eq!(
            (report.snapshot.as_deref(), tree.digest()),
            (Some("snapshot.20"), whole.digest()),
            "{data}"
        );
        let skipped = report.findings.iter().find(|f| f.kind == FindingKind::SnapshotSkipped).unwrap();
        assert!(skipped.what.contains("[zk_order]"), "{skipped}");
        // Beyond the logs' end, they would have to reach as far: the refusal says which file it is, and that it was renamed.
        fs::rename(version.join("snapshot.24"), version.join("snapshot.99")).unwrap();
        let error = state(dir.path()).map(|(_, report)| report).unwrap_err();
        assert_eq!((error.code(), error.at().file.as_deref()), ("zk_gap", Some("log.1")), "{error}");
        let told = error.to_string();
        let why = "before snapshot.99 of 0x99, which cannot be used: its name tells 0x99";
        assert!(told.contains(why) && told.contains("it was renamed [zk_order]"), "{told}");
    }
}

/// Before 3.6, nothing in a snapshot tells its zxid.
#[test]
fn ix_01_a_renamed_snapshot_of_an_old_server_is_told_by_the_txns_that_it_does_not_have() {
    let ops = |n: i32| -> Vec<Op> {
        (1..=n).map(|n| create(&format!("/{n}"), 31, false, n)).chain([set("/1", b"x", 1)]).collect()
    };
    let (old, bytes) = (state_of(ops(2)).unwrap().0, log(1, &of_one(ops(6))));
    let named = |name: &str, tree: &DataTree| {
        let dir = directory(&[(name, &snapshot_of(tree)), ("log.1", &bytes)]);
        (state(dir.path()).map(|(_, report)| report), dir)
    };
    let reaches_behind =
        |report: &ImportReport| report.findings.iter().any(|finding| finding.kind == FindingKind::LogsBehind);
    // Renamed, within what the logs have and behind it.
    for name in ["snapshot.5", "snapshot.7", "snapshot.9"] {
        let (read, dir) = named(name, &old);
        let error = read.unwrap_err();
        assert_eq!(
            (error.code(), error.at().file.as_deref()),
            ("zk_order", Some("log.1")),
            "{name}: {error}"
        );
        let salvaged = read_state(dir.path(), &ImportOptions::new().salvage(true)).unwrap().1;
        assert!(salvaged.findings.iter().any(|f| f.kind == FindingKind::Renamed), "{name}");
    }
    // What a leader sends is beyond the follower's logs: told, and taken.
    let sent = state_of(ops(8)).unwrap().0;
    let report = named("snapshot.9", &sent).0.unwrap();
    assert!(reaches_behind(&report), "{:?}", report.findings);
    assert_eq!(report.findings[0].at.file.as_deref(), Some("snapshot.9"));
    assert!(!reaches_behind(&named("snapshot.7", &state_of(ops(6)).unwrap().0).0.unwrap()));
    // A leader's at the beginning of its epoch has all that the logs have.
    assert!(!reaches_behind(&named("snapshot.100000000", &state_of(ops(6)).unwrap().0).0.unwrap()));
    // Of the epoch before, the log may have what was never committed.
    let report = named("snapshot.100000000", &old).0.unwrap();
    assert!(reaches_behind(&report), "{:?}", report.findings);
}

#[test]
fn ix_05_damage_of_old_logs_is_of_no_concern_for_a_time() {
    let history: Vec<Op> = (1..=9).map(|n| create(&format!("/{n}"), 31, false, n)).collect();
    let (tree, _) = state_of(history[..4].to_vec()).unwrap();
    let (mut old, new) = (log(1, &of_one(history[..4].to_vec())), log(5, &of_one(history[4..].to_vec())));
    old[40] ^= 1;
    let dir = directory(&[("snapshot.4", &snapshot_of(&tree)), ("log.1", &old), ("log.5", &new)]);
    // A txn's time is its zxid.
    let at = |time_ms, salvage| {
        let what = ImportOptions::new().target(RestoreTarget::TimeMs(time_ms)).salvage(salvage);
        read_state(dir.path(), &what).map(|(_, report)| report.last_zxid.get())
    };
    assert_eq!(at(7, false).unwrap(), 7);
    assert_eq!(at(99, false).unwrap(), 9);
    assert_eq!(at(3, false).unwrap_err().code(), "zk_log_damage");
}

#[test]
fn a_target_between_two_epochs_is_the_end_of_the_first() {
    let last = 0x1_0000_001c;
    let target = RestoreTarget::Zxid(Zxid::new(last + 1));
    let dir = recorded("old-follower-trunc/after");
    let (tree, _) = read_state(dir, &ImportOptions::new().target(target)).unwrap();
    assert_eq!(tree.last_zxid().get(), last);
}

#[test]
fn tx_01_an_import_reads_a_check_by_itself_and_refuses_what_nobody_knows() {
    let (tree, _) = state_of(vec![create("/a", 31, false, 1), check("/a", 7), set("/a", b"x", 1)]).unwrap();
    assert_eq!(tree.get("/a").unwrap().stored().mzxid, Zxid::new(3));
    for kind in [-12, -2, 3, 4, 17, 99, 1000] {
        let error = refused(vec![create("/a", 31, false, 1), (kind, vec![0; 64])]);
        assert_eq!((error.code(), error.at().zxid), ("zk_txn", Some(Zxid::new(2))), "{kind}: {error}");
    }
}

#[test]
fn tx_03_an_import_goes_on_past_the_ends_of_versions() {
    let path = "/a";
    let versions = [i32::MAX - 1, i32::MAX, i32::MIN, -2, 0, 1];
    let sets = versions.iter().map(|version| set(path, b"x", *version));
    let ops: Vec<Op> = [create(path, 31, false, i32::MAX)].into_iter().chain(sets).collect();
    for (count, version) in (2..).zip(versions) {
        let (tree, _) = state_of(ops[..count].to_vec()).unwrap();
        assert_eq!(tree.get(path).unwrap().stored().version, version);
    }
    let (tree, _) = state_of(ops).unwrap();
    let (again, _) =
        state(directory(&[("snapshot.7", &snapshot_of(&tree)), ("log.8", &log(8, &[]))]).path()).unwrap();
    assert_eq!(again.digest(), tree.digest());
}

#[test]
fn tx_05_an_import_refuses_paths_that_are_none() {
    for path in ["", "a", "//", "//a", "/a/", "/a//b", "/\0"] {
        let made = state_of(vec![create("/a", 31, false, 1), create(path, 31, false, 2)]);
        match made {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{path:?}: {error}"),
            // A server's own check may be another one; a node is where it says then.
            Ok((tree, _)) => assert!(tree.get(path).is_some(), "{path:?} is lost"),
        }
    }
}

#[test]
fn tx_08_a_multi_of_a_torn_log_is_there_whole_or_not_at_all() {
    let ops =
        vec![create("/a", 31, false, 1), multi(&[create("/b", 31, false, 2), create("/c", 31, false, 3)])];
    let bytes = log(1, &of_one(ops));
    let first = snapshot_of(&DataTree::new());
    for len in 16..bytes.len() {
        let dir = directory(&[("snapshot.0", &first), ("log.1", &bytes[..len])]);
        let (tree, _) = state(dir.path()).unwrap_or_else(|e| panic!("{len}: {e}"));
        assert_eq!(tree.get("/b").is_some(), tree.get("/c").is_some(), "{len}");
    }
}

#[test]
fn lg_01_an_import_reads_the_end_of_a_session_that_no_server_could_read() {
    let names: Vec<String> = (0..30_000).map(|n| format!("/{n:0>80}")).collect();
    let paths: Vec<&str> = names.iter().map(String::as_str).collect();
    let close = close_session(Some(&paths));
    assert!(close.1.len() > 2 << 20);
    let (tree, _) = state_of(vec![open_session(), create(&names[0], 31, true, 1), close]).unwrap();
    assert!(tree.sessions().is_empty() && tree.get(&names[0]).is_none());
}

#[test]
fn lg_03_an_import_of_a_deep_tree_needs_no_stack() {
    let mut ops = Vec::new();
    let mut path = String::new();
    for _ in 0..1500 {
        path.push_str("/d");
        ops.push(create(&path, 31, false, 1));
    }
    let deep = path.clone();
    let run = move || {
        let (tree, _) = state_of(ops).unwrap();
        let dir = directory(&[("snapshot.5dc", &snapshot_of(&tree)), ("log.5dd", &log(0x5dd, &[]))]);
        let (again, _) = state(dir.path()).unwrap();
        assert!(again.get(&deep).is_some() && again.digest() == tree.digest());
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn lg_06_many_small_logs_are_read() {
    let first = snapshot_of(&DataTree::new());
    let dir = directory(&[("snapshot.0", &first)]);
    for zxid in 1_u64..=1000 {
        let op = create(&format!("/{zxid}"), 31, false, i32::try_from(zxid).unwrap());
        let name = format!("version-2/log.{zxid:x}");
        fs::write(dir.path().join(name), log(zxid, &of_one(vec![op]))).unwrap();
    }
    let (tree, report) = state(dir.path()).unwrap();
    assert_eq!((tree.last_zxid().get(), report.replayed), (1000, 1000));
}

/// Counts and lengths that a file cannot have: memory follows what is there, and not what they say.
#[test]
fn lg_04_lengths_that_lie_take_no_memory() {
    let most = i32::MAX.to_be_bytes();
    let head = b"ZKSN\0\0\0\x02\0\0\0\0\0\0\0\0";
    let sessions = [&head[..], &most].concat();
    let lists = [&head[..], &[0; 4], &most].concat();
    let entries = [&head[..], &[0; 4], &[0, 0, 0, 1], &[0; 8], &most].concat();
    let word = [&head[..], &[0; 4], &[0, 0, 0, 1], &[0; 8], &[0, 0, 0, 1], &[0; 4], &most].concat();
    let path = [&head[..], &[0; 8], &most].concat();
    let data = [&head[..], &[0; 8], &[0; 4], &most].concat();
    for (what, bytes) in [
        ("sessions", sessions),
        ("lists", lists),
        ("entries", entries),
        ("word", word),
        ("path", path),
        ("data", data),
    ] {
        let (read, peak) = peak_bytes(|| {
            let mut file = SnapshotFile::new(&bytes[..], "snapshot.1", Compression::None, u32::MAX >> 1)?;
            file.next_node().map(drop)
        });
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
        assert!(peak < 1 << 20, "{what}: {peak} bytes");
    }
    let mut bytes = log(1, &of_one(vec![create("/a", 31, false, 1)]));
    bytes[24..28].copy_from_slice(&most);
    let (read, peak) = peak_bytes(|| LogFile::new(&bytes[..], "log.1", u32::MAX >> 1).unwrap().next_entry());
    assert_eq!(read.unwrap(), None);
    assert!(peak < 1 << 20, "{peak} bytes");
}

/// An entry has few bytes for each operation, and memory is that of the operations.
#[test]
fn lg_04_a_multi_of_many_operations_is_refused_in_bounded_memory() {
    let limit = 1 << 20;
    let read = |op: Op| {
        let bytes = log(1, &of_one(vec![op]));
        peak_bytes(|| LogFile::new(&bytes[..], "log.1", limit).unwrap().next_entry())
    };
    let errors = |count: usize| multi(&vec![(-1, vec![0; 4]); count]);
    // A multi within the limit, by its bytes and its count.
    let (most, peak) = read(errors(limit as usize / 64));
    most.unwrap().unwrap().txn.with(|txn| assert!(matches!(txn.body, arborlog::TxnBody::Multi(_))));
    assert!(peak < 5 << 20, "{peak} bytes");
    let none = vec![""; 200_000];
    for (what, op) in [("multi", errors(80_000)), ("close", close_session(Some(&none)))] {
        let (read, peak) = read(op);
        let error = read.unwrap_err();
        assert_eq!((error.code(), error.at().offset), ("zk_length", Some(16)), "{what}: {error}");
        assert!(peak < 3 << 20, "{what}: {peak} bytes");
    }
}

/// Anybody who may write a node can store an entry of a log in it.
#[test]
fn ix_05_what_a_client_has_stored_is_no_proof_against_a_torn_end() {
    let fake = log(0x1000, &of_one(vec![create("/fake", 31, false, 9)]));
    let data =
        [&[7; 600], &fake[16..fake.len() - 100], &[7; 700], &fake[16..fake.len() - 100], &[7; 300]].concat();
    let first = snapshot_of(&DataTree::new());
    let a = create("/a", 31, false, 1);
    for (what, op) in
        [("alone", set("/a", &data, 1)), ("in a multi", multi(&[check("/a", 0), set("/a", &data, 1)]))]
    {
        let before = log(1, &of_one(vec![a.clone()])).len() - 100;
        let whole = log(1, &of_one(vec![a.clone(), op.clone(), set("/a", b"later", 2)]));
        let last = log(1, &of_one(vec![a.clone(), op]));
        let state_of = |bytes: &[u8]| state(directory(&[("snapshot.0", &first), ("log.1", bytes)]).path());
        // Torn: sectors were not written, or the file ends.
        for lost in [before + 1700..last.len(), before + 100..before + 500, last.len() - 300..last.len()] {
            let mut torn = last.clone();
            torn[lost.clone()].fill(0);
            let (tree, _) = state_of(&torn).unwrap_or_else(|e| panic!("{what}, {lost:?}: {e}"));
            assert_eq!(tree.last_zxid(), Zxid::new(1), "{what}, {lost:?}");
            let (tree, _) = state_of(&last[..lost.end.min(last.len() - 120)]).unwrap();
            assert_eq!(tree.last_zxid(), Zxid::new(1), "{what}, {lost:?}");
            // An entry behind it is a proof, whatever its data are.
            let mut damaged = whole.clone();
            damaged[lost.start..lost.end.min(last.len() - 150)].iter_mut().for_each(|b| *b ^= 0x55);
            let error = state_of(&damaged).map(|(_, report)| report).unwrap_err();
            assert_eq!(error.code(), "zk_log_damage", "{what}, {lost:?}: {error}");
        }
        // So it is if a length has changed, that of the entry or that of the data.
        for at in before..before + 80 {
            for bit in [0, 3, 6] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let error = state_of(&damaged).map(|(_, report)| report).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}, {at}: {error}");
            }
        }
    }
}

#[test]
fn bytes_behind_a_gz_snapshot_are_not_read() {
    let dir = copy("fmt-39-gz");
    let (whole, _) = state(dir.path()).unwrap();
    let path = dir.path().join("version-2/snapshot.20.gz");
    let snapshot = fs::read(&path).unwrap();
    for behind in
        [&b"x"[..], b"\x1f", &[0; 600], &snapshot[..1], &snapshot[..2], b"\x1f\x8bjunk, and more of it"]
    {
        fs::write(&path, [&snapshot[..], behind].concat()).unwrap();
        let (tree, report) = state(dir.path()).unwrap();
        assert_eq!(report.snapshot.as_deref(), Some("snapshot.20.gz"), "{:?}", report.findings);
        assert_eq!(tree.digest(), whole.digest());
    }
    // Of what is packed, nothing may be missing.
    fs::write(&path, &snapshot[..snapshot.len() - 1]).unwrap();
    assert_ne!(state(dir.path()).unwrap().1.snapshot.as_deref(), Some("snapshot.20.gz"));
}

const CHILD_DIR: &str = "ARBORLOG_LONG_LOG";

/// In a process of its own, whose memory nobody else uses.
#[test]
fn memory_of_an_import_is_that_of_the_tree_and_not_that_of_the_log() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let version = dir.path().join("version-2");
    fs::create_dir(&version).unwrap();
    fs::write(version.join("snapshot.0"), snapshot_of(&DataTree::new())).unwrap();
    let set = |n| set("/a", &vec![7; 16 * 1024], n);
    let ops: Vec<Op> = [create("/a", 31, false, 1)].into_iter().chain((1..4000).map(set)).collect();
    let bytes = log(1, &of_one(ops));
    assert!(bytes.len() > 60 << 20);
    fs::write(version.join("log.1"), bytes).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["zookeeper_faults::long_log_child", "--exact", "--nocapture"]).env(CHILD_DIR, dir.path());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("4000 txns"), "{text}");
}

#[test]
fn long_log_child() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    };
    let before = resident();
    let (_, report) = read_state(dir, &ImportOptions::new()).unwrap();
    let more = resident() - before;
    assert!(more < 12 << 20, "{more} bytes for a log of 64 MiB");
    println!("{} txns, {more} bytes", report.replayed);
}
