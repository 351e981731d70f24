//! Words that may not stand in the code, or only in their home, or only with a reason.

use super::layers::first_names;
use super::lexer::{close_of, find_words};
use super::source::Source;

/// Where threads may start. A new line here is a decision: threads are what the simulator cannot step.
const THREAD_HOMES: &[&str] = &[
    "src/log/engine/",
    "src/io/threads",
    "src/log/read/ahead.rs",
    "src/log/recover/scan_all.rs",
    "src/snapshot/load.rs",
    "src/snapshot/read_ahead.rs",
    "src/snapshot/write_behind.rs",
    "src/engine/snapshotter.rs",
];
const CLOCK_HOME: &str = "src/base/clock.rs";
/// The shortest comment that can be taken for a reason.
const REASON_LEN_MIN: usize = 12;

/// The file system, threads and time, each in its home. Tests of a layer may use files and threads.
pub(super) fn homes(source: &Source) -> Vec<String> {
    if !source.is_in("src") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if !source.is_in("src/io") {
        for (at, name) in system_names(source).into_iter().filter(|(at, _)| !source.is_test(*at)) {
            findings.push(source.finding(at, &format!("`{name}` outside src/io")));
        }
    }
    if !THREAD_HOMES.iter().any(|home| source.path.starts_with(home)) {
        for needle in ["thread::spawn", "thread::Builder", "thread::scope"] {
            for at in find_words(&source.code, needle).filter(|at| !source.is_test(*at)) {
                let what = format!("`{needle}`; threads start only in {}", THREAD_HOMES.join(", "));
                findings.push(source.finding(at, &what));
            }
        }
    }
    if source.path != CLOCK_HOME {
        for needle in ["Instant::now", "SystemTime::now"] {
            for at in find_words(&source.code, needle) {
                findings.push(source.finding(at, &format!("`{needle}` outside {CLOCK_HOME}")));
            }
        }
    }
    findings
}

/// What names the file system or the kernel.
fn system_names(source: &Source) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for at in find_words(&source.code, "std::") {
        if first_names(&source.code, at + "std::".len()).iter().any(|name| name == "fs") {
            names.push((at, "std::fs".to_owned()));
        }
    }
    for krate in ["rustix", "libc", "io_uring"] {
        for at in find_words(&source.code, krate) {
            let errno =
                source.path == "src/base/error.rs" && source.code[at..].starts_with("rustix::io::Errno");
            if !errno {
                names.push((at, krate.to_owned()));
            }
        }
    }
    names.sort();
    names
}

pub(super) fn leftovers(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for needle in ["todo!", "unimplemented!", "dbg!"] {
        for at in find_words(&source.code, needle) {
            findings.push(source.finding(at, &format!("`{needle}` is left over")));
        }
    }
    for at in find_words(&source.comments, "FIXME") {
        findings.push(source.finding(at, "a FIXME is left over: fix it, or say why it may stay"));
    }
    findings
}

/// LC-08. A result that is thrown away says why, in a comment on its line, above it, or above its statement.
pub(super) fn swallowed_errors(source: &Source) -> Vec<String> {
    if !source.is_in("src") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for needle in ["let _ =", ".ok();", "unwrap_or_default()"] {
        for at in find_words(&source.code, needle).filter(|at| !source.is_test(*at)) {
            let from = statement_line(source, at) - 1;
            let reasoned = (from..=source.line(at)).any(|line| is_reason(source.comment(line)));
            if !reasoned {
                findings.push(source.finding(at, &format!("`{needle}` drops an error without a reason")));
            }
        }
    }
    findings
}

fn is_reason(comment: &str) -> bool {
    let is_doc = comment.starts_with("///") || comment.starts_with("//!");
    !is_doc && comment.trim_start_matches('/').trim().len() >= REASON_LEN_MIN
}

/// The line on which the statement around `at` begins.
fn statement_line(source: &Source, at: usize) -> usize {
    let before = &source.code[..at];
    let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let blank = before[start..].len() - before[start..].trim_start().len();
    source.line((start + blank).min(at))
}

/// Each `expect` and `allow` attribute has its `reason`.
pub(super) fn lint_exceptions(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for open in ["#[", "#!["] {
        for (at, _) in source.code.match_indices(open) {
            let attribute = &source.code[at..close_of(&source.code, at + open.len() - 1)];
            let excepts =
                ["expect(", "allow("].iter().any(|word| find_words(attribute, word).next().is_some());
            if excepts && find_words(attribute, "reason").next().is_none() {
                findings.push(source.finding(at, "a lint exception without `reason = \"...\"`"));
            }
        }
    }
    findings
}

#[test]
fn homes_go_red() {
    let text = "use std::{fmt, fs};\nuse std::fs::File;\nuse rustix::io::Errno;\nfn a() { thread::spawn(b); }\n\
                fn c() { Instant::now(); }\n#[cfg(test)]\nmod tests { use std::fs; }\n";
    let expected =
        ["a.rs:1: `std::fs`", "a.rs:2: `std::fs`", "a.rs:3: `rustix`", "a.rs:4: `thread::spawn`", "a.rs:5"];
    super::assert_found(&homes(&Source::new("src/log/a.rs", text)), &expected);
    super::assert_found(&homes(&Source::new("src/io/a.rs", text)), &["`thread::spawn`", "`Instant::now`"]);
    let errors = "fn a(e: rustix::io::Errno) {}\nfn b(f: rustix::fd::OwnedFd) {}\n";
    super::assert_found(&homes(&Source::new("src/base/error.rs", errors)), &["error.rs:2: `rustix`"]);
}

#[test]
fn leftovers_go_red() {
    let text =
        "fn a() { todo!(\"being built\") }\nfn b() { dbg!(c) } // \"todo!\" is a word\n// FIXME: all\n";
    let expected = ["a.rs:1: `todo!`", "a.rs:2: `dbg!`", "a.rs:3: a FIXME"];
    super::assert_found(&leftovers(&Source::new("src/log/a.rs", text)), &expected);
}

#[test]
fn swallowed_errors_go_red() {
    let text = "fn a() {\n    let _ = b();\n    c.ok();\n    let d = e.unwrap_or_default(); // why\n}\n";
    let expected = ["a.rs:2: `let _ =`", "a.rs:3: `.ok();`", "a.rs:4: `unwrap_or_default()`"];
    super::assert_found(&swallowed_errors(&Source::new("src/log/a.rs", text)), &expected);
    let good = "fn a() {\n    // The file is gone already: nothing to tell.\n    let _ = b();\n    \
                // Only a hint for the kernel.\n    c\n        .d()\n        .ok();\n}\n";
    super::assert_clean(&swallowed_errors(&Source::new("src/log/a.rs", good)));
}

#[test]
fn lint_exceptions_go_red() {
    let text = "#![allow(dead_code)]\n#[cfg_attr(a, expect(dead_code))]\nfn b() { c.expect(\"d\"); }\n\
                #[expect(\n    dead_code,\n    reason = \"because\"\n)]\nfn e() {}\n";
    let findings = lint_exceptions(&Source::new("src/log/a.rs", text));
    super::assert_found(&findings, &["a.rs:2:", "a.rs:1:"]);
}
