use std::collections::BTreeMap;

use crate::base::{Epoch, Zxid};
use crate::engine::{Engine, OpenReport};
use crate::tree::{DataTree, ProposeOptions, Proposer, Request, RequestContext, Walk};

/// The digest behind each txn.
pub(super) type Digests = BTreeMap<Zxid, u64>;

/// What must come back.
pub(super) struct Model {
    pub(super) tree: DataTree,
    proposer: Proposer,
    /// The digest behind each txn that was ever submitted and not truncated away.
    pub(super) digests: Digests,
    pub(super) acked: Zxid,
    pub(super) accepted: Epoch,
    /// What an install or a restore that was begun makes of it, if it comes to its end.
    pub(super) replacing: Option<(Zxid, u64)>,
    /// The history of a leader of which some may have come here.
    pub(super) learning: Option<Digests>,
}

impl Model {
    pub(super) fn new() -> Model {
        let tree = DataTree::new();
        let digests = BTreeMap::from([(Zxid::ZERO, tree.digest())]);
        let proposer = Proposer::new(ProposeOptions::new());
        let (acked, accepted) = (Zxid::ZERO, Epoch::ZERO);
        Model { tree, proposer, digests, acked, accepted, replacing: None, learning: None }
    }

    /// The last txn that was submitted, durable or not.
    pub(super) fn last(&self) -> Zxid {
        self.digests.last_key_value().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
    }

    pub(super) fn submitted(&mut self, request: &Request<'_>, zxid: Zxid, time_ms: i64) {
        let context = RequestContext { zxid, time_ms, session_id: 0, cxid: 0, identities: &[] };
        let proposal = self.proposer.propose(&self.tree, request, &context);
        proposal.with_txn(|txn| self.tree.apply(txn, &mut ()));
        self.proposer.applied(zxid);
        self.digests.insert(zxid, self.tree.digest());
    }

    /// Takes what an open has recovered for the truth, once it is seen to be a truth.
    pub(super) fn recovered(&mut self, engine: &Engine, report: &OpenReport) {
        assert_eq!(report.replay_failures, 0, "the log and the snapshot differ");
        self.stands(engine, report.last_zxid, report.digest);
    }

    /// The same of the state that an engine is in.
    pub(super) fn stands(&mut self, engine: &Engine, last: Zxid, digest: u64) {
        if self.replacing.take() == Some((last, digest)) {
            self.digests = BTreeMap::from([(last, digest)]);
            self.acked = last;
        }
        if let Some(learnt) = self.learning.take_if(|learnt| learnt.get(&last) == Some(&digest)) {
            self.digests = learnt;
        }
        self.learning = None;
        assert!(last >= self.acked, "{last} came back, {} was acknowledged", self.acked);
        assert_eq!(self.digests.get(&last), Some(&digest), "the state at {last} is another");
        assert!(engine.accepted_epoch() >= self.accepted, "a promise was forgotten");
        assert!(engine.current_epoch() <= engine.accepted_epoch());
        let tree = engine.tree();
        assert_eq!(tree.digest(), digest);
        self.digests.retain(|zxid, _| *zxid <= last);
        self.acked = last;
        // A copy by a walk: the model goes on from here.
        let mut loader = DataTree::loader();
        let mut walk = Walk::new();
        while tree.walk(&mut walk, 64, &mut |node| loader.node(&node)) {}
        self.tree = loader.finish(last).tree;
        assert_eq!(self.tree.digest(), digest);
        self.proposer = Proposer::new(ProposeOptions::new());
    }
}
