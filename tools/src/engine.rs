use arborlog::{AclList, DataTree, EngineOptions, EngineView, NodeRef, Stat};
use serde_json::{Value, json};

use crate::args::EngineTarget;
use crate::engine_args::TreeCommand;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, maybe_zxid, zxid};
use crate::payload::base64;
use crate::place::engine_at;

fn look(target: &EngineTarget) -> Result<EngineView, Failure> {
    engine_at(target)?;
    let mut options = EngineOptions::new();
    if let Some(dir) = &target.log_dir {
        options = options.log_dir(dir);
    }
    Ok(options.open_read_only(&target.target.dir)?)
}

/// Prints the state of an engine.
pub(crate) fn stat(target: &EngineTarget, output: &mut Output) -> Result<(), Failure> {
    let view = look(target)?;
    // The state is whole; that a snapshot is not, is damage all the same.
    let damaged = view.snapshots.iter().find_map(|(_, info)| info.as_ref().err());
    if let Some(error) = damaged {
        output.found(Outcome::of_error(error));
    }
    if output.json { stat_json(&view, output) } else { stat_text(&view, output) }
}

fn stat_text(view: &EngineView, output: &mut Output) -> Result<(), Failure> {
    let tree = &view.tree;
    output.line(&format!("database           {}", view.database_id))?;
    output.line(&format!("generation         {}", view.generation))?;
    output.line(&format!("last zxid          {}", tree.last_zxid()))?;
    output.line(&format!(
        "epochs             accepted {}, current {}",
        view.accepted_epoch, view.current_epoch
    ))?;
    output.line(&format!("nodes              {}", tree.len()))?;
    output.line(&format!("paths and data     {} bytes", tree.approximate_bytes()))?;
    output.line(&format!("sessions           {}", tree.sessions().len()))?;
    output.line(&format!("digest             {:#x}", tree.digest()))?;
    let began = view.began_with.map_or("an empty tree".into(), |end| format!("the snapshot {end}"));
    output.line(&format!("state              {began} and {} of the log", counted(view.replayed, "txn")))?;
    output.line(&format!("log                after {} up to {}", view.log.floor_zxid, view.log.last_zxid))?;
    for (end, info) in &view.snapshots {
        match info {
            Ok(info) => output.line(&format!(
                "snapshot           {end}: {}, {} bytes, from {}",
                counted(info.nodes, "node"),
                info.file_bytes,
                info.start
            ))?,
            Err(error) => output.line(&format!("snapshot           {end}: {error}"))?,
        }
    }
    Ok(())
}

fn stat_json(view: &EngineView, output: &mut Output) -> Result<(), Failure> {
    let snapshots: Vec<Value> = view
        .snapshots
        .iter()
        .map(|(end, info)| match info {
            Ok(info) => json!({
                "zxid": zxid(*end),
                "file": info.file,
                "start_zxid": zxid(info.start),
                "nodes": integer(info.nodes),
                "sessions": integer(info.sessions),
                "txns": integer(info.txns),
                "file_bytes": integer(info.file_bytes),
                "created_ms": integer(info.created_ms),
                "digest": format!("{:#x}", info.digest),
                "error": Value::Null,
            }),
            Err(error) => json!({ "zxid": zxid(*end), "error": error_object(error) }),
        })
        .collect();
    let tree = &view.tree;
    output.object(&json!({
        "type": "engine",
        "database_id": view.database_id.to_string(),
        "generation": integer(view.generation),
        "last_zxid": zxid(tree.last_zxid()),
        "accepted_epoch": integer(view.accepted_epoch.get()),
        "current_epoch": integer(view.current_epoch.get()),
        "nodes": integer(tree.len()),
        "data_bytes": integer(tree.approximate_bytes()),
        "sessions": tree.sessions().len(),
        "digest": format!("{:#x}", tree.digest()),
        "began_with": maybe_zxid(view.began_with),
        "replayed": integer(view.replayed),
        "log_floor_zxid": zxid(view.log.floor_zxid),
        "log_last_zxid": zxid(view.log.last_zxid),
        "snapshots": snapshots,
    }))
}

/// Prints nodes, or sessions.
pub(crate) fn tree(command: &TreeCommand, output: &mut Output) -> Result<(), Failure> {
    let Some(arguments) = command.arguments() else {
        return Err(Failure::Usage("give the directory of an engine: see arborlog tree --help".to_owned()));
    };
    let view = look(&arguments.engine())?;
    if arguments.sessions {
        return sessions(&view.tree, output);
    }
    let path = arguments.path.as_deref().unwrap_or("/");
    let Some(top) = view.tree.get(path) else {
        let message = format!("there is no node {path} [no_node]");
        return Err(Failure::Refused { code: "no_node", message });
    };
    // What is still to be printed, the next one last: a deep tree needs no deep stack.
    let mut stack = vec![(top, 0)];
    while let Some((node, depth)) = stack.pop() {
        print_node(&node, output)?;
        if arguments.depth.is_none_or(|max| depth < max) {
            let mut children: Vec<_> = node.children(None).map(|child| (child, depth + 1)).collect();
            children.reverse();
            stack.append(&mut children);
        }
    }
    Ok(())
}

fn print_node(node: &NodeRef<'_>, output: &mut Output) -> Result<(), Failure> {
    let stat = node.stat();
    if output.json {
        return output.object(&node_object(node));
    }
    let Stat { data_bytes, child_count, version, mzxid, .. } = stat;
    let path = node.path();
    output.line(&format!(
        "{path}  {data_bytes} bytes, {child_count} children, version {version}, mzxid {mzxid}"
    ))
}

/// A node as a client sees it.
pub(crate) fn node_object(node: &NodeRef<'_>) -> Value {
    json!({
        "path": node.path(),
        "data": node.data().map(base64),
        "stat": stat_object(&node.stat()),
        "acl": acl_array(node.acl()),
    })
}

fn stat_object(stat: &Stat) -> Value {
    json!({
        "czxid": zxid(stat.czxid),
        "mzxid": zxid(stat.mzxid),
        "ctime": integer(stat.ctime_ms),
        "mtime": integer(stat.mtime_ms),
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeralOwner": format!("{:#x}", stat.ephemeral_owner),
        "dataLength": stat.data_bytes,
        "numChildren": stat.child_count,
        "pzxid": zxid(stat.pzxid),
    })
}

pub(crate) fn acl_array(acl: AclList<'_>) -> Value {
    acl.iter()
        .map(|entry| json!({ "perms": entry.perms.get(), "scheme": entry.scheme, "id": entry.id }))
        .collect()
}

pub(crate) fn session_object(id: i64, timeout_ms: i32, ephemerals: &[String]) -> Value {
    json!({ "type": "session", "session": format!("{id:#x}"), "timeout_ms": timeout_ms, "ephemerals": ephemerals })
}

fn sessions(tree: &DataTree, output: &mut Output) -> Result<(), Failure> {
    for (id, timeout_ms) in tree.sessions() {
        let paths = tree.ephemeral_paths(id);
        if output.json {
            output.object(&session_object(id, timeout_ms, &paths))?;
        } else {
            output.line(&format!("{id:#x}  timeout {timeout_ms} ms, {} ephemeral nodes", paths.len()))?;
            for path in paths {
                output.line(&format!("    {path}"))?;
            }
        }
    }
    Ok(())
}
