//! The transaction log: segments, group commit, recovery, reading, truncation and retention by zxid.
//!
//! Payloads are opaque: nothing here knows of trees or transactions.

mod commit;
pub(crate) mod directory;
mod engine;
mod handle;
mod options;
mod prepare;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod retain;
mod segments;
mod stats;
mod ticket;
mod waiting;

pub use handle::Log;
pub use options::{Gather, GroupPolicy, LogOptions};
pub use read::{LogReader, Record};
pub use recover::{CutReport, RecoveryReport, TailState};
pub use retain::{
    Execution, LogPin, Loss, ManifestRepair, PurgeReport, Retention, SalvageOptions, SalvageReport, TruncateReport,
    salvage, truncate_dir,
};
pub use stats::{Health, LogStats};
pub use ticket::AppendTicket;
