use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::sample::{
    append, closed, files, flip, killed, options, place, records, segment, tool, unchanged,
    unchanged_but_lock, zxid,
};

/// Looks without `--yes`, which changes nothing, then does it; returns the report.
#[track_caller]
fn rehearse_and_do(arguments: &str, dir: &Path, rehearsal_code: i32) -> Value {
    let before = files(dir);
    tool(arguments, dir).exits(rehearsal_code);
    let rehearsed = tool(&format!("{arguments} --json"), dir).exits(rehearsal_code).json().remove(0);
    unchanged(&before, dir);
    let mut done = tool(&format!("{arguments} --json --yes"), dir).exits(0).json().remove(0);
    assert_eq!((rehearsed["done"].as_bool(), done["done"].as_bool()), (Some(false), Some(true)));
    done["done"] = false.into();
    assert_eq!(rehearsed, done, "what was told is what was done");
    done
}

/// No bytes of the log's files were removed: each old content is there under some name. Zeros behind the end
/// may be given back.
#[track_caller]
fn nothing_was_deleted(before: &std::collections::BTreeMap<String, Vec<u8>>, dir: &Path) {
    let used = |bytes: &[u8]| bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let now = files(dir);
    let segments = before.iter().filter(|(name, bytes)| name.contains(".seg") && used(bytes) > 4096);
    for (name, bytes) in segments.filter(|(name, _)| !name.contains(".tmp")) {
        let kept = now.values().any(|other| other[..used(other)] == bytes[..used(bytes)]);
        assert!(kept, "{name} is gone");
    }
}

#[test]
fn truncate_cuts_exactly_there() {
    for to in [60, 59, 41, 25, 1] {
        let dir = closed(60);
        let before = files(dir.path());
        let report = rehearse_and_do(&format!("truncate DIR --to 0x1{to:08x}"), dir.path(), 0);
        assert_eq!(report["exact"], true);
        nothing_was_deleted(&before, dir.path());
        tool("verify DIR", dir.path()).exits(0);
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), to);
        assert_eq!(records(dir.path()), (1..=u32::try_from(to).unwrap()).collect::<Vec<_>>());
        let (log, _) = options().open(dir.path()).unwrap();
        append(&log, 100, 110);
    }
}

#[test]
fn truncate_of_a_killed_log_and_out_of_range() {
    let dir = killed(30);
    rehearse_and_do("truncate DIR --to 0x100000014", dir.path(), 0);
    let before = files(dir.path());
    let run = tool("truncate DIR --to 0x100000015 --yes --json", dir.path()).exits(3);
    assert_eq!(run.json()[0]["error"]["code"], "not_in_log");
    unchanged_but_lock(before, dir.path());
    assert_eq!(records(dir.path()), (1..=20).collect::<Vec<_>>());
}

#[test]
fn salvage_ends_the_log_before_the_damage() {
    for (damaged, killed_log) in [(60, false), (25, false), (25, true), (1, false)] {
        let dir = if killed_log { killed(60) } else { closed(60) };
        let (seq, offset) = place(dir.path(), damaged);
        flip(&segment(dir.path(), seq), offset);
        let before = files(dir.path());
        let report = rehearse_and_do("salvage DIR", dir.path(), 1);
        assert_eq!(report["was_zxid"], "0x10000003c");
        let last = if damaged == 1 { "0x0".to_owned() } else { zxid(damaged - 1).to_string() };
        assert_eq!(report["last_zxid"], last);
        nothing_was_deleted(&before, dir.path());
        tool("verify DIR", dir.path()).exits(0);
        // What was put aside can still be read.
        let aside: usize = report["moved_aside"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| {
                let run = tool(&format!("dump DIR --file {}", name.as_str().unwrap()), dir.path()).exits(0);
                run.out.lines().count()
            })
            .sum();
        let losses = report["lost"].as_array().unwrap();
        let whole = losses.iter().filter(|l| l["offset"] == 0);
        let readable: u64 = whole.map(|l| l["readable_records"].as_u64().unwrap()).sum();
        assert_eq!(aside as u64, readable);
        assert_eq!(records(dir.path()), (1..damaged).collect::<Vec<_>>());
        let (log, _) = options().open(dir.path()).unwrap();
        append(&log, 100, 110);
        log.close().unwrap();
        let expected: Vec<_> = (1..damaged).chain(100..=110).collect();
        assert_eq!(records(dir.path()), expected);
        nothing_was_deleted(&before, dir.path());
        assert!(!tool("salvage DIR --yes", dir.path()).exits(0).out.contains("lost"), "once is enough");
    }
}

