use std::fs;

use crate::sample::{append, closed, files, killed, options, tool, unchanged, zxid};

#[test]
fn a_clean_log_is_listed_verified_and_counted() {
    let dir = closed(60);
    let before = files(dir.path());
    let ls = tool("ls DIR", dir.path()).exits(0);
    assert!(ls.out.contains("sealed ") && ls.out.contains("active "), "{}", ls.out);
    let objects = tool("ls --json DIR", dir.path()).exits(0).json();
    let records: u64 = objects.iter().filter_map(|o| o["records"].as_u64()).sum();
    assert_eq!(records, 60);
    let states: Vec<_> =
        objects.iter().filter(|o| o["type"] == "segment").map(|o| o["state"].as_str().unwrap()).collect();
    assert!(states.len() >= 3 && states[..2] == ["sealed"; 2], "{states:?}");
    assert_eq!(states.iter().filter(|s| **s == "active").count(), 1);
    assert_eq!(objects.last().unwrap()["verdict"], "clean");
    let verified = tool("verify DIR", dir.path()).exits(0);
    assert!(verified.out.contains("sound: 60 records"), "{}", verified.out);
    let stat = &tool("stat --json DIR", dir.path()).exits(0).json()[0];
    assert_eq!((stat["records"].as_u64(), stat["groups"].as_u64()), (Some(60), Some(60)));
    assert_eq!(stat["payload_bytes"], (1..=60).map(|n| format!("record {n}").len() as u64).sum::<u64>());
    assert_eq!((&stat["first_zxid"], &stat["last_zxid"]), (&"0x100000001".into(), &"0x10000003c".into()));
    assert_eq!(stat["time_last_ms"].as_i64(), Some(1_700_000_000_060));
    let stat = tool("stat DIR", dir.path()).exits(0);
    assert!(stat.out.contains("records per group  1.00"), "{}", stat.out);
    unchanged(&before, dir.path());
}

