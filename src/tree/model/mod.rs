//! A slow tree to hold the real one against, histories for both, and snapshots torn over the time in which they
//! were taken.
//!
//! `docs/TESTING.md` tells how to run more of it and how to replay a seed.

mod compare;
mod events;
mod exhaustive;
mod faults_fuzzy;
mod faults_live;
mod history;
mod random_run;
mod reference;
mod scene;
mod step;

pub(crate) use history::random_txns;
