//! One rule for all exit codes: 0 clean, 1 damaged, 2 usage, 3 the disk failed or the request was refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::sample::{closed, files, flip, killed, place, segment, tool, unchanged};

/// Every verb that looks at a whole log, in a form that changes nothing.
const VERBS: [&str; 6] =
    ["ls DIR", "dump DIR", "verify DIR", "stat DIR", "truncate DIR --to 0x100000001", "salvage DIR"];

#[test]
fn every_verb_says_the_same_of_the_same_log() {
    let damaged = closed(60);
    let (seq, offset) = place(damaged.path(), 25);
    flip(&segment(damaged.path(), seq), offset);
    let foreign_manifest = closed(60);
    let other = closed(60);
    fs::copy(other.path().join("log.manifest"), foreign_manifest.path().join("log.manifest")).unwrap();
    let foreign_segment = closed(60);
    fs::copy(segment(other.path(), 2), segment(foreign_segment.path(), 2)).unwrap();
    let no_manifest = closed(60);
    fs::remove_file(no_manifest.path().join("log.manifest")).unwrap();
    let no_segment = closed(60);
    fs::remove_file(segment(no_segment.path(), 2)).unwrap();
    let newer = closed(60);
    newer_manifest(newer.path());
    let newer_part = closed(60);
    newer_segment(&segment(newer_part.path(), 2));
    let torn = killed(60);
    let (seq, offset) = place(torn.path(), 60);
    flip(&segment(torn.path(), seq), offset);
    let sound = closed(60);
    for (what, dir, code) in [
        ("sound", &sound, 0),
        ("torn", &torn, 0),
        ("damaged", &damaged, 1),
        ("a foreign manifest", &foreign_manifest, 1),
        ("a foreign segment", &foreign_segment, 1),
        ("no manifest", &no_manifest, 1),
        ("a segment is missing", &no_segment, 1),
        ("written by a newer version", &newer, 3),
        ("a segment of a newer version", &newer_part, 3),
    ] {
        for verb in VERBS {
            for json in ["", " --json"] {
                let run = tool(&format!("{verb}{json}"), dir.path());
                assert_eq!(run.code, code, "{what}: {verb}{json}: {run:#?}");
            }
        }
    }
    // A refusal of a change is what it would be without `--yes`.
    for verb in ["truncate DIR --to 0x100000001 --yes", "salvage DIR --yes"] {
        tool(verb, newer.path()).exits(3);
        tool(verb, foreign_manifest.path()).exits(1);
    }
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

/// Makes the manifest one of a version that this tool does not know.
fn newer_manifest(dir: &Path) {
    let path = dir.join("log.manifest");
    let text = fs::read_to_string(&path).unwrap();
    let body = text[..text.len() - "crc32 00000000\n".len()].replacen("manifest 1\n", "manifest 9\n", 1);
    let crc = crc32(body.as_bytes());
    fs::write(&path, format!("{body}crc32 {crc:08x}\n")).unwrap();
}

/// The same of a segment.
fn newer_segment(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[12] = 9;
    let crc = crc32(&bytes[12..4096]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

/// Runs `arborlog log ARGUMENTS` with its standard output on a full disk.
fn to_full(arguments: &str, dir: &Path) -> (i32, String) {
    arborlog_to_full(&format!("log {arguments}"), dir)
}

/// Runs `arborlog ARGUMENTS` so.
pub(crate) fn arborlog_to_full(arguments: &str, dir: &Path) -> (i32, String) {
    let arguments = arguments.split(' ').map(|a| if a == "DIR" { dir.as_os_str() } else { a.as_ref() });
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arborlog"));
    command.args(arguments).stdin(Stdio::null()).stdout(full);
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_was_done_is_done_though_it_cannot_be_told() {
    for json in ["", " --json"] {
        let dir = closed(60);
        let (code, err) = to_full(&format!("truncate DIR --to 0x10000000a --yes{json}"), dir.path());
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("cannot write the output") && err.contains("was truncated"), "{err}");
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 10);
        let (seq, offset) = place(dir.path(), 5);
        flip(&segment(dir.path(), seq), offset);
        let (code, err) = to_full(&format!("salvage DIR --yes{json}"), dir.path());
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("cannot write the output") && err.contains("was salvaged"), "{err}");
        assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 4);
    }
}

#[test]
fn a_verdict_needs_no_output_and_a_listing_is_nothing_without() {
    for json in ["", " --json"] {
        let dir = closed(60);
        let before = files(dir.path());
        for (verb, sound) in [("verify DIR", 0), ("ls DIR", 3), ("dump DIR", 3), ("stat DIR", 3)] {
            let (code, err) = to_full(&format!("{verb}{json}"), dir.path());
            assert_eq!(code, sound, "{verb}{json}: {err}");
            assert!(err.contains("cannot write the output"), "{verb}: {err}");
        }
        let (code, _) = to_full(&format!("truncate DIR --to 0x10000000a{json}"), dir.path());
        assert_eq!(code, 3, "a plan that nobody sees");
        unchanged(&before, dir.path());
        let (seq, offset) = place(dir.path(), 5);
        flip(&segment(dir.path(), seq), offset);
        assert_eq!(to_full(&format!("verify DIR{json}"), dir.path()).0, 1);
        assert_eq!(to_full(&format!("salvage DIR{json}"), dir.path()).0, 3, "a plan that nobody sees");
    }
}

#[test]
fn damage_before_a_closed_pipe_is_told_by_the_exit_code() {
    let dir = closed(3000);
    let (seq, offset) = place(dir.path(), 2);
    flip(&segment(dir.path(), seq), offset);
    for verb in ["dump --json --payload hex", "verify", "ls"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arborlog"));
        command.arg("log").args(verb.split(' ')).arg(dir.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{verb}");
    }
}

#[test]
fn a_file_that_is_not_there_is_no_damage() {
    let dir = closed(30);
    for json in ["", " --json"] {
        let run = tool(&format!("dump DIR --file 00000000000000ff.seg{json}"), dir.path()).exits(3);
        assert!(format!("{run:?}").contains("no_such_file"), "{run:?}");
    }
}
