//! Each stable code of an error has its paragraph in `docs/RECOVERY.md`, and each paragraph its code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words with an underscore that are no codes: keys of the manifest, names of options, words of the verdict.
const NOT_CODES: &[&str] = &[
    "accepted_epoch",
    "block_bytes",
    "database_id",
    "durable_zxid",
    "first_seq",
    "floor_zxid",
    "idle_mark",
    "prepare_bytes_per_second",
    "record_bytes_max",
    "segment_bytes",
    "slow_sync",
    "snap_count",
    "stuck_after",
];

/// The codes that a source file may put into an error: every word with an underscore in quotes, and whatever
/// stands where the constructors take a code. Planted bugs are named by such words too.
fn codes(text: &str) -> BTreeSet<String> {
    let product = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code =
        product.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    let parts: Vec<&str> = code.split('"').collect();
    for (before, word) in parts.iter().step_by(2).zip(parts.iter().skip(1).step_by(2)) {
        let before = before.trim_end();
        let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let from_kind = before.trim_end_matches(',').rsplit("Error::new(").next().unwrap_or("");
        let is_argument =
            before.ends_with(',') && from_kind.trim().starts_with("ErrorKind::") && !from_kind.contains(';');
        let is_field = before.ends_with("code:") || before.ends_with("let code =");
        if is_word && !before.ends_with("planted(") && (word.contains('_') || is_argument || is_field) {
            found.insert((*word).to_owned());
        }
    }
    found.retain(|word| !NOT_CODES.contains(&word.as_str()));
    found
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    ["tests", "simulation"].contains(&name) || name.ends_with("_tests")
}

/// The codes of every file that makes errors.
fn all_codes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            // Tests beside the code name everything, and `io` answers with the system's errors.
            let other = ["io", "simulation", "tests", "faults", "model"];
            if path.file_name().is_none_or(|name| !other.iter().any(|other| name == *other)) {
                all_codes(&path, found);
            }
        } else if path.ends_with("base/planted.rs") || is_test(&path) {
            // Bugs and tests are named by such words as well.
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(codes(&fs::read_to_string(&path).unwrap()));
        }
    }
}

fn headings(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    headings
        .filter(|heading| heading.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_code_has_its_paragraph() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut used = BTreeSet::new();
    all_codes(&root.join("src"), &mut used);
    let explained = headings(&fs::read_to_string(root.join("docs/RECOVERY.md")).unwrap());
    let unexplained: Vec<_> = used.difference(&explained).collect();
    assert!(unexplained.is_empty(), "docs/RECOVERY.md has no `## ` for {unexplained:?}");
    // Words without an underscore that reach an error by a detour are not found in the sources.
    let sources: BTreeSet<_> = ["io", "no_space", "closed", "no_node"].map(str::to_owned).into();
    let unused: Vec<_> = explained.difference(&used).filter(|code| !sources.contains(*code)).collect();
    assert!(unused.is_empty(), "docs/RECOVERY.md explains {unused:?}, which no source uses");
    assert!(used.len() > 40, "{used:?}");
}

#[test]
fn goes_red() {
    let text = "Error::corrupt(\"log_damaged\", \"why not\");\nError::new(ErrorKind::Busy, \"busy\", x);\n\
                Error::new(\n    kind,\n    \"other\", y);\nplanted(\"a_bug\");\n// \"in_comment\"\nlet key = \"first_seq\";\n\
                Bad { code: \"short\" }\n#[cfg(test)]\nmod tests { \"in_test\" }\n";
    let expected = ["busy", "log_damaged", "short"].map(str::to_owned).into();
    assert_eq!(codes(text), expected);
    assert_eq!(headings("# A\n## log_damaged\n## Before all\n"), ["log_damaged".to_owned()].into());
}
