use super::handle::Engine;
use super::shared::EngineShared;
use super::sync_plan::{SyncDecision, SyncInput, SyncLog, SyncPlan, SyncReason};
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::format::Txn;
use crate::log::{Log, LogPin};

/// The log as a plan sees it.
struct LogHistory<'a>(&'a Log);

impl SyncLog for LogHistory<'_> {
    fn after(&self) -> Zxid {
        self.0.floor_zxid()
    }

    fn last(&self) -> Zxid {
        self.0.durable_zxid()
    }

    fn at_or_before(&self, zxid: Zxid) -> Result<Option<Zxid>> {
        self.0.neighbours(zxid).map(|(before, _)| Some(before))
    }

    fn next_after(&self, zxid: Zxid) -> Result<Option<Zxid>> {
        self.0.neighbours(zxid).map(|(_, next)| next)
    }

    fn bytes_after(&self, zxid: Zxid) -> u64 {
        self.0.bytes_after(zxid)
    }
}

/// How a peer is brought up to date, and what keeps that possible.
#[derive(Debug)]
pub struct SyncAnswer {
    /// What to send, and why.
    pub decision: SyncDecision,
    /// While it lives, the txns of a diff are not purged.
    pub pin: Option<LogPin>,
}

/// How much larger than the newest snapshot a diff may be, in hundredths: ZooKeeper's `snapshotSizeFactor`.
const DIFF_PERCENT: u64 = 33;

/// A diff that is small anyway is never refused for its size.
const DIFF_BYTES_ALWAYS: u64 = 4 << 20;

impl Engine {
    /// Decides how a peer whose last txn is `peer` is brought up to date. Txns are sent only if they are applied and
    /// durable here; a peer that has what is applied here and not durable yet keeps it.
    pub fn sync_plan(&self, peer: Zxid) -> SyncAnswer {
        let shared = self.shared();
        // Without one, it is purged by now: then the plan is another.
        let pin = shared.log.pin(peer.max(shared.log.floor_zxid())).ok();
        let decision = decide(shared, peer);
        let needs_log = matches!(decision.plan, SyncPlan::Diff { .. } | SyncPlan::TruncateDiff { .. });
        // Without the pin, what was decided upon may be purged before it is sent.
        if needs_log && pin.is_none() {
            let decision = SyncDecision { plan: SyncPlan::Snapshot, reason: SyncReason::Purged };
            return SyncAnswer { decision, pin: None };
        }
        SyncAnswer { decision, pin: pin.filter(|_| needs_log) }
    }
}

impl Engine {
    /// Hands out the txns after `after` up to `through`, in order: those of a diff, out of memory if they are there,
    /// else out of the log.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if some of them were purged or are not durable yet; [`ErrorKind::Corrupt`] for damage.
    pub fn txns_between(&self, after: Zxid, through: Zxid, mut take: impl FnMut(&Txn<'_>)) -> Result<()> {
        let shared = self.shared();
        let recent = shared.pipeline.recent.lock().between(after, through);
        if let Some(txns) = recent {
            txns.iter().for_each(|txn| take(&txn.as_txn()));
            return Ok(());
        }
        let mut reader = shared.log.reader(after)?;
        let mut last = after;
        while last < through {
            let Some(record) = reader.next_record()? else {
                let why = format!("{through} is not durable yet: the last one is {last}");
                return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
            };
            last = record.zxid;
            if last <= through {
                take(&Txn::decode(record.zxid, record.time_ms, record.payload)?);
            }
        }
        Ok(())
    }
}

fn decide(shared: &EngineShared, peer: Zxid) -> SyncDecision {
    let (applied, mut recent) = shared.pipeline.applied_and_recent();
    let last = applied.min(shared.log.durable_zxid());
    recent.retain(|zxid| *zxid <= last);
    let newest = shared.store.snapshots().first().copied();
    let snapshot_bytes =
        newest.and_then(|end| shared.store.open_file(end).ok()).map(|file| file.info.file_bytes);
    let log_bytes_max = snapshot_bytes
        .map_or(u64::MAX, |bytes| (bytes.saturating_mul(DIFF_PERCENT) / 100).max(DIFF_BYTES_ALWAYS));
    let log = LogHistory(&shared.log);
    SyncInput { peer, last, applied, recent: &recent, log: Some(&log), log_bytes_max }.decide()
}
