use std::io::Read;

use super::handle::Engine;
use super::pipeline::Commit;
use super::report::OpenReport;
use super::sync_plan::SyncPlan;
use super::ticket::Ticket;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::TxnBuf;

/// What a leader sends to a learner, as it comes: a connection.
pub trait SyncSource {
    /// The next txn of a diff, or of those that follow a snapshot; none at the end.
    ///
    /// # Errors
    /// What the connection says: the learner ends with it, and a new plan goes on from where it is.
    fn next_txn(&mut self) -> Result<Option<TxnBuf>>;

    /// The bytes of a snapshot, as [`Engine::send_snapshot`] writes them.
    fn snapshot(&mut self) -> &mut dyn Read;
}

/// What a learner has become by a plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LearnReport {
    /// What may be acknowledged to the leader: the last txn, durable here and applied.
    pub acknowledged: Zxid,
    /// How many txns of a diff were taken.
    pub txns: u64,
    /// Of the open in the course of it, if something was removed or replaced.
    pub opened: Option<OpenReport>,
}

/// Most txns that are logged before the first of them is waited for.
const TXNS_AHEAD: usize = 1024;

impl Engine {
    /// Carries out a [`SyncPlan`] of the leader of epoch `leader`, as the peer that it was made for: removes what is
    /// not the leader's history, takes a snapshot or the txns of a diff, and takes part in the epoch. When it returns,
    /// all that it names is durable here, and applied, also with [`Commit::ByServer`]: a plan has only what was
    /// committed.
    ///
    /// The epoch is promised first, and entered last, as the leader's history is there whole only then. Each step is
    /// whole or not there at all: after a power cut or an error the state is a part of the old history that the leader
    /// has too, or of the leader's. Open the engine, ask the leader for a new plan, and carry that out.
    ///
    /// # Errors
    /// After each the engine is closed.
    /// - [`ErrorKind::Fenced`]: a newer leader was accepted. Nothing was changed.
    /// - [`ErrorKind::NotInLog`]: what is to be kept is not here, or cannot be rebuilt, and nothing was removed; or the
    ///   diff has txns of an older epoch than the log has [entered](Engine::enter_epoch). Ask the leader for a snapshot.
    /// - [`ErrorKind::OutOfOrder`]: the plan is not for this state, or its txns are not those that it says.
    /// - What the source says, and as [`append`](Engine::append), [`truncate`](Engine::truncate) and
    ///   [`install`](Engine::install).
    pub fn learn(
        self,
        leader: Epoch,
        plan: SyncPlan,
        source: &mut dyn SyncSource,
    ) -> Result<(Engine, LearnReport)> {
        self.accept_epoch(leader)?;
        let (engine, opened, behind) = match plan {
            SyncPlan::UpToDate | SyncPlan::Diff { .. } => (self, None, 0),
            SyncPlan::Truncate { .. } if crate::planted("learn_keeps_fork") => (self, None, 0),
            SyncPlan::Truncate { to } | SyncPlan::TruncateDiff { to, .. } => {
                // A cut elsewhere would take away more than the leader knows.
                let before = self.shared().log.neighbours(to)?.0;
                if before != to {
                    let why =
                        format!("the leader cuts behind {to}, which is not here: before it is {before}");
                    return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
                }
                let (engine, _, opened) = self.truncate(leader, to)?;
                (engine, Some(opened), 0)
            }
            SyncPlan::Snapshot => {
                // At once with what the leader has logged since: the snapshot may be older than what this one has
                // acknowledged to an earlier leader.
                let (engine, opened, txns) = self.replace(leader, source)?;
                (engine, Some(opened), txns)
            }
        };
        let after = engine.logged_zxid();
        let txns = match plan {
            SyncPlan::UpToDate | SyncPlan::Truncate { .. } => 0,
            SyncPlan::Diff { after: expected, .. } | SyncPlan::TruncateDiff { to: expected, .. }
                if expected != after && !is_marker(expected) =>
            {
                let why = format!("the plan goes on from {expected}, and this ends at {after}");
                return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", why));
            }
            SyncPlan::Diff { through, .. } | SyncPlan::TruncateDiff { through, .. } => {
                engine.take_diff(leader, through, source)?
            }
            SyncPlan::Snapshot => behind,
        };
        engine.enter_epoch(leader)?;
        let acknowledged = engine.shared().log.flush()?.max(engine.applied_zxid());
        engine.apply_learnt(acknowledged)?;
        Ok((engine, LearnReport { acknowledged, txns, opened }))
    }

    /// Logs the txns that come, and waits for them.
    fn take_diff(&self, leader: Epoch, through: Zxid, source: &mut dyn SyncSource) -> Result<u64> {
        let mut txns = 0;
        let mut ahead: Vec<Ticket> = Vec::with_capacity(TXNS_AHEAD);
        while let Some(txn) = source.next_txn()? {
            let (zxid, entered) = (txn.zxid(), self.current_epoch());
            if zxid > through {
                let why = format!("{zxid} is not of the plan");
                return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", why));
            }
            if zxid.epoch() < entered {
                // Entered with a leader that had less than this one and was followed by no quorum.
                let why = format!("the log has entered epoch {entered}, and takes no {zxid} any more");
                return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
            }
            ahead.push(self.append(leader, &txn.as_txn())?);
            txns += 1;
            if ahead.len() == TXNS_AHEAD {
                self.settle(&mut ahead)?;
            }
        }
        self.settle(&mut ahead)?;
        let last = self.logged_zxid();
        if through != last {
            let why = format!("the txns end at {last}, before the plan's end {through}");
            return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", why));
        }
        Ok(txns)
    }

    /// Waits until the txns are durable, and applies them.
    fn settle(&self, ahead: &mut Vec<Ticket>) -> Result<()> {
        let Some(last) = ahead.last() else { return Ok(()) };
        let last = last.wait_durable()?;
        ahead.clear();
        self.apply_learnt(last)
    }

    fn apply_learnt(&self, last: Zxid) -> Result<()> {
        match self.shared().pipeline.commit() {
            Commit::ByServer => self.apply(last).map(drop),
            Commit::WhenDurable => {
                self.shared().pipeline.apply_through(last);
                Ok(())
            }
        }
    }
}

/// A zxid that stands for the begin of an epoch, and is no txn.
fn is_marker(zxid: Zxid) -> bool {
    zxid.counter() == 0
}
