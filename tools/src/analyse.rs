use std::collections::HashMap;

use arborlog::inspect::{SnapshotDirectory, SnapshotItem};
use arborlog::{NodeRef, SnapshotInfo, Zxid};
use serde_json::{Value, json};

use crate::analysis::{Analysis, CLASSES, Sum, hash};
use crate::engine_args::AnalyseArguments;
use crate::output::{Failure, Output, counted, integer, zxid};
use crate::progress::Bar;
use crate::snapshot::wanted;

/// The figures of one snapshot.
struct Figures {
    analysis: Analysis,
    sessions: u64,
    txns: u64,
    /// The nodes with the most children, the fullest first.
    crowded: Vec<(String, u64)>,
}

/// Tells what fills the tree of a snapshot.
pub(crate) fn run(arguments: &AnalyseArguments, output: &mut Output) -> Result<(), Failure> {
    let (snapshots, end) = wanted(&arguments.target, arguments.zxid)?;
    let mut bar = Bar::new();
    let (figures, info) = if arguments.exact {
        count_tree(&snapshots, end, arguments, &mut bar)?
    } else {
        count_file(&snapshots, end, arguments, &mut bar)?
    };
    drop(bar);
    if output.json {
        output.object(&object(&figures, &info, arguments))
    } else {
        print_text(&figures, &info, arguments, output)
    }
}

fn count_tree(
    snapshots: &SnapshotDirectory,
    end: Zxid,
    arguments: &AnalyseArguments,
    bar: &mut Bar,
) -> Result<(Figures, SnapshotInfo), Failure> {
    let (tree, info) = snapshots.load(end, &mut |progress| bar.show(progress))?;
    let mut analysis = Analysis::new(arguments.depth, arguments.top);
    let nodes = || tree.get("/").into_iter().chain(tree.descendants("/", None));
    for node in nodes() {
        analysis.node(&node.path(), node.data().map(<[u8]>::len), node.owner());
    }
    let fullest = analysis.crowded();
    let mut crowded = Vec::new();
    for node in nodes() {
        let path = NodeRef::path(&node);
        if let Some(count) = fullest.get(&hash(&path)) {
            crowded.push((path, *count));
        }
    }
    let sessions = tree.sessions().len() as u64;
    Ok((Figures { analysis, sessions, txns: 0, crowded: sorted(crowded) }, info))
}

fn count_file(
    snapshots: &SnapshotDirectory,
    end: Zxid,
    arguments: &AnalyseArguments,
    bar: &mut Bar,
) -> Result<(Figures, SnapshotInfo), Failure> {
    let mut analysis = Analysis::new(arguments.depth, arguments.top);
    let info = snapshots.read(
        end,
        &mut |item| {
            if let SnapshotItem::Node(node) = item {
                analysis.node(node.path, node.data.map(<[u8]>::len), node.stat.owner);
            }
            true
        },
        &mut |progress| bar.show(progress),
    )?;
    let fullest = analysis.crowded();
    let mut crowded: HashMap<String, u64> = HashMap::new();
    // Once more for the names: only numbers were kept of so many.
    snapshots.read(
        end,
        &mut |item| {
            if let SnapshotItem::Node(node) = item
                && let Some(count) = fullest.get(&hash(node.path))
            {
                crowded.insert(node.path.to_owned(), *count);
            }
            crowded.len() < fullest.len()
        },
        &mut |progress| bar.show(progress),
    )?;
    let crowded = sorted(crowded.into_iter().collect());
    Ok((Figures { analysis, sessions: info.sessions, txns: info.txns, crowded }, info))
}

fn sorted(mut crowded: Vec<(String, u64)>) -> Vec<(String, u64)> {
    crowded.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    crowded
}

/// The smallest and the largest size of a class, as people read it.
fn class_name(class: usize) -> String {
    let bytes = |bytes: u64| match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes}"),
    };
    match class {
        0 => "0".to_owned(),
        class if class == CLASSES.len() => format!("over {}", bytes(CLASSES[class - 1])),
        class => format!("up to {}", bytes(CLASSES[class])),
    }
}

