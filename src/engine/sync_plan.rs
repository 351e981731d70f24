use crate::base::{Error, ErrorKind, Result, Zxid};

/// What a peer has to be sent so that its history becomes ours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SyncPlan {
    /// Nothing: it has all that we have.
    UpToDate,
    /// The txns after `after`, up to `through`. What comes later goes the usual way.
    Diff {
        /// The last txn of the peer.
        after: Zxid,
        /// The last txn to send.
        through: Zxid,
    },
    /// The peer removes what it has after `to`; then it has all that we have.
    Truncate {
        /// The last txn that the peer keeps.
        to: Zxid,
    },
    /// The peer removes what it has after `to`, and is sent the txns after it, up to `through`.
    TruncateDiff {
        /// The last txn that the peer keeps.
        to: Zxid,
        /// The last txn to send.
        through: Zxid,
    },
    /// The peer gets a whole snapshot.
    Snapshot,
}

/// Why a [`SyncPlan`] is what it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SyncReason {
    /// The peer's last txn is our last one.
    SameEnd,
    /// The peer's last txn is one of ours.
    OnOurHistory,
    /// The peer has been synced by the leader of an epoch that has not reached it with a txn.
    AtStartOfEpoch,
    /// The peer has txns behind our last one: nobody but it has them.
    AheadOfUs,
    /// The peer's last txn is one of ours that is applied and not durable here yet: a quorum has it, and the peer is
    /// part of that.
    AheadOfOurDisk,
    /// The peer has a txn of one of our epochs that we do not have: its leader never committed it.
    OffOurHistory,
    /// The peer's last txn is of an epoch of which we have nothing, so that its history cannot be compared.
    ForeignEpoch,
    /// The txns after the peer's last one are no longer in our log.
    Purged,
    /// There is a hole between our log and the txns in memory.
    Gap,
    /// Our log is damaged where the peer would have to be served from.
    Damaged,
    /// There are more bytes of txns to send than are worth it beside a snapshot.
    TooMuch,
    /// The log is not to be read for peers.
    LogNotUsed,
}

/// A plan and its reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SyncDecision {
    /// What to send.
    pub plan: SyncPlan,
    /// Why.
    pub reason: SyncReason,
}

/// What a plan may ask of the log: its txns are a part of our history without holes, from `after` on.
pub trait SyncLog {
    /// The txn before the first one of the log, or the first one itself if nothing is known of what was before it:
    /// of every later txn, the log can say whether it is there.
    fn after(&self) -> Zxid;

    /// Its last txn that is durable.
    fn last(&self) -> Zxid;

    /// The last txn at or before `zxid`; [`after`](SyncLog::after) if that is it; none if it lies before that.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if what was there is being purged; else it is damaged.
    fn at_or_before(&self, zxid: Zxid) -> Result<Option<Zxid>>;

    /// The first txn after `zxid`.
    ///
    /// # Errors
    /// As [`at_or_before`](SyncLog::at_or_before).
    fn next_after(&self, zxid: Zxid) -> Result<Option<Zxid>>;

    /// About how many bytes the txns after `zxid` have.
    fn bytes_after(&self, zxid: Zxid) -> u64;
}

/// All that a plan depends on.
#[derive(Clone, Copy)]
pub struct SyncInput<'a> {
    /// The last txn of the peer. A counter of zero means that it has been synced by the leader of that epoch, and has
    /// none of its txns.
    pub peer: Zxid,
    /// Our last txn that is applied and durable: no more is sent.
    pub last: Zxid,
    /// Our last txn that is applied: no less is removed. It may be ahead of our disk, where a quorum decides what is applied.
    pub applied: Zxid,
    /// The newest txns, which are in memory, oldest first.
    pub recent: &'a [Zxid],
    /// The log, if peers may be served from it.
    pub log: Option<&'a dyn SyncLog>,
    /// The most bytes that are sent from the log.
    pub log_bytes_max: u64,
}

impl std::fmt::Debug for SyncInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SyncInput { peer, last, recent, .. } = self;
        write!(f, "SyncInput {{ peer: {peer}, last: {last}, recent: {} }}", recent.len())
    }
}

