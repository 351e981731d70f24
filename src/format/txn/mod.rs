//! The payload of a record in a log of a tree: one txn, self-contained, with absolute values.

mod body;
mod buf;
mod decode;
mod encode;
mod flaw;
mod input;
mod kind;
mod ops;
mod paths;
#[cfg(test)]
mod properties;

pub use body::{Create, CreateKind, Txn, TxnBody};
pub use buf::TxnBuf;
pub use ops::Ops;
pub use paths::Paths;
