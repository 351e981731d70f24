//! arborlog: a storage engine for coordination servers. (crate docs to come)

mod base;
mod format;
mod io;
mod log;

#[cfg(feature = "planted-bugs")]
pub use base::planted::plant;
pub use base::{Epoch, Error, ErrorKind, Place, Result, Zxid, limits};
pub use format::{DatabaseId, Numbering, SegmentFill};
#[cfg(any(test, feature = "sim"))]
pub use io::sim;
pub use io::{Backend, BackendChoice, BackendInfo, WriteMode};
pub use log::{
    AppendTicket, CutReport, Gather, GroupPolicy, Health, Log, LogOptions, LogPin, LogReader, LogStats,
    LogView, PurgeReport, Record, RecoveryReport, Retention, TailState, TruncateReport, ViewReader,
};

use base::planted::planted;
