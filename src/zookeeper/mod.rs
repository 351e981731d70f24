//! ZooKeeper's own directories: its snapshots and logs read, taken over, and written.
//!
//! [`import`] makes an engine of a server's data, [`read_state`] a tree. [`LogFile`] and [`SnapshotFile`] read single files.
//! What is read and what is refused, and where that is not what a server does, is in `docs/ZOOKEEPER.md`.

mod ahead;
mod base;
mod bytes;
mod compression;
mod directory;
mod export;
mod format;
mod held;
mod import;
mod jute;
mod log_file;
mod read_txn;
mod recover;
mod replay;
mod report;
mod search;
mod snapshot_file;
mod summed;
mod target_dir;
mod torn_data;
mod unexplained;
mod write_snapshot;
mod write_txn;

pub use bytes::{Bytes, OnDisk};
pub use compression::Compression;
pub use directory::{NamedFile, ZkDirectory};
pub use export::{ExportOptions, ExportReport, export};
pub use format::ZkFormat;
pub use import::{ImportOptions, LENGTH_LIMIT_DEFAULT, import, read_state};
pub use log_file::{LogEnd, LogEntry, LogFile};
pub use read_txn::ReadTxn;
pub use report::{Finding, FindingKind, ImportReport};
pub use snapshot_file::{SnapshotFile, SnapshotNode, SnapshotTrailer};
