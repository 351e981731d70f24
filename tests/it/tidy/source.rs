//! The files of the repository, read once for each rule.

use std::fs;
use std::path::Path;

use super::lexer::{Masked, close_of, find_words, line_of, mask};

/// A Rust file.
pub(super) struct Source {
    /// Relative to the repository, with `/`.
    pub(super) path: String,
    pub(super) code: String,
    pub(super) comments: String,
    /// For each line, whether it is compiled for tests alone.
    test_lines: Vec<bool>,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Source {
        let Masked { code, comments } = mask(text);
        let mut test_lines = vec![false; text.lines().count() + 1];
        for (start, end) in test_items(&code) {
            test_lines[line_of(&code, start) - 1..line_of(&code, end)].fill(true);
        }
        Source { path: path.to_owned(), code, comments, test_lines }
    }

    /// `path:line: what`, for something at this offset.
    pub(super) fn finding(&self, offset: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, self.line(offset))
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        line_of(&self.code, offset)
    }

    pub(super) fn is_test(&self, offset: usize) -> bool {
        self.test_lines[self.line(offset) - 1]
    }

    pub(super) fn product_lines(&self) -> usize {
        self.test_lines[..self.code.lines().count()].iter().filter(|test| !**test).count()
    }

    /// The comment on a line, numbered from 1; empty if there is none.
    pub(super) fn comment(&self, line: usize) -> &str {
        line.checked_sub(1).and_then(|index| self.comments.lines().nth(index)).unwrap_or("").trim()
    }

    pub(super) fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The code that ships or is run by users, as opposed to tests and fuzz targets.
    pub(super) fn is_product(&self) -> bool {
        ["src", "tools/src", "examples", "benches"].iter().any(|folder| self.is_in(folder))
    }
}

/// The extent of each item under a `cfg` that needs `test`.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    for needle in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
        for (start, _) in code.match_indices(needle) {
            items.push((start, item_end(code, close_of(code, start + 1))));
        }
    }
    items
}

/// The end of the item that follows an attribute: its `;` or its closing brace.
fn item_end(code: &str, mut at: usize) -> usize {
    let bytes = code.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            b'{' => return close_of(code, at),
            b'(' | b'[' => at = close_of(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

/// The whole repository, except for what is built or recorded.
pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    /// Every file of text, the sources among them: its path and what it says.
    pub(super) documents: Vec<(String, String)>,
    pub(super) paths: Vec<String>,
}

impl Tree {
    pub(super) fn load() -> Tree {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut tree = Tree { sources: Vec::new(), documents: Vec::new(), paths: Vec::new() };
        tree.walk(root, "");
        tree.paths.sort();
        tree.documents.sort();
        tree.sources = tree
            .documents
            .iter()
            .filter(|(path, _)| Path::new(path).extension().is_some_and(|extension| extension == "rs"))
            .map(|(path, text)| Source::new(path, text))
            .collect();
        tree.mark_test_files();
        assert!(tree.sources.iter().any(|s| s.path == "src/lib.rs"), "the sources were not found");
        tree
    }

    fn walk(&mut self, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let path = format!("{prefix}{name}");
            let hidden = name.starts_with('.') && name != ".ci";
            if hidden || ["target", "artifacts", "corpus", "fixtures", "golden"].contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().expect("a file type").is_dir() {
                self.walk(&entry.path(), &format!("{path}/"));
                continue;
            }
            if let Ok(text) = fs::read_to_string(entry.path()) {
                self.documents.push((path.clone(), text));
            }
            self.paths.push(path);
        }
    }

    /// A file whose `mod` line is for tests alone is for tests as a whole.
    fn mark_test_files(&mut self) {
        let test_modules: Vec<String> = self.sources.iter().flat_map(test_modules).collect();
        for source in &mut self.sources {
            let module = module_path(&source.path);
            let inside = |test: &String| {
                module.strip_prefix(test.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('/'))
            };
            if test_modules.iter().any(inside) {
                source.test_lines.fill(true);
            }
        }
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.documents.iter().find(|(p, _)| p == path).map(|(_, text)| text.as_str())
    }
}

/// Whether there is such a file or folder in the repository.
pub(super) fn exists(path: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists()
}

/// `src/io/sim` for `src/io/sim.rs` as for `src/io/sim/mod.rs`; `src` for the crate's root.
pub(super) fn module_path(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    ["/mod", "/lib", "/main"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

/// The modules in files of their own that this file declares for tests.
fn test_modules(source: &Source) -> Vec<String> {
    find_words(&source.code, "mod")
        .filter(|&at| source.is_test(at))
        .filter_map(|at| {
            let (name, _) = source.code[at + 3..].split_once(';')?;
            let name = name.trim();
            let plain = !name.is_empty() && name.bytes().all(super::lexer::is_word);
            plain.then(|| format!("{}/{name}", module_path(&source.path)))
        })
        .collect()
}

#[test]
fn test_items_are_no_product() {
    let source =
        Source::new("src/log/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
    assert_eq!(source.product_lines(), 2);
    assert!(source.is_test(source.code.find("fn b").unwrap()));
    assert!(!source.is_test(source.code.find("fn c").unwrap()));
}

#[test]
fn files_declared_for_tests_are_no_product() {
    let mut tree = Tree { sources: Vec::new(), documents: Vec::new(), paths: Vec::new() };
    tree.sources.push(Source::new("src/io/mod.rs", "#[cfg(test)]\nmod conformance;\nmod uring;\n"));
    tree.sources.push(Source::new("src/io/conformance.rs", "fn a() {}\n"));
    tree.sources.push(Source::new("src/io/uring.rs", "fn b() {}\n"));
    tree.mark_test_files();
    let product: Vec<usize> = tree.sources.iter().map(Source::product_lines).collect();
    assert_eq!(product, [1, 0, 1]);
}
