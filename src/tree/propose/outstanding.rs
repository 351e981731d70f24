use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};

use super::super::owner::Owner;
use super::super::quota::QuotaState;
use super::paths::{PathAt, Paths};
use super::state::{NodeState, SessionState};
use crate::base::Zxid;

/// The changes that are logged and not yet applied, as what they make of the nodes, sessions and quotas they touch.
///
/// Of each the latest change counts, which does not depend on how far the tree has come: it is forgotten when the
/// tree has it. Those before it are kept as long as the tree does not have them, so that the newest changes can be taken
/// back.
///
/// Whoever holds the order gets all of this from another processor, so it is little: a change is written once, beside
/// the last one, and found by its number; and so are the paths, each behind the last one.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Oldest first.
    changes: VecDeque<Change>,
    /// The number of the oldest one; those behind it count on.
    first: u64,
    /// The number of the latest change of each that is touched.
    latest: HashTable<u64>,
    hasher: DefaultHashBuilder,
    /// Of the changes, in their order.
    paths: Paths,
    notes: Notes,
}

/// What has to be known of the latest changes without a look at each.
#[derive(Debug, Default)]
struct Notes {
    /// How many of them are of quotas.
    quotas: usize,
    /// For each session the nodes that it will own.
    ephemerals: HashMap<i64, HashSet<Arc<str>>>,
}

/// Where the latest change of something is, if there is one: looked for once, and good until the next change of the
/// same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latest {
    /// That of its key.
    hash: u64,
    number: Option<u64>,
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
    /// That of its key.
    hash: u64,
    /// The change before it of the same, if there was one that the tree did not have then.
    before: Option<u64>,
    made: Made,
}

/// What a change makes.
#[derive(Debug)]
enum Made {
    /// `None`: it is deleted.
    Node(PathAt, Option<NodeState>),
    Session(i64, SessionState),
    /// `None` for one whose limits were deleted.
    Quota(PathAt, Option<QuotaState>),
}

/// What a change is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key<'k> {
    Node(&'k str),
    Session(i64),
    Quota(&'k str),
}

impl Made {
    fn key<'p>(&self, paths: &'p Paths) -> Key<'p> {
        match self {
            Made::Node(path, _) => Key::Node(paths.get(*path)),
            Made::Session(id, _) => Key::Session(*id),
            Made::Quota(root, _) => Key::Quota(paths.get(*root)),
        }
    }

    fn path(&self) -> Option<PathAt> {
        match self {
            Made::Node(path, _) | Made::Quota(path, _) => Some(*path),
            Made::Session(..) => None,
        }
    }

    /// The session that will own the node, and its path.
    fn ephemeral(&self) -> Option<(i64, PathAt)> {
        let Made::Node(path, Some(state)) = self else { return None };
        if let Owner::Session(id) = state.stored.owner { Some((id, *path)) } else { None }
    }
}

impl Outstanding {
    /// How many nodes, sessions and quotas are touched.
    pub(super) fn len(&self) -> usize {
        self.latest.len()
    }

    /// What will be at a path.
    pub(super) fn node(&self, path: &str) -> Pending<&NodeState> {
        if self.latest.is_empty() { Pending::Untouched } else { self.node_at(self.latest_of(path)) }
    }

    /// Where the latest change of a node is.
    pub(super) fn latest_of(&self, path: &str) -> Latest {
        self.find(Key::Node(path))
    }

    /// What will be there.
    pub(super) fn node_at(&self, latest: Latest) -> Pending<&NodeState> {
        match latest.number.map(|number| &self.change(number).made) {
            Some(Made::Node(_, Some(state))) => Pending::Is(state),
            Some(_) => Pending::Gone,
            None => Pending::Untouched,
        }
    }

