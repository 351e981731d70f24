use std::fmt;

use crate::base::{Error, Zxid};
use crate::log::RecoveryReport;
use crate::snapshot::SnapshotInfo;

/// What opening an engine found and did. `Display` tells it as text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenReport {
    /// Whether the engine was created by this call.
    pub created: bool,
    /// The snapshot that the state began with; none if there is none, or an empty tree was the beginning.
    pub snapshot: Option<SnapshotInfo>,
    /// The last txn of the standby's tree that the state began with, instead of a snapshot's.
    pub went_on: Option<Zxid>,
    /// Newer snapshots that could not be used, and why. They are still there.
    pub skipped: Vec<(Zxid, Error)>,
    /// How many txns of the log came after it.
    pub replayed: u64,
    /// How many of these could not be done, though they were no errors when they were logged: the tree and the log
    /// differ. Zero in a database that is well.
    pub replay_failures: u64,
    /// The last txn.
    pub last_zxid: Zxid,
    /// The tree's digest at that txn.
    pub digest: u64,
    /// What became of the log.
    pub log: RecoveryReport,
    /// Temporary files of snapshots that were never finished, removed.
    pub removed: Vec<String>,
    /// Names in the snapshots' directory that are not arborlog's. They were not touched.
    pub foreign: Vec<String>,
    /// Nanoseconds that loading the snapshot took.
    pub load_ns: u64,
    /// Nanoseconds that opening took in all.
    pub total_ns: u64,
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| std::time::Duration::from_nanos(ns).as_secs_f64();
        if self.created {
            writeln!(f, "created a new database {}", self.log.database_id)?;
        }
        for (zxid, error) in &self.skipped {
            writeln!(f, "snapshot {zxid} was not used: {error}")?;
        }
        match (&self.snapshot, self.went_on) {
            (_, Some(last)) => writeln!(f, "went on with the standby's tree at {last}")?,
            (Some(info), None) => writeln!(
                f,
                "snapshot {} ({} nodes, {} sessions) in {:.3} s",
                info.end,
                info.nodes,
                info.sessions,
                seconds(self.load_ns)
            )?,
            (None, None) => writeln!(f, "no snapshot: began with an empty tree")?,
        }
        writeln!(f, "replayed {} txns of the log", self.replayed)?;
        if self.replay_failures > 0 {
            writeln!(f, "{} of them could not be done: the tree and the log differ", self.replay_failures)?;
        }
        let (last, digest) = (self.last_zxid, self.digest);
        write!(f, "last zxid {last}, digest {digest:#x}, {:.3} s in all", seconds(self.total_ns))
    }
}
