//! The tree of nodes: what a coordination server keeps in memory and applies its log to. No I/O, no clock, no threads.

mod acl_check;
mod acl_table;
mod apply;
mod change;
mod data_tree;
mod digest;
mod directory;
mod family;
mod ip_range;
mod load;
mod lookup;
#[cfg(test)]
mod model;
mod node_batch;
mod owner;
mod path;
mod propose;
mod quota;
mod read;
mod sessions;
mod shared;
mod store;
mod stored_stat;
mod subtree;
#[cfg(test)]
mod tests;
mod walk;
mod warm;
mod watch;

pub use acl_check::{Identity, acl_allows, digest_id, fix_acl, mask_digest_ids};
pub use apply::Outcome;
pub use change::{Change, Observer};
pub use data_tree::DataTree;
pub use load::{Loaded, TreeLoader};
pub(crate) use lookup::NodePlace;
#[cfg(test)]
pub(crate) use model::random_txns;
pub use node_batch::NodeBatch;
pub use owner::Owner;
pub use path::check_path;
pub use propose::{
    CreateMode, CreateRequest, Proposal, ProposeOptions, Proposer, Request, RequestContext, StatCheck,
};
pub use quota::{QuotaLimits, QuotaState};
pub use read::NodeRef;
pub use shared::SharedTree;
pub use store::Data;
pub use stored_stat::StoredStat;
pub use subtree::SubtreeTotals;
pub use walk::{Walk, WalkedNode};
pub(crate) use warm::AHEAD;
pub use watch::{SetWatches, WatchEvent, WatchEventKind, WatchKind, WatchLimits, WatchTable};
