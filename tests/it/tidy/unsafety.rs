//! `unsafe` has one home, and each use of it has its reason.

use super::lexer::{close_of, find_words};
use super::source::Source;

/// How far above its `unsafe` a reason may begin.
const NEAR_LINES: usize = 5;

/// Where it may be: system calls and raw buffers, and the allocator that counts for tests and benches.
const HOMES: &[&str] = &["src/io/", "tests/it/allocations.rs", "benches-compare/"];

pub(super) fn check(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for at in find_words(&source.code, "unsafe") {
        if !HOMES.iter().any(|home| source.path.starts_with(home)) {
            findings.push(source.finding(at, "`unsafe` outside src/io"));
        } else if !is_explained(source, at) && !is_function_type(source, at) {
            let what = format!("no `// SAFETY:` within {NEAR_LINES} lines above (or `# Safety` in the doc)");
            findings.push(source.finding(at, &what));
        }
    }
    findings
}

pub(super) fn count(sources: &[Source]) -> usize {
    sources.iter().map(|source| find_words(&source.code, "unsafe").count()).sum()
}

fn is_explained(source: &Source, at: usize) -> bool {
    let line = source.line(at);
    let near = (line.saturating_sub(NEAR_LINES)..=line).any(|l| source.comment(l).contains("SAFETY:"));
    let doc = || doc_above(source, line).any(|comment| comment.contains("# Safety"));
    near || declares(source, at) && (doc() || implements_a_trait(source, at))
}

/// A declaration hands its duty on, so its doc says what the duty is; a block has none to hand on.
fn declares(source: &Source, at: usize) -> bool {
    let next = source.code[at + "unsafe".len()..].trim_start();
    ["fn", "trait", "extern"].iter().any(|word| next.starts_with(word))
}

/// The duty of a trait's method is written at the trait, once.
fn implements_a_trait(source: &Source, at: usize) -> bool {
    let Some(start) = source.code[..at].rfind("\nimpl") else { return false };
    let Some(open) = source.code[start..at].find('{').map(|open| start + open) else { return false };
    find_words(&source.code[start..open], "for").next().is_some() && close_of(&source.code, open) > at
}

fn is_function_type(source: &Source, at: usize) -> bool {
    source.code[at + "unsafe".len()..].trim_start().starts_with("fn(")
}

/// The comments above a line, nearest first, over the attributes between them.
fn doc_above(source: &Source, line: usize) -> impl Iterator<Item = &str> {
    let code: Vec<&str> = source.code.lines().collect();
    let is_doc = move |l: &usize| {
        let code = code[l - 1].trim();
        !source.comment(*l).is_empty() && code.is_empty() || code.starts_with("#[")
    };
    (1..line).rev().take_while(is_doc).map(|l| source.comment(l))
}

#[test]
fn goes_red() {
    let outside = Source::new("src/log/a.rs", "// SAFETY: a lie.\nfn a() { unsafe { b() } }\n");
    super::assert_found(&check(&outside), &["src/log/a.rs:2: `unsafe` outside src/io"]);
    let text = "// SAFETY: too far away.\n\n\n\n\n\nfn a() {\n    unsafe { b() }\n}\nunsafe fn c() {}\n";
    let inside = Source::new("src/io/a.rs", text);
    super::assert_found(&check(&inside), &["src/io/a.rs:8: no `// SAFETY:`", "src/io/a.rs:10: no"]);
}

#[test]
fn takes_the_reason_where_it_belongs() {
    let text = "/// Does.\n///\n/// # Safety\n/// The caller owns it.\n#[inline]\npub(super) unsafe fn a() {\n    \
                // SAFETY: the caller owns it.\n    unsafe { b(\"unsafe\") }\n}\n";
    super::assert_clean(&check(&Source::new("src/io/a.rs", text)));
    let method = "\nimpl Ring for Kernel {\n    unsafe fn push(&mut self) {}\n}\n";
    super::assert_clean(&check(&Source::new("src/io/a.rs", method)));
    let own = "\nimpl Ring for Kernel {}\nimpl Kernel {\n    unsafe fn push(&mut self) {}\n}\n";
    super::assert_found(&check(&Source::new("src/io/a.rs", own)), &["src/io/a.rs:4: no"]);
}
