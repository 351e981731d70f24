use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{MutexGuard, RwLockReadGuard};

use super::feed::ChangeFeed;
use super::home::Home;
use super::open::{Given, open_at};
use super::options::EngineOptions;
use super::order::{Caller, Order, Place};
use super::pipeline::{Applied, Commit, Pipeline, Unobserved};
use super::report::OpenReport;
use super::shared::EngineShared;
use super::snapshotter::{SnapshotTask, Snapshotter};
use super::stats::EngineStats;
use super::ticket::Ticket;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::Txn;
use crate::log::{Health, LogStats, TruncateReport};
use crate::snapshot::SnapshotInfo;
use crate::tree::{DataTree, Observer, Request};

/// A storage engine: a tree in memory whose every change is in the log before it is acknowledged, with snapshots so
/// that the log need not be kept for ever.
///
/// Share it by reference or in an `Arc`. Dropping it lets go of the directory without a clean close: what was
/// acknowledged is safe.
///
/// ```
/// use arborlog::{Acl, Caller, CreateRequest, EngineOptions, Request};
///
/// # fn main() -> arborlog::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("arborlog-engine-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let small = arborlog::LogOptions::new().segment_bytes(1 << 20);
/// let (engine, report) = EngineOptions::new().log(small).open(&dir)?;
/// assert!(report.created);
///
/// let acl = [Acl::open()];
/// let create = Request::Create(CreateRequest::new("/config", b"v1", &acl));
/// let answer = engine.submit(&create, &Caller::default())?.wait()?;
/// assert!(answer.code().is_ok());
///
/// assert_eq!(engine.tree().get("/config").unwrap().data(), Some(&b"v1"[..]));
/// engine.snapshot()?.join()?;
/// engine.close()?;
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    /// First, so that its thread has ended when the rest goes.
    snapshotter: Snapshotter,
    /// Then those who wait for what will not be applied are told so.
    ending: EndOfPipeline,
    shared: Arc<EngineShared>,
}

/// Ends the pipeline when the engine goes, however it goes.
struct EndOfPipeline(Arc<Pipeline>);

impl Drop for EndOfPipeline {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl EngineOptions {
    /// Opens the engine in directory `dir`, which must exist; creates it if the directory holds none. The state is
    /// the newest whole snapshot's and that of the log behind it.
    ///
    /// # Errors
    /// - [`ErrorKind::Corrupt`]: the log is damaged, or no snapshot that is whole is reached by the log. Nothing was
    ///   changed.
    /// - [`ErrorKind::Locked`], [`ErrorKind::WrongOwner`], [`ErrorKind::Unsupported`], [`ErrorKind::Invalid`],
    ///   [`ErrorKind::NoSpace`], [`ErrorKind::Io`].
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<(Engine, OpenReport)> {
        self.open_observed(dir, Unobserved)
    }

    /// The same, with an observer that is told of every change that is applied after the open: for watches. It is
    /// called while the tree is locked, so it must be quick, and may neither read the tree nor wait for a ticket.
    ///
    /// # Errors
    /// As [`open`](EngineOptions::open).
    pub fn open_observed(
        &self,
        dir: impl AsRef<Path>,
        observer: impl Observer + Send + 'static,
    ) -> Result<(Engine, OpenReport)> {
        let home =
            super::home::Directories::open(dir.as_ref(), self.log_dir.as_deref(), self.log.backend_choice())?;
        self.open_home(Arc::new(home), Box::new(observer))
    }

    pub(super) fn open_home(
        &self,
        home: Arc<dyn Home>,
        observer: Box<dyn Observer + Send>,
    ) -> Result<(Engine, OpenReport)> {
        self.check()?;
        let (shared, report) = open_at(home, self, observer, Given::default())?;
        Ok((Engine::start(shared)?, report))
    }
}

impl Engine {
    pub(super) fn shared(&self) -> &EngineShared {
        &self.shared
    }

    pub(super) fn start(shared: EngineShared) -> Result<Engine> {
        let shared = Arc::new(shared);
        let ending = EndOfPipeline(shared.pipeline.clone());
        Ok(Engine { snapshotter: Snapshotter::start(&shared)?, ending, shared })
    }

