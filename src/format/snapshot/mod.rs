//! The bytes of a snapshot: `docs/FORMAT.md`, section 9.

mod block;
mod header;
mod name;
mod node;
mod records;
mod trailer;
mod varint;

pub(crate) use block::{SNAPSHOT_BLOCK_HEADER_BYTES, SnapshotBlock, SnapshotBlockKind, body_check};
pub(crate) use header::{SNAPSHOT_HEADER_BYTES, SnapshotHeader};
pub(crate) use name::{SnapshotName, snapshot_name, snapshot_temp_name};
pub(crate) use node::{NodeDecoder, NodeEncoder, NodeEntry, NodeRow};
pub(crate) use records::{SESSION_BYTES, SnapshotTxn, decode_session, encode_session, encode_txn, split_txn};
pub(crate) use trailer::{BlockPlace, SNAPSHOT_TRAILER_BYTES, SnapshotTrailer, decode_index, encode_index};
