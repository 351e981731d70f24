//! The pure core of group commit: events in, writes out. No thread, no clock, no system call.

mod active;
mod forming;
mod group_commit;
mod policy;

#[cfg(test)]
mod tests;

pub(crate) use active::{ActiveSegment, RetiredSegment};
pub(crate) use group_commit::{Admission, Bounds, GroupCommit, Incoming, Position, Progress, Start, Started};
