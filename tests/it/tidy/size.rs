//! Files and functions that fit into a head.

use super::lexer::{close_of, find_words, line_of};
use super::source::Source;

const FILE_LINES_MAX: usize = 450;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(source: &Source) -> Vec<String> {
    if !source.is_product() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let lines = source.product_lines();
    if lines > FILE_LINES_MAX {
        findings.push(source.finding(0, &format!("{lines} lines without tests; at most {FILE_LINES_MAX}")));
    }
    for (at, name, lines) in functions(&source.code) {
        if lines > FUNCTION_LINES_MAX && !source.is_test(at) {
            let what = format!("`fn {name}` has {lines} lines; at most {FUNCTION_LINES_MAX}");
            findings.push(source.finding(at, &what));
        }
    }
    findings
}

/// Every function with a body: where it begins, its name, and its lines from signature to closing brace.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let mut functions = Vec::new();
    for at in find_words(code, "fn") {
        let signature = &code[at + "fn".len()..];
        let name = signature.trim_start();
        let name = &name[..name.bytes().take_while(|&b| super::lexer::is_word(b)).count()];
        if name.is_empty() {
            continue; // the type of a function
        }
        if let Some(body) = body(code, at) {
            let lines = 1 + line_of(code, close_of(code, body) - 1) - line_of(code, at);
            functions.push((at, name, lines));
        }
    }
    functions
}

/// The brace that opens the body; none for a declaration.
fn body(code: &str, mut at: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = close_of(code, at),
            _ => at += 1,
        }
    }
    None
}

#[test]
fn goes_red() {
    let long = format!(
        "pub fn long(\n    a: [u8; 2],\n) {{\n    // {{\n    f(\"{{\");\n{}}}\n",
        "    g();\n".repeat(65)
    );
    let short = "fn short() {\n}\n".repeat(200);
    let tests =
        format!("#[cfg(test)]\nmod tests {{\n    fn test() {{\n{}    }}\n}}\n", "        h();\n".repeat(500));
    let source = Source::new("src/log/a.rs", &format!("{long}{short}{tests}"));
    super::assert_found(&check(&source), &["a.rs:1: 471 lines", "a.rs:1: `fn long` has 71 lines"]);
}

#[test]
fn stays_green() {
    let text = format!("trait A {{\n    fn b(&self);\n}}\n{}", "fn c() {}\n".repeat(FILE_LINES_MAX - 3));
    super::assert_clean(&check(&Source::new("src/log/a.rs", &text)));
}
