//! The engine: log, tree and snapshots joined, as a server embeds them.

mod answer;
mod apart;
mod checkpoint;
mod feed;
mod foundation;
mod generation;
mod handle;
mod home;
mod install;
mod learn;
mod manifest_file;
mod mark;
mod open;
mod options;
mod order;
mod pace;
mod pipeline;
mod progress;
mod recent;
mod replay;
mod report;
mod restore;
mod session_tracker;
mod shared;
mod slot;
mod snapshotter;
mod standby;
mod stats;
mod sync;
mod sync_plan;
mod take;
mod ticket;
mod trigger;
mod truncation;
mod verify;
mod view;

#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod fence_tests;
#[cfg(test)]
mod install_tests;
#[cfg(test)]
mod learn_tests;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod peer_tests;
#[cfg(test)]
mod restore_tests;
#[cfg(any(test, feature = "sim"))]
mod sim_home;
#[cfg(any(test, feature = "sim"))]
mod simulation;
#[cfg(test)]
mod standby_tests;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub(crate) use apart::{check_apart, place};
pub use checkpoint::CheckpointReport;
pub use feed::ChangeFeed;
pub(crate) use foundation::{Foundation, unfinished};
pub use handle::Engine;
pub(crate) use home::{Directories, Home, Room};
pub use learn::{LearnReport, SyncSource};
pub(crate) use manifest_file::ManifestFile;
pub(crate) use mark::MARK_NAME as FOUNDING_MARK_NAME;
pub use options::EngineOptions;
pub use order::Caller;
pub use pipeline::{Applied, Commit};
pub(crate) use progress::Told;
pub use progress::{Activity, Progress};
pub use report::OpenReport;
pub use restore::{RestoreOptions, RestoreReport, RestoreTarget, restore, restore_in_place};
pub(crate) use restore::{Source, close_sessions, replay, replay_telling};
pub use session_tracker::SessionTracker;
#[cfg(any(test, feature = "sim"))]
pub use simulation::simulate_engine;
pub use snapshotter::SnapshotTask;
pub use standby::{CaughtUp, Standby};
pub use stats::EngineStats;
pub use sync::SyncAnswer;
pub use sync_plan::{SyncDecision, SyncInput, SyncLog, SyncPlan, SyncReason};
pub use ticket::Ticket;
pub use truncation::{TruncationPlan, plan_truncation};
pub use verify::{VerifiedSnapshot, VerifyReport};
pub use view::EngineView;
