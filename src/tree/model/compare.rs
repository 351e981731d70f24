use std::collections::HashSet;

use super::reference::{Model, ModelNode, node_digest};
use crate::tree::quota::limits_root;
use crate::tree::store::Node;
use crate::tree::{DataTree, NodeRef, path};

/// Everything in which a tree is not like its model.
pub(super) fn differences(tree: &DataTree, model: &Model) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |what: &str, tree: &dyn std::fmt::Debug, model: &dyn std::fmt::Debug| {
        let (tree, model) = (format!("{tree:?}"), format!("{model:?}"));
        if tree != model {
            found.push(format!("{what}: {tree} for {model}"));
        }
    };
    let mut walked = Vec::new();
    let mut todo: Vec<NodeRef<'_>> = tree.get("/").into_iter().collect();
    while let Some(node) = todo.pop() {
        walked.push(node.path());
        todo.extend(node.children(None));
    }
    walked.sort_unstable();
    same("paths", &walked, &model.nodes.keys().collect::<Vec<_>>());
    same("length", &tree.len(), &model.nodes.len());
    same("digest", &tree.digest(), &model.digest());
    same("approximate bytes", &tree.approximate_bytes(), &model.approximate_bytes());
    same("last zxid", &tree.last_zxid(), &model.last_zxid);
    same("sessions", &tree.sessions(), &model.sessions.iter().map(|(id, t)| (*id, *t)).collect::<Vec<_>>());
    for (id, timeout_ms) in &model.sessions {
        same("timeout", &tree.session_timeout_ms(*id), &Some(*timeout_ms));
    }
    same("owners", &tree.ephemeral_owners(), &model.owners().into_iter().collect::<Vec<_>>());
    for id in model.owners() {
        same("ephemerals", &tree.ephemeral_paths(id), &model.ephemerals(id));
    }
    for now_ms in [i64::MIN, 0, 1_700_000_000_000, 1_700_000_100_000, i64::MAX] {
        same("expired", &tree.expired_paths(now_ms), &model.expired(now_ms));
    }
    let lists = model.nodes.values().map(|node| &node.acl).filter(|acl| !acl.as_list().is_empty());
    let distinct: HashSet<_> = lists.clone().collect();
    same("ACL lists and uses", &tree.acls.counts(), &(distinct.len(), lists.count()));
    for (path, node) in &model.nodes {
        if let Some(there) = tree.get(path) {
            compare_node(there, path, node, model, &mut same);
        }
    }
    let limits = model.nodes.keys().filter_map(|path| limits_root(path));
    same("whether there is no quota", &tree.quotas.is_empty(), &(limits.clone().count() == 0));
    for root in limits {
        let quota = tree.quotas.state(root).map(|q| (q.nodes, q.bytes));
        same("a quota's totals", &quota, &Some(totals(model, root)));
    }
    for (path, id) in tree.directory.iter() {
        same("a listed node's path", &tree.path_of(id), &path);
    }
    let listed = tree.families.values().filter(|family| family.is_listed).count();
    same("listed nodes", &tree.directory.iter().count(), &listed);
    same("side tables", &(tree.rare.len(), tree.families.len()), &flagged(tree, model));
    found
}

/// Nodes and bytes of data of a part of the tree.
fn totals(model: &Model, root: &str) -> (usize, usize) {
    let within = model.nodes.iter().filter(|(path, _)| path::is_within(path, root));
    let bytes = |node: &ModelNode| node.data.as_ref().map_or(0, |data| data.len());
    within.fold((0, 0), |sum, (_, node)| (sum.0 + 1, sum.1 + bytes(node)))
}

fn compare_node(
    there: NodeRef<'_>,
    path: &str,
    node: &ModelNode,
    model: &Model,
    same: &mut impl FnMut(&str, &dyn std::fmt::Debug, &dyn std::fmt::Debug),
) {
    let what = |field: &str| format!("{field} of {path}");
    same(&what("path"), &there.path(), &path);
    same(&what("name"), &there.name(), &path.rsplit('/').next().unwrap_or(""));
    if there.data() != node.data.as_deref() || there.data_to_keep().as_deref() != node.data.as_deref() {
        let len = |data: Option<&[u8]>| data.map(<[u8]>::len);
        same(&what("data"), &(len(there.data()), "other"), &len(node.data.as_deref()));
    }
    same(&what("ACL"), &there.acl(), &node.acl);
    same(&what("stored state"), &there.stored(), &node.stat);
    same(&what("owner"), &there.owner(), &node.stat.owner);
    if path::is_in_digest(path) {
        same(&what("digest"), &there.digest(), &u64::from(node_digest(path, node)));
    }
    same(&what("Stat"), &Some(there.stat()), &model.stat(path));
    let names = model.children(path);
    same(&what("children"), &there.children(None).map(|c| c.name()).collect::<Vec<_>>(), &names);
    same(&what("count of children"), &there.child_count(), &names.len());
    for after in ["a", "b!", names.first().copied().unwrap_or("zz")] {
        let behind: Vec<_> = names.iter().copied().filter(|name| *name > after).collect();
        let there: Vec<_> = there.children(Some(after)).map(|c| c.name()).collect();
        same(&what("children after a name"), &there, &behind);
    }
    for name in names {
        same(&what("child"), &there.child(name).map(|child| child.name()), &Some(name));
    }
}

/// How many nodes say that they have a row in the tables of rare fields and of parents: all rows are theirs.
fn flagged(tree: &DataTree, model: &Model) -> (usize, usize) {
    let ids = model.nodes.keys().filter_map(|path| tree.find(path));
    ids.fold((0, 0), |(rare, families), id| {
        let node = tree.nodes.at(id);
        (rare + usize::from(node.is(Node::RARE)), families + usize::from(node.is(Node::PARENT)))
    })
}

#[test]
fn every_field_that_differs_is_told() {
    type Change<'a> = &'a dyn Fn(&mut Model);
    let model = Model::new();
    assert_eq!(differences(&DataTree::new(), &model), Vec::<String>::new());
    let told = |change: &dyn Fn(&mut Model)| {
        let mut changed = model.clone();
        change(&mut changed);
        differences(&DataTree::new(), &changed)
    };
    let root = |model: &mut Model, change: &dyn Fn(&mut ModelNode)| {
        change(model.nodes.get_mut("/").expect("the root"));
    };
    let changes: [(&str, Change<'_>); 8] = [
        ("paths", &|m| drop(m.nodes.insert("/x".to_owned(), m.nodes["/"].clone()))),
        ("sessions", &|m| m.sessions.extend([(1, 2)])),
        ("data of /", &|m| root(m, &|node| node.data = None)),
        ("ACL of /", &|m| m.nodes.get_mut("/").expect("root").acl = m.nodes["/zookeeper/config"].acl.clone()),
        ("stored state of /", &|m| root(m, &|node| node.stat.ctime_ms = 1)),
        ("digest", &|m| root(m, &|node| node.stat.version = 1)),
        ("owners", &|m| root(m, &|node| node.stat.owner = crate::tree::Owner::Session(1))),
        ("last zxid", &|m| m.last_zxid = crate::base::Zxid::new(1)),
    ];
    for (what, change) in changes {
        let told = told(change);
        assert!(told.iter().any(|line| line.starts_with(what)), "{what}: {told:?}");
    }
}
