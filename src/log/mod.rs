//! The transaction log: segments, group commit, recovery, reading, truncation and retention by zxid.
//!
//! Payloads are opaque: nothing here knows of trees or transactions.

mod append;
mod commit;
mod damaged_bytes;
pub(crate) mod directory;
mod engine;
mod handle;
pub(crate) mod looks;
mod options;
mod prepare;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod retain;
mod seek;
mod segment_file;
mod segments;
#[cfg(test)]
mod simulation;
mod stats;
mod ticket;
#[cfg(test)]
mod under_way_tests;
mod view;
mod view_reader;
mod waiting;
pub(crate) mod walk;
mod watermark;

#[cfg(all(test, loom))]
mod loom_tests;

pub use damaged_bytes::DamagedBytes;
pub(crate) use directory::read_manifest;
pub use handle::Log;
pub use options::{Gather, GroupPolicy, LogOptions};
// Two types tell of damage: this one names records to ask a peer for, the other one bytes of a file.
pub use read::Damage as DamagedRecords;
pub use read::{LogReader, Record};
pub use recover::{CutReport, RecoveryReport, TailState};
#[cfg(any(test, feature = "sim"))]
pub use retain::repair_record_sim;
pub use retain::{
    Execution, LogPin, Loss, ManifestRepair, PurgeReport, RepairReport, Retention, SalvageOptions,
    SalvageReport, TruncateReport, repair_record, salvage, truncate_dir,
};
pub use stats::{Health, LogStats};
pub use ticket::AppendTicket;
pub use view::LogView;
pub use view_reader::ViewReader;
