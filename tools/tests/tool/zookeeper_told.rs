//! What the verbs of `arborlog zookeeper` tell: of names that do harm, on a full disk, of one place with two names.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::exits::arborlog_to_full;
use crate::sample::{Run, arborlog};
use crate::zookeeper::copy;

/// Clears a screen, forges a line, and turns the writing around.
const HARM: &str = "\u{1b}[2J\nall-is-well\u{9b}\u{202e}";
/// The same on one line.
const HARMLESS: &str = r"\u{1b}[2J\nall-is-well\u{9b}\u{202e}";

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1_u32, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

/// A server's directory: a log without a txn, and a snapshot of these nodes with the numbers of their ACLs.
fn server(nodes: &[(&str, i64)]) -> TempDir {
    let mut bytes = b"ZKSN\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (path, acl) in nodes {
        put(&mut bytes, path.as_bytes());
        put(&mut bytes, b"");
        bytes.extend(acl.to_be_bytes());
        bytes.extend([0; 60]);
    }
    put(&mut bytes, b"/");
    let sum = adler32(&bytes);
    bytes.extend(u64::from(sum).to_be_bytes());
    put(&mut bytes, b"/");
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("version-2");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("snapshot.0"), bytes).unwrap();
    fs::write(below.join("log.1"), b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").unwrap();
    dir
}

/// Nothing of it moves a cursor, and each line is one of the tool's.
#[track_caller]
fn is_harmless(run: &Run) {
    let text = format!("{}{}", run.out, run.err);
    let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(is_harmful) && !text.contains("\nall-is-well"), "{run:#?}");
    assert!(text.contains(HARMLESS), "{run:#?}");
}

#[test]
fn paths_that_do_harm_are_told_on_one_line() {
    let orphan = server(&[("", -1), (&format!("/no/{HARM}"), -1)]);
    let run = arborlog("zookeeper verify DIR", orphan.path()).exits(1);
    is_harmless(&run);
    assert!(run.out.contains("1 node has no parent: /no/"), "{run:#?}");
    let (one, two) = (format!("/a/{HARM}"), format!("/b/{HARM}"));
    let run = arborlog("zookeeper verify DIR", server(&[("", -1), (&one, -1), (&two, -1)]).path()).exits(1);
    is_harmless(&run);
    assert!(run.out.contains("2 nodes have no parent, of which the first is /a/"), "{run:#?}");
    let without_acl = server(&[("", -1), (&format!("/{HARM}"), 7)]);
    is_harmless(&arborlog("zookeeper verify DIR", without_acl.path()).exits(1));
    let trial = tempfile::tempdir().unwrap();
    let engine = trial.path().join("engine");
    let verb = format!("zookeeper import DIR {}", engine.display());
    is_harmless(&arborlog(&verb, without_acl.path()).exits(1));
    is_harmless(&arborlog(&format!("{verb} --salvage"), without_acl.path()).exits(0));
    is_harmless(&arborlog("tree DIR", &engine).exits(0));
}

#[test]
fn names_of_files_that_do_harm_are_told_on_one_line() {
    let dir = server(&[("", -1)]);
    for name in ["log.", "snapshot.", "other."] {
        let name = format!("{name}{HARM}");
        fs::write(dir.path().join("version-2").join(&name), b"nothing").unwrap();
        let code = if name.starts_with("other") { 2 } else { 1 };
        let run = arborlog(&format!("zookeeper dump DIR/version-2/{name}"), dir.path()).exits(code);
        let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!run.out.contains(is_harmful) && run.out.contains("\\u009b"), "{run:#?}");
        let error = run.json().remove(0)["error"].clone();
        // The library's message is for people.
        let raw = if name.starts_with("other") { &error["message"] } else { &error["file"] };
        assert!(raw.as_str().unwrap().contains(HARM), "a reader of JSON gets it as it is: {error}");
    }
    let run = arborlog("zookeeper verify DIR", dir.path()).exits(0);
    is_harmless(&run);
    assert_eq!(run.out.matches(HARMLESS).count(), 3, "{run:#?}");
    // Who reads JSON gets the name as it is.
    let state = arborlog("zookeeper verify --json DIR", dir.path()).exits(0).json().pop().unwrap();
    let files: Vec<_> = state["findings"].as_array().unwrap().iter().map(|f| f["file"].clone()).collect();
    assert!(files.contains(&format!("log.{HARM}").into()), "{state}");
}

