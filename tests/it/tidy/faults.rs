//! Every fault that `docs/TESTING.md` lists has its test: rows of the form ``| TT-01 | `test_name` | ... |``.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{find_words, is_word};
use super::source::Source;

/// The groups that log and tree answer for. A fault of another group may wait for its layer.
const GROUPS: &[&str] = &[
    "TT", "HZ", "LC", "SG", "EP", "TR", "PU", "DF", "FS", "LK", "IU", "MM", "SL", "CL", "FZ", "SE", "TC",
    "QU", "TX", "IX",
];

/// The name of every function in the tree.
pub(super) fn functions(sources: &[Source]) -> BTreeSet<String> {
    let names = sources.iter().flat_map(|source| {
        find_words(&source.code, "fn").map(|at| {
            let name = source.code[at + "fn".len()..].trim_start();
            name[..name.bytes().take_while(|&b| is_word(b)).count()].to_owned()
        })
    });
    names.filter(|name| !name.is_empty()).collect()
}

pub(super) fn check(table: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = BTreeMap::new();
    for (index, line) in table.lines().enumerate() {
        let at = format!("docs/TESTING.md:{}", index + 1);
        let Some((id, cells)) = row(line) else { continue };
        if let Some(first) = seen.insert(id, index + 1) {
            findings.push(format!("{at}: {id} has a row already, on line {first}"));
        }
        let tests = test_names(cells);
        if tests.is_empty() && GROUPS.contains(&&id[..2]) {
            findings.push(format!("{at}: {id} names no test"));
        }
        for test in tests.iter().filter(|test| !functions.contains(**test)) {
            findings.push(format!("{at}: {id} names `{test}`, and there is no such function"));
        }
    }
    if seen.is_empty() {
        findings.push("docs/TESTING.md:1: the table of faults is empty".to_owned());
    }
    findings
}

/// The fault's id and the cells after it.
fn row(line: &str) -> Option<(&str, &str)> {
    let (id, cells) = line.trim().strip_prefix('|')?.split_once('|')?;
    let id = id.trim();
    let bytes = id.as_bytes();
    let shaped = bytes.len() == 5
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2] == b'-'
        && bytes[3..].iter().all(u8::is_ascii_digit);
    shaped.then_some((id, cells))
}

/// The tests in the first of the cells, each in backticks; of a path, the last name.
fn test_names(cells: &str) -> Vec<&str> {
    let first = cells.split('|').next().unwrap_or("");
    let quoted = first.split('`').skip(1).step_by(2);
    quoted.map(|name| name.rsplit("::").next().unwrap_or(name)).collect()
}

#[test]
fn goes_red() {
    let sources = [Source::new("src/a.rs", "#[test]\nfn torn_tail() {}\n// fn commented() {}\n")];
    let functions = functions(&sources);
    let table = "| fault | test |\n|---|---|\n| TT-01 | `log::torn_tail` | x `y` |\n| TT-03 | `torn_tail`, `gone` |\n\
                 | LC-08 | by eye |\n| SN-01 | later |\n| TT-01 | `commented` |\n";
    let expected = [
        "docs/TESTING.md:4: TT-03 names `gone`",
        "docs/TESTING.md:5: LC-08 names no test",
        "docs/TESTING.md:7: TT-01 has a row already, on line 3",
        "docs/TESTING.md:7: TT-01 names `commented`",
    ];
    super::assert_found(&check(table, &functions), &expected);
    super::assert_found(
        &check("| fault | test |\n|---|---|\n", &functions),
        &["the table of faults is empty"],
    );
}
