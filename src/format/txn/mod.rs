//! The payload of a record in a log of a tree: one txn, self-contained, with absolute values.

mod body;
mod list;

pub use body::{Create, CreateKind, Txn, TxnBody};
pub use list::{Ops, Paths};
