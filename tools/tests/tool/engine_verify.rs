//! `arborlog verify` and `arborlog inspect`, over engines that are well and engines that are not.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::engine_sample::{
    TXNS, all_files, all_unchanged, copy, engine, in_log, options, snapshot, work, zxid,
};
use crate::sample::{arborlog, flip};

/// The verification as JSON, with its exit code; `inspect` must come to the same, and neither may change a byte.
#[track_caller]
fn verified(dir: &Path, deep: bool, code: i32) -> Value {
    let before = all_files(dir);
    let verb = if deep { "verify --deep" } else { "verify" };
    let object = arborlog(&format!("{verb} --json DIR"), dir).exits(code).json().remove(0);
    let text = arborlog(&format!("{verb} DIR"), dir).exits(code);
    assert_eq!(text.out.ends_with("sound\n"), code == 0, "{text:?}");
    assert_eq!(object["sound"], code == 0);
    if !deep {
        let page = arborlog("inspect DIR", dir).exits(code);
        assert!(page.err.is_empty(), "{page:?}");
        let inspected = arborlog("inspect --json DIR", dir).exits(code).json().remove(0);
        let found = inspected["findings"].as_array().unwrap();
        for damage in object["damages"].as_array().unwrap() {
            let same =
                found.iter().find(|f| f["message"] == damage["message"] && f["file"] == damage["file"]);
            let step = same.expect("both find the same")["next_step"].as_str();
            assert!(step.is_some_and(|step| step.len() > 20), "a next step for {damage}");
            assert!(page.out.contains(damage["code"].as_str().unwrap()), "{page:?}");
        }
        // What it says of an open holds, as far as there is one.
        let (trial, opens) = (copy(dir), inspected["opening"]["opens"] == true);
        let opened = options().open(trial.path());
        assert_eq!(opened.is_ok(), opens, "{inspected}");
        match opened {
            Ok((_, report)) => {
                let told = &inspected["opening"];
                assert_eq!(told["last_zxid"], report.last_zxid.to_string());
                assert_eq!(told["digest"], format!("{:#x}", report.digest));
                assert_eq!(told["replayed"], report.replayed);
            }
            Err(error) => assert_eq!(inspected["opening"]["error"]["code"], error.code(), "{inspected}"),
        }
    }
    all_unchanged(&before, dir);
    object
}

fn codes(object: &Value) -> Vec<&str> {
    object["damages"].as_array().unwrap().iter().map(|d| d["code"].as_str().unwrap()).collect()
}

#[test]
fn a_sound_engine_is_sound_to_the_last_digest() {
    let dir = engine();
    let object = verified(dir.path(), false, 0);
    let floor = u64::from_str_radix(&object["log_floor_zxid"].as_str().unwrap()[2..], 16).unwrap() & 0xffff;
    assert!(floor > 0 && floor <= 20, "the log was purged up to the first snapshot: {object}");
    assert_eq!((&object["records"], &object["log_last_zxid"]), (&(60 - floor).into(), &"0x30000003c".into()));
    assert_eq!(object["replay"], Value::Null);
    let deep = verified(dir.path(), true, 0);
    assert_eq!(deep["replay"]["began_with"], "0x300000014");
    assert_eq!(deep["replay"]["txns"], 40);
    assert_eq!(deep["replay"]["compared"][0]["zxid"], "0x300000028");
    assert_eq!(deep["replay"]["compared"][0]["same"], true);
    let opened = options().open(dir.path()).unwrap().1;
    assert_eq!(deep["replay"]["digest"], format!("{:#x}", opened.digest));
    let text = arborlog("verify DIR", dir.path()).exits(0).out;
    assert!(text.contains("seam: the log reaches back to the oldest whole snapshot, 0x300000014"), "{text}");
    // Without a snapshot, and beside a live server.
    let young = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(young.path()).unwrap();
    work(&engine, 1, 10, "data");
    arborlog("verify --deep DIR", young.path()).exits(0);
    arborlog("inspect DIR", young.path()).exits(0);
}

