//! arborlog: a storage engine for coordination servers. (crate docs to come)
#![allow(dead_code, unused_imports, missing_docs, reason = "scaffolding while the layers are being built")]

mod base;
mod format;
mod io;
mod log;

pub use base::{Epoch, Error, ErrorKind, Place, Result, Zxid, limits};
#[cfg(feature = "planted-bugs")]
pub use base::planted::plant;
pub use format::{DatabaseId, Numbering, SegmentFill};
#[cfg(any(test, feature = "sim"))]
pub use io::sim;
pub use io::{Backend, BackendChoice, BackendInfo, WriteMode};
pub use log::{
    AppendTicket, CutReport, Gather, GroupPolicy, Health, Log, LogOptions, LogPin, LogReader, LogStats, LogView, PurgeReport,
    Record, RecoveryReport, Retention, TailState, TruncateReport, ViewReader,
};

use base::planted::planted;
