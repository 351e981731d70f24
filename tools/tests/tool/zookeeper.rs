//! `arborlog zookeeper`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine_sample::{all_files, all_unchanged};
use crate::sample::arborlog;

/// A directory that a real server wrote.
fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zookeeper").join(name)
}

fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("version-2")).unwrap();
    for entry in fs::read_dir(recorded(name).join("version-2")).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), dir.path().join("version-2").join(entry.file_name())).unwrap();
    }
    dir
}

#[test]
fn a_servers_data_become_an_engine_and_a_servers_data_again() {
    let source = recorded("snapcount/data");
    let before = all_files(&source);
    let trial = tempfile::tempdir().unwrap();
    let (engine, back) = (trial.path().join("engine"), trial.path().join("back"));
    let verb = format!("zookeeper import --json {} {}", source.display(), engine.display());
    let plan = arborlog(&format!("{verb} --dry-run"), trial.path()).exits(0).json().remove(0);
    assert_eq!((&plan["done"], engine.exists()), (&false.into(), false));
    let done = arborlog(&verb, trial.path()).exits(0).json().remove(0);
    assert_eq!((&done["digest"], &done["replayed"]), (&"0x9bdb93d518".into(), &43.into()));
    for field in ["digest", "last_zxid", "nodes", "sessions", "snapshot", "findings"] {
        assert_eq!(plan[field], done[field], "{field}");
    }
    arborlog("verify --deep DIR", &engine).exits(0);
    arborlog(&verb, trial.path()).exits(3);
    let verb = format!("zookeeper export --format 3.9 --json {} {}", engine.display(), back.display());
    let written = arborlog(&verb, trial.path()).exits(0).json().remove(0);
    assert_eq!((&written["digest"], &written["snapshot"]), (&done["digest"], &"snapshot.e33".into()));
    // It has no log, which is to be said: a server's may be elsewhere.
    let unsaid = arborlog("zookeeper verify --json DIR", &back).exits(2).json();
    assert_eq!(unsaid.last().unwrap()["error"]["code"], "zk_no_log");
    let again = arborlog("zookeeper verify --snapshot-alone --json DIR", &back).exits(0).json();
    assert_eq!(again.last().unwrap()["digest"], done["digest"]);
    arborlog(&verb, trial.path()).exits(3);
    all_unchanged(&before, &source);
}

#[test]
fn ix_05_every_verb_ends_by_what_it_found() {
    let dir = copy("multi/data");
    arborlog("zookeeper verify DIR", dir.path()).exits(0);
    let log = dir.path().join("version-2/log.1");
    let whole = fs::read(&log).unwrap();
    let damaged: Vec<u8> =
        whole.iter().enumerate().map(|(at, b)| if at == 40 { b ^ 1 } else { *b }).collect();
    fs::write(&log, damaged).unwrap();
    let lines = arborlog("zookeeper verify --json DIR", dir.path()).exits(1).json();
    let log_line = lines.iter().find(|line| line["file"] == "log.1").unwrap();
    assert_eq!(log_line["error"]["code"], "zk_log_damage");
    assert_eq!(lines.last().unwrap()["error"]["code"], "zk_log_damage");
    let dest = dir.path().join("new");
    let verb = format!("zookeeper import {} {}", dir.path().display(), dest.display());
    arborlog(&verb, dir.path()).exits(1);
    assert!(!dest.exists(), "what was refused leaves nothing");
    arborlog(&format!("zookeeper dump {}", log.display()), dir.path()).exits(1);
    // A torn end is sound.
    fs::write(&log, &whole[..500]).unwrap();
    let lines = arborlog("zookeeper verify --json DIR", dir.path()).exits(0).json();
    assert_eq!(lines.iter().find(|line| line["file"] == "log.1").unwrap()["torn"], true);
    arborlog(&format!("zookeeper dump {}", dir.path().display()), dir.path()).exits(2);
}

#[test]
fn files_are_dumped_as_they_are() {
    let version = recorded("fmt-39-gz/version-2");
    let log =
        arborlog(&format!("zookeeper dump {}", version.join("log.1").display()), &version).exits(0).json();
    let txns = log.iter().filter(|line| line["type"] == "txn").count();
    assert_eq!((txns, log.len()), (36, 37));
    assert!(log[0]["digest"].is_string() && log[0]["offset"] == 16);
    let path = version.join("snapshot.20.gz");
    let lines = arborlog(&format!("zookeeper dump {}", path.display()), &version).exits(0).json();
    assert!(lines.iter().any(|line| line["type"] == "session"));
    assert!(lines.iter().any(|line| line["path"] == "/zookeeper/config"));
    assert!(lines.last().unwrap()["digest"].is_string());
}

#[test]
fn an_import_that_was_cut_off_is_told_for_what_it_is() {
    let trial = tempfile::tempdir().unwrap();
    let (dest, log_dir) = (trial.path().join("dest"), trial.path().join("logs"));
    for dir in [&dest, &log_dir] {
        fs::create_dir(dir).unwrap();
    }
    fs::create_dir(log_dir.join("log-1")).unwrap();
    fs::write(dest.join("founding.partial"), log_dir.to_str().unwrap()).unwrap();
    let object = arborlog("verify --json DIR", &dest).exits(1).json().remove(0);
    let damages = object["damages"].as_array().unwrap();
    assert_eq!((damages.len(), &damages[0]["code"]), (1, &"founding_unfinished".into()), "{object}");
    let told = arborlog("inspect DIR", &dest).exits(1).out;
    assert!(told.contains("was cut off") && told.contains("begins anew"), "{told}");
    assert!(!told.contains("mounted") && !told.contains("not arborlog's"), "{told}");
    arborlog("stat DIR", &dest).exits(1);
    // Begun anew with another place for the log, it would forget the one that it has left.
    let verb = format!("zookeeper import {} {}", recorded("multi/data").display(), dest.display());
    arborlog(&verb, trial.path()).exits(3);
    arborlog(&format!("{verb} --log-dir {}", log_dir.display()), trial.path()).exits(0);
    arborlog(&format!("verify DIR --log-dir {}", log_dir.display()), &dest).exits(0);
}

#[test]
fn a_time_of_an_engine_that_has_no_txn_yet_is_no_later_txn() {
    let trial = tempfile::tempdir().unwrap();
    let (dest, again) = (trial.path().join("dest"), trial.path().join("again"));
    let verb = format!("zookeeper import {} {}", recorded("multi/data").display(), dest.display());
    arborlog(&verb, trial.path()).exits(0);
    let verb = format!("restore --json {} {}", dest.display(), again.display());
    let told =
        arborlog(&format!("{verb} --to-time 2100-01-01T00:00:00Z"), trial.path()).exits(3).json().remove(0);
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("no txn yet"), "{message}");
    arborlog(&verb, trial.path()).exits(0);
}
