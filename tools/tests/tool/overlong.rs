//! Files that something made longer than the segment in them.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use crate::sample::{closed, flip, place, records, segment, tool, zxid};

const HUGE: u64 = 100 << 30;

fn stretch(path: &Path) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(HUGE).unwrap();
}

/// Reading a hundred gigabytes takes far longer, whatever they are.
#[track_caller]
fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "the time that passes is what is tested")]
    let start = std::time::Instant::now();
    let done = work();
    assert!(start.elapsed() < Duration::from_secs(5), "{what} took {:?}", start.elapsed());
    done
}

#[test]
fn a_hole_behind_a_segment_is_not_read() {
    // A sealed segment, the one in use, and the prepared one.
    for seq in [1, 3, 4] {
        let dir = closed(60);
        let path = segment(dir.path(), seq);
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(path.exists(), "{name}");
        stretch(&path);
        for verb in ["ls", "dump", "stat", "salvage", "truncate --to 0x100000005"] {
            quickly(verb, || tool(&format!("{verb} DIR"), dir.path())).exits(0);
        }
        quickly("dump --file", || tool(&format!("dump DIR --file {name}"), dir.path())).exits(0);
        let object = quickly("verify", || tool("verify --json DIR", dir.path())).exits(0).json().remove(0);
        let note = &object["notes"][0];
        assert_eq!(
            (&note["code"], &note["file"]),
            (&"segment_overlong".into(), &name.clone().into()),
            "{object}"
        );
        assert_eq!(note["offset"], 16 * 1024);
        let text = tool("verify DIR", dir.path()).exits(0).out;
        assert!(text.contains("[segment_overlong]") && text.contains("sound: 60 records"), "{text}");
        assert_eq!(quickly("open", || records(dir.path())), (1..=60).collect::<Vec<_>>());
    }
}

#[test]
fn a_hole_behind_a_damaged_segment_is_not_read() {
    for seq_of in [25, 60, 1] {
        let dir = closed(60);
        let (seq, offset) = place(dir.path(), seq_of);
        flip(&segment(dir.path(), seq), offset / 512 * 512 + 8);
        stretch(&segment(dir.path(), seq));
        for verb in ["verify", "ls", "dump", "stat", "salvage", "truncate --to 0x100000001"] {
            quickly(verb, || tool(&format!("{verb} DIR"), dir.path())).exits(1);
        }
        quickly("salvage --yes", || tool("salvage DIR --yes", dir.path())).exits(0);
        quickly("verify", || tool("verify DIR", dir.path())).exits(0);
        assert_eq!(quickly("open", || records(dir.path())), (1..seq_of).collect::<Vec<_>>());
    }
    // Without a manifest, and without a header.
    let dir = closed(60);
    fs::remove_file(dir.path().join("log.manifest")).unwrap();
    stretch(&segment(dir.path(), 2));
    flip(&segment_copy(dir.path()), 100);
    stretch(&segment(dir.path(), 9));
    for verb in ["verify", "ls", "dump", "stat"] {
        quickly(verb, || tool(&format!("{verb} DIR"), dir.path())).exits(1);
    }
}

fn segment_copy(dir: &Path) -> std::path::PathBuf {
    fs::copy(segment(dir, 1), segment(dir, 9)).unwrap();
    segment(dir, 9)
}

#[test]
fn data_behind_the_capacity_is_told() {
    let dir = closed(60);
    let mut file = OpenOptions::new().write(true).open(segment(dir.path(), 1)).unwrap();
    file.seek(SeekFrom::Start(5 << 20)).unwrap();
    file.write_all(b"what is this").unwrap();
    drop(file);
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    let note = &object["notes"][0];
    assert_eq!(note["code"], "segment_overlong");
    assert!(note["message"].as_str().unwrap().contains("not all of them a hole"), "{note}");
    assert_eq!(note["bytes"].as_u64(), Some((5 << 20) + 12 - 16 * 1024));
    assert_eq!(records(dir.path()), (1..=60).collect::<Vec<_>>());
}

