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
pub(super) use nodes::{Nodes, len_of};