#[test]
fn dump_selects_and_shows() {
    let dir = closed(60);
    let before = files(dir.path());
    let all = tool("dump DIR", dir.path()).exits(0);
    assert_eq!(all.out.lines().count(), 60);
    let lines = |arguments: &str| -> Vec<u64> {
        let objects = tool(arguments, dir.path()).exits(0).json();
        let raw = |o: &serde_json::Value| {
            u64::from_str_radix(o["zxid"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
        };
        objects.iter().map(|o| raw(o) & 0xffff).collect()
    };
    assert_eq!(
        lines("dump --json DIR --from 0x100000029 --to 0x10000002c"),
        (0x29..=0x2c).collect::<Vec<_>>()
    );
    assert_eq!(lines("dump --json DIR --from 4294967350"), (54..=60).collect::<Vec<_>>());
    assert_eq!(lines("dump --json DIR --limit 2"), [1, 2]);
    assert_eq!(lines("dump --json DIR --since 1700000000058"), [58, 59, 60]);
    assert_eq!(lines("dump --json DIR --until 2023-11-14T22:13:20.003Z"), [1, 2, 3]);
    assert_eq!(lines("dump --json DIR --from 61").len(), 60, "61 is before epoch 1");
    for (format, expected) in [("text", "record 7"), ("hex", "7265636f72642037"), ("base64", "cmVjb3JkIDc=")]
    {
        let arguments = format!("dump --json DIR --from 0x100000007 --limit 1 --payload {format}");
        assert_eq!(tool(&arguments, dir.path()).exits(0).json()[0]["payload"], expected);
        let text = tool(&arguments.replace("--json ", ""), dir.path()).exits(0).out;
        assert!(
            text.contains(expected) && text.contains("0x100000007 epoch 1 2023-11-14T22:13:20.007Z"),
            "{text}"
        );
    }
    // The place that is told is where the payload stands.
    let object = &tool("dump --json DIR --from 0x100000029 --limit 1", dir.path()).json()[0];
    let bytes = fs::read(dir.path().join(object["file"].as_str().unwrap())).unwrap();
    assert!(
        bytes[usize::try_from(object["offset"].as_u64().unwrap()).unwrap()..].starts_with(b"record 41\0")
    );
    unchanged(&before, dir.path());
}

#[test]
fn a_killed_log_is_clean_enough() {
    let dir = killed(30);
    let before = files(dir.path());
    let verified = tool("verify DIR", dir.path()).exits(0);
    assert!(verified.out.contains("note:") && verified.out.contains("sound: 30 records"), "{}", verified.out);
    assert_eq!(tool("ls --json DIR", dir.path()).exits(0).json().last().unwrap()["verdict"], "unclean");
    unchanged(&before, dir.path());
}

#[test]
fn a_cut_log_shows_what_counts() {
    let dir = killed(30);
    let (log, _) = options().open(dir.path()).unwrap();
    append(&log, 31, 40);
    let (log, _) = log.truncate(zxid(35)).unwrap();
    append(&log, 36, 45);
    log.close().unwrap();
    let objects = tool("dump --json DIR", dir.path()).exits(0).json();
    assert_eq!(objects.len(), 45);
    let ls = tool("ls --json DIR", dir.path()).exits(0).json();
    assert_eq!(ls.iter().filter_map(|o| o["records"].as_u64()).sum::<u64>(), 45);
    assert_eq!(ls.iter().filter(|o| o["state"] == "cut").count(), 2, "{ls:#?}");
    assert!(tool("verify DIR", dir.path()).exits(0).out.contains("sound: 45 records"));
}

/// `ls` went by the manifest's mark and `verify` by how the segments end.
#[test]
fn all_commands_say_the_same_of_how_a_log_was_closed() {
    let (clean, cut, open) = (closed(60), closed(60), killed(60));
    tool("truncate DIR --to 0x100000020 --yes", cut.path()).exits(0);
    let lines = |dir: &std::path::Path| -> (String, Vec<String>) {
        let ls = tool("ls DIR", dir).exits(0).out;
        let verify = tool("verify DIR", dir).exits(0).out;
        let told = verify.lines().filter(|l| l.contains("closed")).map(|l| l.replace("note: ", "")).collect();
        (ls.lines().last().unwrap().to_owned(), told)
    };
    for (dir, clean, verdict) in [(&clean, true, "clean"), (&cut, true, "clean"), (&open, false, "unclean")] {
        let (ls, verify) = lines(dir.path());
        assert_eq!(ls.contains("was closed cleanly"), clean, "{ls}");
        assert_eq!(verify, [ls], "one wording");
        assert_eq!(tool("stat --json DIR", dir.path()).json()[0]["verdict"], verdict);
    }
    let (_log, report) = options().open(cut.path()).unwrap();
    assert_eq!(report.tail, arborlog::TailState::Clean);
}

/// One of something is one, in every text.
#[test]
fn one_is_not_said_in_the_plural() {
    let dir = closed(1);
    let damaged = closed(1);
    let (seq, offset) = crate::sample::place(damaged.path(), 1);
    crate::sample::flip(&crate::sample::segment(damaged.path(), seq), offset);
    let mut texts = tool("verify DIR", dir.path()).exits(0).out;
    assert!(texts.contains("sound: 1 record in 1 segment\n"), "{texts}");
    for (verb, dir, code) in [
        ("ls DIR", &dir, 0),
        ("stat DIR", &dir, 0),
        ("dump DIR", &dir, 0),
        ("ls DIR", &damaged, 1),
        ("verify DIR", &damaged, 1),
        ("salvage DIR", &damaged, 1),
    ] {
        texts += &tool(verb, dir.path()).exits(code).out;
    }
    assert!(texts.contains(" 1 record, ") && texts.contains("damaged in 1 place\n"), "{texts}");
    for word in ["records", "segments", "places", "bytes", "groups"] {
        let plural = format!("1 {word}");
        let mut found = texts.match_indices(&plural).map(|(at, _)| texts[..at].chars().last());
        assert!(!found.any(|before| before.is_none_or(|c| !c.is_ascii_digit())), "{plural}: {texts}");
    }
    let (log, report) = options().open(dir.path()).unwrap();
    assert!(report.to_string().contains("1 record in 1 segment, "), "{report}");
    drop(log);
}

#[test]
fn a_log_in_use_can_be_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = options().open(dir.path()).unwrap();
    append(&log, 1, 10);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| append(&log, 11, 1500));
        let mut looks = 0;
        while !writer.is_finished() || looks == 0 {
            for command in ["verify", "dump", "ls", "stat"] {
                let run = tool(&format!("{command} DIR"), dir.path()).exits(0);
                assert!(run.err.is_empty(), "{run:?}");
            }
            looks += 1;
        }
        println!("looks: {looks}");
    });
    // What was durable before the look is in it.
    assert_eq!(tool("dump DIR", dir.path()).exits(0).out.lines().count(), 1500);
    let refused = tool("truncate DIR --to 0x100000005 --yes --json", dir.path()).exits(3);
    assert_eq!(refused.json()[0]["error"]["code"], "locked");
    log.close().unwrap();
}