#[track_caller]
fn ends_on_a_full_disk(arguments: &str, dir: &Path, code: i32, told: &str) {
    let (ended, err) = arborlog_to_full(arguments, dir);
    assert_eq!(ended, code, "{arguments}: {err}");
    assert!(err.contains("cannot write the output") && err.contains(told), "{arguments}: {err}");
}

#[test]
fn what_was_judged_or_made_keeps_its_code_though_it_cannot_be_told() {
    let trial = tempfile::tempdir().unwrap();
    for json in ["", " --json"] {
        let dir = copy("multi/data");
        let ends = |verb: &str, code, told| {
            ends_on_a_full_disk(&format!("zookeeper {verb}{json}"), dir.path(), code, told)
        };
        ends("verify DIR", 0, "; nothing is damaged");
        let file = dir.path().join("version-2/log.1");
        ends(&format!("dump {}", file.display()), 3, "");
        let (engine, back) = (
            trial.path().join(format!("e{json}").replace(' ', "")),
            trial.path().join(format!("b{json}").replace(' ', "")),
        );
        ends(&format!("import --dry-run DIR {}", engine.display()), 3, "");
        ends(&format!("import DIR {}", engine.display()), 0, "; the engine was made");
        let export = format!("export --format 3.9 {} {}", engine.display(), back.display());
        ends(&format!("{export} --dry-run"), 3, "");
        ends(&export, 0, "; the state was written");
        let whole = fs::read(&file).unwrap();
        fs::write(
            &file,
            whole.iter().enumerate().map(|(at, b)| if at == 40 { b ^ 1 } else { *b }).collect::<Vec<_>>(),
        )
        .unwrap();
        ends("verify DIR", 1, "; the data are damaged");
        fs::remove_file(&file).unwrap();
        ends("verify DIR", 3, "; an import refuses the data");
    }
}

#[test]
fn one_directory_by_two_names_is_read_once() {
    let dir = copy("multi/data");
    let plain = arborlog("zookeeper verify DIR", dir.path()).exits(0).out;
    let trial = tempfile::tempdir().unwrap();
    symlink(dir.path(), trial.path().join("link")).unwrap();
    for other in [dir.path().join("version-2/.."), dir.path().join("version-2"), trial.path().join("link")] {
        let verb = format!("zookeeper verify DIR --data-log-dir {}", other.display());
        assert_eq!(arborlog(&verb, dir.path()).exits(0).out, plain, "{}", other.display());
    }
    // Another one is another one.
    let other = copy("basic/data");
    let verb = format!("zookeeper verify DIR --data-log-dir {}", other.path().display());
    assert!(arborlog(&verb, dir.path()).out.contains("foreign-file"));
}

#[test]
fn a_refusal_names_the_directory_where_nothing_was() {
    let dir = copy("multi/data");
    let below = dir.path().join("version-2");
    let names = |switch: &str, code: i32, word: &str| {
        let verb = format!("zookeeper verify DIR {switch}");
        let state = arborlog(&format!("{verb} --json"), dir.path()).exits(code).json().pop().unwrap();
        let file = below.display().to_string();
        assert_eq!((&state["error"]["code"], &state["error"]["file"]), (&word.into(), &file.as_str().into()));
        let out = arborlog(&verb, dir.path()).exits(code).out;
        assert!(out.contains(&file), "{out}");
    };
    names("--to-zxid=0x999", 3, "not_in_log");
    let (snapshot, log) = (below.join("snapshot.0"), below.join("log.1"));
    let whole = fs::read(&log).unwrap();
    fs::write(&snapshot, b"nothing").unwrap();
    fs::write(&log, b"nothing").unwrap();
    names("--salvage", 1, "zk_no_snapshot");
    fs::write(&log, whole).unwrap();
    fs::remove_file(&snapshot).unwrap();
    names("--snapshot-alone", 1, "zk_no_snapshot");
}