    /// Asks for a change: a leader, or a server that stands alone. It has its place in the order when this returns;
    /// the ticket tells when it is durable and applied. Requests that build on each other need not wait for each
    /// other.
    ///
    /// A request that fails has a txn too, so that its answer comes in order.
    ///
    /// # Errors
    /// - [`ErrorKind::CounterExhausted`]: the epoch has no more zxids; a server that stands alone begins a new one
    ///   by itself.
    /// - [`ErrorKind::Busy`]: txns that were [appended](Engine::append) are not yet applied.
    /// - [`ErrorKind::NoSpace`], [`ErrorKind::Poisoned`], [`ErrorKind::Closed`].
    pub fn submit(&self, request: &Request<'_>, caller: &Caller<'_>) -> Result<Ticket> {
        self.submit_at(request, caller, self.shared.clock.wall_ms())
    }

    /// The same, with the time that its txn will have, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`submit`](Engine::submit).
    pub fn submit_at(&self, request: &Request<'_>, caller: &Caller<'_>, time_ms: i64) -> Result<Ticket> {
        let shared = &*self.shared;
        let (log, pipeline) = (&shared.log, &shared.pipeline);
        pipeline.counters.requested();
        shared.check_observer()?;
        let place = Place::new(pipeline);
        let mut order = shared.take_order();
        // What was promised to a newer leader holds for who was the leader before, too.
        shared.check_leader(log.epoch())?;
        let ticket = match order.submit(log, pipeline, request, caller, (time_ms, place)) {
            Err(e) if e.kind() == ErrorKind::CounterExhausted && pipeline.commit() == Commit::WhenDurable => {
                let next = Epoch::new(log.epoch().get() + 1);
                shared.manifest.commit(|manifest| manifest.accepted = manifest.accepted.max(next))?;
                log.advance_epoch(next)?;
                order.submit(log, pipeline, request, caller, (time_ms, Place::new(pipeline)))?
            }
            outcome => outcome?,
        };
        self.give_back(order);
        Ok(ticket)
    }

    /// Gives the order back after a txn was logged, and asks for a snapshot if one is due by then.
    fn give_back(&self, order: MutexGuard<'_, Order>) {
        let is_snapshot_due = order.is_snapshot_due();
        drop(order);
        if is_snapshot_due {
            self.snapshotter.check();
        }
    }

    /// Logs a txn that another server has made: a follower. It must follow the last one, or be the first of a later
    /// epoch. `leader` is the epoch of the leader that sent it.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if a newer leader was accepted, [`ErrorKind::OutOfOrder`] if it does not follow, and as
    /// [`submit`](Engine::submit).
    pub fn append(&self, leader: Epoch, txn: &Txn<'_>) -> Result<Ticket> {
        let shared = &*self.shared;
        if txn.zxid.epoch() > leader {
            let why = format!("{} is of a later epoch than its leader's, {leader}", txn.zxid);
            return Err(Error::invalid(why));
        }
        shared.check_observer()?;
        let (txn, place) = (txn.to_buf(), Place::new(&shared.pipeline));
        let mut order = shared.take_order();
        // Under the lock: a leader that is replaced meanwhile comes too late.
        shared.check_leader(leader)?;
        let ticket = order.append(&shared.log, &shared.pipeline, txn, place)?;
        self.give_back(order);
        Ok(ticket)
    }

    /// Applies the logged txns up to `through`: the server's decision, with [`Commit::ByServer`]. Tells what they did,
    /// in order.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if `through` is not logged yet, [`ErrorKind::Invalid`] with [`Commit::WhenDurable`].
    pub fn apply(&self, through: Zxid) -> Result<Vec<Applied>> {
        if self.shared.pipeline.commit() != Commit::ByServer {
            return Err(Error::invalid("txns are applied when they are durable: see EngineOptions::commit"));
        }
        let logged = self.logged_zxid();
        if through > logged {
            let why = format!("{through} is not logged: the last one is {logged}");
            return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
        }
        Ok(self.shared.pipeline.apply_and_tell(through))
    }

