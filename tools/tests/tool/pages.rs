//! Help, completions and manual pages.

use std::path::Path;

use crate::sample::arborlog;

/// All verbs.
const VERBS: [&str; 22] = [
    "log ls",
    "log dump",
    "log verify",
    "log stat",
    "log truncate",
    "log repair",
    "log salvage",
    "snapshot ls",
    "snapshot dump",
    "snapshot verify",
    "snapshot analyse",
    "stat",
    "tree",
    "tree dump",
    "verify",
    "inspect",
    "restore",
    "truncate",
    "completions",
    "man",
    "log",
    "snapshot",
];

#[test]
fn each_verb_has_help_with_an_example_and_a_page() {
    let nowhere = Path::new("nowhere");
    let top = arborlog("--help", nowhere).exits(0).out;
    for verb in VERBS {
        let help = arborlog(&format!("{verb} --help"), nowhere).exits(0).out;
        let is_group = ["log", "snapshot"].contains(&verb);
        assert!(help.contains("Example") != is_group, "{verb}: {help}");
        assert!(top.contains(verb.split(' ').next().unwrap()), "{verb}");
        let page = arborlog(&format!("man {verb}"), nowhere).exits(0).out;
        let name = format!("arborlog-{}", verb.replace(' ', "-"));
        assert!(page.starts_with(".ie") && page.contains(&format!(".TH {name}")), "{verb}: {page}");
    }
    assert!(arborlog("man", nowhere).exits(0).out.contains(".TH arborlog"));
    arborlog("man fly", nowhere).exits(2);
    arborlog("tree", nowhere).exits(2);
}

#[test]
fn completions_know_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let text = arborlog(&format!("completions {shell}"), Path::new("nowhere")).exits(0).out;
        for word in VERBS.iter().flat_map(|verb| verb.split(' ')).chain(["to-zxid", "without-sessions"]) {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    arborlog("completions tcsh", Path::new("nowhere")).exits(2);
}
