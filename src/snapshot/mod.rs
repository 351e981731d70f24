//! Snapshots: a fuzzy walk of a tree, sealed by the txns of its own time, so that one file is consistent by itself.

mod device;
mod file;
mod load;
mod output;
mod read;
mod read_ahead;
mod read_back;
mod receive;
mod store;
#[cfg(test)]
mod tests;
mod write_behind;
mod writer;

pub(crate) use file::SnapshotFile;
pub use file::{DamagedRange, SnapshotInfo};
pub(crate) use load::load;
pub(crate) use read::{Checking, LoadProgress, Reading, Visitor, walked};
pub(crate) use read_ahead::read_ahead;
pub(crate) use store::SnapshotStore;
#[cfg(test)]
pub(crate) use store::StoreReport;
#[cfg(test)]
pub(crate) use writer::Sealed;
