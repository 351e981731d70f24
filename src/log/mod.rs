//! The transaction log: segments, group commit, recovery, reading, truncation and retention by zxid.
//!
//! Payloads are opaque: nothing here knows of trees or transactions.

mod commit;
mod directory;
mod engine;
mod handle;
mod options;
mod read;
mod recover;
mod retain;
mod segments;
mod stats;
mod ticket;
mod waiting;
