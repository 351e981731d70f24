//! `arborlog restore`.

use std::fs;

use crate::engine_sample::{
    TXNS, all_files, all_unchanged, copy, engine, in_log, options, snapshot, work, zxid,
};
use crate::sample::{self, arborlog, flip};

#[test]
fn each_state_of_the_past_is_restored_as_was_announced() {
    let source = engine();
    let before = all_files(source.path());
    for (what, expected) in [
        ("", 60),
        (" --to-zxid 0x300000019", 25),
        (" --to-zxid 12884901928", 40),
        (" --to-time 33999", 33),
        (" --to-time 1970-01-01T00:00:45Z", 45),
    ] {
        let trial = tempfile::tempdir().unwrap();
        let dest = trial.path().join("new");
        let verb = format!("restore --json {} {}{what}", source.path().display(), dest.display());
        let plan = arborlog(&format!("{verb} --dry-run"), source.path()).exits(0).json().remove(0);
        assert_eq!((&plan["done"], dest.exists()), (&false.into(), false));
        let done = arborlog(&verb, source.path()).exits(0).json().remove(0);
        assert_eq!((&done["done"], &done["source_zxid"]), (&true.into(), &zxid(expected).to_string().into()));
        for field in ["source_zxid", "last_zxid", "digest", "began_with", "replayed"] {
            assert_eq!(plan[field], done[field], "{what} {field}");
        }
        let (restored, report) = options().open(&dest).unwrap();
        assert_eq!(done["digest"], format!("{:#x}", report.digest));
        assert_eq!(report.last_zxid, zxid(expected));
        assert_eq!(restored.tree().sessions().len(), 3);
        drop(restored);
        arborlog("verify --deep DIR", &dest).exits(0);
        // It is not written over.
        let held = all_files(&dest);
        let refused = arborlog(&verb, source.path()).exits(3).json().remove(0);
        assert_eq!(refused["error"]["code"], "restore_not_empty");
        arborlog(&format!("{verb} --dry-run"), source.path()).exits(3);
        all_unchanged(&held, &dest);
    }
    all_unchanged(&before, source.path());
}

#[test]
fn without_sessions_there_are_none() {
    let source = engine();
    let dest = tempfile::tempdir().unwrap();
    let verb = format!("restore DIR {} --without-sessions", dest.path().display());
    let text = arborlog(&verb, source.path()).exits(0).out;
    assert!(
        text.contains("restored: the state at 0x30000003c") && text.contains("sessions closed: 3\n"),
        "{text}"
    );
    let (restored, report) = options().open(dest.path()).unwrap();
    assert_eq!((report.last_zxid, restored.tree().sessions().len()), (zxid(63), 0));
    assert!(restored.tree().get("/node-60").is_none() && restored.tree().get("/node-59").is_some());
}

#[test]
fn what_cannot_be_restored_leaves_nothing_behind() {
    let source = engine();
    let trial = tempfile::tempdir().unwrap();
    for what in ["--to-zxid 0x300000005", "--to-zxid 0x300000050", "--to-time 1000"] {
        let verb = format!("restore --json DIR {}/new {what}", trial.path().display());
        let told = arborlog(&verb, source.path()).exits(3).json().remove(0);
        assert_eq!(told["error"]["code"], "not_in_log", "{what}");
    }
    arborlog("restore DIR DIR/new --to-zxid 1 --to-time 1", source.path()).exits(2);
    arborlog("restore DIR", source.path()).exits(2);
    // A damaged snapshot is passed over, and told; a damaged log is not.
    let path = snapshot(source.path(), zxid(40));
    let at = fs::read(&path).unwrap().windows(6).position(|w| w == b"data 9").unwrap();
    flip(&path, at);
    let verb = format!("restore --json DIR {}/new --dry-run", trial.path().display());
    let told = arborlog(&verb, source.path()).exits(1).json().remove(0);
    assert_eq!((&told["began_with"], &told["replayed"]), (&"0x300000014".into(), &40.into()));
    assert_eq!(told["skipped"][0]["error"]["code"], "snapshot_checksum");
    let (segment, at) = in_log(source.path(), "data 50");
    flip(&segment, at);
    arborlog(&verb, source.path()).exits(1);
    assert_eq!(all_files(trial.path()).len(), 0);
}