/// Where the peer's last txn stands in our history.
struct Standing {
    /// Our last txn that is not after it.
    before: Option<Zxid>,
    /// Our first txn after it.
    next: Option<Zxid>,
}

impl SyncInput<'_> {
    /// Decides how a peer is brought up to date. The same inputs always give the same plan.
    ///
    /// The cases are those of ZooKeeper's `LearnerHandler.syncFollower`, with its mistakes left out: a diff is only
    /// made of txns that are known to follow each other, whatever has been purged, lost or damaged.
    pub fn decide(&self) -> SyncDecision {
        let horizon = self.recent.last().copied().unwrap_or(self.last);
        let is_marker = self.peer.counter() == 0;
        if self.peer == self.last {
            return decided(SyncPlan::UpToDate, SyncReason::SameEnd);
        }
        if self.peer > horizon {
            return if is_marker {
                decided(SyncPlan::Snapshot, SyncReason::ForeignEpoch)
            } else {
                self.ahead(horizon)
            };
        }
        match self.standing(horizon) {
            Ok(standing) => self.compare(&standing, horizon, is_marker),
            Err(reason) => decided(SyncPlan::Snapshot, reason),
        }
    }

    /// The peer has more than is durable here. What is applied here it keeps: clients may have been answered because it
    /// has it. An epoch is durable before its first txn is numbered, so that all of this is of one epoch, without a hole.
    fn ahead(&self, horizon: Zxid) -> SyncDecision {
        let is_ahead_of_disk = self.applied > self.last;
        if is_ahead_of_disk && self.peer <= self.applied && self.peer.epoch() == self.applied.epoch() {
            return decided(SyncPlan::UpToDate, SyncReason::AheadOfOurDisk);
        }
        let to = if is_ahead_of_disk && self.peer > self.applied { self.applied } else { horizon };
        decided(SyncPlan::Truncate { to }, SyncReason::AheadOfUs)
    }

    fn compare(&self, standing: &Standing, through: Zxid, is_marker: bool) -> SyncDecision {
        let peer = self.peer;
        let Some(before) = standing.before else {
            return decided(SyncPlan::Snapshot, SyncReason::Purged);
        };
        let diff = |reason| match standing.next {
            Some(_) => decided(SyncPlan::Diff { after: peer, through }, reason),
            None => decided(SyncPlan::UpToDate, reason),
        };
        if before == peer {
            return diff(SyncReason::OnOurHistory);
        }
        if is_marker {
            return diff(SyncReason::AtStartOfEpoch);
        }
        match standing.next {
            Some(next) if next.epoch() == peer.epoch() => {
                decided(SyncPlan::TruncateDiff { to: before, through }, SyncReason::OffOurHistory)
            }
            _ => decided(SyncPlan::Snapshot, SyncReason::ForeignEpoch),
        }
    }

    fn standing(&self, horizon: Zxid) -> std::result::Result<Standing, SyncReason> {
        // A txn below the oldest one in memory may be any.
        if self.recent.first().is_some_and(|first| *first <= self.peer) {
            let at = self.recent.partition_point(|zxid| *zxid <= self.peer);
            return Ok(Standing { before: Some(self.recent[at - 1]), next: self.recent.get(at).copied() });
        }
        let log = self.log.ok_or(SyncReason::LogNotUsed)?;
        if self.peer < log.after() {
            return Err(SyncReason::Purged);
        }
        if log.last() < self.recent.first().copied().unwrap_or(horizon) {
            return Err(SyncReason::Gap);
        }
        if log.bytes_after(self.peer) > self.log_bytes_max {
            return Err(SyncReason::TooMuch);
        }
        // What is being purged can be read no more.
        let why = |error: Error| {
            if error.kind() == ErrorKind::NotInLog { SyncReason::Purged } else { SyncReason::Damaged }
        };
        let before = log.at_or_before(self.peer).map_err(why)?;
        let next = log.next_after(self.peer).map_err(why)?;
        Ok(Standing { before, next: next.filter(|next| *next <= horizon) })
    }
}

fn decided(plan: SyncPlan, reason: SyncReason) -> SyncDecision {
    SyncDecision { plan, reason }
}

#[cfg(test)]
#[path = "sync_plan_tests.rs"]
mod tests;
