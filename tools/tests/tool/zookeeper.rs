//! `arborlog zookeeper`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::engine_sample::{all_files, all_unchanged, options, work};
use crate::sample::arborlog;

/// A directory that a real server wrote.
fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zookeeper").join(name)
}

pub(crate) fn copy(name: &str) -> tempfile::TempDir {
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
    // Seconds, where milliseconds are meant.
    let early = "--to-time 1795952260 --dry-run";
    let verb = format!("zookeeper import {} {} {early}", recorded("multi/data").display(), back.display());
    let told = arborlog(&verb, trial.path()).exits(0).out;
    assert!(told.contains("before the first txn of all"), "{told}");
    let verb = format!("zookeeper export --format 3.9 --json {} {}", engine.display(), back.display());
    let written = arborlog(&verb, trial.path()).exits(0).json().remove(0);
    assert_eq!((&written["digest"], &written["snapshot"]), (&done["digest"], &"snapshot.e33".into()));
    // It has no log, which is to be said: a server's may be elsewhere.
    let unsaid = arborlog("zookeeper verify --json DIR", &back).exits(3).json();
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
    let trial = tempfile::tempdir().unwrap();
    let dest = trial.path().join("new");
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
    let mark = format!("{}{}\n", "07".repeat(16), log_dir.display());
    fs::write(dest.join("founding.partial"), mark).unwrap();
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

#[test]
fn exit_codes_of_all_verbs_are_of_one_mould() {
    // A snapshot that no server can use: the state is whole without it, and the source is damaged.
    let dir = copy("fmt-39");
    let snapshot = dir.path().join("version-2/snapshot.20");
    let mut bytes = fs::read(&snapshot).unwrap();
    bytes[100] ^= 1;
    fs::write(&snapshot, bytes).unwrap();
    let trial = tempfile::tempdir().unwrap();
    let (dest, other) = (trial.path().join("dest"), trial.path().join("other"));
    let verb = |dest: &Path| format!("zookeeper import DIR {}", dest.display());
    arborlog("zookeeper verify DIR", dir.path()).exits(1);
    arborlog(&format!("{} --dry-run", verb(&dest)), dir.path()).exits(1);
    arborlog(&verb(&dest), dir.path()).exits(1);
    arborlog("verify DIR", &dest).exits(0);
    // What was asked for was done.
    arborlog(&format!("{} --salvage", verb(&other)), dir.path()).exits(0);
    // A file that is no file, and no log.
    let dir = copy("fmt-39");
    let log = dir.path().join("version-2/log.1");
    fs::rename(&log, trial.path().join("log")).unwrap();
    let new = trial.path().join("new");
    let codes = |what: &str, code: &str| {
        for verb in ["zookeeper verify --json DIR".to_owned(), format!("{} --json", verb(&new))] {
            let run = arborlog(&verb, dir.path()).exits(3);
            assert!(run.out.contains(&format!("\"code\":\"{code}\"")), "{what}: {run:?}");
        }
    };
    codes("no log", "zk_no_log");
    symlink(trial.path().join("log"), &log).unwrap();
    codes("a link", "zk_irregular");
    let run = arborlog("zookeeper dump DIR/version-2/log.1", dir.path()).exits(3);
    assert_eq!(run.json()[0]["error"]["code"], "zk_irregular", "{run:?}");
    // What the format does not have.
    let engine = trial.path().join("containers");
    let source = recorded("containers-ttl/data");
    arborlog(&format!("zookeeper import {} {}", source.display(), engine.display()), &source).exits(0);
    let verb = format!("zookeeper export --json DIR {} --format 3.4", new.display());
    let refused = arborlog(&verb, &engine).exits(3).json().remove(0);
    assert_eq!(refused["error"]["code"], "zk_format");
    // No engine, and a request that makes no sense.
    let refused = arborlog(&verb, trial.path()).exits(3).json().remove(0);
    assert_eq!(refused["error"]["code"], "no_log");
    arborlog(&format!("{verb} --compression gz"), &engine).exits(2);
    assert!(new.read_dir().map_or(0, Iterator::count) == 0, "what was refused leaves nothing");
}

#[test]
fn nothing_is_made_in_what_is_only_read() {
    let source = copy("multi/data");
    let trial = tempfile::tempdir().unwrap();
    let (engine, link) = (trial.path().join("engine"), trial.path().join("link"));
    symlink(source.path(), &link).unwrap();
    let before = all_files(source.path());
    for dest in ["DIR", "DIR/new", "DIR/version-2", "DIR/version-2/log.62"] {
        for dry in ["", " --dry-run"] {
            let run = arborlog(&format!("zookeeper import DIR {dest}{dry}"), source.path()).exits(2);
            assert!(run.err.contains("lies inside"), "{dest}: {run:?}");
            let verb = format!("zookeeper import {} {dest}{dry}", link.display());
            arborlog(&verb, source.path()).exits(2);
        }
    }
    let verb = format!("zookeeper import DIR {}", engine.display());
    arborlog(&format!("{verb} --log-dir {}", link.join("version-2").display()), source.path()).exits(2);
    all_unchanged(&before, source.path());
    arborlog(&verb, source.path()).exits(0);
    let before = all_files(&engine);
    arborlog("zookeeper export DIR DIR/out --format 3.9", &engine).exits(2);
    arborlog("restore DIR DIR/out", &engine).exits(2);
    arborlog("restore DIR DIR/out --dry-run", &engine).exits(2);
    all_unchanged(&before, &engine);
}

#[test]
fn import_restore_and_export_are_of_one_mould() {
    const FIELDS: [&str; 10] = [
        "type",
        "done",
        "began_with",
        "replayed",
        "source_zxid",
        "nodes",
        "sessions",
        "closed_sessions",
        "last_zxid",
        "digest",
    ];
    let trial = tempfile::tempdir().unwrap();
    let at = |name: &str| trial.path().join(name).display().to_string();
    let source = recorded("ephemerals/data").display().to_string();
    let format = " --format 3.9";
    for (verb, from, to, more) in [
        ("zookeeper import", &source, at("engine"), ""),
        ("restore", &at("engine"), at("restored"), ""),
        ("zookeeper export", &at("engine"), at("data"), format),
    ] {
        let verb = format!("{verb} --json {from} {to} --without-sessions{more}");
        let plan = arborlog(&format!("{verb} --dry-run"), trial.path()).exits(0).json().remove(0);
        assert!(!Path::new(&to).exists(), "{verb}");
        let done = arborlog(&verb, trial.path()).exits(0).json().remove(0);
        for field in FIELDS {
            assert!(done.get(field).is_some(), "{verb}: {field}");
            assert!(field == "done" || plan[field] == done[field], "{verb}: {field}: {plan} {done}");
        }
        assert_eq!((&plan["done"], &done["done"]), (&false.into(), &true.into()), "{verb}");
        // Both look at the destination.
        arborlog(&verb, trial.path()).exits(3);
        arborlog(&format!("{verb} --dry-run"), trial.path()).exits(3);
        let usage = arborlog(&format!("{verb} --to-zxid 1 --to-time 1"), trial.path());
        usage.exits(2);
    }
}

#[test]
fn what_verify_says_is_what_an_import_with_the_same_switches_makes() {
    let dir = copy("multi/data");
    let log = dir.path().join("version-2/log.1");
    let mut bytes = fs::read(&log).unwrap();
    // In the middle of its entries, which end at byte 10774.
    bytes[5000] ^= 1;
    fs::write(&log, bytes).unwrap();
    let trial = tempfile::tempdir().unwrap();
    let dest = trial.path().join("new");
    let ttl = recorded("containers-ttl/data");
    for (source, switches, code) in [
        (dir.path(), "", 1),
        (dir.path(), "--salvage", 1),
        (dir.path(), "--to-zxid 0x8", 1),
        (dir.path(), "--to-zxid 0x8 --salvage", 1),
        (dir.path(), "--to-time 1", 1),
        (&ttl, "--no-extended-types", 0),
        (&ttl, "--to-zxid 0x999", 3),
    ] {
        let switches = if switches.is_empty() { String::new() } else { format!(" {switches}") };
        let verify = format!("zookeeper verify --json DIR{switches}");
        let state = arborlog(&verify, source).exits(code).json().pop().unwrap();
        let import = format!("zookeeper import --json --dry-run DIR {}{switches}", dest.display());
        let made = arborlog(&import, source).json().pop().unwrap();
        if state["error"].is_null() {
            for field in ["digest", "last_zxid", "nodes", "sessions", "replayed", "findings"] {
                assert_eq!(state[field], made[field], "{switches}: {field}");
            }
        } else {
            assert_eq!(state["error"]["code"], made["error"]["code"], "{switches}: {state} {made}");
        }
    }
    let told = arborlog("zookeeper verify DIR --salvage", dir.path()).exits(1).out;
    assert!(told.contains("damaged: ") && told.contains("the state at 0x"), "{told}");
    arborlog("zookeeper verify DIR --to-zxid 1 --to-time 1", dir.path()).exits(2);
}

#[test]
fn who_forgets_where_the_log_of_the_source_is_is_told_of_the_switch() {
    let trial = tempfile::tempdir().unwrap();
    let at = |name: &str| trial.path().join(name).display().to_string();
    fs::create_dir(at("logs")).unwrap();
    fs::create_dir(at("other")).unwrap();
    let verb = format!(
        "zookeeper import {} {} --log-dir {}",
        recorded("multi/data").display(),
        at("engine"),
        at("logs")
    );
    arborlog(&verb, trial.path()).exits(0);
    for verb in ["restore DIR/engine DIR/new", "zookeeper export --format 3.9 DIR/engine DIR/new"] {
        let run = arborlog(verb, trial.path()).exits(1);
        assert!(run.err.contains("[generation_missing]"), "{run:?}");
        assert!(run.err.contains("name it: --source-log-dir DIR"), "{run:?}");
        let run = arborlog(&format!("{verb} --source-log-dir DIR/other"), trial.path()).exits(1);
        assert!(run.err.contains(&format!("--source-log-dir names {}", at("other"))), "{run:?}");
        arborlog(&format!("{verb} --source-log-dir DIR/logs --dry-run"), trial.path()).exits(0);
    }
}

/// The size of files is limited to 1 KiB, which the tool takes for a full disk.
#[test]
fn ix_05_a_full_disk_names_the_file() {
    let trial = tempfile::tempdir().unwrap();
    let (large, young, dest) =
        (trial.path().join("large"), trial.path().join("young"), trial.path().join("new"));
    let source = recorded("snapcount/data");
    arborlog(&format!("zookeeper import {} {}", source.display(), large.display()), trial.path()).exits(0);
    fs::create_dir(&young).unwrap();
    let (engine, _) = options().open(&young).unwrap();
    work(&engine, 1, 19, "data");
    engine.close().unwrap();
    for (engine, switches, begin) in [
        (&large, "--compression none", "snapshot.e33"),
        (&large, "--compression gz", "snapshot.e33.gz"),
        (&large, "--compression snappy", "snapshot.e33.snappy"),
        (&young, "--log-tail", "log.300000001"),
    ] {
        let verb = format!("zookeeper export {} {} --format 3.9 --json", engine.display(), dest.display());
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
        let output = Command::new("bash")
            .args(["-c", script, "bash", env!("CARGO_BIN_EXE_arborlog")])
            .args(verb.split(' '))
            .args(switches.split(' '))
            .output()
            .unwrap();
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (error, code) = (&object["error"], output.status.code());
        assert_eq!((&error["code"], code), (&"no_space".into(), Some(3)), "{switches}: {object}");
        assert_eq!(error["file"], begin, "{switches}: {object}");
        assert!(!dest.exists(), "{switches}");
    }
}
