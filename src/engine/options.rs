use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::pipeline::Commit;
use super::progress::{Progress, Told};
use crate::base::{Error, Result, limits};
use crate::log::{Gather, GroupPolicy, LogOptions, Retention};
use crate::tree::ProposeOptions;

/// Asked before each snapshot that a trigger wants.
pub(super) type Permit = Arc<dyn Fn() -> bool + Send + Sync>;

/// How to open an engine. Each option's doc has its default and bounds; opening checks them.
#[derive(Clone)]
pub struct EngineOptions {
    pub(super) log: LogOptions,
    pub(crate) log_dir: Option<PathBuf>,
    pub(super) propose: ProposeOptions,
    pub(super) commit: Commit,
    pub(super) snap_count: u64,
    pub(super) snap_log_bytes: u64,
    pub(super) snapshots_kept: usize,
    pub(super) snapshot_bytes_per_second: Option<u64>,
    pub(super) snapshot_bytes_beside_writers: Option<u64>,
    pub(super) snapshot_on_close: bool,
    pub(super) snapshot_permit: Option<Permit>,
    pub(super) log_retention: Retention,
    pub(super) recent_txns: usize,
    pub(super) recent_bytes: usize,
    pub(super) progress: Told,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            log: LogOptions::new().group(GroupPolicy::new().gather(Gather::Overlapping)),
            log_dir: None,
            propose: ProposeOptions::new(),
            commit: Commit::WhenDurable,
            snap_count: limits::SNAP_COUNT_DEFAULT,
            snap_log_bytes: limits::SNAP_LOG_BYTES_DEFAULT,
            snapshots_kept: limits::SNAPSHOTS_KEPT_DEFAULT,
            snapshot_bytes_per_second: None,
            snapshot_bytes_beside_writers: Some(limits::SNAPSHOT_BYTES_BESIDE_WRITERS_DEFAULT),
            snapshot_on_close: false,
            snapshot_permit: None,
            log_retention: Retention::default(),
            recent_txns: limits::RECENT_TXNS_DEFAULT,
            recent_bytes: limits::RECENT_BYTES_DEFAULT,
            progress: Told::default(),
        }
    }
}

impl EngineOptions {
    /// The defaults.
    pub fn new() -> EngineOptions {
        EngineOptions::default()
    }

    /// How the log is written (default [`LogOptions::new`] that gathers groups as [`Gather::Overlapping`] tells, since to
    /// order and apply a txn takes a client longer than its share of a write).
    #[must_use]
    pub fn log(mut self, options: LogOptions) -> EngineOptions {
        self.log = options;
        self
    }

    /// Another directory for the log, which must exist: best on a disk of its own, as with ZooKeeper's `dataLogDir`
    /// (default: the engine's directory).
    #[must_use]
    pub fn log_dir(mut self, dir: impl Into<PathBuf>) -> EngineOptions {
        self.log_dir = Some(dir.into());
        self
    }

    /// How requests are checked (default [`ProposeOptions::new`]).
    #[must_use]
    pub fn propose(mut self, options: ProposeOptions) -> EngineOptions {
        self.propose = options;
        self
    }

    /// Who decides that a txn is applied (default [`Commit::WhenDurable`]).
    #[must_use]
    pub fn commit(mut self, commit: Commit) -> EngineOptions {
        self.commit = commit;
        self
    }

    /// A snapshot is begun after so many txns, less a random part of up to a half (default 100,000 as in ZooKeeper;
    /// 0: never by count).
    #[must_use]
    pub fn snap_count(mut self, txns: u64) -> EngineOptions {
        self.snap_count = txns;
        self
    }

    /// A snapshot is begun after so many bytes of txns, less a random part of up to a half (default 4 GiB as in
    /// ZooKeeper; 0: never by bytes).
    #[must_use]
    pub fn snap_log_bytes(mut self, bytes: u64) -> EngineOptions {
        self.snap_log_bytes = bytes;
        self
    }

    /// How many verified snapshots are kept, with the log that they need (1 to 1,000; default 3).
    #[must_use]
    pub fn snapshots_kept(mut self, count: usize) -> EngineOptions {
        self.snapshots_kept = count;
        self
    }

    /// The most bytes of a snapshot that are written in a second (1 MiB at least; default: no bound), to leave the
    /// disk to the log.
    #[must_use]
    pub fn snapshot_bytes_per_second(mut self, bytes: Option<u64>) -> EngineOptions {
        self.snapshot_bytes_per_second = bytes;
        self
    }

    /// The same, but only as long as txns are logged (1 MiB at least; default 32 MiB; none: no bound). A snapshot
    /// beside writers costs them the less, the longer it takes; one that is written while nothing else is done need not
    /// wait.
    #[must_use]
    pub fn snapshot_bytes_beside_writers(mut self, bytes: Option<u64>) -> EngineOptions {
        self.snapshot_bytes_beside_writers = bytes;
        self
    }

    /// Whether [`Engine::close`](crate::Engine::close) writes a snapshot, so that the next open replays nothing
    /// (default: no).
    #[must_use]
    pub fn snapshot_on_close(mut self, on: bool) -> EngineOptions {
        self.snapshot_on_close = on;
        self
    }

    /// Asks `permit` before each snapshot that a trigger wants, so that not all members of an ensemble write theirs
    /// at once. If it says no, it is asked again after the next txn.
    #[must_use]
    pub fn snapshot_permit(mut self, permit: impl Fn() -> bool + Send + Sync + 'static) -> EngineOptions {
        self.snapshot_permit = Some(Arc::new(permit));
        self
    }

    /// What is kept of the log beyond what the snapshots need (default: nothing).
    #[must_use]
    pub fn log_retention(mut self, retention: Retention) -> EngineOptions {
        self.log_retention = retention;
        self
    }

    /// How many of the newest txns stay in memory for peers that lag a little (default 500, ZooKeeper's
    /// `commitLogCount`), in at most so many bytes (default 16 MiB).
    #[must_use]
    pub fn recent(mut self, txns: usize, bytes: usize) -> EngineOptions {
        (self.recent_txns, self.recent_bytes) = (txns, bytes);
        self
    }

    /// Has `tell` told how far the loading of a snapshot, the replay of the log, and each snapshot that is written have
    /// come: some times for each MiB, by the thread that is at it, so it must be quick. It may not use the engine.
    #[must_use]
    pub fn on_progress(mut self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> EngineOptions {
        self.progress = Told::new(tell);
        self
    }

    /// Has this one told, unless somebody is.
    pub(crate) fn telling_too(mut self, told: &Told) -> EngineOptions {
        self.progress = self.progress.or(told);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        self.log.check()?;
        let kept = 1..=limits::SNAPSHOTS_KEPT_MAX;
        let pace = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes >= 1 << 20);
        for (holds, what) in [
            (kept.contains(&self.snapshots_kept), "snapshots_kept must be 1 to 1,000"),
            (pace(self.snapshot_bytes_per_second), "snapshot_bytes_per_second must be 1 MiB or more"),
            (pace(self.snapshot_bytes_beside_writers), "snapshot_bytes_beside_writers must be 1 MiB or more"),
        ] {
            if !holds {
                return Err(Error::invalid(what));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("commit", &self.commit)
            .field("snap_count", &self.snap_count)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}
