//! arborlog: a storage engine for coordination servers. (crate docs to come)
#![allow(dead_code, unused_imports, missing_docs, reason = "scaffolding while the layers are being built")]

mod base;
mod format;
pub mod inspect;
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
    AppendTicket, CutReport, Execution, Gather, GroupPolicy, Health, Log, LogOptions, LogPin, LogReader, LogStats,
    Loss, ManifestRepair, PurgeReport, Record, RecoveryReport, Retention, SalvageOptions, SalvageReport, TailState,
    TruncateReport, salvage, truncate_dir,
};

use base::planted::planted;
