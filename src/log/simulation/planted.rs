//! Bugs planted on purpose, and the proof that each is found.
#![cfg(feature = "planted-bugs")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::crash_points::crash_everywhere;
use super::fixed::FIXED;
use super::random_run::run;
use crate::base::planted::plant;

/// Every bug that the library has a hook for; `hooks_are_listed` holds the two together.
const BUGS: &[&str] = &[
    "acknowledged_before_seal",
    "acknowledged_out_of_order",
    "append_epoch_unchecked",
    "batch_split",
    "claims_nothing",
    "claims_what_is_logged",
    "clean_mark_kept",
    "cut_not_recorded",
    "cut_segments_removed",
    "directory_unsynced",
    "epoch_unchecked",
    "failed_write_ignored",
    "groups_unsynced",
    "manifest_unsynced",
    "payload_unverified",
    "purge_before_manifest",
    "purge_keeps_floor",
    "recovered_tail_unsynced",
    "replay_past_the_end",
    "segment_named_unsynced",
    "truncate_keeps_durable",
    "truncate_keeps_tail",
    "unclean_in_place",
];

/// How many random runs a bug may take to be found.
const SEEDS: u64 = 1200;

/// Where the planted bug was found, and by what.
fn find() -> Option<String> {
    let random_run = |seed: u64| {
        let panic = catch_unwind(AssertUnwindSafe(|| run(seed))).err()?;
        Some(format!("random run {seed}: {}", message(panic.as_ref())))
    };
    if let Some(found) = (0..120).find_map(random_run) {
        return Some(found);
    }
    for fixed in FIXED.iter().rev() {
        for seed in 0..4 {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| crash_everywhere(fixed, seed, 1))) {
                return Some(format!(
                    "workload \"{}\", seed {seed}: {}",
                    fixed.name,
                    message(panic.as_ref())
                ));
            }
        }
    }
    (120..SEEDS).find_map(random_run)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "minutes: run it in release, see docs/TESTING.md"]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for bug in BUGS {
        plant(Some(bug));
        let found = find();
        plant(None);
        println!("planted: {bug}: {}", found.as_deref().unwrap_or("NOT FOUND"));
        if found.is_none() {
            missed.push(*bug);
        }
    }
    assert!(missed.is_empty(), "the simulator does not find {missed:?}");
    // The same without a bug is green, or finding one would mean nothing.
    let found = find();
    assert!(found.is_none(), "nothing is planted, and yet: {found:?}");
}

/// The engine's simulation has a list of its own.
fn is_of_another_layer(path: &std::path::Path) -> bool {
    ["src/engine", "src/snapshot"].iter().any(|layer| path.parent().is_some_and(|p| p.ends_with(layer)))
}

#[test]
fn hooks_are_listed() {
    let mut hooks = std::collections::BTreeSet::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources").map(|e| e.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if !entry.ends_with("simulation/planted.rs") && !is_of_another_layer(&entry) {
                let text = std::fs::read_to_string(entry).expect("a source");
                let names = text.split("crate::planted(\"").skip(1).filter_map(|t| t.split('"').next());
                hooks.extend(names.map(str::to_owned));
            }
        }
    }
    assert_eq!(hooks, BUGS.iter().map(|b| (*b).to_owned()).collect());
}
