//! Where nodes live: fixed-size records, the bytes of names and data, an index by parent and name, and for each
//! parent its children in the order of their names. Decision 0005 has what each costs.

mod arena;
mod blobs;
mod children;
mod index;
mod node;
mod nodes;

pub use blobs::Data;
pub(super) use blobs::{BlobId, Blobs};
pub(super) use children::Children;
pub(super) use index::Index;
pub(super) use node::{Node, NodeId, Packed};
pub(super) use nodes::Nodes;