#[test]
fn damage_is_named_where_it_is_whatever_part_it_hits() {
    let good = engine();
    // The log.
    let dir = copy(good.path());
    let (segment, at) = in_log(dir.path(), "data 50");
    flip(&segment, at);
    let object = verified(dir.path(), false, 1);
    let damage = &object["damages"][0];
    assert_eq!(
        (codes(&object), damage["first_zxid"].as_str()),
        (vec!["record_checksum"], Some("0x300000032"))
    );
    let (from, to) = (damage["offset"].as_u64().unwrap(), damage["end_offset"].as_u64().unwrap());
    assert!(from <= at as u64 && (at as u64) < to, "{damage}");
    assert_eq!(damage["file"], format!("log-1/{}", segment.file_name().unwrap().to_str().unwrap()));
    // Each snapshot: the older one, and the newest, without which an open takes the older one.
    for counter in [20, 40] {
        let dir = copy(good.path());
        let path = snapshot(dir.path(), zxid(counter));
        let at = fs::read(&path).unwrap().windows(6).position(|w| w == b"data 5").unwrap();
        flip(&path, at);
        let object = verified(dir.path(), false, 1);
        let damage = &object["damages"][0];
        assert_eq!(codes(&object), ["snapshot_checksum"]);
        let (from, to) = (damage["offset"].as_u64().unwrap(), damage["end_offset"].as_u64().unwrap());
        assert!(from <= at as u64 && (at as u64) < to, "{damage}");
    }
    // The manifest: the state is verified all the same.
    let dir = copy(good.path());
    flip(&dir.path().join("engine.manifest"), 30);
    let object = verified(dir.path(), false, 1);
    assert_eq!(codes(&object), ["engine_manifest_damaged"]);
    assert!(object["records"].as_u64() >= Some(40), "{object}");
    fs::remove_file(dir.path().join("engine.manifest")).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["engine_manifest_missing"]);
}

#[test]
fn what_does_not_meet_is_named() {
    let good = engine();
    // Nothing to begin with.
    let dir = copy(good.path());
    fs::remove_file(snapshot(dir.path(), zxid(20))).unwrap();
    fs::remove_file(snapshot(dir.path(), zxid(40))).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["snapshot_gap"]);
    // Directories that are not there, or empty.
    let dir = copy(good.path());
    fs::remove_dir_all(dir.path().join("snapshots-1")).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1))[0], "generation_missing");
    let dir = copy(good.path());
    fs::remove_dir_all(dir.path().join("log-1")).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["generation_missing"]);
    fs::create_dir(dir.path().join("log-1")).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["log_missing"]);
    // Another database's log.
    let (dir, other) = (copy(good.path()), engine());
    fs::remove_dir_all(dir.path().join("log-1")).unwrap();
    fs::rename(other.path().join("log-1"), dir.path().join("log-1")).unwrap();
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["database_foreign"]);
    // A log of before the newest snapshot.
    let old = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(old.path()).unwrap();
    work(&engine, 1, 30, "data");
    engine.close().unwrap();
    let dir = copy(old.path());
    let (engine, _) = options().open(dir.path()).unwrap();
    work(&engine, 31, 45, "data");
    engine.close().unwrap();
    fs::remove_dir_all(dir.path().join("log-1")).unwrap();
    fs::create_dir(dir.path().join("log-1")).unwrap();
    for (path, bytes) in all_files(&old.path().join("log-1")) {
        fs::write(dir.path().join("log-1").join(path.file_name().unwrap()), bytes).unwrap();
    }
    assert_eq!(codes(&verified(dir.path(), false, 1)), ["log_behind_snapshot"]);
}

#[test]
fn a_snapshot_that_the_log_does_not_lead_on_from_is_a_note_and_no_beginning() {
    let dir = engine();
    let old = fs::read(snapshot(dir.path(), zxid(20))).unwrap();
    let (running, _) = options().open(dir.path()).unwrap();
    running.snapshot().unwrap().join().unwrap();
    running.close().unwrap();
    assert!(!snapshot(dir.path(), zxid(20)).exists(), "two are kept");
    fs::write(snapshot(dir.path(), zxid(20)), old).unwrap();
    let object = verified(dir.path(), false, 0);
    let notes = object["notes"].as_array().unwrap();
    assert_eq!(
        (notes.len(), &notes[0]["file"]),
        (1, &"snapshots-1/0000000300000014.snap".into()),
        "{object}"
    );
    assert!(
        notes[0]["message"].as_str().unwrap().contains("does not lead on from this snapshot"),
        "{object}"
    );
    assert!(
        arborlog("verify DIR", dir.path()).out.contains("does not reach back to the oldest whole snapshot")
    );
    assert_eq!(verified(dir.path(), true, 0)["replay"]["began_with"], "0x300000028");
    // Before the log begins; and behind that, where the old snapshot would be the only one to begin with.
    let floor = u64::from_str_radix(&object["log_floor_zxid"].as_str().unwrap()[2..], 16).unwrap();
    assert!((zxid(21).get()..zxid(39).get()).contains(&floor), "{object}");
    let trial = tempfile::tempdir().unwrap();
    for to in [zxid(20).get(), zxid(20).get() + 1, floor, floor + 1] {
        let restore = format!("restore --json DIR {}/new", trial.path().display());
        for verb in ["truncate --json DIR", "truncate --yes --json DIR", &restore] {
            let run = arborlog(&format!("{verb} --to-zxid {to}"), dir.path()).exits(3);
            assert_eq!(run.json()[0]["error"]["code"], "not_in_log", "{verb} {to}");
        }
    }
}

