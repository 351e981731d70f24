//! A regular file of the real file system.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{self, Advice, AtFlags, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::{self as calls, Errno, retry_on_intr};

use super::transfer::{read_fully, write_fully};
use super::{Buffer, File, OpenMode};

/// Who may read what the log writes: its owner and its group. It holds the clients' data.
pub(super) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP);

/// How much an unaligned read of a direct file takes at once.
const BOUNCE_BYTES: usize = 256 * 1024;

/// An open regular file.
#[derive(Debug)]
pub(super) struct KernelFile {
    name: String,
    fd: OwnedFd,
    /// 1 if the file goes through the page cache.
    align: usize,
}

impl KernelFile {
    /// Opens `name` in `dir`. `direct_align` is the alignment of direct I/O there, none if there is none.
    pub(super) fn open(
        dir: BorrowedFd<'_>,
        name: &str,
        mode: OpenMode,
        direct_align: Option<usize>,
    ) -> io::Result<KernelFile> {
        let (flags, direct) = match mode {
            OpenMode::Read => (OFlags::RDONLY, false),
            OpenMode::Write { direct } => (OFlags::RDWR, direct),
            OpenMode::CreateNew { direct } => (OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, direct),
        };
        let fd = open_regular(dir, name, flags)?;
        let align = match direct_align.filter(|_| direct) {
            Some(align) if go_direct(fd.as_fd())? => align,
            _ => 1,
        };
        Ok(KernelFile { name: name.to_owned(), fd, align })
    }

    fn aligned(&self, offset: u64, buf: &[u8]) -> bool {
        offset.is_multiple_of(self.align as u64)
            && buf.len().is_multiple_of(self.align)
            && buf.as_ptr().addr().is_multiple_of(self.align.min(Buffer::ALIGN))
    }

    fn read_aligned(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let pread = |offset, buf: &mut [u8]| calls::pread(&self.fd, buf, offset);
        read_fully(self.align, offset, buf, || self.len(), pread)
    }

    /// Reads any range of a direct file, by way of aligned pieces.
    fn read_bounced(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut bounce = Buffer::with_capacity(BOUNCE_BYTES.max(2 * self.align));
        let mut done = 0;
        while done < buf.len() {
            let from = offset + done as u64;
            let skip = usize::try_from(from % self.align as u64).expect("less than the alignment");
            let want = (skip + buf.len() - done).min(BOUNCE_BYTES).next_multiple_of(self.align);
            bounce.resize_zeroed(want);
            let got = self.read_aligned(from - skip as u64, bounce.as_mut_slice())?;
            let count = got.saturating_sub(skip).min(buf.len() - done);
            buf[done..done + count].copy_from_slice(&bounce.as_slice()[skip..skip + count]);
            done += count;
            if got < want {
                break;
            }
        }
        Ok(done)
    }
}

impl File for KernelFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn align_bytes(&self) -> u64 {
        self.align as u64
    }

    fn len(&self) -> io::Result<u64> {
        let stat = fs::fstat(&self.fd)?;
        u64::try_from(stat.st_size).map_err(io::Error::other)
    }

    #[cfg(target_os = "linux")]
    fn data_end(&self) -> io::Result<u64> {
        let stat = fs::fstat(&self.fd)?;
        let len = u64::try_from(stat.st_size).map_err(io::Error::other)?;
        // Nearly all files have blocks for all of their bytes, and no hole.
        let blocks = u64::try_from(stat.st_blocks).map_err(io::Error::other)?;
        if blocks.saturating_mul(512) >= len {
            return Ok(len);
        }
        let mut end = 0;
        while end < len {
            // This moves the file's position, which nothing depends on.
            let seek = |from| retry_on_intr(|| fs::seek(&self.fd, from));
            match seek(fs::SeekFrom::Data(end)).and_then(|data| seek(fs::SeekFrom::Hole(data))) {
                Ok(hole) => end = hole,
                Err(Errno::NXIO) => return Ok(end),
                // This file system does not tell.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(len),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(len)
    }

    #[cfg(target_os = "linux")]
    fn next_data(&self, from: u64) -> io::Result<u64> {
        match retry_on_intr(|| fs::seek(&self.fd, fs::SeekFrom::Data(from))) {
            Ok(data) => Ok(data),
            Err(Errno::NXIO) => self.len(),
            // This file system does not tell.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(from),
            Err(errno) => Err(errno.into()),
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        if self.aligned(offset, buf) {
            self.read_aligned(offset, buf)
        } else {
            self.read_bounced(offset, buf)
        }
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        assert!(
            self.aligned(offset, buf),
            "{} bytes at {offset} of the direct file {}",
            buf.len(),
            self.name
        );
        write_fully(self.align, offset, buf, |offset, buf| calls::pwrite(&self.fd, buf, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::ftruncate(&self.fd, len))?)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len)) {
            // No reservation on this file system: the length is all that can be had.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.len()? < len => self.set_len(len),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        // Only an interrupted one is repeated: the kernel reports a write error before an interruption, so
        // there was none. Any other failure may have taken the error, and the pages, with it.
        Ok(retry_on_intr(|| fs::fdatasync(&self.fd))?)
    }

    fn will_read(&self) {
        for advice in [Advice::Sequential, Advice::WillNeed] {
            // A hint: where it is not understood, reads are merely slower.
            fs::fadvise(&self.fd, 0, None, advice).ok();
        }
    }

    fn raw_fd(&self) -> Option<RawFd> {
        Some(self.fd.as_raw_fd())
    }
}

/// Opens what must be a regular file, without following a link and without blocking on a pipe.
pub(super) fn open_regular(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match retry_on_intr(|| fs::openat(dir, name, flags, FILE_MODE)) {
        Ok(fd) => fd,
        // The answers of a link, a directory, a socket and a device. A new file can meet none of them.
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO | Errno::NODEV) => return Err(not_regular(name)),
        Err(errno) => return Err(errno.into()),
    };
    if FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) != FileType::RegularFile {
        return Err(not_regular(name));
    }
    // It was only for the open. Left on, io_uring would answer EAGAIN instead of waiting on file systems
    // that cannot write without blocking.
    fs::fcntl_setfl(&fd, OFlags::empty())?;
    Ok(fd)
}

fn not_regular(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no regular file"))
}

/// Takes an open file past the page cache; false if the file system does not offer it.
///
/// After the open and not with it: an open that is refused for `O_DIRECT` may have created the file already.
pub(super) fn go_direct(fd: BorrowedFd<'_>) -> io::Result<bool> {
    match fs::fcntl_setfl(fd, OFlags::DIRECT) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// What stands under `name`, a link unfollowed.
pub(super) fn stat_in(dir: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<fs::Stat, Errno> {
    fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}
