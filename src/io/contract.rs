//! What the log may expect of a disk, and what a disk must keep. `conformance.rs` holds every backend to it.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::Buffer;

/// Which machinery carries the writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// Linux io_uring.
    IoUring,
    /// Positioned writes in the thread that commits.
    Threads,
    /// The simulated disk of the `sim` feature.
    Simulated,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::IoUring => "io_uring",
            Backend::Threads => "threads",
            Backend::Simulated => "simulated",
        })
    }
}

/// Which backend to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BackendChoice {
    /// What was measured to be best (`docs/decisions/0002-group-commit.md`): a log with one group in flight has the thread
    /// that leads it write it plainly (without a sync behind it); any other has its committers write through io_uring where the kernel grants
    /// it, else plainly as well: [`BackendInfo::refused`] says why.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// Threads, without asking for io_uring.
    Threads,
}

/// The backend in use, and what it found out about the directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackendInfo {
    /// The machinery that carries the writes.
    pub backend: Backend,
    /// Why io_uring was not used although it was asked for: the call, the error's name, and a hint.
    pub refused: Option<String>,
    /// Whether writes go past the page cache (`O_DIRECT`); some file systems do not offer it.
    pub direct: bool,
    /// Smallest unit that a direct write may have, as the kernel tells it.
    pub direct_align_bytes: u64,
    /// The unit that the medium writes as one, as far as the kernel tells; 4,096 where it does not.
    pub physical_block_bytes: u64,
}

/// How a group reaches the disk. The default was chosen by measurement (`docs/decisions/0002-group-commit.md`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WriteMode {
    /// A direct write that is itself durable (`O_DIRECT` with `RWF_DSYNC`).
    #[default]
    DirectDsync,
    /// A direct write, then `fdatasync`; linked in one submission where io_uring carries it.
    DirectThenSync,
    /// A write into the page cache, then `fdatasync`; linked in one submission where io_uring carries it.
    BufferedThenSync,
    /// A write and no sync at all. A crash of the process loses nothing, a power cut loses what the
    /// kernel had not written yet. For tests and for data that can be rebuilt.
    Unsynced,
}

impl WriteMode {
    /// Whether files are opened past the page cache.
    pub(crate) const fn direct(self) -> bool {
        matches!(self, WriteMode::DirectDsync | WriteMode::DirectThenSync)
    }

    /// What each group's write asks of the disk.
    pub(crate) const fn durability(self) -> Durability {
        match self {
            WriteMode::DirectDsync => Durability::Dsync,
            WriteMode::DirectThenSync | WriteMode::BufferedThenSync => Durability::ThenSync,
            WriteMode::Unsynced => Durability::None,
        }
    }
}

/// What is durable when a write completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    /// The write's own bytes (and the metadata to find them), as part of the write.
    Dsync,
    /// The same, by an `fdatasync` that starts after the write ended.
    ThenSync,
    /// Nothing.
    None,
}

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenMode {
    /// An existing file, read only, through the page cache.
    Read,
    /// An existing file, for reads and writes. `direct` goes past the page cache where the file system can.
    Write { direct: bool },
    /// A new file: it is an error if the name exists.
    CreateNew { direct: bool },
}

/// What stands under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryKind {
    /// A regular file.
    File,
    /// Anything else: a directory, a symbolic link, a pipe, a device. Never opened.
    Other,
}

/// One name in the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DirEntry {
    pub(crate) name: String,
    pub(crate) kind: EntryKind,
    pub(crate) len: u64,
}

