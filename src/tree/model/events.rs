use std::collections::BTreeSet;

use super::reference::{Model, parent};
use crate::tree::Change;

/// A change, owned.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Told {
    Created(String),
    Deleted(String),
    DataSet(String),
    AclSet(String),
    SessionCreated(i64),
    SessionClosed(i64),
}

impl From<Change<'_>> for Told {
    fn from(change: Change<'_>) -> Told {
        match change {
            Change::Created { path } => Told::Created(path.to_owned()),
            Change::Deleted { path } => Told::Deleted(path.to_owned()),
            Change::DataSet { path } => Told::DataSet(path.to_owned()),
            Change::AclSet { path } => Told::AclSet(path.to_owned()),
            Change::SessionCreated { id } => Told::SessionCreated(id),
            Change::SessionClosed { id } => Told::SessionClosed(id),
        }
    }
}

/// In what the changes that were told do not lead from one state to the next. Of a live history: nothing is created
/// twice, nothing deleted above something else.
pub(super) fn differences(before: &Model, after: &Model, told: &[Told]) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths: BTreeSet<String> = before.nodes.keys().cloned().collect();
    let mut sessions: BTreeSet<i64> = before.sessions.keys().copied().collect();
    let (mut data_set, mut acl_set) = (BTreeSet::new(), BTreeSet::new());
    for change in told {
        let fits = match change {
            Told::Created(path) => {
                data_set.remove(path);
                acl_set.remove(path);
                paths.contains(parent(path)) && paths.insert(path.clone())
            }
            Told::Deleted(path) => {
                let below = format!("{path}/");
                paths.remove(path) && !paths.iter().any(|p| p.starts_with(&below))
            }
            Told::DataSet(path) => {
                data_set.insert(path.clone());
                paths.contains(path)
            }
            Told::AclSet(path) => {
                acl_set.insert(path.clone());
                paths.contains(path)
            }
            Told::SessionCreated(id) => sessions.insert(*id) || before.sessions.contains_key(id),
            Told::SessionClosed(id) => sessions.remove(id),
        };
        if !fits {
            found.push(format!("told at the wrong time: {change:?}"));
        }
    }
    if !paths.iter().eq(after.nodes.keys()) {
        found.push(format!("told of other nodes: {told:?}"));
    }
    if !sessions.iter().eq(after.sessions.keys()) {
        found.push(format!("told of other sessions: {told:?}"));
    }
    for (path, node) in &after.nodes {
        let old = before.nodes.get(path).filter(|old| old.stat.czxid == node.stat.czxid);
        let (data, acl) = match old {
            Some(old) => (old.stat.mzxid != node.stat.mzxid, old.stat.aversion != node.stat.aversion),
            None => (node.stat.version != 0, node.stat.aversion != 0),
        };
        if (data, acl) != (data_set.contains(path), acl_set.contains(path)) {
            found.push(format!("told otherwise of {path}: {told:?}"));
        }
    }
    found
}

#[test]
fn what_is_told_too_much_or_too_little_is_found() {
    let before = Model::new();
    let mut after = before.clone();
    after.nodes.insert("/a".to_owned(), before.nodes["/zookeeper"].clone());
    let created = Told::Created("/a".to_owned());
    assert_eq!(differences(&before, &after, &[created.clone()]), Vec::<String>::new());
    let wrong: [&[Told]; 6] = [
        &[],
        &[created.clone(), created.clone()],
        &[created.clone(), Told::DataSet("/a".to_owned())],
        &[created.clone(), Told::AclSet("/".to_owned())],
        &[created.clone(), Told::SessionCreated(1)],
        &[created.clone(), Told::Deleted("/zookeeper".to_owned())],
    ];
    for told in wrong {
        assert_ne!(differences(&before, &after, told), Vec::<String>::new(), "{told:?}");
    }
}
