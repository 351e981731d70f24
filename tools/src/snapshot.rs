//! `arborlog snapshot ls`, `verify` and `dump`.

use arborlog::inspect::{SnapshotDirectory, SnapshotExamination, SnapshotItem};
use arborlog::{Error, Owner, SnapshotInfo, Txn, TxnBody, WalkedNode, Zxid};
use serde_json::{Value, json};

use crate::args::Target;
use crate::engine::{acl_array, node_object, session_object};
use crate::engine_args::{
    SnapshotCommand, SnapshotDumpArguments, SnapshotLsArguments, SnapshotVerifyArguments,
};
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, zxid};
use crate::payload::base64;
use crate::place::snapshots_at;
use crate::progress::Bar;
use crate::time::format_time;

pub(crate) fn run(command: &SnapshotCommand, output: &mut Output) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Ls(arguments) => ls(arguments, output),
        SnapshotCommand::Dump(arguments) => dump(arguments, output),
        SnapshotCommand::Verify(arguments) => verify(arguments, output),
        SnapshotCommand::Analyse(arguments) => crate::analyse::run(arguments, output),
    }
}

/// The snapshot that was asked for, or the newest.
pub(crate) fn wanted(target: &Target, asked: Option<Zxid>) -> Result<(SnapshotDirectory, Zxid), Failure> {
    let snapshots = snapshots_at(&target.dir)?;
    let ends: Vec<Zxid> = snapshots.list()?.into_iter().map(|listing| listing.end).collect();
    let found = ends.iter().copied().find(|end| asked.is_none_or(|asked| asked == *end));
    let Some(end) = found else {
        let what =
            asked.map_or("there is no snapshot".to_owned(), |asked| format!("no snapshot ends at {asked}"));
        return Err(Failure::Refused { code: "no_such_file", message: format!("{what} [no_such_file]") });
    };
    Ok((snapshots, end))
}

fn ls(arguments: &SnapshotLsArguments, output: &mut Output) -> Result<(), Failure> {
    let snapshots = snapshots_at(&arguments.target.dir)?;
    let mut bar = Bar::new();
    for listing in snapshots.list()? {
        let (info, error, file_bytes) = match (listing.info, arguments.quick) {
            (Ok(info), true) => (Some(info), None, listing.file_bytes),
            (Ok(_), false) => {
                let found = snapshots.examine(listing.end, &mut |progress| bar.show(progress))?;
                (found.info, found.error, listing.file_bytes)
            }
            (Err(error), _) => (None, Some(error), listing.file_bytes),
        };
        if let Some(error) = &error {
            output.found(Outcome::of_error(error));
        }
        let state = match &error {
            None if arguments.quick => "unread".to_owned(),
            None => "whole".to_owned(),
            Some(error) => error.to_string(),
        };
        if output.json {
            let mut object = info.as_ref().map_or(json!({}), info_object);
            object["type"] = json!("snapshot");
            object["file"] = json!(listing.file);
            object["end_zxid"] = zxid(listing.end);
            object["file_bytes"] = integer(file_bytes);
            object["verified"] = json!(error.is_none() && !arguments.quick);
            object["error"] = error.as_ref().map_or(Value::Null, error_object);
            output.object(&object)?;
            continue;
        }
        let told = info.as_ref().map_or(String::new(), |info| {
            format!(
                " zxid {} to {}, {}, {}, {}, {},",
                info.start,
                info.end,
                counted(info.nodes, "node"),
                counted(info.sessions, "session"),
                counted(info.txns, "txn"),
                format_time(info.created_ms)
            )
        });
        output.line(&format!("{} {told} {}: {state}", listing.file, counted(file_bytes, "byte")))?;
    }
    Ok(())
}

fn info_object(info: &SnapshotInfo) -> Value {
    json!({
        "start_zxid": zxid(info.start),
        "nodes": integer(info.nodes),
        "sessions": integer(info.sessions),
        "txns": integer(info.txns),
        "created_ms": integer(info.created_ms),
        "digest": format!("{:#x}", info.digest),
    })
}

fn verify(arguments: &SnapshotVerifyArguments, output: &mut Output) -> Result<(), Failure> {
    let (snapshots, ends) = if let Some(asked) = arguments.zxid {
        let (snapshots, end) = wanted(&arguments.target, Some(asked))?;
        (snapshots, vec![end])
    } else {
        let snapshots = snapshots_at(&arguments.target.dir)?;
        let ends = snapshots.list()?.into_iter().map(|listing| listing.end).collect();
        (snapshots, ends)
    };
    let mut bar = Bar::new();
    let mut outcome = Outcome::Clean;
    let mut found = Vec::new();
    for end in ends {
        let examined = snapshots.examine(end, &mut |progress| bar.show(progress))?;
        let digest = if arguments.deep && examined.is_whole() {
            snapshots.load(end, &mut |progress| bar.show(progress)).map(drop)
        } else {
            Ok(())
        };
        let error = examined.error.as_ref().or(digest.as_ref().err());
        if let Some(error) = error.filter(|_| outcome == Outcome::Clean) {
            outcome = Outcome::of_error(error);
        }
        found.push((examined, digest.err()));
    }
    drop(bar);
    let word = if outcome == Outcome::Clean { "nothing is damaged" } else { "a snapshot is damaged" };
    output.settle(outcome, word);
    found.iter().try_for_each(|(examined, digest)| print_verified(examined, digest.as_ref(), output))
}