#[test]
fn a_folder_with_a_snapshots_name_is_passed_over() {
    let source = engine();
    fs::create_dir(snapshot(source.path(), zxid(50))).unwrap();
    let trial = tempfile::tempdir().unwrap();
    let verb = format!("restore --json {} {}", source.path().display(), trial.path().join("new").display());
    let done = arborlog(&verb, source.path()).exits(0).json().remove(0);
    assert_eq!(done["began_with"], zxid(40).to_string());
}

#[test]
fn a_log_directory_that_is_not_there_is_told_before_anything_is_written() {
    let source = engine();
    let trial = tempfile::tempdir().unwrap();
    let dest = trial.path().join("new");
    let absent = trial.path().join("absent");
    let verb =
        format!("restore --log-dir {} {} {}", absent.display(), source.path().display(), dest.display());
    let run = arborlog(&verb, source.path()).exits(3);
    assert!(run.err.contains("absent"), "{run:?}");
    assert!(!dest.exists());
}

#[test]
fn a_time_before_the_first_txn_is_a_mistake_and_no_empty_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    work(&engine, 1, 5, "data");
    drop(engine);
    let trial = tempfile::tempdir().unwrap();
    let dest = trial.path().join("new");
    let verb = |time: u32| format!("restore --json DIR {} --to-time {time}", dest.display());
    let refused = arborlog(&verb(999), dir.path()).exits(3).json().remove(0);
    assert_eq!(refused["error"]["code"], "not_in_log", "{refused}");
    assert!(!dest.exists());
    arborlog(&verb(1000), dir.path()).exits(0);
}

/// The ways out that `docs/RECOVERY.md` has for an engine whose log is damaged.
#[test]
fn a_damaged_log_below_a_snapshot_is_done_without_and_not_salvaged() {
    let source = tempfile::tempdir().unwrap();
    let (engine, _) = options().log(sample::options()).open(source.path()).unwrap();
    work(&engine, 1, TXNS, "data");
    let digest = format!("{:#x}", engine.tree().digest());
    engine.close().unwrap();
    let trial = tempfile::tempdir().unwrap();
    let verb = format!("restore --json DIR {}/new", trial.path().display());
    // Before the second snapshot's end, which is the 40th txn.
    let (damaged, at) = in_log(source.path(), "data 22");
    flip(&damaged, at);
    arborlog("verify DIR", source.path()).exits(1);
    arborlog(&verb, source.path()).exits(1);
    let salvaged = copy(source.path());
    arborlog("log salvage DIR/log-1 --yes", salvaged.path()).exits(0);
    let refused = arborlog("stat --json DIR", salvaged.path()).exits(1).json().remove(0);
    assert_eq!(refused["error"]["code"], "log_behind_snapshot");
    let without = copy(source.path());
    for entry in fs::read_dir(without.path().join("log-1")).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if name.to_str().unwrap().ends_with(".seg") && *name <= *damaged.file_name().unwrap() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let done = arborlog(&verb, without.path()).exits(1).json().remove(0);
    assert_eq!((&done["digest"], &done["source_zxid"]), (&digest.into(), &zxid(TXNS).to_string().into()));
    arborlog("verify --deep DIR/new", trial.path()).exits(0);
    // Behind the newest snapshot, a salvage is the way.
    let later = self::engine();
    let (damaged, at) = in_log(later.path(), "data 50");
    flip(&damaged, at);
    arborlog("log salvage DIR/log-1 --yes", later.path()).exits(0);
    let state = arborlog("stat --json DIR", later.path()).exits(0).json().remove(0);
    assert_eq!(state["last_zxid"], zxid(49).to_string());
    arborlog("verify --deep DIR", later.path()).exits(0);
}
