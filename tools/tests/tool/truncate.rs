//! `arborlog truncate`, of an engine.

use crate::engine_sample::{all_files, all_unchanged, copy, engine, options, zxid};
use crate::sample::arborlog;

#[test]
fn what_is_announced_is_what_is_done() {
    let good = engine();
    let before = all_files(good.path());
    let mut digests = Vec::new();
    for (to, removed) in [(60, 0), (59, 0), (45, 0), (40, 0), (39, 1), (21, 1), (20, 1)] {
        let verb = format!("truncate --json DIR --to-zxid {}", zxid(to));
        let plan = arborlog(&verb, good.path()).exits(0).json().remove(0);
        all_unchanged(&before, good.path());
        assert_eq!((&plan["done"], &plan["last_zxid"]), (&false.into(), &zxid(to).to_string().into()));
        assert_eq!(plan["snapshots_removed"].as_array().unwrap().len(), removed, "{to}");
        let dir = copy(good.path());
        let done = arborlog(&format!("{verb} --yes"), dir.path()).exits(0).json().remove(0);
        for field in ["last_zxid", "was_zxid", "exact", "snapshots_removed", "begins_with"] {
            assert_eq!(plan[field], done[field], "{to} {field}");
        }
        arborlog("verify --deep DIR", dir.path()).exits(0);
        let (engine, report) = options().open(dir.path()).unwrap();
        assert_eq!(report.last_zxid, zxid(to));
        assert_eq!(engine.snapshots().len(), 2 - removed);
        let began = report.snapshot.map(|info| info.end.to_string());
        assert_eq!(plan["begins_with"].as_str(), began.as_deref(), "{to}");
        digests.push(report.digest);
    }
    digests.dedup();
    assert_eq!(digests.len(), 7, "each is another state");
}

#[test]
fn what_is_refused_changes_nothing() {
    let dir = engine();
    let before = all_files(dir.path());
    // Before the oldest snapshot, and behind the end.
    for to in [zxid(19), zxid(1), zxid(61)] {
        for yes in ["", " --yes"] {
            let told =
                arborlog(&format!("truncate --json DIR --to-zxid {to}{yes}"), dir.path()).exits(3).json();
            assert_eq!(told[0]["error"]["code"], "not_in_log", "{to}");
        }
    }
    arborlog("truncate DIR", dir.path()).exits(2);
    all_unchanged(&before, dir.path());
    let text = arborlog("truncate DIR --to-zxid 0x300000019", dir.path()).exits(0).out;
    assert!(
        text.contains("to be removed: the snapshot 0x300000028") && text.contains("give --yes"),
        "{text}"
    );
    all_unchanged(&before, dir.path());
    // A damaged log is not cut: nobody knows what it would be cut to.
    let (segment, at) = crate::engine_sample::in_log(dir.path(), "data 50");
    crate::sample::flip(&segment, at);
    let before = all_files(dir.path());
    arborlog("truncate DIR --to-zxid 0x300000019 --yes", dir.path()).exits(1);
    all_unchanged(&before, dir.path());
    // Nor an engine that is open.
    let held = engine_open();
    arborlog("truncate DIR --to-zxid 0x300000019 --yes", held.0.path()).exits(3);
    assert_eq!(held.1.snapshots().len(), 2);
}

fn engine_open() -> (tempfile::TempDir, arborlog::Engine) {
    let dir = engine();
    let opened = options().open(dir.path()).unwrap().0;
    (dir, opened)
}
