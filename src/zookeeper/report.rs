use std::fmt;

use super::log_file::LogEnd;
use crate::base::{Epoch, Error, Place, Zxid, harmless};
use crate::format::DatabaseId;

/// So much is told of a path: it may be as long as what a server takes.
const PATH_CHARS_TOLD: usize = 200;

/// A path as messages have it. Data that are damaged, or were made to do harm, have control characters in their paths, and
/// no message ends a line or moves a cursor.
pub(super) fn told_path(path: &str) -> String {
    harmless(&path.chars().take(PATH_CHARS_TOLD).collect::<String>()).into_owned()
}

/// What sort of oddity was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// A file that is not read.
    ForeignFile,
    /// The last entry of a log was not written whole; nobody was told of it.
    TornTail,
    /// A newer snapshot that could not be used.
    SnapshotSkipped,
    /// Damage of a log: what is behind it is not in the state.
    LogDamage,
    /// Nodes whose ACL is nowhere; only who passes every ACL can use them.
    AclMissing,
    /// The tree is not what a server's digest tells.
    Digest,
    /// A snapshot has effects of txns that no log has.
    SnapshotAhead,
    /// A snapshot is not of the zxid that its name tells.
    Renamed,
    /// All logs end before the snapshot: so it is of a follower that was sent its leader's state, or at the beginning of a
    /// leader's epoch; else a log is missing, or the snapshot was renamed.
    LogsBehind,
    /// Txns that could not be done, though they could be when they were logged.
    Replay,
    /// An epoch file that is unreadable or does not fit the txns.
    Epoch,
    /// Ephemeral nodes whose owner is no session: a server would delete them when it starts.
    OwnerWithoutSession,
}

impl FindingKind {
    /// Whether data were lost, or may have been: without salvage it is an error.
    pub const fn is_damage(self) -> bool {
        matches!(
            self,
            FindingKind::LogDamage
                | FindingKind::AclMissing
                | FindingKind::Digest
                | FindingKind::SnapshotAhead
                | FindingKind::Renamed
                | FindingKind::Replay
        )
    }

    /// A stable word for it.
    pub const fn word(self) -> &'static str {
        match self {
            FindingKind::ForeignFile => "foreign-file",
            FindingKind::TornTail => "torn-tail",
            FindingKind::SnapshotSkipped => "snapshot-skipped",
            FindingKind::LogDamage => "log-damage",
            FindingKind::AclMissing => "acl-missing",
            FindingKind::Digest => "digest",
            FindingKind::SnapshotAhead => "snapshot-ahead",
            FindingKind::Renamed => "renamed",
            FindingKind::LogsBehind => "logs-behind",
            FindingKind::Replay => "replay",
            FindingKind::Epoch => "epoch",
            FindingKind::OwnerWithoutSession => "owner-without-session",
        }
    }
}

/// Something odd in ZooKeeper's data.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What sort.
    pub kind: FindingKind,
    /// Where, as far as that is known.
    pub at: Place,
    /// What.
    pub what: String,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, what: impl Into<String>) -> Finding {
        Finding { kind, at: Place::default(), what: what.into() }
    }

    pub(super) fn of_error(kind: FindingKind, error: &Error) -> Finding {
        Finding { kind, at: error.at().clone(), what: format!("{} [{}]", error.message(), error.code()) }
    }

    pub(super) fn of_end(end: LogEnd, file: &str, offset: u64) -> Option<Finding> {
        let LogEnd::Torn(why) = end else { return None };
        let what = format!("the last entry is not whole and left out: {why}");
        let mut finding = Finding::new(FindingKind::TornTail, what).in_file(file);
        finding.at.offset = Some(offset);
        Some(finding)
    }

    pub(super) fn in_file(mut self, file: &str) -> Finding {
        self.at.file = Some(file.to_owned());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.at.file {
            // A name that is none of a server's may be any.
            f.write_str(&harmless(file))?;
            if let Some(offset) = self.at.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{} [{}]", harmless(&self.what), self.kind.word())
    }
}

/// What reading ZooKeeper's data has found.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// The snapshot that the state begins with; none if an empty tree was the beginning.
    pub snapshot: Option<String>,
    /// The zxid in its name.
    pub snapshot_zxid: Option<Zxid>,
    /// How many txns of the logs came after it.
    pub replayed: u64,
    /// The last txn in the state, of the source.
    pub source_zxid: Zxid,
    /// When it was, in milliseconds, if it was in a log.
    pub source_time_ms: Option<i64>,
    /// Nodes in the state.
    pub nodes: u64,
    /// Sessions in the state.
    pub sessions: u64,
    /// Sessions that were closed, each by a txn of its own behind the source's last one.
    pub closed_sessions: u64,
    /// The last txn of the state.
    pub last_zxid: Zxid,
    /// The tree's digest there.
    pub digest: u64,
    /// How many txns told the digest that they made, and it was.
    pub digests_held: u64,
    /// The newest leader that the server has accepted.
    pub accepted: Epoch,
    /// The new database; none of a dry run, and of a state that was only read.
    pub database_id: Option<DatabaseId>,
    /// What was odd.
    pub findings: Vec<Finding>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_harm_are_told_on_one_line_and_others_as_they_are() {
        let finding =
            Finding::new(FindingKind::ForeignFile, "no file of a server's").in_file("it's\n\u{1b}[2J");
        assert_eq!(finding.to_string(), r"it's\n\u{1b}[2J: no file of a server's [foreign-file]");
        assert_eq!(told_path(&"\n".repeat(300)), r"\n".repeat(PATH_CHARS_TOLD));
    }
}
