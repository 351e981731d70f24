use std::path::{Path, PathBuf};

use super::directory::ZkDirectory;
use super::recover::Recovery;
use super::report::ImportReport;
use crate::base::{Clock, Result};
use crate::engine::{EngineOptions, Foundation, Progress, RestoreTarget, Told, check_apart, close_sessions};
use crate::log::Execution;
use crate::tree::DataTree;

/// The longest payload, string or buffer that is read if nothing else is said, in bytes. More than a server reads by
/// itself: entries that it could write and not read again are read.
pub const LENGTH_LIMIT_DEFAULT: u32 = 64 << 20;

/// What to take over from ZooKeeper's data.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, set by its own method")]
pub struct ImportOptions {
    pub(super) target: RestoreTarget,
    pub(super) sessions: bool,
    pub(super) data_log_dir: Option<PathBuf>,
    pub(super) salvage: bool,
    pub(super) length_limit: u32,
    pub(super) extended_types: bool,
    pub(super) snapshot_alone: bool,
    pub(super) execution: Execution,
    pub(super) progress: Told,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            target: RestoreTarget::Newest,
            sessions: true,
            data_log_dir: None,
            salvage: false,
            length_limit: LENGTH_LIMIT_DEFAULT,
            extended_types: true,
            snapshot_alone: false,
            execution: Execution::Real,
            progress: Told::default(),
        }
    }
}

impl ImportOptions {
    /// The newest state, with its sessions, and nothing that is damaged.
    pub fn new() -> ImportOptions {
        ImportOptions::default()
    }

    /// Which state (default [`RestoreTarget::Newest`]).
    #[must_use]
    pub fn target(mut self, target: RestoreTarget) -> ImportOptions {
        self.target = target;
        self
    }

    /// Whether sessions, and the ephemeral nodes that they own, are taken over (default: they are). If not, each is
    /// closed by a txn of its own behind the target.
    #[must_use]
    pub fn sessions(mut self, kept: bool) -> ImportOptions {
        self.sessions = kept;
        self
    }

    /// The server's `dataLogDir`, if it has one.
    #[must_use]
    pub fn data_log_dir(mut self, dir: impl Into<PathBuf>) -> ImportOptions {
        self.data_log_dir = Some(dir.into());
        self
    }

    /// Whether damage is passed over and noted (default: it is an error). The state ends before the first damage of a
    /// log then.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> ImportOptions {
        self.salvage = salvage;
        self
    }

    /// The longest payload, string or buffer in bytes (default [`LENGTH_LIMIT_DEFAULT`]). A multi may have an operation for each
    /// 64 of them, and a session's end a path: a txn takes up to some four times the limit in memory.
    #[must_use]
    pub fn length_limit(mut self, bytes: u32) -> ImportOptions {
        self.length_limit = bytes.min(i32::MAX.unsigned_abs());
        self
    }

    /// Whether the server had `zookeeper.extendedTypesEnabled` (default: it had): without it, what looks like a time to
    /// live is a session.
    #[must_use]
    pub fn extended_types(mut self, enabled: bool) -> ImportOptions {
        self.extended_types = enabled;
        self
    }

    /// Whether a directory without any log is taken as it is (default: it is refused, since the logs of a server with a
    /// `dataLogDir` are elsewhere).
    #[must_use]
    pub fn snapshot_alone(mut self, alone: bool) -> ImportOptions {
        self.snapshot_alone = alone;
        self
    }

    /// Whether the engine is made, or only told of (default [`Execution::Real`]). A dry run needs no directory that exists.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> ImportOptions {
        self.execution = execution;
        self
    }

    /// Has `tell` told how far the reading of the snapshot and of the logs has come, and [`import`] that it writes, unless
    /// the new engine's options have somebody told: some times for each MiB, by the caller's thread, so it must be quick.
    #[must_use]
    pub fn on_progress(mut self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> ImportOptions {
        self.progress = Told::new(tell);
        self
    }
}

/// Reads the state of the ZooKeeper server whose `dataDir` is `source`. Nothing is written; the server may be running,
/// but the newest txns may be missing then.
///
/// # Errors
/// - [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): the data are damaged; with salvage, only if there is no state at all.
/// - [`ErrorKind::NotInLog`](crate::ErrorKind::NotInLog): the target is not reached.
/// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): there is no log, or a file is a link.
/// - [`ErrorKind::Io`](crate::ErrorKind::Io).
pub fn read_state(source: impl AsRef<Path>, what: &ImportOptions) -> Result<(DataTree, ImportReport)> {
    let directory = ZkDirectory::open(source.as_ref(), what.data_log_dir.as_deref())?;
    let mut recovery = Recovery::new(&directory, what);
    recovery.run()?;
    let Recovery { tree, mut report, .. } = recovery;
    report.source_zxid = tree.last_zxid();
    complete(&mut report, &tree);
    Ok((tree, report))
}

fn complete(report: &mut ImportReport, tree: &DataTree) {
    report.last_zxid = tree.last_zxid();
    report.digest = tree.digest();
    report.nodes = tree.len();
    report.sessions = tree.sessions().len() as u64;
}

/// Makes an engine in the directory `dest`, which must exist and be empty, with the state of the ZooKeeper server whose
/// `dataDir` is `source`. `options` are those of the new engine.
///
/// Zxids go on where the server's end; so do versions, numbers of sequential nodes, sessions and epochs.
///
/// # Errors
/// `dest` is no engine then. What an import has left that was cut off is removed by the next one.
/// - As [`read_state`].
/// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): something else is in `dest`, or one of the two, or the new engine's
///   log, is inside the other.
/// - As [`EngineOptions::open`].
pub fn import(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &EngineOptions,
    what: &ImportOptions,
) -> Result<ImportReport> {
    let options = &options.clone().telling_too(&what.progress);
    let (source, dest) = (source.as_ref(), dest.as_ref());
    check_apart((dest, options.log_dir.as_deref()), (source, what.data_log_dir.as_deref()))?;
    // Before the long part.
    let foundation = match what.execution {
        Execution::Real => Some(Foundation::begin(dest, options)?),
        Execution::DryRun => {
            Foundation::check(dest, options)?;
            None
        }
    };
    let (mut tree, mut report) = read_state(source, what)?;
    if !what.sessions {
        report.closed_sessions = close_sessions(&mut tree, Clock::real().wall_ms())?;
        complete(&mut report, &tree);
    }
    report.accepted = report.accepted.max(report.last_zxid.epoch());
    if let Some(foundation) = foundation {
        report.database_id = Some(foundation.finish(tree, report.accepted)?);
    }
    Ok(report)
}
