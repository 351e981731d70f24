//! The disk: one contract, three backends. The only home of the file system, of system calls and of `unsafe`.

mod buffer;
mod contract;
mod dir;
mod duplicate;
mod file;
mod folders;
mod lock;
mod medium;
mod prefetch;
mod probe;
mod replace;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod threads;
mod transfer;
#[cfg(target_os = "linux")]
mod uring;
mod wait_word;

#[cfg(test)]
mod conformance;
#[cfg(all(test, target_os = "linux"))]
mod refused;

pub(crate) use buffer::Buffer;
pub use contract::{Backend, BackendChoice, BackendInfo, WriteMode};
pub(crate) use contract::{
    Completion, DirEntry, Disk, Durability, EntryKind, File, Lock, OpenMode, QUEUE_DEPTH, Queue, WriteOp,
};
pub(crate) use dir::{open_dir, open_dir_to_read};
pub(crate) use duplicate::{Duplicated, copy, duplicate};
pub(crate) use folders::{ensure_dir, names_in, remove_dir, resolved};
pub(crate) use prefetch::prefetch;
pub(crate) use replace::replace_file;
pub(crate) use wait_word::WaitWord;
