//! A storage engine for coordination servers: the part of an Apache ZooKeeper, etcd or `ClickHouse` Keeper that
//! has every change on disk before it is acknowledged, in one total order, and gets it back after any crash.
//!
//! The [`Engine`] is all of it: the transaction [`Log`], what stands on it in memory, the [`DataTree`], snapshots, recovery,
//! epochs, and plans for peers that lag. Log and tree can each be used without the other.
//!
//! ```
//! use arborlog::{Epoch, LogOptions, Record, Zxid};
//!
//! # fn main() -> arborlog::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("arborlog-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! let (log, report) = LogOptions::new().segment_bytes(1 << 20).open(&dir)?;
//! assert!(report.created);
//!
//! // A new leader makes its epoch durable; appends of older epochs are refused from then on.
//! log.advance_epoch(Epoch::new(1))?;
//!
//! // Ordered when `append` returns, durable when the ticket says so.
//! let ticket = log.append(&Record::new(Zxid::from_parts(1, 1), 1_700_000_000_000, b"create /a"))?;
//! assert_eq!(ticket.wait()?, Zxid::from_parts(1, 1));
//!
//! let mut reader = log.reader(Zxid::ZERO)?;
//! let record = reader.next_record()?.expect("what is durable can be read");
//! assert_eq!(record.payload, b"create /a");
//! # drop(reader);
//! log.close()?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # Finding your way
//! | to | look at |
//! |---|---|
//! | open, create, choose | [`LogOptions`], [`GroupPolicy`], [`RecoveryReport`] |
//! | append | [`Log::append`], [`Log::append_batch`], [`AppendTicket`]; and wait at once, [`Log::commit`] |
//! | read and follow | [`Log::reader`], [`Log::reader_at_time`], [`LogReader`] |
//! | fence an old leader | [`Log::advance_epoch`] |
//! | cut and clean up | [`Log::truncate`], [`Log::purge`], [`Retention`], [`Log::pin`] |
//! | watch over it | [`Log::health`], [`Log::stats`] |
//! | act on a failure | [`Error::kind`], [`Error::code`], `docs/RECOVERY.md` |
//! | keep a tree and change it | [`DataTree`], [`DataTree::apply`], [`Txn`], [`TxnBody`], [`Outcome`] |
//! | make txns of requests | [`Proposer`], [`Request`], [`Proposal`]; ACLs: [`acl_allows`], [`fix_acl`] |
//! | read a tree | [`DataTree::get`], [`NodeRef`], [`DataTree::descendants`], [`SharedTree`] |
//! | be told of changes | [`Observer`], [`WatchTable`], [`SetWatches`] |
//! | copy a tree while it changes | [`DataTree::walk`], [`TreeLoader`], [`NodeBatch`] |
//! | have log, tree and snapshots as one | [`EngineOptions`], [`Engine::submit`], [`Engine::append`], [`Engine::apply`] |
//! | bring a peer up to date | [`Engine::sync_plan`], [`Engine::learn`], [`Engine::send_snapshot`], [`Engine::install`] |
//! | take the place of a server | [`EngineOptions::open_standby`], [`Standby::promote`] |
//! | back up and restore | [`Engine::checkpoint`], [`restore`], [`restore_in_place`] |
//! | watch over an engine | [`Engine::stats`], [`Engine::health`], [`Engine::verify`], [`EngineOptions::on_progress`] |
//! | come from ZooKeeper, and go back | the module [`zookeeper`] |
//! | test a server on power cuts | the module `sim` (feature `sim`) |
//!
//! # Features
//! - `sim`: the simulated disk, with faults and power cuts drawn from a seed.
//! - `planted-bugs`: known bugs for the simulator to find. Never for a product.

mod base;
mod engine;
mod format;
pub mod inspect;
mod io;
mod log;
mod snapshot;
mod tree;
pub mod zookeeper;

#[cfg(feature = "planted-bugs")]
pub use base::planted::plant;
pub use base::{Code, Epoch, Error, ErrorKind, Histogram, Place, Result, Zxid, limits};
#[cfg(any(test, feature = "sim"))]
pub use engine::simulate_engine;
pub use engine::{
    Activity, Answer, Applied, Caller, CaughtUp, ChangeFeed, CheckpointReport, Commit, Engine, EngineOptions,
    EngineStats, EngineView, LearnReport, OpenReport, Progress, RestoreOptions, RestoreReport, RestoreTarget,
    SessionTracker, SnapshotTask, Standby, SyncAnswer, SyncDecision, SyncInput, SyncLog, SyncPlan,
    SyncReason, SyncSource, Ticket, TruncationPlan, VerifiedSnapshot, VerifyReport, plan_truncation, restore,
    restore_in_place,
};
pub use format::{
    Acl, AclBuf, AclEntry, AclList, Create, CreateKind, DatabaseId, Numbering, Ops, Paths, Perms,
    SegmentFill, Stat, Txn, TxnBody, TxnBuf,
};
#[cfg(any(test, feature = "sim"))]
pub use io::sim;
pub use io::{Backend, BackendChoice, BackendInfo, WriteMode};
#[cfg(any(test, feature = "sim"))]
pub use log::repair_record_sim;
pub use log::{
    AppendTicket, CutReport, DamagedRecords, Execution, Gather, GroupPolicy, Health, Log, LogOptions, LogPin,
    LogReader, LogStats, LogView, Loss, ManifestRepair, PurgeReport, Record, RecoveryReport, RepairReport,
    Retention, SalvageOptions, SalvageReport, TailState, TruncateReport, ViewReader, repair_record, salvage,
    truncate_dir,
};
pub use snapshot::{DamagedRange, SnapshotInfo};
pub use tree::{
    Change, CreateMode, CreateRequest, Data, DataTree, Identity, Loaded, NodeBatch, NodeRef, Observer,
    Outcome, Owner, Proposal, ProposeOptions, Proposer, QuotaLimits, QuotaState, Request, RequestContext,
    SetWatches, SharedTree, StatCheck, StoredStat, SubtreeTotals, TreeLoader, Walk, WalkedNode, WatchEvent,
    WatchEventKind, WatchKind, WatchLimits, WatchTable, acl_allows, check_path, digest_id, fix_acl,
    mask_digest_ids,
};

use base::planted::planted;