    /// The tree as it is, to read, and as it stays until the guard is dropped. Keep it for a few reads only: nothing is
    /// applied meanwhile, so do not wait for a ticket, take it again, or call [`apply`](Engine::apply) while you hold
    /// it.
    ///
    /// After a truncation, an install or a restore the tree may be older than what a client has seen. Compare with
    /// [`DataTree::last_zxid`], under the same guard, before you serve it: ZooKeeper's server refuses the connection.
    pub fn tree(&self) -> RwLockReadGuard<'_, DataTree> {
        self.shared.pipeline.tree.read()
    }

    /// The last txn that has its place in the order.
    pub fn logged_zxid(&self) -> Zxid {
        self.shared.pipeline.last_logged()
    }

    /// The last txn that is durable here.
    pub fn durable_zxid(&self) -> Zxid {
        self.shared.log.durable_zxid()
    }

    /// The last txn that is applied.
    pub fn applied_zxid(&self) -> Zxid {
        self.shared.pipeline.applied()
    }

    /// How many txns are logged and not yet applied.
    pub fn waiting_txns(&self) -> usize {
        self.shared.pipeline.waiting()
    }

    /// How many zxids the epoch has left. A leader whose epoch comes to its end has to be elected anew: ZooKeeper's
    /// leader resigns for it.
    pub fn zxids_left(&self) -> u32 {
        let last = self.logged_zxid();
        if self.current_epoch() > last.epoch() { u32::MAX } else { u32::MAX - last.counter() }
    }

    /// The newest epoch that was accepted.
    pub fn accepted_epoch(&self) -> Epoch {
        self.shared.manifest.accepted()
    }

    /// The epoch of the leader whose history this is.
    pub fn current_epoch(&self) -> Epoch {
        self.shared.log.epoch()
    }

    /// Promises to follow no leader of an older epoch; durable when this returns. The same epoch again is fine.
    ///
    /// Source: ZooKeeper's `acceptedEpoch`.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if a newer epoch was accepted, [`ErrorKind::Invalid`] if it has more than 32 bits.
    pub fn accept_epoch(&self, epoch: Epoch) -> Result<()> {
        if epoch.get() > u64::from(u32::MAX) {
            return Err(Error::invalid(format!("epoch {epoch} does not fit 32 bits")));
        }
        // Nothing of an older leader is logged after this.
        let _order = self.shared.order.lock();
        self.shared.check_leader(epoch)?;
        if epoch > self.accepted_epoch() {
            self.shared.manifest.commit(|manifest| manifest.accepted = epoch)?;
        }
        Ok(())
    }

    /// Takes part in an epoch, which is accepted by it, too: a follower that has its leader's history, or the leader
    /// itself. Durable when this returns, and before the epoch's first txn. In the log, older epochs are fenced for
    /// ever.
    ///
    /// Source: ZooKeeper's `currentEpoch`.
    ///
    /// # Errors
    /// As [`accept_epoch`](Engine::accept_epoch).
    pub fn enter_epoch(&self, epoch: Epoch) -> Result<()> {
        self.accept_epoch(epoch)?;
        let _order = self.shared.order.lock();
        self.shared.check_leader(epoch)?;
        self.shared.log.advance_epoch(epoch)
    }

