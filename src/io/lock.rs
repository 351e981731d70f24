//! One owner per directory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{self as calls, Errno};
use rustix::process::{self, Pid};

use super::Lock;
use super::file::{open_regular, stat_in};
use super::transfer::{read_fully, write_fully};

/// How long to wait for a lock whose owner is dead.
const DEAD_OWNER_WAIT: Duration = Duration::from_secs(2);

/// A held `flock` on a file of the directory, with the owner's process id in it.
///
/// The kernel keeps it for as long as the open file lives, which may be longer than the process: a ring
/// that has the file registered (see `uring.rs`) keeps it until the last write of the dead process has
/// ended. That is meant: the next owner must not read a log that is still being written.
#[derive(Debug)]
pub(super) struct DirLock {
    fd: Arc<OwnedFd>,
}

impl DirLock {
    pub(super) fn take(dir: BorrowedFd<'_>, name: &str) -> io::Result<DirLock> {
        let mut pause = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        loop {
            // Opened anew each time, since the file may have been removed and made again.
            let fd = open_regular(dir, name, OFlags::RDWR | OFlags::CREATE)?;
            match fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_named(dir, name, fd.as_fd())? => {
                    record_owner(fd.as_fd());
                    return Ok(DirLock { fd: Arc::new(fd) });
                }
                // Locked, but no longer the file under the name, which another may have locked: again.
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let owner = read_owner(fd.as_fd())?;
                    let dead = owner.is_some_and(|pid| !is_alive(pid));
                    if !dead || waited >= DEAD_OWNER_WAIT {
                        return Err(held_by(name, owner, dead));
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
            if waited >= DEAD_OWNER_WAIT {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    format!("{name} keeps being replaced"),
                ));
            }
            wait(pause);
            waited += pause;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// The descriptor that carries the lock.
    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}

impl Lock for DirLock {}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Unlocked and not only closed: a forked child or a ring may have the open file too. Nothing can be
        // done about a failure, and closing lets go as well.
        fs::flock(&*self.fd, FlockOperation::Unlock).ok();
    }
}

fn wait(pause: Duration) {
    let pause = rustix::thread::Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
    // Interrupted, it is merely a shorter pause.
    let _ = rustix::thread::nanosleep(&pause);
}

/// Whether the locked file is still the one under its name.
fn is_named(dir: BorrowedFd<'_>, name: &str, fd: BorrowedFd<'_>) -> io::Result<bool> {
    let ours = fs::fstat(fd)?;
    match stat_in(dir, name) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes our process id, only now that the lock is ours.
fn record_owner(fd: BorrowedFd<'_>) {
    let line = format!("{}\n", process::getpid().as_raw_nonzero());
    let recorded = fs::ftruncate(fd, 0)
        .map_err(io::Error::from)
        .and_then(|()| write_fully(1, 0, line.as_bytes(), |offset, buf| calls::pwrite(fd, buf, offset)));
    // The id is a help to whoever is refused, and the lock holds without it: a full disk must not keep
    // anyone from opening the log to read it.
    drop(recorded);
}

fn read_owner(fd: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    let mut text = [0; 32];
    let len = || Ok(u64::try_from(fs::fstat(fd)?.st_size).unwrap_or(0));
    let count = read_fully(1, 0, &mut text, len, |offset, buf| calls::pread(fd, buf, offset))?;
    let text = str::from_utf8(&text[..count]).unwrap_or("");
    Ok(text.trim().parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw))
}

/// Whether a process runs. When in doubt it does: the answer decides about waiting, never about stealing.
fn is_alive(pid: Pid) -> bool {
    if process::test_kill_process(pid) == Err(Errno::SRCH) {
        return false;
    }
    // A killed process that its parent has not collected yet still answers to its id.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with(['Z', 'X'])
}

fn held_by(name: &str, owner: Option<Pid>, dead: bool) -> io::Error {
    let text = match owner {
        None => format!("{name} is locked, by a process that left no id"),
        Some(pid) if dead => format!(
            "{name} is locked; process {} in it has ended, yet its lock stays: its writes have not ended, a child \
             of it has the lock, or it runs in another container",
            pid.as_raw_nonzero()
        ),
        Some(pid) => format!("{name} is locked by process {}", pid.as_raw_nonzero()),
    };
    io::Error::new(io::ErrorKind::WouldBlock, text)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read_to_string, write};
    use std::process::Command;

    use super::*;

    /// A process that has ended and was collected.
    fn dead_pid() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn iu_16_a_lock_that_outlives_its_owner_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let dir_fd = File::open(dir.path()).unwrap();
        let path = dir.path().join("LOCK");
        for content in [dead_pid().to_string(), format!("{}\n", dead_pid())] {
            let held = DirLock::take(dir_fd.as_fd(), "LOCK").unwrap();
            write(&path, content).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    wait(Duration::from_millis(300));
                    drop(held);
                });
                DirLock::take(dir_fd.as_fd(), "LOCK").unwrap();
            });
            assert_eq!(read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        }
    }

    #[test]
    fn iu_16_it_is_not_waited_for_without_end_and_never_stolen() {
        let dir = tempfile::tempdir().unwrap();
        let dir_fd = File::open(dir.path()).unwrap();
        let path = dir.path().join("LOCK");
        let _held = DirLock::take(dir_fd.as_fd(), "LOCK").unwrap();
        for (content, text) in [
            (dead_pid().to_string(), "has ended"),
            (std::process::id().to_string(), "locked by process"),
            ("1".to_owned(), "locked by process 1"),
            (String::new(), "left no id"),
            ("-7 nonsense".to_owned(), "left no id"),
            ("\u{fffd}".to_owned(), "left no id"),
        ] {
            write(&path, &content).unwrap();
            let error = DirLock::take(dir_fd.as_fd(), "LOCK").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            assert!(error.to_string().contains(text), "{content:?}: {error}");
            assert_eq!(read_to_string(&path).unwrap(), content, "only the owner writes into the file");
        }
    }

    #[test]
    fn lk_01_a_lock_on_a_file_that_was_replaced_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let dir_fd = File::open(dir.path()).unwrap();
        let fd = open_regular(dir_fd.as_fd(), "LOCK", OFlags::RDWR | OFlags::CREATE).unwrap();
        assert!(is_named(dir_fd.as_fd(), "LOCK", fd.as_fd()).unwrap());
        std::fs::remove_file(dir.path().join("LOCK")).unwrap();
        assert!(!is_named(dir_fd.as_fd(), "LOCK", fd.as_fd()).unwrap());
        File::create(dir.path().join("LOCK")).unwrap();
        assert!(!is_named(dir_fd.as_fd(), "LOCK", fd.as_fd()).unwrap());
    }

    #[test]
    fn a_killed_process_is_dead_before_its_parent_collects_it() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(is_alive(pid));
        child.kill().unwrap();
        let seen_dead = (0..1000).any(|_| {
            wait(Duration::from_millis(5));
            !is_alive(pid)
        });
        child.wait().unwrap();
        assert!(seen_dead);
    }
}
