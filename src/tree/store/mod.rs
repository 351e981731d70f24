//! Where nodes live: a record with name and data in one place, an index by parent and name, and for each parent its
//! children. Decision 0005 has what each costs.

mod arena;
mod bucket;
mod children;
mod index;
mod large;
mod node;
mod nodes;
mod slab;

pub(super) use children::Children;
pub(super) use index::Index;
pub use large::Data;
pub(super) use node::{Node, NodeId, Packed};
pub(super) use nodes::Nodes;

/// The length of data; null has none.
pub(super) fn len_of(data: Option<&[u8]>) -> usize {
    data.map_or(0, <[u8]>::len)
}