#[test]
fn a_salvage_is_told_line_by_line() {
    let dir = closed(60);
    let (seq, offset) = place(dir.path(), 25);
    flip(&segment(dir.path(), seq), offset);
    for verb in ["salvage DIR", "salvage DIR --yes"] {
        let run = tool(verb, dir.path());
        let begins = |word: &str| run.out.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(
            (begins("damage: "), begins("lost: "), begins("the log ends with ")),
            (1, 1, 1),
            "{run:#?}"
        );
        assert!(!run.out.contains("\\n"), "{run:#?}");
    }
}

#[test]
fn salvage_passes_over_damage_that_took_no_record() {
    let dir = closed(60);
    let path = segment(dir.path(), 2);
    // The seal is the last group of the file.
    let bytes = fs::read(&path).unwrap();
    flip(&path, bytes.iter().rposition(|b| *b != 0).unwrap());
    tool("verify DIR", dir.path()).exits(1);
    let report = rehearse_and_do("salvage DIR", dir.path(), 1);
    assert_eq!(report["was_zxid"], report["last_zxid"]);
    assert!(report["lost"].as_array().unwrap().is_empty(), "{report}");
    tool("verify DIR", dir.path()).exits(0);
    assert_eq!(records(dir.path()), (1..=60).collect::<Vec<_>>());
}

#[test]
fn salvage_of_missing_and_headless_segments() {
    for missing in [true, false] {
        for seq in [1, 2] {
            let dir = closed(60);
            let last = if seq == 1 { 0 } else { first_record_of(dir.path(), 2) - 1 };
            if missing {
                fs::remove_file(segment(dir.path(), seq)).unwrap();
            } else {
                flip(&segment(dir.path(), seq), 100);
            }
            let before = files(dir.path());
            rehearse_and_do("salvage DIR", dir.path(), 1);
            nothing_was_deleted(&before, dir.path());
            assert_eq!(records(dir.path()), (1..=last).collect::<Vec<_>>(), "missing {missing} {seq}");
            nothing_was_deleted(&before, dir.path());
        }
    }
}

fn first_record_of(dir: &Path, seq: u64) -> u32 {
    (1..=60).find(|counter| place(dir, *counter).0 == seq).unwrap()
}

#[test]
fn salvage_rebuilds_the_manifest() {
    for damaged in [true, false] {
        // With cuts in it: a kill, a truncation into the middle of a segment, a truncation of whole segments.
        let dir = killed(30);
        let (log, _) = options().open(dir.path()).unwrap();
        append(&log, 31, 80);
        let (log, _) = log.truncate(zxid(50)).unwrap();
        append(&log, 51, 60);
        drop(log);
        let (log, _) = options().open(dir.path()).unwrap();
        append(&log, 61, 70);
        log.close().unwrap();
        let manifest = dir.path().join("log.manifest");
        let damaged_bytes = if damaged {
            flip(&manifest, 60);
            Some(fs::read(&manifest).unwrap())
        } else {
            fs::remove_file(&manifest).unwrap();
            None
        };
        let before = files(dir.path());
        let report = rehearse_and_do("salvage DIR", dir.path(), 1);
        assert_eq!(report["manifest"], if damaged { "was_damaged" } else { "was_missing" });
        assert_eq!(
            (&report["was_zxid"], &report["last_zxid"]),
            (&"0x100000046".into(), &"0x100000046".into())
        );
        if let Some(bytes) = damaged_bytes {
            let kept = dir.path().join(report["manifest_kept_as"].as_str().unwrap());
            assert_eq!(fs::read(kept).unwrap(), bytes);
        }
        nothing_was_deleted(&before, dir.path());
        tool("verify DIR", dir.path()).exits(0);
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 70);
        assert_eq!(records(dir.path()), (1..=70).collect::<Vec<_>>());
        nothing_was_deleted(&before, dir.path());
    }
}

