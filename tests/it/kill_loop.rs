//! SIGKILL on the real disk, over and over: the example's own child and witness, with more kills, at every age
//! of a process, and with recoveries that are themselves abandoned.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arborlog::Epoch;

#[path = "../../examples/crash_and_recover.rs"]
#[expect(dead_code, reason = "the example's command line is not used here")]
mod crash_and_recover;

use crash_and_recover::{Witness, append_for_ever, log_options};

/// Tells the test binary that it is a child: the log's directory and the epoch.
const CHILD_DIR: &str = "ARBORLOG_KILL_CHILD_DIR";
const CHILD_EPOCH: &str = "ARBORLOG_KILL_CHILD_EPOCH";

/// The child's half. As a test of its own it has nothing to do.
#[test]
fn child() {
    let (Ok(dir), Ok(epoch)) = (std::env::var(CHILD_DIR), std::env::var(CHILD_EPOCH)) else { return };
    let epoch = Epoch::new(epoch.parse().expect("an epoch"));
    append_for_ever(Path::new(&dir), epoch).expect("append until killed");
}

#[test]
fn nothing_acknowledged_is_missing_after_20_kills() {
    kill_loop(20);
}

#[test]
#[ignore = "minutes; ARBORLOG_KILLS says how many"]
fn nothing_acknowledged_is_missing_after_many_kills() {
    let kills =
        std::env::var("ARBORLOG_KILLS").map_or(200, |n| n.parse().expect("ARBORLOG_KILLS is a number"));
    kill_loop(kills);
}

fn kill_loop(kills: u64) {
    // In the build's own directory: the system's may be a file system in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a directory");
    let program = std::env::current_exe().expect("the test binary");
    let mut witness = Witness::default();
    let mut rolls = 0;
    for epoch in 1..=kills {
        let mut command = Command::new(&program);
        command.args(["kill_loop::child", "--exact", "--nocapture"]);
        command.env(CHILD_DIR, dir.path()).env(CHILD_EPOCH, epoch.to_string());
        // From the first moments of opening to well into the work.
        let after = Duration::from_millis(10 + epoch * 37 % 190);
        witness.watch_and_kill(command, after).unwrap_or_else(|error| panic!("kill {epoch}: {error}"));
        if epoch % 3 == 0 {
            // Recovered, and let go of without a close: the next open must come to the same.
            let (log, first) = log_options().open(dir.path()).expect("open after a kill");
            drop(log);
            let (_log, second) = log_options().open(dir.path()).expect("open once more");
            assert_eq!((first.last_zxid, first.records), (second.last_zxid, second.records), "kill {epoch}");
        }
        let (log, report) = log_options().open(dir.path()).expect("open after a kill");
        witness.check(&log).unwrap_or_else(|error| panic!("kill {epoch}: {error}"));
        assert_eq!(witness.missing, 0, "kill {epoch}: acknowledged records are missing");
        assert_eq!(report.records, witness.recovered, "kill {epoch}");
        rolls = report.segments;
        if epoch % 2 == 0 {
            log.close().expect("close");
        }
    }
    let acknowledged = witness.acknowledged.len();
    println!("{kills} kills: acknowledged={acknowledged} recovered={} missing=0", witness.recovered);
    assert!(acknowledged as u64 > kills, "too little was acknowledged to show anything: {acknowledged}");
    assert!(rolls > 1, "the log never left its first segment");
}
