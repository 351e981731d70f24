//! A directory of the real file system.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file::{KernelFile, open_regular, stat_in};
use super::lock::DirLock;
use super::medium::{self, Medium};
use super::probe::{Refusal, try_io_uring};
use super::threads::ThreadsQueue;
use super::{Backend, BackendChoice, BackendInfo, DirEntry, Disk, EntryKind, File, Lock, OpenMode, Queue};

/// Opens the directory at `path`, which must exist, with the backend asked for.
///
/// [`BackendChoice::IoUring`] also overrides the list of file systems that io_uring is kept from.
pub(crate) fn open_dir(path: &Path, choice: BackendChoice) -> io::Result<Arc<dyn Disk>> {
    Ok(Arc::new(Directory::open(path, choice, try_io_uring)?))
}

/// Opens the directory at `path` to be read only: nothing is tried out in it, so that nothing is written to
/// its file system at all.
pub(crate) fn open_dir_to_read(path: &Path) -> io::Result<Arc<dyn Disk>> {
    let fd = open_fd(path)?;
    let physical_block_bytes = medium::block_bytes(fd.as_fd());
    let info = BackendInfo {
        backend: Backend::Threads,
        refused: None,
        direct: false,
        direct_align_bytes: 4096,
        physical_block_bytes,
    };
    let choice = BackendChoice::Threads;
    Ok(Arc::new(Directory { fd, info, choice, direct_align: None, locks: Mutex::default() }))
}

fn open_fd(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| fs::open(path, flags, Mode::empty()))?)
}

/// The directory, held open: what happens to its path later does not matter.
#[derive(Debug)]
struct Directory {
    fd: OwnedFd,
    info: BackendInfo,
    choice: BackendChoice,
    /// The alignment of direct I/O; none if there is none.
    direct_align: Option<usize>,
    /// The locks that were given out, for the rings to keep (see [`DirLock`]).
    locks: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Directory {
    fn open(
        path: &Path,
        choice: BackendChoice,
        try_io_uring: impl FnOnce() -> Result<(), Refusal>,
    ) -> io::Result<Directory> {
        let fd = open_fd(path)?;
        let refused = match choice {
            BackendChoice::Threads => None,
            BackendChoice::IoUring => try_io_uring().err(),
            BackendChoice::Auto => match medium::uring_denied(fd.as_fd())? {
                Some(reason) => Some(Refusal::FileSystem(reason)),
                None => try_io_uring().err(),
            },
        };
        if let (BackendChoice::IoUring, Some(refusal)) = (choice, &refused) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("io_uring is refused: {refusal}"),
            ));
        }
        let backend = match (choice, &refused) {
            (BackendChoice::Threads, _) | (_, Some(_)) => Backend::Threads,
            (_, None) => Backend::IoUring,
        };
        let Medium { direct_align, physical_block_bytes } = medium::examine(fd.as_fd());
        let info = BackendInfo {
            backend,
            refused: refused.map(|refusal| refusal.to_string()),
            direct: direct_align.is_some(),
            direct_align_bytes: direct_align.unwrap_or(4096),
            physical_block_bytes,
        };
        let direct_align = direct_align.map(usize::try_from).transpose().map_err(io::Error::other)?;
        Ok(Directory { fd, info, choice, direct_align, locks: Mutex::default() })
    }

    /// Lists one name; none if it is gone by now.
    fn entry(&self, name: &std::ffi::CStr) -> io::Result<Option<DirEntry>> {
        let stat = match stat_in(self.fd.as_fd(), name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // A name that is no text cannot be opened by its `String`, and is none of ours.
        let kind = if regular && name.to_str().is_ok() { EntryKind::File } else { EntryKind::Other };
        let len = u64::try_from(stat.st_size).map_err(io::Error::other)?;
        Ok(Some(DirEntry { name: name.to_string_lossy().into_owned(), kind, len }))
    }

    #[cfg(target_os = "linux")]
    fn uring_queue(&self) -> io::Result<Box<dyn Queue>> {
        let mut locks = self.locks.lock();
        locks.retain(|lock| lock.strong_count() > 0);
        let held: Vec<_> = locks.iter().filter_map(Weak::upgrade).collect();
        super::uring::open_queue(&held.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>())
    }
}

impl Disk for Directory {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn list(&self) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for name in Dir::read_from(&self.fd)? {
            let name = name?;
            if !matches!(name.file_name().to_bytes(), b"." | b"..") {
                entries.extend(self.entry(name.file_name())?);
            }
        }
        Ok(entries)
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        check_name(name)?;
        Ok(Arc::new(KernelFile::open(self.fd.as_fd(), name, mode, self.direct_align)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        Ok(fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    fn hard_link(&self, name: &str, to: &dyn Disk, to_name: &str) -> io::Result<()> {
        check_name(name)?;
        check_name(to_name)?;
        let to: &dyn Any = to;
        let Some(to) = to.downcast_ref::<Directory>() else {
            return Err(io::ErrorKind::CrossesDevices.into());
        };
        // A link to a link, a pipe or a directory is none to a file.
        drop(open_regular(self.fd.as_fd(), name, OFlags::RDONLY)?);
        Ok(fs::linkat(&self.fd, name, &to.fd, to_name, AtFlags::empty())?)
    }

    fn sync_dir(&self) -> io::Result<()> {
        match retry_on_intr(|| fs::fsync(&self.fd)) {
            // The file system has no such call, so it promises nothing by leaving it out either.
            Err(Errno::INVAL) => Ok(()),
            result => Ok(result?),
        }
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        check_name(name)?;
        let lock = DirLock::take(self.fd.as_fd(), name)?;
        self.locks.lock().push(Arc::downgrade(lock.fd()));
        Ok(Box::new(lock))
    }

    fn queue(&self) -> io::Result<Box<dyn Queue>> {
        #[cfg(target_os = "linux")]
        if self.info.backend == Backend::IoUring {
            match self.uring_queue() {
                Ok(queue) => return Ok(queue),
                Err(error) if self.choice == BackendChoice::IoUring => return Err(error),
                // The kernel ran out of something since the probe. The log goes on, slower.
                Err(_) => {}
            }
        }
        Ok(Box::new(ThreadsQueue::default()))
    }

    fn waiting_queue(&self) -> io::Result<Box<dyn Queue>> {
        // A thread that blocks anyway needs no ring: with many threads awake the kernel's workers behind a
        // ring wait for a processor twice in each durable write (docs/decisions/0002-group-commit.md).
        if self.choice == BackendChoice::IoUring {
            self.queue()
        } else {
            Ok(Box::new(ThreadsQueue::default()))
        }
    }
}

/// A name with a separator would leave the directory.
fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no file name")));
    }
    Ok(())
}