#[test]
fn empty_and_missing_directories() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["ls", "dump", "verify", "stat"] {
        let nothing = tool(&format!("{command} --json DIR"), dir.path()).exits(3);
        assert_eq!(nothing.json()[0]["error"]["code"], "no_log", "{command}");
        let missing = tool(&format!("{command} --json DIR"), &dir.path().join("none")).exits(3);
        assert_eq!(missing.json()[0]["error"]["kind"], "io", "{command}");
        let text = tool(&format!("{command} DIR"), &dir.path().join("none")).exits(3);
        assert!(text.err.contains("[io]") && text.out.is_empty(), "{text:?}");
    }
    tool("salvage DIR", dir.path()).exits(3);
    tool("truncate DIR --to 1", dir.path()).exits(3);
    assert!(files(dir.path()).is_empty(), "nothing was created");
    // What a creation that was broken off leaves is listed, and is no log yet.
    fs::write(dir.path().join("log.manifest.tmp"), "half").unwrap();
    let verdict = tool("ls --json DIR", dir.path()).exits(3).json();
    assert_eq!(verdict.last().unwrap()["verdict"], "no_log");
    for command in ["dump", "verify", "stat"] {
        tool(&format!("{command} DIR"), dir.path()).exits(3);
    }
}

#[test]
fn foreign_names_are_named_and_left_alone() {
    let dir = closed(5);
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::create_dir(dir.path().join("1.seg")).unwrap();
    let objects = tool("ls --json DIR", dir.path()).exits(0).json();
    let foreign: Vec<_> = objects.iter().filter(|o| o["type"] == "foreign").map(|o| &o["file"]).collect();
    assert_eq!(foreign, ["1.seg", "notes.txt"]);
    tool("verify DIR", dir.path()).exits(0);
    assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine");
}

#[test]
fn usage_help_and_version() {
    let dir = closed(1);
    for wrong in [
        "",
        "fly DIR",
        "ls",
        "truncate DIR",
        "dump DIR --from x",
        "dump DIR --since 2001-02-29",
        "ls DIR DIR",
    ] {
        tool(wrong, dir.path()).exits(2);
    }
    tool("dump DIR --file notes.txt", dir.path()).exits(2);
    for command in ["ls", "dump", "verify", "stat", "truncate", "repair", "salvage"] {
        let help = tool(&format!("{command} --help"), dir.path()).exits(0);
        assert!(help.out.contains("Example") && !help.out.contains('\u{1b}'), "{}", help.out);
    }
    let version =
        std::process::Command::new(env!("CARGO_BIN_EXE_arborlog")).arg("--version").output().unwrap();
    assert_eq!(version.stdout, format!("arborlog {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}
