//! One txn of every kind as each version encodes it, and what must be read from it, for ever.
//!
//! `ARBORLOG_WRITE_GOLDEN=1 cargo test --test it golden_txns_write -- --ignored` writes the file of the present
//! version anew. Do that only together with a new version of the encoding; the old files stay.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arborlog::{
    Acl, AclBuf, AclList, Code, Create, CreateKind, Ops, Paths, Perms, Txn, TxnBody, TxnBuf, Zxid, limits,
};

const ZXID: Zxid = Zxid::from_parts(3, 17);
const TIME_MS: i64 = -5;

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version).join("txns.txt")
}

fn acl() -> AclBuf {
    [Acl::open(), Acl::new(Perms::READ | Perms::ADMIN, "digest", "bob:hash=")]
        .iter()
        .map(Acl::as_entry)
        .collect()
}

/// The names of the txns in the file, and the txns.
fn txns() -> Vec<(&'static str, TxnBuf)> {
    let acl = acl();
    let paths = ["/a/ü/b", "/a/ü", "/"].map(str::to_owned);
    let create = |path, data, kind, parent_cversion| {
        let acl = if data == Some(b"".as_slice()) { AclList::EMPTY } else { acl.as_list() };
        TxnBody::Create(Create { path, data, acl, kind, parent_cversion })
    };
    let plain = |ephemeral| CreateKind::Plain { ephemeral };
    let stat = |ephemeral| CreateKind::WithStat { ephemeral };
    let ttl = |ttl_ms| CreateKind::Ttl { ttl_ms };
    let data = Some(b"some data".as_slice());
    let empty = Some(b"".as_slice());
    let ops = [
        TxnBody::Check { path: "/a", version: -1 },
        create("/a/b", data, plain(false), Some(1)),
        create("/a/c", empty, stat(true), None),
        create("/a/d", None, CreateKind::Container, Some(2)),
        create("/a/e", data, ttl(1), Some(3)),
        TxnBody::Delete { path: "/a/b" },
        TxnBody::DeleteContainer { path: "/a/d" },
        TxnBody::DeleteAll { paths: Paths::from_slice(&paths) },
        TxnBody::SetData { path: "/a/c", data, version: 1 },
        TxnBody::SetAcl { path: "/a/c", acl: acl.as_list(), version: 1 },
        TxnBody::Error { code: Code::NO_NODE },
    ];
    let bodies = [
        ("create", create("/a", data, plain(false), Some(7))),
        ("create-ephemeral-empty", create("/a", empty, plain(true), Some(-1))),
        ("create-null-old", create("/a", None, plain(false), None)),
        ("create-with-stat", create("/a", data, stat(false), Some(i32::MIN))),
        ("create-with-stat-ephemeral", create("/a", empty, stat(true), Some(i32::MAX))),
        ("create-container", create("/a", None, CreateKind::Container, Some(7))),
        ("create-ttl-shortest", create("/a", data, ttl(1), Some(7))),
        ("create-ttl-longest", create("/a", None, ttl(limits::TTL_MS_MAX), None)),
        ("delete", TxnBody::Delete { path: "/a/ü" }),
        ("delete-container", TxnBody::DeleteContainer { path: "/a" }),
        ("delete-all", TxnBody::DeleteAll { paths: Paths::from_slice(&paths) }),
        ("delete-all-of-none", TxnBody::DeleteAll { paths: Paths::from_slice(&[]) }),
        ("set-data", TxnBody::SetData { path: "/a", data, version: 5 }),
        ("set-data-empty", TxnBody::SetData { path: "/a", data: empty, version: -1 }),
        ("set-data-null", TxnBody::SetData { path: "/a", data: None, version: i32::MIN }),
        ("reconfig", TxnBody::Reconfig { path: "/zookeeper/config", data, version: -1 }),
        ("reconfig-null", TxnBody::Reconfig { path: "/zookeeper/config", data: None, version: -1 }),
        ("set-acl", TxnBody::SetAcl { path: "/a", acl: acl.as_list(), version: 2 }),
        ("set-acl-empty", TxnBody::SetAcl { path: "", acl: AclList::EMPTY, version: 0 }),
        ("check", TxnBody::Check { path: "/a", version: -1 }),
        ("create-session", TxnBody::CreateSession { timeout_ms: 30_000 }),
        ("close-session", TxnBody::CloseSession { paths: Some(Paths::from_slice(&paths)) }),
        ("close-session-of-none", TxnBody::CloseSession { paths: Some(Paths::from_slice(&[])) }),
        ("close-session-unlisted", TxnBody::CloseSession { paths: None }),
        ("error", TxnBody::Error { code: Code::NODE_EXISTS }),
        ("multi", TxnBody::Multi(Ops::from_slice(&ops))),
        ("multi-of-none", TxnBody::Multi(Ops::from_slice(&[]))),
    ];
    // Every combination of session and digest comes up.
    let heads = [
        (0x0100_2030_4050_6070, 9, Some(0x1234_5678_9abc_def0)),
        (-1, -9, None),
        (0, i32::MAX, Some(0)),
        (0, 0, None),
    ];
    let head = heads.into_iter().cycle();
    let txn = |((name, body), (session_id, cxid, digest))| {
        (name, Txn { zxid: ZXID, time_ms: TIME_MS, session_id, cxid, digest, body }.to_buf())
    };
    bodies.into_iter().zip(head).map(txn).collect()
}

/// A line for each txn: its name, and its bytes in hexadecimal.
fn listing() -> String {
    let mut out = String::new();
    for (name, txn) in txns() {
        write!(out, "{name} ").unwrap();
        txn.as_bytes().iter().for_each(|byte| write!(out, "{byte:02x}").unwrap());
        out.push('\n');
    }
    out
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

#[test]
fn golden_txns_of_version_1_read_as_they_were_written() {
    let text = std::fs::read_to_string(golden("v1")).unwrap();
    assert_eq!(listing(), text, "they are encoded to other bytes");
    let expected = txns();
    assert_eq!(text.lines().count(), expected.len());
    for (line, (name, expected)) in text.lines().zip(&expected) {
        let bytes = bytes_of(line.split_once(' ').unwrap().1);
        assert_eq!(Txn::decode(ZXID, TIME_MS, &bytes).unwrap(), expected.as_txn(), "{name}");
        assert_eq!(&TxnBuf::from_bytes(ZXID, TIME_MS, bytes).unwrap(), expected, "{name}");
    }
}

#[test]
#[ignore = "writes the golden txns of the present version"]
fn golden_txns_write() {
    if std::env::var_os("ARBORLOG_WRITE_GOLDEN").is_some() {
        std::fs::write(golden("v1"), listing()).unwrap();
    }
}
