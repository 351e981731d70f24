//! Modules: their names, and what a `mod.rs` may hold.

use super::lexer::{close_of, find_words, is_word};
use super::source::Source;

/// Names that say nothing, and so collect everything.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"];

pub(super) fn check(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let stem = source.path.trim_end_matches(".rs");
    if let Some(name) = stem.split('/').find(|part| is_empty_name(part)) {
        findings.push(source.finding(0, &format!("a module named `{name}`: say what it is")));
    }
    for at in find_words(&source.code, "mod") {
        let name = source.code[at + "mod".len()..].trim_start();
        let name = &name[..name.bytes().take_while(|&b| is_word(b)).count()];
        if is_empty_name(name) {
            findings.push(source.finding(at, &format!("a module named `{name}`: say what it is")));
        }
    }
    if source.path.ends_with("/mod.rs") && source.is_in("src") {
        findings.extend(contents(source));
    }
    findings
}

fn is_empty_name(name: &str) -> bool {
    EMPTY_NAMES.iter().any(|empty| name == *empty || name.ends_with(&format!("_{empty}")))
}

/// Everything in a `mod.rs` that neither declares a module nor re-exports.
fn contents(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let code = source.code.as_bytes();
    let mut at = 0;
    while at < code.len() {
        match code[at] {
            b'#' => at += source.code[at..].find('[').map_or(1, |open| close_of(&source.code[at..], open)),
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let end = item_end(&source.code, at);
                let item = &source.code[at..end];
                if !declares(item) {
                    let first = item.lines().next().unwrap_or("");
                    findings
                        .push(source.finding(at, &format!("mod.rs only declares and re-exports: `{first}`")));
                }
                at = end;
            }
        }
    }
    findings
}

/// The end of an item: its `;`, or its brace if that is not an import's.
fn item_end(code: &str, start: usize) -> usize {
    let is_import =
        find_words(&code[start..], "use").next().is_some_and(|at| declares(&code[start..=start + at + 3]));
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return at + 1,
            b'{' if !is_import => return close_of(code, at),
            b'(' | b'[' | b'{' => at = close_of(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

fn declares(item: &str) -> bool {
    let mut item = item;
    if let Some(rest) = item.strip_prefix("pub") {
        item = rest.trim_start();
        if item.starts_with('(') {
            item = item[close_of(item, 0)..].trim_start();
        }
    }
    let module = item.starts_with("mod ") && item.ends_with(';');
    module || item.starts_with("use ")
}

/// How many items of the library are `pub`, and how many are for the crate alone.
pub(super) fn visibility(sources: &[Source]) -> (usize, usize) {
    let mut counts = (0, 0);
    for source in sources.iter().filter(|source| source.is_in("src")) {
        for line in source.code.lines().map(str::trim_start) {
            counts.0 += usize::from(line.starts_with("pub "));
            counts.1 += usize::from(line.starts_with("pub("));
        }
    }
    counts
}

#[test]
fn names_go_red() {
    super::assert_found(
        &check(&Source::new("src/log/utils.rs", "")),
        &["utils.rs:1: a module named `utils`"],
    );
    let source = Source::new("src/log/a.rs", "mod segment;\nmod page_manager;\n");
    super::assert_found(&check(&source), &["a.rs:2: a module named `page_manager`"]);
}

#[test]
fn crowded_mod_files_go_red() {
    let text = "//! Doc.\n#[cfg(any(test, feature = \"sim\"))]\npub mod sim;\nmod a;\npub(crate) use a::{\n    B, C,\n};\n\
                const D: u32 = 1;\npub(super) fn e() {}\nmod f {}\n";
    let findings = check(&Source::new("src/log/mod.rs", text));
    super::assert_found(&findings, &["mod.rs:8:", "mod.rs:9:", "mod.rs:10:"]);
    super::assert_clean(&check(&Source::new("src/log/a.rs", text)));
}

#[test]
fn visibility_is_counted() {
    let text = "pub fn a() {}\n    pub(crate) fn b() {}\npub(super) struct C;\n// pub fn d() {}\n";
    assert_eq!(visibility(&[Source::new("src/log/a.rs", text)]), (1, 2));
}
