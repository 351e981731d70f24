//! The smallest program with an engine: a few changes of a tree, and a snapshot in their middle.
//!
//! `cargo run --release --example engine -- DIR` leaves the engine in DIR, to look at with the tool; without DIR it goes
//! with the program.

use std::path::{Path, PathBuf};

use arborlog::{Acl, Caller, CreateRequest, EngineOptions, Request, Result};

fn main() -> Result<()> {
    let temporary = tempfile::tempdir().expect("make a directory");
    let dir = std::env::args_os().nth(1).map_or(temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&dir).expect("make the directory");
    make(&dir)
}

pub(crate) fn make(dir: &Path) -> Result<()> {
    let (engine, report) = EngineOptions::new().open(dir)?;
    println!("{report}");

    let (acl, caller) = ([Acl::open()], Caller::default());
    for path in ["/app", "/app/config", "/app/queue"] {
        let create = Request::Create(CreateRequest::new(path, b"v0", &acl));
        println!("{path} is created by {}", engine.submit(&create, &caller)?.wait()?.zxid);
    }
    // It holds all that is applied so far; writers go on meanwhile.
    let snapshot = engine.snapshot()?.join()?;
    println!("a snapshot of {} nodes at {}", snapshot.nodes, snapshot.end);

    for data in [b"v1", b"v2", b"v3", b"v4", b"v5"] {
        let set = Request::SetData { path: "/app/config", data: Some(data), version: -1 };
        println!("/app/config is set by {}", engine.submit(&set, &caller)?.wait()?.zxid);
    }
    engine.close()
}