fn print_text(
    figures: &Figures,
    info: &SnapshotInfo,
    arguments: &AnalyseArguments,
    output: &mut Output,
) -> Result<(), Failure> {
    let Figures { analysis, sessions, txns, crowded } = figures;
    output.line(&format!("snapshot           {} (zxid {} to {})", info.file, info.start, info.end))?;
    if *txns > 0 {
        let what = "counted as the walk met them; --exact counts the tree at the end";
        output.line(&format!(
            "note               {} of the walk's time are not counted: {what}",
            counted(*txns, "txn")
        ))?;
    }
    let Sum { nodes, bytes } = analysis.all;
    output.line(&format!("nodes              {nodes}"))?;
    output.line(&format!("  persistent       {}", analysis.persistent))?;
    output.line(&format!("  ephemeral        {}", analysis.ephemeral))?;
    output.line(&format!("  container        {}", analysis.container))?;
    output.line(&format!("  with a TTL       {}", analysis.ttl))?;
    output.line(&format!("  without data     {}", analysis.without_data))?;
    output.line(&format!("  with children    {}", analysis.parents()))?;
    output.line(&format!("bytes of data      {bytes}"))?;
    output.line(&format!("sessions           {sessions}"))?;
    output.line(&format!("subtrees at depth {}, by bytes of data:", arguments.depth))?;
    for (path, Sum { nodes, bytes }) in analysis.subtrees() {
        output.line(&format!("  {bytes:>12} bytes {nodes:>10} nodes  {path}"))?;
    }
    output.line("nodes with the most data:")?;
    for (path, bytes) in analysis.largest() {
        output.line(&format!("  {bytes:>12} bytes  {path}"))?;
    }
    output.line("nodes with the most children:")?;
    for (path, count) in crowded {
        output.line(&format!("  {count:>12} children  {path}"))?;
    }
    output.line("sizes of data, in bytes:")?;
    for (class, Sum { nodes, bytes }) in analysis.classes.iter().enumerate() {
        output.line(&format!("  {:>12} {nodes:>10} nodes {bytes:>14} bytes", class_name(class)))?;
    }
    Ok(())
}

fn object(figures: &Figures, info: &SnapshotInfo, arguments: &AnalyseArguments) -> Value {
    let Figures { analysis, sessions, txns, crowded } = figures;
    let subtree = |(path, sum): (&str, Sum)| json!({ "path": path, "nodes": integer(sum.nodes), "data_bytes": integer(sum.bytes) });
    let class = |(class, sum): (usize, &Sum)| {
        let bound = CLASSES.get(class).map(|bound| integer(*bound));
        json!({ "up_to_bytes": bound, "nodes": integer(sum.nodes), "data_bytes": integer(sum.bytes) })
    };
    let largest = |(path, bytes): (&str, u64)| json!({ "path": path, "data_bytes": integer(bytes) });
    let fullest = |(path, count): &(String, u64)| json!({ "path": path, "children": integer(*count) });
    json!({
        "type": "analysis",
        "file": info.file,
        "start_zxid": zxid(info.start),
        "end_zxid": zxid(info.end),
        "exact": arguments.exact || *txns == 0,
        "txns_not_counted": integer(*txns),
        "nodes": integer(analysis.all.nodes),
        "data_bytes": integer(analysis.all.bytes),
        "persistent": integer(analysis.persistent),
        "ephemeral": integer(analysis.ephemeral),
        "container": integer(analysis.container),
        "ttl": integer(analysis.ttl),
        "without_data": integer(analysis.without_data),
        "with_children": analysis.parents(),
        "sessions": integer(*sessions),
        "depth": arguments.depth,
        "subtrees": analysis.subtrees().into_iter().map(subtree).collect::<Vec<_>>(),
        "largest": analysis.largest().into_iter().map(largest).collect::<Vec<_>>(),
        "most_children": crowded.iter().map(fullest).collect::<Vec<_>>(),
        "data_sizes": analysis.classes.iter().enumerate().map(class).collect::<Vec<_>>(),
    })
}
