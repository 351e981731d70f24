//! The log at work: the state that threads share, the turn that writes a group, and the threads behind it.

mod committer;
mod lead;
mod preparer;
mod shared;
mod shutdown;

pub(crate) use lead::callback_panicked;
#[cfg(test)]
pub(crate) use lead::{Begin, UnderWay};
pub(crate) use shared::{OnDurable, Patience, Shared, StartOptions};
pub(crate) use shutdown::Threads;