#[test]
fn salvage_without_a_manifest_asks_for_the_numbering_where_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = options().numbering(arborlog::Numbering::Index).open(dir.path()).unwrap();
    log.append_next(arborlog::Epoch::ZERO, 5, b"x").unwrap().wait().unwrap();
    log.close().unwrap();
    fs::remove_file(dir.path().join("log.manifest")).unwrap();
    let run = tool("salvage DIR --json", dir.path()).exits(2);
    let asked = run.json();
    assert_eq!(asked[0]["error"]["code"], "salvage_numbering");
    assert!(asked[0].to_string().contains("zxid for a log"), "{asked:?}");
    assert!(run.err.contains("--numbering zxid"), "{run:?}");
    tool("salvage DIR --numbering index --epoch 7 --yes", dir.path()).exits(0);
    let (log, _) = options().numbering(arborlog::Numbering::Index).open(dir.path()).unwrap();
    assert_eq!((log.epoch().get(), log.durable_zxid().get()), (7, 1));
}

#[test]
fn salvage_does_not_take_another_database_for_damage() {
    let (dir, other) = (closed(60), closed(60));
    fs::copy(segment(other.path(), 3), segment(dir.path(), 3)).unwrap();
    fs::remove_file(dir.path().join("log.manifest")).unwrap();
    let before = files(dir.path());
    let run = tool("salvage DIR --json --yes", dir.path()).exits(1);
    assert_eq!(run.json()[0]["error"]["code"], "salvage_ambiguous");
    unchanged_but_lock(before, dir.path());
    let swapped = closed(60);
    fs::copy(other.path().join("log.manifest"), swapped.path().join("log.manifest")).unwrap();
    tool("salvage DIR --json --yes", swapped.path()).exits(1);
}

/// What `dump --file` still finds behind the damage is what a salvage says can be read.
#[test]
fn salvage_counts_what_dump_finds() {
    for (damaged, code) in [(25, "payload"), (25, "group"), (1, "payload"), (45, "group")] {
        let dir = closed(60);
        let (seq, offset) = place(dir.path(), damaged);
        // Groups of one block: the group's header is at the start of the block.
        let at = if code == "group" { offset / 512 * 512 + 8 } else { offset };
        flip(&segment(dir.path(), seq), at);
        let report = tool("salvage DIR --json", dir.path()).exits(1).json().remove(0);
        for loss in report["lost"].as_array().unwrap() {
            let file = loss["file"].as_str().unwrap();
            let dumped = tool(&format!("dump DIR --json --file {file}"), dir.path()).json();
            let behind = dumped.iter().filter(|o| {
                o["type"] == "record" && o["offset"].as_u64().unwrap() >= loss["offset"].as_u64().unwrap()
            });
            assert_eq!(
                loss["readable_records"].as_u64(),
                Some(behind.count() as u64),
                "{damaged} {code}: {loss}"
            );
        }
        let first = &report["lost"][0];
        assert!(first["readable_records"].as_u64().unwrap() > 0, "more stands behind it: {first}");
    }
}