#[test]
fn a_snapshot_of_another_history_is_found_by_the_replay() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (engine, _) = options().open(ours.path()).unwrap();
    work(&engine, 1, 30, "data");
    engine.close().unwrap();
    for (path, bytes) in all_files(ours.path()) {
        let target = theirs.path().join(path.strip_prefix(ours.path()).unwrap());
        if path.is_dir() {
            fs::create_dir_all(target).unwrap()
        } else {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(target, bytes).unwrap();
        }
    }
    for (dir, word) in [(&ours, "data"), (&theirs, "other")] {
        let (engine, _) = options().open(dir.path()).unwrap();
        work(&engine, 31, 50, word);
        engine.close().unwrap();
    }
    assert_eq!(verified(ours.path(), true, 0)["replay"]["compared"][0]["same"], true);
    fs::copy(snapshot(theirs.path(), zxid(40)), snapshot(ours.path(), zxid(40))).unwrap();
    // Each by itself is whole, so that only the replay can tell.
    verified(ours.path(), false, 0);
    let object = verified(ours.path(), true, 1);
    assert_eq!(codes(&object), ["replay_digest"]);
    assert_eq!(object["replay"]["compared"][0]["same"], false);
}

#[test]
fn what_is_odd_and_no_damage_is_a_note() {
    let dir = engine();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::write(dir.path().join("engine.manifest.tmp"), "half").unwrap();
    fs::create_dir(dir.path().join("log-7")).unwrap();
    fs::write(dir.path().join("snapshots-1/0000000300000050.snap.tmp"), "half").unwrap();
    fs::write(dir.path().join("snapshots-1/old.snap"), "mine").unwrap();
    let object = verified(dir.path(), false, 0);
    let notes: Vec<&str> =
        object["notes"].as_array().unwrap().iter().map(|n| n["file"].as_str().unwrap()).collect();
    for name in [
        "notes.txt",
        "engine.manifest.tmp",
        "log-7",
        "snapshots-1/0000000300000050.snap.tmp",
        "snapshots-1/old.snap",
    ] {
        assert!(notes.contains(&name), "{name}: {notes:?}");
    }
    let page = arborlog("inspect DIR", dir.path()).exits(0).out;
    assert!(page.contains("it would remove 0000000300000050.snap.tmp"), "{page}");
    let row = page.lines().find(|line| line.starts_with("notes.txt ")).unwrap();
    assert!(row.ends_with(" not arborlog's"), "{page}");
    assert!(page.contains(&format!("replay {} txns of the log", TXNS - 40)), "{page}");
    // Many segments of one kind are told as one.
    let long = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(long.path()).unwrap();
    let big = "x".repeat(3000);
    work(&engine, 1, 200, &big);
    engine.close().unwrap();
    let page = arborlog("inspect DIR", long.path()).exits(0).out;
    let runs: Vec<_> = page.lines().filter(|line| line.contains(" segments, sealed, zxid 0x3")).collect();
    assert_eq!(runs.len(), 1, "{page}");
    assert_eq!(page.matches("sealed").count(), 1, "{page}");
}

/// Writes the engine's manifest anew, with one thing changed.
fn rewrite(dir: &Path, from: &str, to: &str) {
    let path = dir.join("engine.manifest");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    let body = text[..text.len() - "crc32 00000000\n".len()].replace(from, to);
    fs::write(&path, format!("{body}crc32 {:08x}\n", crate::exits::crc32(body.as_bytes()))).unwrap();
}

