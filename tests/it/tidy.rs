//! The house rules, as tests over the sources.
//!
//! Each rule is a function from files to findings, `path:line: what is wrong`; it is run over the tree here, and
//! over a small bad sample beside its code, because a rule that cannot go red is not a rule.

mod bans;
mod documents;
mod faults;
mod layers;
mod lexer;
mod shape;
mod size;
mod source;
mod unsafety;

use source::{Source, Tree};

/// Fails with every finding at once, so that one run is enough to repair all of them.
#[track_caller]
fn assert_clean(findings: &[String]) {
    assert!(findings.is_empty(), "{} finding(s):\n{}", findings.len(), findings.join("\n"));
}

/// For the samples: exactly these findings, each recognised by a part of its text.
#[track_caller]
fn assert_found(findings: &[String], expected: &[&str]) {
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, part) in findings.iter().zip(expected) {
        assert!(finding.contains(part), "no `{part}` in `{finding}`");
    }
}

fn over(files: &[Source], rule: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    files.iter().flat_map(rule).collect()
}

#[test]
fn imports_only_point_down() {
    let tree = Tree::load();
    assert_clean(&layers::check(&tree.sources));
}

#[test]
fn unsafe_lives_in_io_and_says_why() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, unsafety::check));
    println!("unsafe blocks, impls and functions: {}", unsafety::count(&tree.sources));
}

#[test]
fn files_threads_and_time_stay_in_their_homes() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, bans::homes));
}

#[test]
fn nothing_is_left_unfinished() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, bans::leftovers));
}

/// LC-08: an error that is dropped is an error that was found and not told.
#[test]
fn lc_08_no_error_is_dropped_without_a_reason() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, bans::swallowed_errors));
}

#[test]
fn lint_exceptions_have_a_reason() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, bans::lint_exceptions));
}

#[test]
fn files_and_functions_are_short() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, size::check));
}

#[test]
fn modules_are_declared_and_named_well() {
    let tree = Tree::load();
    assert_clean(&over(&tree.sources, shape::check));
    let (public, inner) = shape::visibility(&tree.sources);
    println!("pub : pub(crate) items in src = {public} : {inner}");
}

#[test]
fn documents_point_at_what_exists() {
    let tree = Tree::load();
    assert_clean(&documents::changelog(tree.text("CHANGELOG.md")));
    assert_clean(&documents::links(&tree.documents, &source::exists));
    assert_clean(&documents::decisions(tree.text("docs/decisions/README.md"), &tree.paths));
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let tree = Tree::load();
    assert_clean(&documents::machine_paths(&tree.documents));
}

#[test]
fn every_fault_has_its_test() {
    let tree = Tree::load();
    if let Some(table) = tree.text("docs/TESTING.md") {
        assert_clean(&faults::check(table, &faults::functions(&tree.sources)));
    }
}
