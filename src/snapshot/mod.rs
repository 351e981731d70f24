//! Snapshots: a fuzzy walk of a tree, sealed by the txns of its own time, so that one file is consistent by itself.

mod file;
mod load;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use file::{SnapshotFile, SnapshotInfo};
pub(crate) use load::{LoadProgress, load};
pub(crate) use store::{Retained, SnapshotStore, StoreReport};
pub(crate) use writer::{Sealed, SnapshotWriter};