#[test]
fn data_far_behind_the_capacity_is_not_searched_for() {
    for seq in [1, 3, 4] {
        for damaged in [false, true] {
            let dir = closed(60);
            if seq == 4 && !segment(dir.path(), seq).exists() {
                // The next segment, which a close need not wait for.
                continue;
            }
            if damaged {
                let (seq, offset) = place(dir.path(), 60);
                flip(&segment(dir.path(), seq), offset / 512 * 512 + 8);
            }
            let mut file = OpenOptions::new().write(true).open(segment(dir.path(), seq)).unwrap();
            file.seek(SeekFrom::Start(HUGE)).unwrap();
            file.write_all(b"what is this").unwrap();
            drop(file);
            for verb in ["verify", "ls", "dump", "stat", "salvage", "truncate --to 0x100000001"] {
                let run = quickly(verb, || tool(&format!("{verb} DIR"), dir.path()));
                assert_eq!(run.code, i32::from(damaged), "{verb} {seq}: {run:?}");
            }
            if !damaged {
                assert_eq!(quickly("open", || records(dir.path())), (1..=60).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_large_group_may_end_above_the_capacity() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = crate::sample::options().open(dir.path()).unwrap();
    log.advance_epoch(arborlog::Epoch::new(1)).unwrap();
    let payload = vec![7; 100_000];
    for counter in 1..=5 {
        log.append(&arborlog::Record::new(zxid(counter), 1, &payload)).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    let object = tool("verify --json DIR", dir.path()).exits(0).json().remove(0);
    assert_eq!(
        (object["notes"].as_array().map(Vec::len), &object["records"]),
        (Some(0), &5.into()),
        "{object}"
    );
    // The hole begins behind the group.
    for seq in 1..=5 {
        stretch(&segment(dir.path(), seq));
    }
    let object = quickly("verify", || tool("verify --json DIR", dir.path())).exits(0).json().remove(0);
    assert_eq!(
        (object["notes"].as_array().map(Vec::len), &object["records"]),
        (Some(5), &5.into()),
        "{object}"
    );
    assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 5);
}

fn used_by(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// The seal behind a group that ends above the capacity is above it as well.
#[test]
fn a_seal_above_the_capacity_counts() {
    for damaged in [None, Some("seal"), Some("group")] {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = crate::sample::options().open(dir.path()).unwrap();
        log.advance_epoch(arborlog::Epoch::new(1)).unwrap();
        log.append(&arborlog::Record::new(zxid(1), 1, &vec![0; 100_000])).unwrap().wait().unwrap();
        for counter in 2..=20 {
            log.append(&arborlog::Record::new(zxid(counter), 1, b"small")).unwrap().wait().unwrap();
        }
        log.close().unwrap();
        let entries = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
        let segments = entries.filter(|path| path.extension().is_some_and(|e| e == "seg"));
        let path = segments.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let bytes = fs::read(&path).unwrap();
        // A group begins with a word of its own, and the large one is nearly all zeros.
        let magic = &bytes[4096..4100];
        let seal = (4608..bytes.len()).step_by(512).rfind(|at| bytes[*at..].starts_with(magic)).unwrap();
        assert!(seal > 100_000, "{seal}");
        match damaged {
            Some("seal") => flip(&path, seal + 8),
            Some(_) => flip(&path, 4096 + 8),
            None => {}
        }
        let code = i32::from(damaged.is_some());
        let before = tool("verify --json DIR", dir.path()).exits(code).json().remove(0);
        assert_eq!(before["damages_count"], code, "{before}");
        assert_eq!(before["notes"].as_array().map(Vec::len), Some(0), "{before}");
        if damaged == Some("group") {
            assert_eq!(before["damages"][0]["end_offset"].as_u64(), Some(seal as u64), "{before}");
        }
        // The seal ends in zeros, which a copy may make a hole of.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(used_by(&bytes) as u64).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        drop(file);
        let after = tool("verify --json DIR", dir.path()).exits(code).json().remove(0);
        assert_eq!(before, after);
    }
}

/// A copy may turn zeros into holes, and those of a group's end are bytes of the log all the same.
#[test]
fn a_sparse_copy_of_a_large_group_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = crate::sample::options().open(dir.path()).unwrap();
    log.advance_epoch(arborlog::Epoch::new(1)).unwrap();
    log.append(&arborlog::Record::new(zxid(1), 1, b"small")).unwrap().wait().unwrap();
    log.append(&arborlog::Record::new(zxid(2), 1, &vec![0; 300_000])).unwrap().wait().unwrap();
    log.close().unwrap();
    for stretched in [false, true] {
        let entries = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
        let path = entries.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(
            bytes.len() > 300_000 && used_by(&bytes) < 100_000,
            "the group ends above the capacity, in zeros"
        );
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(used_by(&bytes) as u64).unwrap();
        file.set_len(if stretched { HUGE } else { bytes.len() as u64 }).unwrap();
        drop(file);
        let object = quickly("verify", || tool("verify --json DIR", dir.path())).exits(0).json().remove(0);
        let notes = object["notes"].as_array().map(Vec::len);
        assert_eq!((&object["records"], notes), (&2.into(), Some(usize::from(stretched))), "{object}");
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 2);
        let (log, report) = crate::sample::options().open(dir.path()).unwrap();
        assert_eq!((report.records, log.verify().unwrap().len()), (2, 0));
        log.close().unwrap();
    }
}