    /// All nodes that changes touch, in no order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, Option<&NodeState>)> {
        self.latest.iter().filter_map(|number| match &self.change(*number).made {
            Made::Node(path, state) => Some((self.paths.get(*path), state.as_ref())),
            _ => None,
        })
    }

    /// The nodes of a session that changes touch, in no order.
    pub(super) fn ephemerals(&self, session_id: i64) -> impl Iterator<Item = &Arc<str>> {
        self.notes.ephemerals.get(&session_id).into_iter().flatten()
    }

    pub(super) fn session(&self, id: i64) -> Option<SessionState> {
        if let Some(Made::Session(_, state)) = self.made(Key::Session(id)) { Some(*state) } else { None }
    }

    /// What the quota of a path will be.
    pub(super) fn quota(&self, root: &str) -> Pending<QuotaState> {
        match self.made(Key::Quota(root)) {
            Some(Made::Quota(_, Some(state))) => Pending::Is(*state),
            Some(_) => Pending::Gone,
            None => Pending::Untouched,
        }
    }

    pub(super) fn has_quotas(&self) -> bool {
        self.notes.quotas > 0
    }

    pub(super) fn set_node(&mut self, zxid: Zxid, path: &str, state: Option<NodeState>) {
        self.set_node_at(zxid, self.latest_of(path), path, state);
    }

    /// The same where its latest change is known.
    pub(super) fn set_node_at(&mut self, zxid: Zxid, at: Latest, path: &str, state: Option<NodeState>) {
        debug_assert_eq!(
            self.latest_of(path).number,
            at.number,
            "{path} was changed since it was looked for"
        );
        let path = self.paths.add(path);
        self.push(zxid, at, Made::Node(path, state));
    }

    pub(super) fn set_session(&mut self, zxid: Zxid, id: i64, state: SessionState) {
        self.push(zxid, self.find(Key::Session(id)), Made::Session(id, state));
    }

    pub(super) fn set_quota(&mut self, zxid: Zxid, root: &str, state: Option<QuotaState>) {
        let at = self.find(Key::Quota(root));
        let root = self.paths.add(root);
        self.push(zxid, at, Made::Quota(root, state));
    }

    /// Forgets what the tree has by now.
    pub(super) fn applied(&mut self, zxid: Zxid) {
        while let Some(oldest) = self.changes.pop_front_if(|change| change.zxid <= zxid) {
            let number = self.first;
            self.first += 1;
            if let Ok(entry) = self.latest.find_entry(oldest.hash, |latest| *latest == number) {
                entry.remove();
                self.notes.change(Some(&oldest.made), None, &self.paths);
            }
            if let Some(path) = oldest.made.path() {
                self.paths.forget(path);
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

    /// Takes back the newest change: the one before it of the same counts again, unless the tree has that by now.
    fn take_back(&mut self) {
        let Some(newest) = self.changes.pop_back() else { return };
        let number = self.first + self.changes.len() as u64;
        let entry = self.latest.find_entry(newest.hash, |latest| *latest == number);
        let mut entry = entry.expect("the newest change is the latest of its key");
        let before = newest.before.filter(|before| *before >= self.first);
        match before {
            Some(before) => *entry.get_mut() = before,
            None => drop(entry.remove()),
        }
        let before = before.map(|before| &self.changes[place(before, self.first)].made);
        self.notes.change(Some(&newest.made), before, &self.paths);
        if let Some(path) = newest.made.path() {
            self.paths.take_back(path);
        }
    }

    fn push(&mut self, zxid: Zxid, at: Latest, made: Made) {
        let number = self.first + self.changes.len() as u64;
        let Latest { hash, number: before } = at;
        self.changes.push_back(Change { zxid, hash, before, made });
        let (changes, first) = (&self.changes, self.first);
        if let Some(before) = before {
            let latest = self.latest.find_mut(hash, |latest| *latest == before);
            *latest.expect("it was found") = number;
        } else {
            self.latest.insert_unique(hash, number, |latest| changes[place(*latest, first)].hash);
        }
        let made = |number| &changes[place(number, first)].made;
        self.notes.change(before.map(made), Some(made(number)), &self.paths);
    }

    fn made(&self, key: Key<'_>) -> Option<&Made> {
        if self.latest.is_empty() {
            return None;
        }
        self.find(key).number.map(|number| &self.change(number).made)
    }

    fn find(&self, key: Key<'_>) -> Latest {
        let hash = self.hasher.hash_one(key);
        let is_it = |number: &u64| self.change(*number).made.key(&self.paths) == key;
        Latest { hash, number: self.latest.find(hash, is_it).copied() }
    }

    fn change(&self, number: u64) -> &Change {
        &self.changes[place(number, self.first)]
    }
}

impl Notes {
    /// Takes note that one counts no more, and the other does.
    fn change(&mut self, old: Option<&Made>, new: Option<&Made>, all: &Paths) {
        let is_quota = |made: Option<&Made>| usize::from(matches!(made, Some(Made::Quota(..))));
        self.quotas = self.quotas + is_quota(new) - is_quota(old);
        let (old, new) = (old.and_then(Made::ephemeral), new.and_then(Made::ephemeral));
        if old.map(|(id, _)| id) == new.map(|(id, _)| id) {
            return;
        }
        if let Some((id, path)) = old
            && let Some(paths) = self.ephemerals.get_mut(&id)
        {
            paths.remove(all.get(path));
            if paths.is_empty() {
                self.ephemerals.remove(&id);
            }
        }
        if let Some((id, path)) = new {
            self.ephemerals.entry(id).or_default().insert(Arc::from(all.get(path)));
        }
    }
}

/// Where the change of that number is among those that begin with number `first`.
fn place(number: u64, first: u64) -> usize {
    usize::try_from(number - first).expect("a change in memory")
}
