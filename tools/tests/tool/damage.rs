use std::fs;

use crate::sample::{closed, files, flip, killed, place, records, segment, tool, unchanged};

#[test]
fn a_flip_in_a_sealed_segment_is_told_with_its_place() {
    let dir = closed(60);
    let (seq, offset) = place(dir.path(), 25);
    flip(&segment(dir.path(), seq), offset);
    let before = files(dir.path());
    let object = &tool("verify --json DIR", dir.path()).exits(1).json()[0];
    let damage = &object["damages"][0];
    assert_eq!(damage["file"], format!("{seq:016x}.seg"));
    assert_eq!(damage["code"], "record_checksum");
    assert_eq!((&damage["first_zxid"], &damage["last_zxid"]), (&"0x100000019".into(), &"0x100000019".into()));
    let at = damage["offset"].as_u64().unwrap();
    let end = damage["end_offset"].as_u64().unwrap();
    assert!((at..end).contains(&(offset as u64)), "{damage}");
    assert_eq!(object["damages"].as_array().unwrap().len(), 1);
    assert_eq!(object["verdict"]["error"]["code"], "log_damaged");
    let text = tool("verify DIR", dir.path()).exits(1).out;
    assert!(text.contains("[record_checksum]") && text.contains("salvage"), "{text}");
    // Reading goes on behind it.
    let dumped = tool("dump --json DIR", dir.path()).exits(1).json();
    let zxids: Vec<_> = dumped.iter().filter(|o| o["type"] == "record").map(|o| o["zxid"].clone()).collect();
    assert_eq!(zxids.len(), 59);
    assert!(!zxids.contains(&"0x100000019".into()));
    assert_eq!(dumped.iter().filter(|o| o["type"] == "damage").count(), 1);
    let listed = tool("ls --json DIR", dir.path()).exits(1).json();
    assert_eq!(listed.iter().filter(|o| o["state"] == "damaged").count(), 1);
    tool("stat DIR", dir.path()).exits(1);
    let refused = tool("truncate --json DIR --to 0x100000030", dir.path()).exits(1);
    assert_eq!(refused.json()[0]["error"]["code"], "log_damaged");
    unchanged(&before, dir.path());
}

#[test]
fn a_flip_in_the_active_segment_of_a_closed_log_is_damage() {
    let dir = closed(60);
    let (seq, offset) = place(dir.path(), 60);
    flip(&segment(dir.path(), seq), offset);
    let object = &tool("verify --json DIR", dir.path()).exits(1).json()[0];
    assert_eq!(object["damages"][0]["first_zxid"], "0x10000003c");
    tool("dump DIR", dir.path()).exits(1);
}

/// It was told again as what the manifest, or the next segment, proves to be missing.
#[test]
fn a_dump_tells_one_damage_once() {
    let dir = closed(60);
    let last_of_first = (1..60).rev().find(|counter| place(dir.path(), *counter).0 == 1).unwrap();
    // The last record of the log; the last one of a segment, with the seal behind it.
    for counter in [60, last_of_first] {
        let dir = closed(60);
        let (seq, offset) = place(dir.path(), counter);
        flip(&segment(dir.path(), seq), offset);
        if counter == last_of_first {
            let behind = offset / 512 * 512 + 512;
            flip(&segment(dir.path(), seq), behind);
        }
        let dumped = tool("dump DIR", dir.path()).exits(1);
        assert_eq!(
            (dumped.err.lines().count(), dumped.out.lines().count()),
            (1, 59),
            "{counter}: {}",
            dumped.err
        );
        let objects = tool("dump --json DIR", dir.path()).exits(1).json();
        let told: Vec<_> = objects.iter().filter(|o| o["type"] == "damage").map(|o| &o["damage"]).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        let lost = format!("{:#x}", 0x1_0000_0000_u64 + u64::from(counter));
        assert_eq!(
            (&told[0]["first_zxid"], &told[0]["last_zxid"]),
            (&lost.as_str().into(), &lost.as_str().into())
        );
    }
}

