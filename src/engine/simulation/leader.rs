use std::collections::VecDeque;
use std::io::{Cursor, Read};
use std::sync::Arc;

use super::model::Digests;
use crate::base::{Epoch, Result, Zxid};
use crate::engine::pipeline::Unobserved;
use crate::engine::sim_home::SimHome;
use crate::engine::{Caller, Commit, Engine, EngineOptions, SyncPlan, SyncSource};
use crate::format::{Acl, TxnBuf};
use crate::tree::{CreateRequest, Request};

/// What a leader sends.
pub(in crate::engine) struct Sent {
    pub(in crate::engine) txns: VecDeque<TxnBuf>,
    snapshot: Cursor<Vec<u8>>,
}

impl SyncSource for Sent {
    fn next_txn(&mut self) -> Result<Option<TxnBuf>> {
        Ok(self.txns.pop_front())
    }

    fn snapshot(&mut self) -> &mut dyn Read {
        &mut self.snapshot
    }
}

/// All that a plan says, of a leader on whose disks nothing fails.
pub(in crate::engine) fn send(leader: &Engine, plan: SyncPlan) -> Sent {
    let mut sent = Sent { txns: VecDeque::new(), snapshot: Cursor::default() };
    let (after, through) = match plan {
        SyncPlan::Diff { after, through } | SyncPlan::TruncateDiff { to: after, through } => (after, through),
        SyncPlan::Snapshot => {
            let info = leader.send_snapshot(sent.snapshot.get_mut()).expect("nothing fails");
            (info.end, leader.applied_zxid())
        }
        SyncPlan::UpToDate | SyncPlan::Truncate { .. } => return sent,
    };
    let sending = leader.txns_between(after, through, |txn| sent.txns.push_back(txn.to_buf()));
    sending.expect("nothing fails, and nothing was purged");
    sent
}

/// A leader that shares a history with an engine up to some txn, and goes on from there.
pub(super) struct Leader {
    pub(super) engine: Engine,
    pub(super) epoch: Epoch,
    pub(super) history: Digests,
}

impl Leader {
    /// Opens a double of the engine, as the leader of a later epoch, with some txns of its own.
    pub(super) fn new(
        home: Arc<SimHome>,
        options: &EngineOptions,
        mut history: Digests,
        txns: u64,
    ) -> Result<Leader> {
        let options = options.clone().commit(Commit::WhenDurable);
        let (engine, opened) = options.open_home(home, Box::new(Unobserved))?;
        history.retain(|zxid, _| *zxid <= opened.last_zxid);
        let epoch = Epoch::new(engine.accepted_epoch().get() + 1);
        engine.enter_epoch(epoch)?;
        for n in 0..txns {
            let (path, acl) = (format!("/{}/{n}", n % 8), [Acl::open()]);
            let create = Request::Create(CreateRequest::new(&path, b"a leader's", &acl));
            let zxid = engine.submit_at(&create, &Caller::default(), 1)?.wait()?.zxid;
            history.insert(zxid, engine.tree().digest());
        }
        Ok(Leader { engine, epoch, history })
    }

    pub(super) fn last(&self) -> Zxid {
        self.engine.applied_zxid()
    }
}
