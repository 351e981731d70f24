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
mod stats;
mod ticket;
mod view;
mod view_reader;
mod waiting;

pub use handle::Log;
pub use options::{Gather, GroupPolicy, LogOptions};
pub use read::{LogReader, Record};
pub use recover::{CutReport, RecoveryReport, TailState};
pub use retain::{LogPin, PurgeReport, Retention, TruncateReport};
pub use stats::{Health, LogStats};
pub use ticket::AppendTicket;
pub use view::LogView;
pub use view_reader::ViewReader;