/// Something that is no file. The link leads to one that is whole by its first bytes.
fn make(kind: &str, at: &Path) {
    match kind {
        "link" => {
            let elsewhere = at.with_file_name("elsewhere");
            fs::write(&elsewhere, b"ZKLG").unwrap();
            symlink(&elsewhere, at).unwrap();
        }
        "link to nothing" => symlink("nothing", at).unwrap(),
        "pipe" => assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
        "socket" => drop(UnixListener::bind(at).unwrap()),
        "directory" => fs::create_dir(at).unwrap(),
        _ => unreachable!("{kind}"),
    }
}

#[test]
fn ix_01_what_is_no_file_is_told_and_all_others_are_read() {
    for kind in ["link", "link to nothing", "pipe", "socket", "directory"] {
        // Before the others in the order of names, and behind them.
        for name in ["log.0", "log.99", "snapshot.1", "snapshot.99.gz", "currentEpoch"] {
            let dir = copy("fmt-39");
            make(kind, &dir.path().join("version-2").join(name));
            refuses_one_and_reads_the_others(&dir, name, kind);
        }
    }
}

#[test]
fn ix_01_each_epoch_that_is_no_file_is_told_and_none_is_opened() {
    let dir = copy("fmt-39");
    let [current, accepted] =
        ["currentEpoch", "acceptedEpoch"].map(|name| dir.path().join("version-2").join(name));
    [&current, &accepted].into_iter().for_each(|at| make("pipe", at));
    // Whoever writes to a pipe waits until it is opened.
    // By itself it ends, and has nothing of this test open, in case that fails.
    let mut writer = Command::new("timeout");
    writer.args(["60", "sh", "-c", "exec echo 5 > \"$0\""]).arg(&accepted);
    let mut writer = writer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = arborlog("zookeeper verify --json DIR", dir.path()).exits(3).json();
    let told: Vec<_> =
        lines.iter().filter(|line| line["type"] == "epoch").map(|line| &line["file"]).collect();
    assert_eq!(told, ["currentEpoch", "acceptedEpoch"]);
    let told = arborlog("zookeeper verify DIR", dir.path()).exits(3).out;
    assert_eq!(
        told.lines().filter(|line| line.contains("Epoch") && line.contains(" not read: ")).count(),
        2,
        "{told}"
    );
    let went_on = writer.try_wait().unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(went_on.is_none(), "it was opened");
}

#[track_caller]
fn refuses_one_and_reads_the_others(dir: &TempDir, name: &str, kind: &str) {
    let lines = arborlog("zookeeper verify --json DIR", dir.path()).exits(3).json();
    let mut read = 0;
    for line in &lines {
        let is_it = line["file"] == name || line["type"] == "state";
        let code = if is_it { "zk_irregular".into() } else { serde_json::Value::Null };
        assert_eq!(line["error"]["code"], code, "{kind} {name}: {line}");
        read += usize::from(line["count"].as_u64().is_some_and(|count| count > 0));
    }
    assert_eq!((read, lines.len()), (3, 5), "{kind} {name}: {lines:?}");
    assert_eq!(lines.last().unwrap()["error"]["file"], name, "{kind}");
    let told = arborlog("zookeeper verify DIR", dir.path()).exits(3).out;
    let line = format!("{name:24} not read: {name}: it is no regular file");
    assert!(told.lines().any(|told| told.starts_with(&line)), "{kind}: {told}");
    // An import leaves nothing out.
    let dest = dir.path().join("../refused");
    for verb in ["import", "import --salvage", "import --dry-run"] {
        let run = arborlog(&format!("zookeeper {verb} DIR {}", dest.display()), dir.path()).exits(3);
        assert!(run.err.contains(name) && run.err.contains("[zk_irregular]"), "{kind} {verb}: {run:?}");
        assert!(!dest.exists(), "{kind} {verb}");
    }
    if !name.ends_with("Epoch") {
        arborlog(&format!("zookeeper dump DIR/version-2/{name}"), dir.path()).exits(3);
    }
    // Damage is the worse of the two, wherever it is.
    let log = dir.path().join("version-2/log.1");
    let mut bytes = fs::read(&log).unwrap();
    bytes[40] ^= 1;
    fs::write(&log, bytes).unwrap();
    let lines = arborlog("zookeeper verify --json DIR", dir.path()).exits(1).json();
    let codes: Vec<_> = lines.iter().filter_map(|line| line["error"]["code"].as_str()).collect();
    assert!(codes.contains(&"zk_irregular") && codes.contains(&"zk_log_damage"), "{kind} {name}: {codes:?}");
}
