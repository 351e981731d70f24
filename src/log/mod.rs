//! The transaction log: segments, group commit, recovery, reading, truncation and retention by zxid.
//!
//! Payloads are opaque: nothing here knows of trees or transactions.

mod commit;
mod directory;
mod engine;
mod handle;
mod options;
mod prepare;
mod read;
mod recover;
mod retain;
mod segments;
#[cfg(test)]
mod simulation;
mod stats;
mod ticket;
mod view;
mod view_reader;
mod waiting;
mod watermark;

#[cfg(all(test, loom))]
mod loom_tests;

pub use handle::Log;
pub use options::{Gather, GroupPolicy, LogOptions};
pub use read::{Damage, LogReader, Record};
pub use recover::{CutReport, RecoveryReport, TailState};
#[cfg(any(test, feature = "sim"))]
pub use retain::repair_record_sim;
pub use retain::{LogPin, PurgeReport, RepairReport, Retention, TruncateReport, repair_record};
pub use stats::{Health, LogStats};
pub use ticket::AppendTicket;
pub use view::LogView;
pub use view_reader::ViewReader;
