use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::super::owner::Owner;
use super::super::quota::QuotaState;
use super::state::{NodeState, SessionState};
use crate::base::Zxid;

/// The changes that are logged and not yet applied, as what they make of the nodes, sessions and quotas they touch.
///
/// Of each there is the latest state, which does not depend on how far the tree has come: it is forgotten when the
/// tree has the last change of it. What was there before each change is kept as well, so that the newest changes can
/// be taken back.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    nodes: HashMap<Arc<str>, (Zxid, Option<NodeState>)>,
    sessions: HashMap<i64, (Zxid, SessionState)>,
    /// `None` for one whose limits were deleted.
    quotas: HashMap<Arc<str>, (Zxid, Option<QuotaState>)>,
    /// For each session the nodes in `nodes` that it owns.
    ephemerals: HashMap<i64, HashSet<Arc<str>>>,
    /// Oldest first.
    changes: VecDeque<Change>,
    /// The tree has everything up to here.
    applied: Zxid,
}

/// What the changes make of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pending<T> {
    /// Nothing: it is as the tree has it.
    Untouched,
    /// It will not be there.
    Gone,
    /// It will be like this.
    Is(T),
}

#[derive(Debug)]
struct Change {
    zxid: Zxid,
    before: Before,
}

/// What was there before a change.
#[derive(Debug)]
enum Before {
    /// In a box: most nodes are touched by no other change that is not yet applied, and a state is large.
    Node(Arc<str>, Option<Box<(Zxid, Option<NodeState>)>>),
    Session(i64, Option<(Zxid, SessionState)>),
    Quota(Arc<str>, Option<(Zxid, Option<QuotaState>)>),
}

impl Outstanding {
    /// How many states are kept.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() + self.sessions.len() + self.quotas.len()
    }

    /// What will be at a path.
    pub(super) fn node(&self, path: &str) -> Pending<&NodeState> {
        match self.nodes.get(path) {
            None => Pending::Untouched,
            Some((_, None)) => Pending::Gone,
            Some((_, Some(state))) => Pending::Is(state),
        }
    }

    /// All nodes that changes touch, in no order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, Option<&NodeState>)> {
        self.nodes.iter().map(|(path, (_, state))| (path, state.as_ref()))
    }

    /// The nodes of a session that changes touch, in no order.
    pub(super) fn ephemerals(&self, session_id: i64) -> impl Iterator<Item = &Arc<str>> {
        self.ephemerals.get(&session_id).into_iter().flatten()
    }

    pub(super) fn session(&self, id: i64) -> Option<SessionState> {
        self.sessions.get(&id).map(|(_, state)| *state)
    }

    /// What the quota of a path will be.
    pub(super) fn quota(&self, root: &str) -> Pending<QuotaState> {
        match self.quotas.get(root) {
            None => Pending::Untouched,
            Some((_, None)) => Pending::Gone,
            Some((_, Some(state))) => Pending::Is(*state),
        }
    }

    pub(super) fn has_quotas(&self) -> bool {
        !self.quotas.is_empty()
    }

    pub(super) fn set_node(&mut self, zxid: Zxid, path: &str, state: Option<NodeState>) {
        let path = key(&self.nodes, path);
        let before = self.replace_node(&path, Some((zxid, state))).map(Box::new);
        self.changes.push_back(Change { zxid, before: Before::Node(path, before) });
    }

    pub(super) fn set_session(&mut self, zxid: Zxid, id: i64, state: SessionState) {
        let before = self.sessions.insert(id, (zxid, state));
        self.changes.push_back(Change { zxid, before: Before::Session(id, before) });
    }

    pub(super) fn set_quota(&mut self, zxid: Zxid, root: &str, state: Option<QuotaState>) {
        let root = key(&self.quotas, root);
        let before = self.quotas.insert(Arc::clone(&root), (zxid, state));
        self.changes.push_back(Change { zxid, before: Before::Quota(root, before) });
    }

    /// Forgets what the tree has by now.
    pub(super) fn applied(&mut self, zxid: Zxid) {
        self.applied = self.applied.max(zxid);
        while self.changes.front().is_some_and(|change| change.zxid <= zxid) {
            // Checked above.
            let Some(change) = self.changes.pop_front() else { return };
            let is_last = |at: Option<Zxid>| at.is_some_and(|at| at <= zxid);
            match change.before {
                Before::Node(path, _) => {
                    if is_last(self.nodes.get(&path).map(|(at, _)| *at)) {
                        self.replace_node(&path, None);
                    }
                }
                Before::Session(id, _) => {
                    if is_last(self.sessions.get(&id).map(|(at, _)| *at)) {
                        self.sessions.remove(&id);
                    }
                }
                Before::Quota(root, _) => {
                    if is_last(self.quotas.get(&root).map(|(at, _)| *at)) {
                        self.quotas.remove(&root);
                    }
                }
            }
        }
    }

    /// Where the changes have come to, to go back to.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Takes back all changes after a mark, the newest first.
    pub(super) fn roll_back_to(&mut self, mark: usize) {
        while self.changes.len() > mark {
            self.take_back();
        }
    }

    /// Takes back the changes of that txn and of all later ones.
    pub(super) fn roll_back_from(&mut self, zxid: Zxid) {
        while self.changes.back().is_some_and(|change| change.zxid >= zxid) {
            self.take_back();
        }
    }

    fn take_back(&mut self) {
        let Some(change) = self.changes.pop_back() else { return };
        let applied = self.applied;
        match change.before {
            // What the tree has by now is not put back.
            Before::Node(path, before) => {
                self.replace_node(&path, before.map(|before| *before).filter(|(at, _)| *at > applied));
            }
            Before::Session(id, before) => {
                restore(&mut self.sessions, id, before.filter(|(at, _)| *at > applied));
            }
            Before::Quota(root, before) => {
                restore(&mut self.quotas, root, before.filter(|(at, _)| *at > applied));
            }
        }
    }

    fn replace_node(
        &mut self,
        path: &Arc<str>,
        state: Option<(Zxid, Option<NodeState>)>,
    ) -> Option<(Zxid, Option<NodeState>)> {
        let new_owner = owner_of(state.as_ref());
        let before = match state {
            Some(state) => self.nodes.insert(Arc::clone(path), state),
            None => self.nodes.remove(path),
        };
        let old_owner = owner_of(before.as_ref());
        if old_owner != new_owner {
            if let Some(Owner::Session(id)) = old_owner
                && let Some(paths) = self.ephemerals.get_mut(&id)
            {
                paths.remove(path);
                if paths.is_empty() {
                    self.ephemerals.remove(&id);
                }
            }
            if let Some(Owner::Session(id)) = new_owner {
                self.ephemerals.entry(id).or_default().insert(Arc::clone(path));
            }
        }
        before
    }
}

fn owner_of(state: Option<&(Zxid, Option<NodeState>)>) -> Option<Owner> {
    state.and_then(|(_, state)| state.as_ref()).map(|state| state.stored.owner)
}

/// The key that is there already, or a new one.
fn key<V>(map: &HashMap<Arc<str>, V>, key: &str) -> Arc<str> {
    map.get_key_value(key).map_or_else(|| Arc::from(key), |(key, _)| Arc::clone(key))
}

fn restore<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(before) => drop(map.insert(key, before)),
        None => drop(map.remove(&key)),
    }
}