#[test]
fn a_torn_end_is_no_damage() {
    let dir = killed(60);
    let (seq, offset) = place(dir.path(), 60);
    flip(&segment(dir.path(), seq), offset);
    let before = files(dir.path());
    let run = tool("verify DIR", dir.path()).exits(0);
    assert!(run.out.contains("was torn at byte") && run.out.contains("sound: 59 records"), "{}", run.out);
    assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 59);
    let verdict = tool("ls --json DIR", dir.path()).exits(0).json();
    assert_eq!(verdict.last().unwrap()["verdict"], "torn");
    assert!(!tool("salvage DIR", dir.path()).exits(0).out.contains("lost"));
    unchanged(&before, dir.path());
    assert_eq!(records(dir.path()), (1..=59).collect::<Vec<_>>());
}

#[test]
fn a_missing_segment_is_named() {
    let dir = closed(60);
    fs::remove_file(segment(dir.path(), 2)).unwrap();
    let object = &tool("verify --json DIR", dir.path()).exits(1).json()[0];
    assert_eq!(object["verdict"]["error"]["code"], "segment_missing");
    assert_eq!(object["verdict"]["error"]["file"], "0000000000000002.seg");
    let dumped = tool("dump --json DIR", dir.path()).exits(1).json();
    let damage: Vec<_> = dumped.iter().filter(|o| o["type"] == "damage").collect();
    assert_eq!(damage.len(), 1);
    let lost = &damage[0]["damage"];
    let number = |v: &serde_json::Value| u64::from_str_radix(&v.as_str().unwrap()[2..], 16).unwrap();
    let count = number(&lost["last_zxid"]) - number(&lost["first_zxid"]) + 1;
    assert_eq!(count + dumped.len() as u64 - 1, 60, "what is lost and what is there is all");
}

#[test]
fn a_damaged_header_is_named() {
    let dir = closed(60);
    flip(&segment(dir.path(), 2), 100);
    let objects = tool("ls --json DIR", dir.path()).exits(1).json();
    let bad: Vec<_> = objects.iter().filter(|o| o["state"] == "damaged").collect();
    assert_eq!((bad.len(), &bad[0]["damages"][0]["code"]), (1, &"segment_header_checksum".into()));
    let dumped = tool("dump --json DIR", dir.path()).exits(1).json();
    assert!(dumped.iter().any(|o| o["damage"]["code"] == "segment_header_checksum"));
}

#[test]
fn a_damaged_manifest_is_named_and_the_records_are_still_shown() {
    let dir = closed(60);
    flip(&dir.path().join("log.manifest"), 40);
    let before = files(dir.path());
    let object = &tool("verify --json DIR", dir.path()).exits(1).json()[0];
    assert_eq!(object["manifest"]["error"]["code"], "manifest_damaged");
    let dumped = tool("dump --json DIR", dir.path()).exits(1).json();
    assert_eq!(dumped.iter().filter(|o| o["type"] == "record").count(), 60);
    assert_eq!(dumped[0]["damage"]["code"], "manifest_damaged");
    tool("ls DIR", dir.path()).exits(1);
    tool("stat DIR", dir.path()).exits(1);
    unchanged(&before, dir.path());
}

#[test]
fn names_that_refuse_the_log_are_told_and_the_rest_is_still_shown() {
    for (name, code) in
        [("00000000000000ff.seg", "not_a_file"), ("ffffffffffffffff.seg.tmp", "segment_number")]
    {
        let dir = closed(30);
        if code == "not_a_file" {
            fs::create_dir(dir.path().join(name)).unwrap();
        } else {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let objects = tool("ls --json DIR", dir.path()).exits(1).json();
        assert_eq!(objects.last().unwrap()["error"]["code"], code);
        assert_eq!(objects.iter().filter_map(|o| o["records"].as_u64()).sum::<u64>(), 30);
        let verified = tool("verify --json DIR", dir.path()).exits(1).json();
        assert_eq!(verified[0]["verdict"]["error"]["file"], name);
        assert_eq!(
            (&verified[0]["next_step"], &verified[0]["take_away"][0]),
            (&"take_away".into(), &name.into())
        );
        let text = tool("verify DIR", dir.path()).exits(1).out;
        assert!(
            text.contains(&format!("move out of the directory what does not belong where it is: {name}")),
            "{text}"
        );
        assert!(!text.contains("salvage"), "{text}");
    }
}

/// Opening would fail at them.
#[test]
fn a_lock_or_a_manifest_that_is_no_file_is_not_sound() {
    for name in ["LOCK", "log.manifest.tmp"] {
        let dir = closed(30);
        let path = dir.path().join(name);
        if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        assert!(crate::sample::options().open(dir.path()).is_err(), "{name}");
        let verified = tool("verify --json DIR", dir.path()).exits(1).json();
        assert_eq!(verified[0]["verdict"]["error"]["code"], "not_a_file");
        assert_eq!(verified[0]["take_away"][0], name);
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 30);
    }
}

