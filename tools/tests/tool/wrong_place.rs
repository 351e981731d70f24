//! A directory that is not what the verb works on is refused, and the one that was meant is named.

use crate::engine_sample::{all_files, all_unchanged, engine};
use crate::sample::{arborlog, closed, tool};

/// Every verb of a log.
const LOG_VERBS: [&str; 9] = [
    "ls DIR",
    "dump DIR",
    "dump DIR --file 0000000000000001.seg",
    "verify DIR",
    "stat DIR",
    "truncate DIR --to 0x300000020",
    "truncate DIR --to 0x300000020 --yes",
    "salvage DIR --yes",
    "repair DIR --zxid 0x300000020 --from DIR --yes",
];

/// Every verb of an engine.
const ENGINE_VERBS: [&str; 14] = [
    "verify DIR",
    "verify --deep DIR",
    "inspect DIR",
    "stat DIR",
    "tree DIR",
    "tree dump DIR",
    "tree --sessions DIR",
    "snapshot ls DIR",
    "snapshot verify DIR",
    "snapshot dump DIR",
    "snapshot analyse DIR",
    "restore DIR DIR/none",
    "restore DIR DIR/none --dry-run",
    "truncate DIR --to-zxid 0x300000020 --yes",
];

#[test]
fn a_log_is_not_looked_for_in_an_engine() {
    let dir = engine();
    let before = all_files(dir.path());
    let meant = dir.path().join("log-1");
    for verb in LOG_VERBS {
        let run = tool(verb, dir.path()).exits(3);
        assert!(run.out.is_empty() && run.err.contains("[no_log]"), "{verb}: {run:?}");
        assert!(run.err.contains(meant.to_str().unwrap()), "{verb}: {run:?}");
        let json = tool(&format!("{verb} --json"), dir.path()).exits(3).json();
        assert_eq!((json.len(), &json[0]["error"]["code"]), (1, &"no_log".into()), "{verb}");
    }
    all_unchanged(&before, dir.path());
    for verb in ["ls DIR", "dump DIR", "verify DIR", "stat DIR"] {
        tool(verb, &meant).exits(0);
        // An engine's other directory, and one with a log that stands elsewhere.
        tool(verb, &dir.path().join("snapshots-1")).exits(3);
    }
    std::fs::rename(meant, dir.path().join("elsewhere")).unwrap();
    let told = tool("verify DIR", dir.path()).exits(3).err;
    assert!(told.contains("log-1 of another directory"), "{told}");
}

#[test]
fn an_engine_is_not_looked_for_in_a_log_or_in_nothing() {
    let (engine, log, empty) = (engine(), closed(5), tempfile::tempdir().unwrap());
    let inside = engine.path().join("log-1");
    for verb in ENGINE_VERBS {
        for (dir, hint) in [
            (inside.as_path(), "it is part of the one in"),
            (log.path(), "`arborlog log`"),
            (empty.path(), ""),
        ] {
            let before = all_files(dir);
            let run = arborlog(verb, dir).exits(3);
            assert!(
                run.out.is_empty() && run.err.contains("[no_log]") && run.err.contains(hint),
                "{verb}: {run:?}"
            );
            let json = arborlog(&format!("{verb} --json"), dir).exits(3).json();
            assert_eq!(json[0]["error"]["code"], "no_log", "{verb}");
            all_unchanged(&before, dir);
        }
        arborlog(verb, &empty.path().join("none")).exits(3);
    }
    assert_eq!(all_files(empty.path()).len(), 0);
}
