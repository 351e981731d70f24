//! What the fuzz targets do with their input. The library's tests include this folder too, and replay the
//! committed corpus through it; so nothing in here may need the fuzzer.
//!
//! Where the input becomes a directory of files, [`directory::check`] holds for that.

mod directory;
mod engine_ops;
mod frame_decode;
mod golden;
mod layout;
mod manifest_decode;
mod recovery;
mod segment_open;
mod snapshot_load;
mod source;
mod tree_model;
mod txn_decode;
mod zookeeper_files;

pub use directory::Outcome;
pub use engine_ops::{ENGINE_RUN, engine_ops};
pub use frame_decode::frame_decode;
pub use golden::{golden_group_bytes, golden_manifest, golden_segments, golden_snapshot, golden_txns};
pub use manifest_decode::manifest_decode;
pub use recovery::recovery;
pub use segment_open::segment_open;
pub use snapshot_load::{node_entry, snapshot_load, snapshot_of_nodes};
pub use tree_model::tree_model;
pub use txn_decode::txn_decode;
pub use zookeeper_files::zookeeper_files;

/// A target: any bytes in, what became of them out; it panics if something is wrong.
pub type Target = fn(&[u8]) -> Outcome;

/// All targets by name; each has a folder of this name in the corpus.
pub const TARGETS: [(&str, Target); 9] = [
    ("engine_ops", engine_ops),
    ("frame_decode", frame_decode),
    ("manifest_decode", manifest_decode),
    ("recovery", recovery),
    ("segment_open", segment_open),
    ("snapshot_load", snapshot_load),
    ("tree_model", tree_model),
    ("txn_decode", txn_decode),
    ("zookeeper_files", zookeeper_files),
];
