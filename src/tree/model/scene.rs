use std::collections::{BTreeMap, BTreeSet};

use super::compare::differences;
use super::events::{self, Told};
use super::reference::{Model, ModelNode};
use super::step::{Op, Step};
use crate::base::Zxid;
use crate::tree::{Change, DataTree, NodeBatch, Outcome, WalkedNode};

/// A live tree beside its model, the txns of a fuzzy range, and the states between them.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) tree: DataTree,
    /// The state at the start of the range, and after each txn of it.
    pub(super) states: Vec<Model>,
    pub(super) steps: Vec<Step>,
}

/// The snapshot of a walk that met each node at another moment.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Torn {
    /// As they were met: one that was deleted and created again may be there twice.
    pub(super) nodes: Vec<(String, ModelNode)>,
    pub(super) sessions: BTreeMap<i64, i32>,
    /// The zxid that it is named with.
    pub(super) start: Zxid,
}

impl Torn {
    /// The tree of what was captured, whether nodes come one by one or several at once; what has no parent is left out.
    pub(super) fn load(&self) -> DataTree {
        let (mut loader, mut one_by_one) =
            (DataTree::loader_for(self.nodes.len() as u64), DataTree::loader());
        let mut batch = NodeBatch::new();
        for (path, node) in &self.nodes {
            let (data, acl, stat) = (node.data.as_deref(), node.acl.as_list(), node.stat);
            let node = WalkedNode { path, data, acl, stat };
            one_by_one.node(&node);
            batch.push(&node);
            if batch.len() > path.len() {
                loader.batch(&batch);
                batch.clear();
            }
        }
        loader.batch(&batch);
        self.sessions.iter().for_each(|(id, timeout_ms)| loader.session(*id, *timeout_ms));
        let (done, one_by_one) = (loader.finish(self.start), one_by_one.finish(self.start));
        assert_eq!(
            (done.orphans, done.tree.digest(), done.tree.approximate_bytes(), done.tree.len()),
            (
                one_by_one.orphans,
                one_by_one.tree.digest(),
                one_by_one.tree.approximate_bytes(),
                one_by_one.tree.len()
            )
        );
        done.tree
    }
}

impl Scene {
    /// A scene that begins with this state.
    pub(super) fn of(model: Model) -> Scene {
        let (nodes, sessions) = (model.nodes.clone().into_iter().collect(), model.sessions.clone());
        let tree = Torn { nodes, sessions, start: model.last_zxid }.load();
        Scene { tree, states: vec![model], steps: Vec::new() }
    }

    /// A new server's tree.
    pub(super) fn new() -> Scene {
        Scene::of(Model::new())
    }

    /// The newest state.
    pub(super) fn model(&self) -> &Model {
        self.states.last().expect("the start is always there")
    }

    /// Lets the range begin here.
    pub(super) fn begin(&mut self) {
        self.states.drain(..self.states.len() - 1);
        self.steps.clear();
    }

    /// Applies the next txn for a session.
    pub(super) fn apply(&mut self, session_id: i64, op: Op) -> Outcome {
        let zxid = self.model().last_zxid.next_index().expect("a short scene");
        let time_ms = 1_700_000_000_000 + i64::try_from(self.steps.len()).expect("few");
        self.take(Step { zxid, time_ms, session_id, op })
    }