/// One directory on a disk. Names have no separators; there are no subdirectories.
///
/// - A name (created, renamed, removed) is durable only once [`sync_dir`](Disk::sync_dir) returned.
/// - Interrupted calls and short transfers are finished inside; a caller sees all or an error.
/// - Nothing follows a symbolic link, and opening never blocks on a pipe: what is no regular file is
///   `ErrorKind::InvalidInput`.
pub(crate) trait Disk: Any + Send + Sync + fmt::Debug {
    fn info(&self) -> &BackendInfo;
    /// All names, in no order.
    fn list(&self) -> io::Result<Vec<DirEntry>>;
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Replaces `to` in one step if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Gives the file a second name, in the directory `to`: whatever is written under one of them is written under the
    /// other. `AlreadyExists` if the name is taken, `CrossesDevices` if `to` is on another file system or of another
    /// backend; where there are no links, any other error. Durable once `to` is synced.
    fn hard_link(&self, name: &str, to: &dyn Disk, to_name: &str) -> io::Result<()>;
    fn sync_dir(&self) -> io::Result<()>;
    /// Takes the directory for this handle until the guard is dropped. `ErrorKind::WouldBlock` if someone
    /// else has it; the error's text then tells the owner's process id where it is known.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>>;
    /// A queue of writes for one committer.
    fn queue(&self) -> io::Result<Box<dyn Queue>>;
    /// A queue for threads that wait for their own writes and do nothing else meanwhile: where a plain
    /// durable write ends sooner than one through the machinery of [`queue`](Disk::queue), it makes that.
    fn waiting_queue(&self) -> io::Result<Box<dyn Queue>> {
        self.queue()
    }
}

/// A held directory lock; dropping it lets go.
pub(crate) trait Lock: Send + Sync + fmt::Debug {}

/// An open regular file. Every call names its offset; nothing depends on a position.
///
/// Opened `direct`, offsets and lengths of writes must be multiples of [`align_bytes`](File::align_bytes),
/// and their bytes must begin aligned in memory, as those of a [`Buffer`] do. Reads may have any range.
///
/// One that says nothing of writing, such as bytes in memory, refuses it.
pub(crate) trait File: Any + Send + Sync + fmt::Debug {
    fn name(&self) -> &str;
    /// 1 for a buffered file.
    fn align_bytes(&self) -> u64;
    fn len(&self) -> io::Result<u64>;
    /// Where the hole begins in which the file ends, as far as the system tells holes; else its length. What is
    /// behind it reads as zeros.
    fn data_end(&self) -> io::Result<u64> {
        self.len()
    }
    /// Where the next bytes at or behind `from` are that are in no hole, as far as the system tells holes: `from`
    /// itself where it does not, and the length if there are none.
    fn next_data(&self, from: u64) -> io::Result<u64> {
        Ok(from)
    }
    /// Fills `buf` from `offset` as far as the file reaches; the count is short only at its end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `buf`. Durable only after [`sync`](File::sync).
    fn write_all_at(&self, _offset: u64, _buf: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    /// Sets the length; what it adds reads as zeros. Durable only after `sync`.
    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    /// Reserves blocks for the first `len` bytes and makes the file at least that long.
    fn allocate(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    /// Makes all writes that had returned before this call durable, and the length. A failed sync is
    /// reported once and says nothing of the state of the disk: the caller must not try again.
    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
    /// Tells the kernel that the whole file will be read soon. A hint: never fails.
    fn will_read(&self) {}
    /// The descriptor, for a backend that hands it to the kernel; none where there is no kernel file.
    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}

/// A write to hand in. The buffer goes in by value, so nothing can free or change it under way.
#[derive(Debug)]
pub(crate) struct WriteOp {
    /// Comes back with the completion.
    pub(crate) tag: u64,
    pub(crate) file: Arc<dyn File>,
    pub(crate) offset: u64,
    pub(crate) buffer: Buffer,
    pub(crate) durability: Durability,
}

/// The one answer to a [`WriteOp`].
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) tag: u64,
    pub(crate) buffer: Buffer,
    /// `Ok`: every byte was written, and is as durable as was asked.
    pub(crate) result: io::Result<()>,
}

/// Most writes under way at once in one [`Queue`]: a group, and the seal of the segment before it.
pub(crate) const QUEUE_DEPTH: usize = 4;

/// Writes of one committer: handed in, carried out together, answered in any order, each exactly once.
///
/// Dropping a queue first waits for what is under way. A queue may move between threads but serves one
/// at a time.
pub(crate) trait Queue: Send + fmt::Debug {
    /// Hands in a write. It may start at once or in [`wait`](Queue::wait). Must not block on the disk
    /// where the backend can avoid it.
    ///
    /// # Panics
    /// If [`QUEUE_DEPTH`] writes are under way.
    fn submit(&mut self, op: WriteOp);
    /// Waits for one write to end.
    ///
    /// # Panics
    /// If none is under way.
    fn wait(&mut self) -> Completion;
    /// How many writes are under way.
    fn under_way(&self) -> usize;
}
