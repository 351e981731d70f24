//! A snapshot as each version writes it, with nodes, sessions and txns of its own time, and the tree that must be
//! read from it, for ever.
//!
//! `ARBORLOG_WRITE_GOLDEN=1 cargo test --test it golden_snapshot_write -- --ignored` writes the listing of the present
//! version anew, of the file that the library's test of the same name has written. Do that only together with a new
//! version of the format; the old files stay.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arborlog::inspect::load_snapshot;
use arborlog::{DataTree, NodeRef, SnapshotInfo};

fn golden(version: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version).join(name)
}

fn listing(tree: &DataTree, info: &SnapshotInfo) -> String {
    let mut out = format!(
        "start {} end {} digest {:016x} nodes {} sessions {} txns {} bytes {} created {}\n",
        info.start,
        info.end,
        info.digest,
        info.nodes,
        info.sessions,
        info.txns,
        info.file_bytes,
        info.created_ms
    );
    for (id, timeout_ms) in tree.sessions() {
        writeln!(out, "session {id:#x} {timeout_ms}").unwrap();
    }
    let root = tree.get("/").unwrap();
    for node in std::iter::once(root).chain(tree.descendants("/", None)) {
        write_node(&mut out, &node);
    }
    out
}

fn write_node(out: &mut String, node: &NodeRef<'_>) {
    let s = node.stored();
    write!(out, "{} {} {} {}", node.path(), s.czxid, s.mzxid, s.pzxid).unwrap();
    write!(out, " {} {} {} {} {}", s.ctime_ms, s.mtime_ms, s.version, s.cversion, s.aversion).unwrap();
    write!(out, " {:#x} ", s.owner.to_raw()).unwrap();
    match node.data() {
        Some(data) => data.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap()),
        None => out.push_str("null"),
    }
    for entry in node.acl().iter() {
        write!(out, " {}:{}:{}", entry.scheme, entry.id, entry.perms.get()).unwrap();
    }
    out.push('\n');
}

#[test]
fn golden_snapshot_of_version_1_reads_as_it_was_written() {
    let bytes = std::fs::read(golden("v1", "snapshot.snap")).unwrap();
    let (tree, info) = load_snapshot(&bytes).unwrap();
    assert!(info.txns > 0 && info.sessions > 0 && tree.len() > 5, "{info:?}");
    let expected = std::fs::read_to_string(golden("v1", "snapshot.txt")).unwrap();
    assert_eq!(listing(&tree, &info), expected);
}

#[test]
#[ignore = "writes the listing of the golden snapshot of the present version"]
fn golden_snapshot_write() {
    if std::env::var_os("ARBORLOG_WRITE_GOLDEN").is_some() {
        let (tree, info) = load_snapshot(&std::fs::read(golden("v1", "snapshot.snap")).unwrap()).unwrap();
        std::fs::write(golden("v1", "snapshot.txt"), listing(&tree, &info)).unwrap();
    }
}