    /// Applies a txn to both, and holds outcome and events against the model.
    pub(super) fn take(&mut self, step: Step) -> Outcome {
        let mut after = self.model().clone();
        let expected = after.apply(&step);
        let mut told = Vec::new();
        let outcome = step.apply_to(&mut self.tree, &mut |change: Change<'_>| told.push(Told::from(change)));
        assert_eq!(outcome, expected, "the outcome of {step:?}");
        let found = events::differences(self.model(), &after, &told);
        assert!(found.is_empty(), "{step:?}: {found:#?}");
        self.states.push(after);
        self.steps.push(step);
        outcome
    }

    /// Panics unless the live tree is like its model.
    pub(super) fn assert_live(&self) {
        let found = differences(&self.tree, self.model());
        assert!(found.is_empty(), "after {:?}: {found:#?}", self.steps.last());
    }

    /// The nodes that are not the same all over the range.
    pub(super) fn affected(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.states.iter().flat_map(|state| state.nodes.keys()).collect();
        let changes = |path: &&&String| {
            self.states.windows(2).any(|w| w[0].nodes.get(**path) != w[1].nodes.get(**path))
        };
        all.iter().filter(changes).map(|path| (*path).clone()).collect()
    }

    /// A snapshot that meets each node, and the sessions, after so many txns of the range.
    pub(super) fn tear(&self, mut moment_of: impl FnMut(&str) -> usize, sessions_at: usize) -> Torn {
        let all: BTreeSet<&String> = self.states.iter().flat_map(|state| state.nodes.keys()).collect();
        let captured = all.into_iter().filter_map(|path| {
            let node = self.states[moment_of(path)].nodes.get(path)?;
            Some((path.clone(), node.clone()))
        });
        Torn {
            nodes: captured.collect(),
            sessions: self.states[sessions_at].sessions.clone(),
            start: self.states[0].last_zxid,
        }
    }

    pub(super) fn replay(&self, tree: &mut DataTree) {
        for step in &self.steps {
            step.apply_to(tree, &mut ());
        }
    }

    /// In what the snapshot and the replay of the range, once and once more, are not like the live tree.
    pub(super) fn differences_after_replay(&self, torn: &Torn) -> Vec<String> {
        let mut tree = torn.load();
        self.replay(&mut tree);
        let mut found = differences(&tree, self.model());
        self.replay(&mut tree);
        found.extend(differences(&tree, self.model()).into_iter().map(|line| format!("twice: {line}")));
        found
    }

    pub(super) fn assert_converges(&self, torn: &Torn) {
        let found = self.differences_after_replay(torn);
        assert!(found.is_empty(), "{torn:#?}\n{:#?}\n{found:#?}", self.steps);
    }

    /// Replays every snapshot that a walk could take: each changing node, and the sessions if they change, at every
    /// moment. How many those are.
    pub(super) fn assert_all_converge(&self) -> usize {
        let affected = self.affected();
        let sessions_change = self.states.windows(2).any(|w| w[0].sessions != w[1].sessions);
        let digits = affected.len() + usize::from(sessions_change);
        let moments = self.states.len();
        let combinations = moments.pow(u32::try_from(digits).expect("few"));
        assert!(combinations <= 100_000, "{affected:?} are too many");
        let end =
            Expected { digest: self.model().digest(), bytes: self.model().approximate_bytes(), affected };
        for number in 0..combinations {
            let digit = |at: usize| number / moments.pow(u32::try_from(at).expect("few")) % moments;
            let moment_of = |path: &str| end.affected.iter().position(|p| p == path).map_or(0, digit);
            let sessions_at = if sessions_change { digit(digits - 1) } else { 0 };
            let torn = self.tear(moment_of, sessions_at);
            let mut tree = torn.load();
            self.replay(&mut tree);
            let once = end.is_met(&tree, self.model());
            self.replay(&mut tree);
            if !once || !end.is_met(&tree, self.model()) || number % 97 == 0 {
                self.assert_converges(&torn);
                assert!(once && end.is_met(&tree, self.model()), "{torn:#?}\n{:#?}", self.steps);
            }
        }
        combinations
    }
}

/// What is looked at after each of very many replays: all that changed, and the sums over all.
struct Expected {
    digest: u64,
    bytes: usize,
    affected: Vec<String>,
}

impl Expected {
    fn is_met(&self, tree: &DataTree, model: &Model) -> bool {
        let sums = tree.digest() == self.digest
            && tree.len() == model.nodes.len() as u64
            && tree.approximate_bytes() == self.bytes as u64
            && tree.last_zxid() == model.last_zxid;
        let sessions = tree.sessions().iter().map(|(id, _)| id).eq(model.sessions.keys())
            && tree.ephemeral_owners().iter().eq(&model.owners());
        sums && sessions
            && self.affected.iter().all(|path| match (tree.get(path), model.nodes.get(path)) {
                (None, None) => true,
                (Some(there), Some(node)) => {
                    there.stored() == node.stat
                        && there.acl() == node.acl.as_list()
                        && there.data() == node.data.as_deref()
                }
                _ => false,
            })
    }
}
