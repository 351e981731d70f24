//! What is written around the code: changelog, links, decisions, and paths that exist on one machine only.

use std::path::Path;

pub(super) fn changelog(text: Option<&str>) -> Vec<String> {
    let Some(text) = text else { return vec!["CHANGELOG.md:1: is missing".to_owned()] };
    let unreleased = text.lines().any(|line| line.starts_with("## [Unreleased]"));
    if unreleased { Vec::new() } else { vec!["CHANGELOG.md:1: has no `## [Unreleased]` heading".to_owned()] }
}

/// Every relative link of every Markdown file, and every document that the README names, leads somewhere.
pub(super) fn links(documents: &[(String, String)], exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    if !documents.iter().any(|(path, _)| path == "README.md") {
        findings.push("README.md:1: is missing".to_owned());
    }
    for (path, text) in documents.iter().filter(|(path, _)| is_markdown(path)) {
        let folder = Path::new(path).parent().and_then(Path::to_str).unwrap_or("");
        for (index, line) in text.lines().enumerate() {
            let named = if path == "README.md" { named_documents(line) } else { Vec::new() };
            let linked = targets(line).into_iter().map(|target| join(folder, target));
            for target in linked.chain(named) {
                if !exists(&target) {
                    findings.push(format!("{path}:{}: `{target}` does not exist", index + 1));
                }
            }
        }
    }
    findings.dedup();
    findings
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

/// The files a line links to: `[text](target#anchor)`.
fn targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .collect()
}

fn join(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Documents that are named in running text, such as `docs/FORMAT.md`.
fn named_documents(line: &str) -> Vec<String> {
    line.split(|c: char| !(c.is_alphanumeric() || "./_-".contains(c)))
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.starts_with("docs/") && is_markdown(word))
        .map(str::to_owned)
        .collect()
}

/// Each decision has its line in the index.
pub(super) fn decisions(index: Option<&str>, paths: &[String]) -> Vec<String> {
    let Some(index) = index else { return vec!["docs/decisions/README.md:1: is missing".to_owned()] };
    paths
        .iter()
        .filter_map(|path| path.strip_prefix("docs/decisions/"))
        .filter(|name| *name != "README.md" && !index.contains(&format!("({name})")))
        .map(|name| format!("docs/decisions/README.md:1: no link to `{name}` in the index"))
        .collect()
}

/// Paths that mean something on one machine only. Examples for a shell may use the temporary folder, in
/// Markdown and in doc comments.
pub(super) fn machine_paths(documents: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in documents {
        for (index, line) in text.lines().enumerate() {
            let shell_example = is_markdown(path) || line.trim_start().starts_with("//");
            for folder in ["work", "root", "tmp"] {
                if names_folder(line, folder) && !(folder == "tmp" && shell_example) {
                    findings.push(format!("{path}:{}: a path of one machine, /{folder}", index + 1));
                }
            }
        }
    }
    findings
}

/// Whether an absolute path begins with this folder.
fn names_folder(line: &str, folder: &str) -> bool {
    let needle = format!("/{folder}");
    line.match_indices(&needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        let begins = before.is_none_or(|c| !(c.is_alphanumeric() || "._-/~*}])>$".contains(c)));
        begins
            && after.is_none_or(|c| c == '/' || folder != "tmp" && !(c.is_alphanumeric() || "_-".contains(c)))
    })
}

#[cfg(test)]
mod samples {
    use super::super::assert_found;
    use super::*;

    fn documents(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn changelog_goes_red() {
        assert_found(&changelog(None), &["is missing"]);
        assert_found(&changelog(Some("# Changelog\n## 1.0.0\n")), &["has no `## [Unreleased]`"]);
        assert!(changelog(Some("# Changelog\n\n## [Unreleased]\n")).is_empty());
    }

    #[test]
    fn links_go_red() {
        let documents = documents(&[
            ("README.md", "[a](docs/A.md#x), [b](https://b.example)\nSee `docs/NONE.md`.\n"),
            ("docs/A.md", "[c](../README.md) and [d](d.md)\n"),
        ]);
        let exists = |path: &str| ["README.md", "docs/A.md"].contains(&path);
        let expected = ["README.md:2: `docs/NONE.md`", "docs/A.md:1: `docs/d.md`"];
        assert_found(&links(&documents, &exists), &expected);
        assert_found(&links(&[], &exists), &["README.md:1: is missing"]);
    }

    #[test]
    fn decisions_go_red() {
        let paths = ["docs/decisions/README.md", "docs/decisions/0001-a.md", "docs/decisions/0002-b.md"];
        let paths = paths.map(str::to_owned);
        let index = "| 0001 | [a](0001-a.md) | accepted |";
        assert_found(&decisions(Some(index), &paths), &["no link to `0002-b.md`"]);
    }

    #[test]
    fn machine_paths_go_red() {
        let line = |folder: &str| format!("let a = \"{}{folder}\";\n", '/');
        let text = ["work/b", "root", "tmp/c"].map(line).concat();
        let documents = documents(&[
            ("src/a.rs", &text),
            ("README.md", &format!("mkdir {}tmp/log\n", '/')),
            ("b.md", "target/work/c, .//root/d, /working, and /workspace\n"),
        ]);
        assert_found(&machine_paths(&documents), &["src/a.rs:1:", "src/a.rs:2:", "src/a.rs:3:"]);
    }
}
