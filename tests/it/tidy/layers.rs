//! Imports only point down.

use super::lexer::{close_of, find_words, is_word};
use super::source::{Source, module_path};

/// Each layer, from the ground up, with those it may name.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("format", &["base"]),
    ("io", &["base"]),
    ("log", &["base", "format", "io"]),
    ("tree", &["base", "format", "io"]),
    ("snapshot", &["base", "format", "io", "tree"]),
    ("engine", &["base", "format", "io", "log", "tree", "snapshot"]),
    ("zookeeper", &["base", "format", "io", "log", "tree", "snapshot", "engine"]),
    ("inspect", &["base", "format", "io", "log", "tree", "snapshot", "engine", "zookeeper"]),
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let exports = sources.iter().find(|s| s.path == "src/lib.rs").map(exports).unwrap_or_default();
    sources.iter().flat_map(|source| check_file(source, &exports)).collect()
}

/// What the crate's root re-exports, with the layer it comes from: `crate::Zxid` is an import of `base`.
fn exports(root: &Source) -> Vec<(String, String)> {
    let mut exports = Vec::new();
    for (at, _) in root.code.match_indices("use ") {
        let Some((import, _)) = root.code[at + 4..].split_once(';') else { continue };
        let import = import.trim().trim_start_matches("crate::");
        let Some((layer, names)) = import.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            exports.push((name.to_owned(), layer.to_owned()));
        }
    }
    exports
}

fn check_file(source: &Source, exports: &[(String, String)]) -> Vec<String> {
    let Some(inside) = module_path(&source.path).strip_prefix("src/") else { return Vec::new() };
    let own = inside.split('/').next().unwrap_or(inside);
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == own) else {
        return vec![source.finding(0, &format!("`{own}` is not a layer: give it a row in tidy's table"))];
    };
    let mut findings = Vec::new();
    for (at, name) in names_from_root(source, inside.split('/').count()) {
        let layer = match exports.iter().find(|(export, _)| *export == name) {
            _ if is_layer(&name) => &name,
            Some((_, layer)) => layer,
            None => {
                findings.push(source.finding(at, &format!("`crate::{name}` belongs to no layer")));
                continue;
            }
        };
        if layer != own && !allowed.contains(&layer.as_str()) {
            let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            let what = format!("`{own}` imports `{layer}` (by `crate::{name}`); it may import {allowed}");
            findings.push(source.finding(at, &what));
        }
    }
    findings
}

fn is_layer(name: &str) -> bool {
    LAYERS.iter().any(|(layer, _)| *layer == name)
}

/// Every name that is looked up in the crate's root, by `crate::` or by climbing with `super::`.
fn names_from_root(source: &Source, depth: usize) -> Vec<(usize, String)> {
    let mut names: Vec<(usize, String)> = find_words(&source.code, "crate::")
        .flat_map(|at| {
            first_names(&source.code, at + "crate::".len()).into_iter().map(move |name| (at, name))
        })
        .collect();
    let climb = "super::".repeat(depth);
    for at in find_words(&source.code, &climb) {
        let after = at + climb.len();
        // A module inside the file is one level deeper, so only the name of a layer counts.
        names.extend(first_names(&source.code, after).into_iter().filter(|n| is_layer(n)).map(|n| (at, n)));
    }
    names.sort();
    names
}

/// The first segment of a path, or of each path in a group.
pub(super) fn first_names(code: &str, at: usize) -> Vec<String> {
    let rest = &code[at..];
    let first = |path: &str| path.trim_start().bytes().take_while(|&b| is_word(b)).count();
    if !rest.starts_with('{') {
        return vec![rest[..first(rest)].to_owned()].into_iter().filter(|name| !name.is_empty()).collect();
    }
    let group = &code[at + 1..close_of(code, at) - 1];
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (index, byte) in group.bytes().chain([b',']).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                let path = group[start..index].trim();
                names.push(path[..first(path)].to_owned());
                start = index + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn goes_red() {
    let files = [
        Source::new("src/lib.rs", "mod base;\npub use base::{Error, Zxid};\npub use log::Log;\n"),
        Source::new(
            "src/format/frame.rs",
            "use crate::base::Zxid;\nuse crate::{\n base::{A, io}, io::Disk };\n",
        ),
        Source::new(
            "src/io/dir.rs",
            "use crate::Error;\nuse crate::Log;\nfn a() -> super::super::log::B {}\n",
        ),
        Source::new(
            "src/log/mod.rs",
            "use crate::io::Disk;\n// use crate::engine::Never;\nuse crate::tree::Node;\n",
        ),
        Source::new("src/base/zxid.rs", "use crate::Nowhere;\n"),
        Source::new("src/misc.rs", "\n"),
    ];
    super::assert_found(
        &check(&files),
        &[
            "src/format/frame.rs:2: `format` imports `io`",
            "src/io/dir.rs:2: `io` imports `log` (by `crate::Log`); it may import base",
            "src/io/dir.rs:3: `io` imports `log`",
            "src/log/mod.rs:3: `log` imports `tree`",
            "src/base/zxid.rs:1: `crate::Nowhere` belongs to no layer",
            "src/misc.rs:1: `misc` is not a layer",
        ],
    );
}
