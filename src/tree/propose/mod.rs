//! From a request to the txn that is logged: checked against the tree and all changes that are logged and not yet
//! applied.

mod body;
mod context;
mod nodes;
mod options;
mod outstanding;
mod paths;
mod proposal;
mod proposer;
mod quota;
mod request;
mod sessions;
mod state;
mod step;
mod subtree;
#[cfg(test)]
mod tests;

pub use context::RequestContext;
pub use options::ProposeOptions;
pub use proposal::Proposal;
pub use proposer::Proposer;
pub use request::{CreateMode, CreateRequest, Request, StatCheck};
