//! The pure core of group commit: events in, writes out. No thread, no clock, no system call.

mod acknowledge;
mod active;
mod forming;
mod group_commit;
mod launch;
mod policy;

#[cfg(test)]
mod tests;

pub(crate) use acknowledge::Progress;
pub(crate) use active::{ActiveSegment, RetiredSegment};
pub(crate) use group_commit::{Admission, GroupCommit, Incoming, Position};
pub(crate) use launch::{Start, Started};
pub(crate) use policy::Leader;
