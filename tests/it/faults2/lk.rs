//! One owner for each directory.

use std::path::Path;
use std::time::Duration;

use arborlog::{BackendChoice, DatabaseId, Error, ErrorKind, LogOptions};

use super::children::Process;
use super::support::{content, files, in_epoch_1, model, now, put_range, refused, small, t};

fn open_error(dir: &Path) -> Error {
    refused(small().open(dir))
}

#[test]
fn lk_01_a_log_has_one_owner_by_whatever_path() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("log");
    std::fs::create_dir(&dir).unwrap();
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let (log, _) = small().open(&dir).unwrap();
    let log = in_epoch_1(log);
    put_range(&log, 1..=5);
    for path in [&dir, &link, &dir.join("../link/.")] {
        let error = open_error(path);
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "the owner is named: {error}");
    }
    // Another directory whose lock is a hard link to this one's is as good as this directory.
    let other = root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::hard_link(dir.join("LOCK"), other.join("LOCK")).unwrap();
    assert_eq!(open_error(&other).kind(), ErrorKind::Locked);
    // Another process.
    let mut process = Process::start("tries_to_open", &dir, BackendChoice::Threads, false);
    let outcome = process.next("outcome").unwrap();
    assert!(outcome.starts_with("Locked") && outcome.contains(&std::process::id().to_string()), "{outcome}");
    put_range(&log, 6..=10);
    drop(log);
    let (log, _) = small().open(&link).unwrap();
    assert_eq!(content(&log), model((1..=10).map(t)));
    // A bind mount needs privileges that a test does not have; it leads to the same inode as the link does.
}

/// After a drop, a close, a failed open, a panic and a kill, the next open works at once.
#[test]
fn lk_01_the_lock_goes_with_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let start = now();
    for round in 0..4 {
        let (log, _) = small().open(dir.path()).unwrap();
        match round {
            0 => drop(log),
            1 => log.close().unwrap(),
            2 => {
                drop(log);
                let foreign = LogOptions::new().expected_database_id(DatabaseId::from_bytes([7; 16]));
                assert_eq!(refused(foreign.open(dir.path())).kind(), ErrorKind::WrongOwner);
            }
            _ => {
                let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _log = log;
                    std::panic::resume_unwind(Box::new("a panic of the server"));
                }));
                assert!(unwound.is_err());
            }
        }
    }
    // A process that was started while the log was open has nothing of it.
    let (log, _) = small().open(dir.path()).unwrap();
    let mut sleeper = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    drop(log);
    drop(small().open(dir.path()).unwrap());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    let mut process =
        Process::start("holds_the_log_until_it_is_killed", dir.path(), BackendChoice::Threads, false);
    process.next("open").unwrap();
    let error = open_error(dir.path());
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&process.id().to_string()), "{error}");
    process.kill();
    drop(small().open(dir.path()).unwrap());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A copy of a directory is a log of its own: both go on, and neither touches the other.
#[test]
fn lk_03_a_copy_is_a_log_of_its_own() {
    let (original, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (log, _) = small().open(original.path()).unwrap();
    put_range(&in_epoch_1(log), 1..=50);
    for name in files(original.path()).keys() {
        std::fs::copy(original.path().join(name), copy.path().join(name)).unwrap();
    }
    let (one, _) = small().open(original.path()).unwrap();
    let (other, _) = small().open(copy.path()).unwrap();
    assert_eq!(one.database_id(), other.database_id());
    put_range(&one, 51..=100);
    one.close().unwrap();
    let before = files(original.path());
    put_range(&other, 51..=70);
    other.purge(t(60), &arborlog::Retention::new()).unwrap();
    other.close().unwrap();
    assert_eq!(files(original.path()), before);
    let (one, _) = small().open(original.path()).unwrap();
    assert_eq!(content(&one), model((1..=100).map(t)));
    let error = refused(small().expected_database_id(DatabaseId::from_bytes([9; 16])).open(copy.path()));
    assert_eq!(error.kind(), ErrorKind::WrongOwner);
    let (other, _) = small().expected_database_id(one.database_id()).open(copy.path()).unwrap();
    assert_eq!(other.durable_zxid(), t(70));
}

/// Segments of two logs that were swapped: neither is opened, and nothing is changed.
#[test]
fn df_07_segments_of_another_log_are_refused() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for dir in &dirs {
        let (log, _) = small().open(dir.path()).unwrap();
        let log = in_epoch_1(log);
        put_range(&log, 1..=50);
        log.close().unwrap();
    }
    let first = files(dirs[0].path()).into_keys().find(|name| name.ends_with(".seg")).unwrap();
    let [a, b] = [dirs[0].path().join(&first), dirs[1].path().join(&first)];
    let held = dirs[0].path().join("held");
    for (from, to) in [(&a, &held), (&b, &a), (&held, &b)] {
        std::fs::rename(from, to).unwrap();
    }
    for dir in &dirs {
        let before = files(dir.path());
        let error = open_error(dir.path());
        assert_eq!((error.kind(), error.code()), (ErrorKind::WrongOwner, "segment_foreign"), "{error}");
        assert_eq!(files(dir.path()), before);
    }
}