#[test]
fn files_where_no_segment_belongs_are_told() {
    let (dir, other) = (closed(60), closed(60));
    // Behind the end: another database's, one that holds garbage, one that is a copy.
    fs::copy(segment(other.path(), 1), segment(dir.path(), 0x20)).unwrap();
    fs::write(segment(dir.path(), 0x21), vec![0x5a; 8192]).unwrap();
    fs::copy(segment(dir.path(), 1), segment(dir.path(), 0x22)).unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    let notes: Vec<_> = object["notes"].as_array().unwrap().iter().collect();
    let told: Vec<_> =
        notes.iter().map(|n| (n["file"].as_str().unwrap(), n["code"].as_str().unwrap())).collect();
    let expected = [
        ("0000000000000020.seg", "segment_foreign"),
        ("0000000000000021.seg", "segment_magic"),
        ("0000000000000022.seg", "segment_misnamed"),
    ];
    assert_eq!(told, expected);
    let text = tool("verify DIR", dir.path()).exits(0).out;
    for (file, code) in expected {
        assert!(
            text.lines().any(|l| l.starts_with("note:") && l.contains(file) && l.contains(code)),
            "{text}"
        );
    }
    assert!(text.contains("sound: 60 records"), "{text}");
    // The next open does what was announced.
    assert_eq!(records(dir.path()), (1..=60).collect::<Vec<_>>());
    assert!(!segment(dir.path(), 0x20).exists());
    // What was purged, or cut off, and is still there for an interruption.
    let dir = killed(60);
    tool("truncate DIR --to 0x100000005 --yes", dir.path()).exits(0);
    let mut aside = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
    let aside = aside.find(|p| p.to_str().unwrap().contains("2.seg.cut-")).unwrap();
    fs::rename(aside, segment(dir.path(), 2)).unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!(object["notes"][0]["code"], "segment_stale", "{object}");
}

#[test]
fn what_is_no_file_among_those_moved_aside_is_no_damage() {
    let dir = closed(30);
    fs::create_dir(dir.path().join("0000000000000009.seg.cut-3")).unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!(object["notes"][0]["code"], "not_a_file", "{object}");
    tool("ls DIR", dir.path()).exits(0);
    assert_eq!(records(dir.path()).len(), 30);
}

#[test]
fn a_foreign_file_is_to_be_taken_away_and_not_salvaged() {
    let (dir, other) = (closed(60), closed(60));
    let right = fs::read(segment(dir.path(), 2)).unwrap();
    for wrong in [
        fs::read(segment(other.path(), 2)).unwrap(),
        fs::read(segment(dir.path(), 1)).unwrap(),
        vec![1; 8192],
    ] {
        fs::write(segment(dir.path(), 2), wrong).unwrap();
        let object = tool("verify --json DIR", dir.path()).exits(1).json().remove(0);
        assert_eq!(object["take_away"].as_array().unwrap(), &["0000000000000002.seg"], "{object}");
        let text = tool("verify DIR", dir.path()).exits(1).out;
        assert!(text.contains("move out of the directory") && !text.contains("salvage"), "{text}");
    }
    fs::write(segment(dir.path(), 2), right).unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!(object["next_step"], serde_json::Value::Null);
    // Where all segments are foreign, the manifest is.
    fs::copy(other.path().join("log.manifest"), dir.path().join("log.manifest")).unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(1).json().remove(0);
    assert_eq!(object["take_away"].as_array().unwrap(), &["log.manifest"], "{object}");
}