fn print_verified(
    examined: &SnapshotExamination,
    digest: Option<&Error>,
    output: &mut Output,
) -> Result<(), Failure> {
    let error = examined.error.as_ref().or(digest);
    if output.json {
        let damage = |damage: &arborlog::inspect::SnapshotDamage| {
            json!({
                "file": damage.file,
                "code": damage.code,
                "offset": integer(damage.offset),
                "end_offset": damage.end_offset.map(integer),
                "message": damage.message,
            })
        };
        return output.object(&json!({
            "type": "snapshot_verification",
            "file": examined.file,
            "end_zxid": zxid(examined.end),
            "sound": error.is_none(),
            "damages": examined.damages.iter().map(damage).collect::<Vec<_>>(),
            "error": error.map_or(Value::Null, error_object),
        }));
    }
    for damage in &examined.damages {
        output.line(&damage.to_string())?;
    }
    match error {
        None => output.line(&format!("{}: sound", examined.file)),
        // Damage was told with its place.
        Some(_) if !examined.damages.is_empty() => Ok(()),
        Some(error) => output.line(&error.to_string()),
    }
}

fn dump(arguments: &SnapshotDumpArguments, output: &mut Output) -> Result<(), Failure> {
    let (snapshots, end) = wanted(&arguments.target, arguments.zxid)?;
    // There is no other form: what is asked for is for programs.
    output.json = true;
    let mut bar = Bar::new();
    if arguments.exact {
        let (tree, _) = snapshots.load(end, &mut |progress| bar.show(progress))?;
        let root = tree.get("/");
        for node in root.into_iter().chain(tree.descendants("/", None)) {
            let mut object = node_object(&node);
            object["type"] = json!("node");
            output.object(&object)?;
        }
        for (id, timeout_ms) in tree.sessions() {
            output.object(&session_object(id, timeout_ms, &tree.ephemeral_paths(id)))?;
        }
        return Ok(());
    }
    let mut failed = None;
    snapshots.read(
        end,
        &mut |item| {
            let object = match item {
                SnapshotItem::Node(node) => walked_object(&node),
                SnapshotItem::Session { id, timeout_ms } => {
                    json!({ "type": "session", "session": format!("{id:#x}"), "timeout_ms": timeout_ms })
                }
                SnapshotItem::Txn(txn) => txn_object(&txn),
            };
            failed = output.object(&object).err();
            failed.is_none()
        },
        &mut |progress| bar.show(progress),
    )?;
    failed.map_or(Ok(()), Err)
}

/// A node as it is stored: what a client sees of it depends on its children, and on the txns behind.
fn walked_object(node: &WalkedNode<'_>) -> Value {
    let stat = &node.stat;
    let (kind, owner, ttl_ms) = match stat.owner {
        Owner::Persistent => ("persistent", 0, None),
        Owner::Session(id) => ("ephemeral", id, None),
        Owner::Container => ("container", 0, None),
        Owner::Ttl { ttl_ms } => ("ttl", 0, Some(ttl_ms)),
    };
    json!({
        "type": "node",
        "path": node.path,
        "data": node.data.map(base64),
        "kind": kind,
        "ttl_ms": ttl_ms,
        "stat": {
            "czxid": zxid(stat.czxid),
            "mzxid": zxid(stat.mzxid),
            "ctime": integer(stat.ctime_ms),
            "mtime": integer(stat.mtime_ms),
            "version": stat.version,
            "childrenCreated": stat.cversion,
            "aversion": stat.aversion,
            "ephemeralOwner": format!("{owner:#x}"),
            "dataLength": node.data.map_or(0, <[u8]>::len),
            "pzxid": zxid(stat.pzxid),
        },
        "acl": acl_array(node.acl),
    })
}

/// A txn, without its data.
pub(crate) fn txn_object(txn: &Txn<'_>) -> Value {
    json!({
        "type": "txn",
        "zxid": zxid(txn.zxid),
        "time_ms": integer(txn.time_ms),
        "session": format!("{:#x}", txn.session_id),
        "cxid": txn.cxid,
        "txn": body_object(&txn.body),
    })
}

fn body_object(body: &TxnBody<'_>) -> Value {
    let (what, path) = match body {
        TxnBody::Create(create) => ("create", Some(create.path)),
        TxnBody::Delete { path } => ("delete", Some(*path)),
        TxnBody::DeleteContainer { path } => ("delete_container", Some(*path)),
        TxnBody::SetData { path, .. } => ("set_data", Some(*path)),
        TxnBody::Reconfig { path, .. } => ("reconfig", Some(*path)),
        TxnBody::SetAcl { path, .. } => ("set_acl", Some(*path)),
        TxnBody::Check { path, .. } => ("check", Some(*path)),
        TxnBody::DeleteAll { paths } => {
            return json!({ "op": "delete_all", "paths": paths.iter().collect::<Vec<_>>() });
        }
        TxnBody::CreateSession { timeout_ms } => {
            return json!({ "op": "create_session", "timeout_ms": timeout_ms });
        }
        TxnBody::CloseSession { paths } => {
            let paths = paths.as_ref().map(|paths| paths.iter().collect::<Vec<_>>());
            return json!({ "op": "close_session", "paths": paths });
        }
        TxnBody::Error { code } => return json!({ "op": "error", "code": code.to_string() }),
        TxnBody::Multi(ops) => {
            return json!({ "op": "multi", "ops": ops.iter().map(|op| body_object(&op)).collect::<Vec<_>>() });
        }
    };
    json!({ "op": what, "path": path })
}
