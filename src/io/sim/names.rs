//! The directory: names in the cache, names on the medium, and the steps between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::crash::Dice;

/// Number of a file for as long as it has a name or is open.
pub(super) type InodeId = u64;

type Table = BTreeMap<Arc<str>, Entry>;

/// What stands under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    File(InodeId),
    Other,
}

/// Both tables of names. A step not yet synced is kept or lost on its own, except that steps on one name
/// happen in their order: a step needs all earlier ones that touch one of its names.
#[derive(Clone, Default)]
pub(super) struct Names {
    cached: Arc<Table>,
    durable: Arc<Table>,
    unsynced: Vec<Unsynced>,
}

#[derive(Clone)]
struct Unsynced {
    step: Step,
    /// A failed directory sync gave the step up: it never becomes durable.
    lost: bool,
}

#[derive(Clone)]
enum Step {
    Link(Arc<str>, Entry),
    Unlink(Arc<str>),
    /// One step, so that a power cut shows both of its names changed, or neither. What is renamed is known by
    /// itself: a step that was lost before does not take this one with it.
    Rename(Arc<str>, Arc<str>, Entry),
}

impl Names {
    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        self.cached.get(name).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, Entry)> {
        self.cached.iter().map(|(name, entry)| (name, *entry))
    }

    pub(super) fn link(&mut self, name: Arc<str>, entry: Entry) {
        self.change(Step::Link(name, entry));
    }

    pub(super) fn unlink(&mut self, name: &str) {
        self.change(Step::Unlink(name.into()));
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let entry = self.cached.get(from).copied().expect("the caller has looked the name up");
        self.change(Step::Rename(from.into(), to.into(), entry));
    }

    pub(super) fn sync(&mut self) {
        self.settle(|| true);
    }

    /// What a failed directory sync does: the steps so far stay visible and never become durable.
    pub(super) fn lose_unsynced(&mut self) {
        for unsynced in &mut self.unsynced {
            unsynced.lost = true;
        }
    }

    /// Loses power.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        dice.next_file();
        self.settle(|| dice.keep());
        self.unsynced.clear();
        self.cached = self.durable.clone();
    }

    /// Takes what is visible as durable, lost or not: the tests' tools act on a disk at rest.
    pub(super) fn settle_as_visible(&mut self) {
        self.unsynced.clear();
        self.durable = self.cached.clone();
    }

    /// Whether the file is visible under some name.
    pub(super) fn shows(&self, inode: InodeId) -> bool {
        self.cached.values().any(|entry| *entry == Entry::File(inode))
    }

    /// All files that have a name now, or may have one after a power cut.
    pub(super) fn inodes(&self) -> BTreeSet<InodeId> {
        let linked = self.unsynced.iter().filter_map(|unsynced| match &unsynced.step {
            Step::Link(_, entry) => Some(entry),
            Step::Unlink(_) | Step::Rename(..) => None,
        });
        let entries = self.cached.values().chain(self.durable.values()).chain(linked);
        entries
            .filter_map(|entry| match entry {
                Entry::File(inode) => Some(*inode),
                Entry::Other => None,
            })
            .collect()
    }

    fn change(&mut self, step: Step) {
        step.apply(Arc::make_mut(&mut self.cached));
        self.unsynced.push(Unsynced { step, lost: false });
    }

    /// Makes those steps durable that `keep` picks and that may happen; the others stay, lost.
    fn settle(&mut self, mut keep: impl FnMut() -> bool) {
        let mut blocked = BTreeSet::new();
        for mut unsynced in std::mem::take(&mut self.unsynced) {
            if unsynced.lost {
                self.unsynced.push(unsynced);
                continue;
            }
            let step = &unsynced.step;
            let possible = !step.names().any(|name| blocked.contains(name));
            if possible && keep() {
                step.apply(Arc::make_mut(&mut self.durable));
            } else {
                blocked.extend(step.names().cloned());
                unsynced.lost = true;
                self.unsynced.push(unsynced);
            }
        }
    }
}

impl Step {
    fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let (first, second) = match self {
            Step::Link(name, _) | Step::Unlink(name) => (name, None),
            Step::Rename(from, to, _) => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn apply(&self, table: &mut Table) {
        match self {
            Step::Link(name, entry) => {
                table.insert(name.clone(), *entry);
            }
            Step::Unlink(name) => {
                table.remove(name);
            }
            Step::Rename(from, to, entry) => {
                table.remove(from);
                table.insert(to.clone(), *entry);
            }
        }
    }
}