    /// Begins a snapshot, unless one is being written: then the task is that one's, or the next one's. Writers go on
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] if the engine is closing.
    pub fn snapshot(&self) -> Result<SnapshotTask> {
        self.shared.requests.ask()
    }

    /// Why the last snapshot that was tried has failed; none if it did not. One that a trigger wanted has nobody else
    /// to tell. The log goes on growing until one succeeds.
    pub fn snapshot_failure(&self) -> Option<Error> {
        self.shared.requests.failure()
    }

    /// Why the last removal of what is no longer needed, old snapshots and log, has failed; none if it did not. It is
    /// tried again behind the next snapshot.
    pub fn clean_up_failure(&self) -> Option<Error> {
        self.shared.requests.clean_up_failure()
    }

    /// The zxids of the snapshots, newest first.
    pub fn snapshots(&self) -> Vec<Zxid> {
        self.shared.store.snapshots()
    }

    /// Reads a snapshot and checks all of its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] with file, offset and reason; [`ErrorKind::Io`].
    pub fn verify_snapshot(&self, end: Zxid) -> Result<SnapshotInfo> {
        self.shared.store.verify(end)
    }

    /// The txns after `after` out of the log, those that touch `prefix` or a node below it, and those to come: up to
    /// what is durable. Txns that are read by it are kept from being purged.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if some of them were purged; or if the log has not come to `after` yet: whoever has seen
    /// that txn has it from elsewhere, or from before a truncation or a restore, and what comes here up to that zxid may
    /// be something else.
    pub fn changes(&self, after: Zxid, prefix: &str) -> Result<ChangeFeed> {
        let logged = self.logged_zxid();
        if after > logged {
            let why = format!("the log ends at {logged}, before {after}");
            return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
        }
        ChangeFeed::new(&self.shared.log, after, prefix)
    }

    /// Removes all txns after `to`, by order of a leader, and opens the engine anew: the state is rebuilt. Snapshots
    /// that hold such txns go first. The observer stays, and is told nothing of what this changes.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if the state at `to` cannot be rebuilt: nothing was changed, but the engine is closed.
    /// [`ErrorKind::Fenced`] if a newer leader was accepted. Else as [`EngineOptions::open`].
    pub fn truncate(self, leader: Epoch, to: Zxid) -> Result<(Engine, TruncateReport, OpenReport)> {
        self.shared.check_leader(leader)?;
        let shared = self.stop()?;
        let observer = shared.pipeline.take_observer();
        let EngineShared { log, store, options, home, lock, .. } = shared;
        let floor = log.floor_zxid();
        // Read before anything newer is removed: afterwards there is nothing else.
        let is_base = |end: &Zxid| *end <= to && *end >= floor && store.verify(*end).is_ok();
        let has_base = floor == Zxid::ZERO || store.snapshots().iter().any(is_base);
        if to < floor || !has_base {
            let why = format!("no snapshot is left from which the state at {to} could be rebuilt");
            return Err(Error::new(ErrorKind::NotInLog, "not_in_log", why));
        }
        if !crate::planted("truncate_keeps_snapshots") {
            store.remove_newer_than(to)?;
        }
        let (log, report) = log.truncate(to)?;
        log.close()?;
        drop(lock);
        let (engine, opened) = options.open_home(home, observer)?;
        Ok((engine, report, opened))
    }

    /// Whether the disk is well. After a failed write the engine can only be read, until it is opened anew.
    ///
    /// The same if the observer has panicked: nobody knows whom it has told. Txns that were logged before are applied
    /// and answered.
    pub fn health(&self) -> Health {
        match self.shared.pipeline.failure() {
            Some(error) => Health::Failed(Error::poisoned_by(error)),
            None => self.shared.log.health(),
        }
    }

    /// What the engine has done since it was opened.
    pub fn stats(&self) -> EngineStats {
        let shared = &*self.shared;
        EngineStats {
            waiting_txns: self.waiting_txns() as u64,
            recent_txns: shared.pipeline.recent.lock().len() as u64,
            ..shared.pipeline.counters.stats(shared.log.stats())
        }
    }

    /// What the log has done since it was opened.
    pub fn log_stats(&self) -> LogStats {
        self.shared.log.stats()
    }

    /// Writes what is logged, and a snapshot if the options say so, and lets go of the directory.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write has failed; what a failed snapshot said.
    pub fn close(self) -> Result<()> {
        let snapshot = if self.shared.options.snapshot_on_close {
            self.snapshot().and_then(SnapshotTask::join).map(drop)
        } else {
            Ok(())
        };
        self.stop()?.log.close()?;
        snapshot
    }

    /// Ends the thread and the pipeline.
    pub(super) fn stop(self) -> Result<EngineShared> {
        let Engine { mut snapshotter, ending, shared } = self;
        if shared.pipeline.commit() == Commit::WhenDurable {
            // What is logged will be durable, and is told so.
            shared.log.flush()?;
            shared.pipeline.apply_through(shared.log.durable_zxid());
        }
        snapshotter.stop();
        drop((snapshotter, ending));
        Ok(Arc::into_inner(shared).expect("the thread has ended, and nobody else has it"))
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("applied", &self.applied_zxid()).finish_non_exhaustive()
    }
}
