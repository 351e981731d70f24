//! The whole engine on simulated disks that lose power at any operation, held against a tree that never does.
//!
//! `ARBORLOG_ENGINE_RUNS=N cargo test --lib engine::simulation` makes more runs; `ARBORLOG_ENGINE_SEED=S` repeats one.

mod choices;
mod leader;
mod model;
mod moves;
mod run;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use leader::{Sent, send};
pub use run::simulate_engine;
#[cfg(all(test, feature = "planted-bugs"))]
pub(super) use tests::run;
