//! Bytes and types: what stands on disk, as `docs/FORMAT.md` specifies it. No I/O, no clock, no state.

mod acl;
mod database_id;
mod engine_manifest;
mod group_header;
pub(crate) mod layout;
mod manifest;
mod name;
#[cfg(test)]
mod properties;
mod record_header;
mod seal;
mod segment_header;
pub(crate) mod snapshot;
mod stat;
mod txn;

pub use acl::{Acl, AclBuf, AclEntry, AclList, Perms};
pub use database_id::DatabaseId;
pub(crate) use engine_manifest::{
    ENGINE_MANIFEST_BYTES_MAX, ENGINE_MANIFEST_NAME, ENGINE_MANIFEST_TEMP_NAME, EngineManifest,
};
pub(crate) use group_header::{GROUP_HEADER_BYTES, GroupHeader, GroupKind};
pub use manifest::Numbering;
pub(crate) use manifest::{Cut, Manifest};
pub(crate) use name::{
    LOCK_NAME, MANIFEST_NAME, MANIFEST_TEMP_NAME, Name, RESERVE_NAME, aside_name, aside_number,
    damaged_manifest_name, segment_name, segment_temp_name,
};
pub(crate) use record_header::{RECORD_HEADER_BYTES, RecordHeader, frame_bytes};
pub(crate) use seal::{IndexEntry, Seal};
pub use segment_header::SegmentFill;
pub(crate) use segment_header::SegmentHeader;
pub use stat::Stat;
pub use txn::{Create, CreateKind, Ops, Paths, Txn, TxnBody, TxnBuf};