#[test]
fn a_refused_change_creates_nothing() {
    let source = closed(60);
    let repair = format!("repair DIR --zxid 0x100000099 --from {} --yes", source.path().display());
    let changes = ["truncate DIR --to 0x100000001 --yes", "salvage DIR --yes"];
    let empty = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("notes.txt"), "mine").unwrap();
    // A copy of a log comes without its lock.
    let copy = closed(60);
    let foreign = closed(60);
    fs::copy(foreign.path().join("log.manifest"), copy.path().join("log.manifest")).unwrap();
    fs::remove_file(copy.path().join("LOCK")).unwrap();
    for (dir, code) in [(&empty, 3), (&other, 3), (&copy, 1)] {
        let before = files(dir.path());
        for change in changes {
            tool(change, dir.path()).exits(code);
            unchanged(&before, dir.path());
        }
    }
    let sound = closed(60);
    fs::remove_file(sound.path().join("LOCK")).unwrap();
    let before = files(sound.path());
    tool("truncate DIR --to 0x100000099 --yes", sound.path()).exits(3);
    tool(&repair, sound.path()).exits(3);
    unchanged(&before, sound.path());
    let repair = repair.replace("0x100000099", "0x100000009");
    for (dir, code) in [(&empty, 3), (&other, 3), (&copy, 3)] {
        let before = files(dir.path());
        tool(&repair, dir.path()).exits(code);
        unchanged(&before, dir.path());
    }
    tool("truncate DIR --to 0x100000009 --yes", sound.path()).exits(0);
}

#[test]
fn a_damaged_record_comes_back_from_another_copy() {
    let other = closed(60);
    let from = other.path().display();
    for damaged in [25, 60, 1] {
        let dir = closed(60);
        let whole = files(dir.path());
        let (seq, offset) = place(dir.path(), damaged);
        flip(&segment(dir.path(), seq), offset);
        let report =
            rehearse_and_do(&format!("repair DIR --zxid 0x1{damaged:08x} --from {from}"), dir.path(), 1);
        assert_eq!(
            (&report["file"], &report["left"]),
            (&format!("{seq:016x}.seg").into(), &serde_json::json!([]))
        );
        unchanged_but_lock(whole, dir.path());
        tool("verify DIR", dir.path()).exits(0);
        // Once is enough.
        let again =
            tool(&format!("repair DIR --zxid 0x1{damaged:08x} --from {from} --yes"), dir.path()).exits(0);
        assert!(again.out.contains("nothing to repair"), "{again:?}");
    }
}

#[test]
fn a_repair_takes_only_what_fits() {
    let (dir, other, different) = (closed(60), closed(60), tempfile::tempdir().unwrap());
    let (log, _) = options().open(different.path()).unwrap();
    log.advance_epoch(arborlog::Epoch::new(1)).unwrap();
    log.append(&arborlog::Record::new(zxid(25), 1, b"something else")).unwrap().wait().unwrap();
    log.close().unwrap();
    let (seq, offset) = place(dir.path(), 25);
    flip(&segment(dir.path(), seq), offset);
    let (seq, offset) = place(dir.path(), 26);
    flip(&segment(dir.path(), seq), offset);
    let before = files(dir.path());
    let repair = |from: &Path, zxid: &str, code: i32| {
        let arguments = format!("repair DIR --zxid {zxid} --from {} --json --yes", from.display());
        tool(&arguments, dir.path()).exits(code).json().remove(0)
    };
    assert_eq!(repair(different.path(), "0x100000019", 3)["error"]["code"], "repair_misfit");
    assert_eq!(repair(different.path(), "0x10000001a", 3)["error"]["code"], "not_in_log");
    assert_eq!(repair(other.path(), "0x1000000ff", 3)["error"]["code"], "not_in_log");
    let own = repair(dir.path(), "0x100000019", 3);
    assert!(own["error"]["message"].as_str().unwrap().contains("that copy is damaged too"), "{own}");
    repair(&dir.path().join("none"), "0x100000019", 3);
    unchanged_but_lock(before, dir.path());
    let first = repair(other.path(), "0x100000019", 0);
    assert_eq!(first["left"][0]["first_zxid"], "0x10000001a", "{first}");
    tool("verify DIR", dir.path()).exits(1);
    assert_eq!(repair(other.path(), "0x10000001a", 0)["left"], serde_json::json!([]));
    tool("verify DIR", dir.path()).exits(0);
    assert_eq!(records(dir.path()), (1..=60).collect::<Vec<_>>());
}
