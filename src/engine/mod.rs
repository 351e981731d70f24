//! The engine: log, tree and snapshots joined, as a server embeds them.

mod answer;
mod feed;
mod generation;
mod handle;
mod home;
mod install;
mod manifest_file;
mod open;
mod options;
mod order;
mod pipeline;
mod recent;
mod report;
mod restore;
mod session_tracker;
mod shared;
mod slot;
mod snapshotter;
mod sync;
mod sync_plan;
mod take;
mod ticket;
mod trigger;
mod truncation;
mod view;

#[cfg(test)]
mod install_tests;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use feed::ChangeFeed;
pub use handle::Engine;
pub(crate) use home::{Directories, Home, Room};
pub(crate) use manifest_file::ManifestFile;
pub use options::EngineOptions;
pub use order::Caller;
pub use pipeline::{Applied, Commit};
pub use report::OpenReport;
pub(crate) use restore::replay;
pub use restore::{RestoreOptions, RestoreProgress, RestoreReport, RestoreTarget, restore};
pub use session_tracker::SessionTracker;
pub use snapshotter::SnapshotTask;
pub use sync::SyncAnswer;
pub use sync_plan::{SyncDecision, SyncInput, SyncLog, SyncPlan, SyncReason};
pub use ticket::Ticket;
pub use truncation::{TruncationPlan, plan_truncation};
pub use view::EngineView;