#[test]
fn a_generation_that_is_not_in_use_is_told_with_what_becomes_of_it() {
    let dir = engine();
    fs::create_dir(dir.path().join("log-7")).unwrap();
    fs::create_dir(dir.path().join("snapshots-7")).unwrap();
    fs::create_dir(dir.path().join("log-8")).unwrap();
    rewrite(dir.path(), "spare 0", "spare 7");
    let object = verified(dir.path(), false, 0);
    let notes = object["notes"].as_array().unwrap();
    let note = |name: &str| notes.iter().find(|n| n["file"] == name).unwrap()["message"].as_str().unwrap();
    assert!(
        note("log-7").contains("the next open removes it") && note("log-8").contains("left alone"),
        "{object}"
    );
    assert!(arborlog("inspect DIR", dir.path()).out.contains("it would remove generation 7"));
    drop(options().open(dir.path()).unwrap());
    assert!(!dir.path().join("log-7").exists() && dir.path().join("log-8").exists());
}

#[test]
fn a_log_on_another_disk_is_found_where_it_is_said_to_be() {
    let (dir, log) = (engine(), tempfile::tempdir().unwrap());
    fs::rename(dir.path().join("log-1"), log.path().join("log-1")).unwrap();
    let elsewhere = format!("--log-dir {}", log.path().display());
    for verb in ["verify DIR", "verify --deep DIR", "inspect DIR", "stat DIR", "tree DIR", "tree dump DIR"] {
        arborlog(verb, dir.path()).exits(1);
        arborlog(&format!("{verb} {elsewhere}"), dir.path()).exits(0);
    }
    let trial = tempfile::tempdir().unwrap();
    let restore = format!("restore DIR {}/new --dry-run", trial.path().display());
    arborlog(&format!("{restore} --source-log-dir {}", log.path().display()), dir.path()).exits(0);
    arborlog(&restore, dir.path()).exits(1);
    arborlog("truncate DIR --to-zxid 0x300000020 --yes", dir.path()).exits(1);
    arborlog(&format!("truncate DIR --to-zxid 0x300000020 --yes {elsewhere}"), dir.path()).exits(0);
    let told = arborlog(&format!("verify --json DIR {elsewhere}"), dir.path()).exits(0).json();
    assert_eq!(told[0]["log_last_zxid"], "0x300000020");
}

#[test]
fn an_engine_that_was_never_opened_to_its_end_is_no_loss() {
    let dir = engine();
    rewrite(dir.path(), "established yes", "established no");
    fs::remove_dir_all(dir.path().join("log-1")).unwrap();
    fs::remove_dir_all(dir.path().join("snapshots-1")).unwrap();
    arborlog("verify DIR", dir.path()).exits(0);
    let page = arborlog("inspect DIR", dir.path()).exits(0).out;
    assert!(page.contains("never opened to its end"), "{page}");
    // A newer version's.
    let newer = engine();
    rewrite(newer.path(), "arborlog engine 1", "arborlog engine 9");
    for verb in ["verify DIR", "inspect DIR", "stat DIR", "truncate DIR --to-zxid 0x300000020"] {
        arborlog(verb, newer.path()).exits(3);
    }
}

#[test]
fn something_else_in_the_place_of_the_lock_is_found_before_an_open_meets_it() {
    let dir = engine();
    fs::remove_file(dir.path().join("LOCK")).unwrap();
    fs::create_dir(dir.path().join("LOCK")).unwrap();
    let object = verified(dir.path(), false, 1);
    assert_eq!(object["damages"][0]["code"], "not_a_file");
    assert_eq!(object["damages"][0]["file"], "LOCK");
    assert_eq!(options().open(dir.path()).unwrap_err().code(), "not_a_file");
}

#[test]
fn a_snapshot_that_a_live_server_removes_under_a_replay_is_no_damage() {
    use arborlog::inspect::{Depth, EngineDirectory};
    let dir = engine();
    let at = EngineDirectory::open(dir.path(), None).unwrap();
    let mut steps = 0;
    assert!(at.examine(Depth::Bytes, &mut |_| steps += 1).unwrap().is_sound());
    for (gone, began_with) in [(40, Some(zxid(20))), (20, Some(zxid(20)))] {
        let trial = copy(dir.path());
        let at = EngineDirectory::open(trial.path(), None).unwrap();
        let mut step = 0;
        // The first step of the replay loads the first snapshot: it is open by then, and the other is not.
        let remove = |_| {
            step += 1;
            if step == steps + 1 {
                fs::remove_file(snapshot(trial.path(), zxid(gone))).unwrap();
            }
        };
        let examined = at.examine(Depth::Replay, &mut { remove }).unwrap();
        assert!(examined.is_sound(), "{:?}", examined.findings);
        let replayed = examined.replay.unwrap();
        assert_eq!((replayed.began_with, replayed.last_zxid), (began_with, zxid(TXNS)));
    }
}
