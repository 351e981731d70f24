//! A simulated disk: one directory in memory that can lose power, fill up and lie, all from one seed.
//!
//! What the kernel shows (the cache) and what the medium keeps are held apart, in units of one sector of 512
//! bytes for content, and name by name for the directory. A [power cut](SimDisk::crash) keeps any subset of
//! what was not synced. Assumed of the medium, as `DESIGN.md` says: a sector is written whole or not at all
//! (unless [`set_torn_garbage`](SimDisk::set_torn_garbage) asks for worse), a truncation happens whole or
//! not at all, and so does a rename.
//!
//! Nothing here reads a clock or a random source of the system: the same calls with the same seeds give the
//! same bytes.

mod content;
mod counters;
mod crash;
mod disk;
mod fault;
mod file;
mod handle;
mod inode;
mod medium;
mod names;
mod operations;
mod queue;
mod state;
mod tools;
mod under_way;

#[cfg(test)]
mod tests;

pub use counters::SimCounters;
pub use crash::{CrashImage, Side, SimMoment};
pub use disk::SimDisk;
pub use fault::{Effect, Fault, FaultOp, NamePattern};
