use std::fmt;

use crate::base::{Epoch, Zxid, counted, harmless};
use crate::format::DatabaseId;
use crate::io::BackendInfo;

/// What opening a log found and did. Keep it: after a crash it is the record of what was cut.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The database that the log belongs to.
    pub database_id: DatabaseId,
    /// The backend in use, and why not another.
    pub backend: BackendInfo,
    /// Whether the log was created by this call.
    pub created: bool,
    /// The last record before the oldest one that is kept: purged, or zero.
    pub floor_zxid: Zxid,
    /// The last record; the floor if there is none.
    pub last_zxid: Zxid,
    /// The newest durable epoch.
    pub epoch: Epoch,
    /// How many segments make up the log.
    pub segments: u64,
    /// How many records they hold.
    pub records: u64,
    /// How many bytes of them were verified.
    pub bytes: u64,
    /// How the log ended.
    pub tail: TailState,
    /// What was cut, if anything.
    pub cut: Option<CutReport>,
    /// Files that were moved aside: they are no part of the log any more and may be removed by hand.
    pub moved_aside: Vec<String>,
    /// Files of earlier cuts that are still there.
    pub asides: Vec<String>,
    /// Files that were removed: blank segments and temporary files.
    pub removed: Vec<String>,
    /// Names in the directory that are not arborlog's. They were not touched.
    pub foreign: Vec<String>,
    /// Nanoseconds that reading and judging took.
    pub read_ns: u64,
    /// Nanoseconds that opening took in all.
    pub total_ns: u64,
}

/// How the log ended when it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TailState {
    /// Closed cleanly, cut off and not opened since, or new.
    Clean,
    /// Not closed cleanly, but no bytes were left behind the last whole group.
    Unclean,
    /// The newest group was torn, or groups behind it were in flight; nothing proves that they were durable,
    /// so they were cut.
    Torn,
}

impl TailState {
    /// A stable lower-case word, for output that machines read.
    pub fn as_str(self) -> &'static str {
        match self {
            TailState::Clean => "clean",
            TailState::Unclean => "unclean",
            TailState::Torn => "torn",
        }
    }
}

/// What recovery cut off, and where it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CutReport {
    /// The segment that ends early now.
    pub file: String,
    /// Where it ends. The bytes behind stay in the file; they are no part of the log any more.
    pub offset: u64,
    /// How many bytes of the file stand behind the end.
    pub bytes: u64,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.created { "created" } else { "opened" };
        writeln!(f, "{what} the log of database {} on {}", self.database_id, self.backend.backend)?;
        if let Some(why) = &self.backend.refused {
            writeln!(f, "io_uring is not in use: {why}")?;
        }
        writeln!(
            f,
            "{} in {}, zxid {} to {}, epoch {}, closed: {}",
            counted(self.records, "record"),
            counted(self.segments, "segment"),
            self.floor_zxid,
            self.last_zxid,
            self.epoch,
            self.tail.as_str()
        )?;
        if let Some(cut) = &self.cut {
            writeln!(
                f,
                "cut {} at byte {}: {} behind it stay in the file",
                cut.file,
                cut.offset,
                counted(cut.bytes, "byte")
            )?;
        }
        for name in &self.moved_aside {
            writeln!(f, "moved aside: {name}")?;
        }
        for name in &self.foreign {
            writeln!(f, "not ours, left alone: {}", harmless(name))?;
        }
        let ms = |ns: u64| ns / 1_000_000;
        let bytes = counted(self.bytes, "byte");
        write!(f, "read {bytes} in {} ms, opened in {} ms", ms(self.read_ns), ms(self.total_ns))
    }
}
