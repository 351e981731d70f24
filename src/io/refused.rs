//! Tests that take system calls away, as containers, old kernels and failing disks do, and that kill a
//! process under way.

use std::io::{BufRead, BufReader, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::io::Errno;

use super::{Backend, BackendChoice, Buffer, Disk, Durability, File, OpenMode, WriteOp, open_dir};

const SETUP: (i64, &str) = (libc::SYS_io_uring_setup, "io_uring_setup");
const ENTER: (i64, &str) = (libc::SYS_io_uring_enter, "io_uring_enter");
const REGISTER: (i64, &str) = (libc::SYS_io_uring_register, "io_uring_register");

/// Lets every call named `number` of this thread, and of no other, fail with `errno`, for good.
fn refuse(number: i64, errno: Errno) {
    let number = u32::try_from(number).unwrap();
    let answer = libc::SECCOMP_RET_ERRNO | u32::try_from(errno.raw_os_error()).unwrap();
    let statement = |code: u32, k| libc::sock_filter { code: u16::try_from(code).unwrap(), jt: 0, jf: 0, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number) },
        statement(libc::BPF_RET | libc::BPF_K, answer),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program during the call, and the program only makes calls fail.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}

/// Runs `test` in a thread of its own, which takes its filters with it when it ends.
fn apart(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().unwrap());
}

fn write_once(disk: &Arc<dyn Disk>) -> std::io::Result<()> {
    let file = disk.open("a", OpenMode::CreateNew { direct: false })?;
    let mut buffer = Buffer::with_capacity(3);
    buffer.extend(b"abc");
    let mut queue = disk.queue()?;
    queue.submit(WriteOp { tag: 1, file, offset: 0, buffer, durability: Durability::ThenSync });
    queue.wait().result
}

/// Whether there is an io_uring to take away.
fn offered() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let offered = open_dir(dir.path(), BackendChoice::IoUring).is_ok();
    if !offered {
        println!("skipped: io_uring is refused here already");
    }
    offered
}

#[test]
fn iu_07_iu_15_refused_calls_lead_to_threads_and_are_named() {
    if !offered() {
        return;
    }
    for (number, call) in [SETUP, ENTER, REGISTER] {
        for (errno, name) in [
            (Errno::PERM, "EPERM"),
            (Errno::ACCESS, "EACCES"),
            (Errno::NOSYS, "ENOSYS"),
            (Errno::OPNOTSUPP, "EOPNOTSUPP"),
            (Errno::INVAL, "EINVAL"),
            (Errno::NOMEM, "ENOMEM"),
            (Errno::MFILE, "EMFILE"),
        ] {
            apart(|| {
                refuse(number, errno);
                let dir = tempfile::tempdir().unwrap();
                let disk = open_dir(dir.path(), BackendChoice::Auto).unwrap();
                let info = disk.info();
                assert_eq!(info.backend, Backend::Threads);
                let refused = info.refused.as_deref().unwrap();
                assert!(refused.starts_with(&format!("{call}: {name}: ")), "{refused}");
                write_once(&disk).unwrap();
                let error = open_dir(dir.path(), BackendChoice::IoUring).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains(refused), "{error}");
            });
        }
    }
}

#[test]
fn iu_07_a_ring_refused_after_the_probe_leads_to_threads() {
    if !offered() {
        return;
    }
    for (number, _) in [SETUP, REGISTER] {
        for choice in [BackendChoice::Auto, BackendChoice::IoUring] {
            apart(|| {
                let dir = tempfile::tempdir().unwrap();
                let disk = open_dir(dir.path(), choice).unwrap();
                let _lock = disk.lock("LOCK").unwrap();
                refuse(number, Errno::MFILE);
                let written = write_once(&disk);
                match choice {
                    BackendChoice::Auto => written.unwrap(),
                    _ => assert_eq!(written.unwrap_err().raw_os_error(), Some(Errno::MFILE.raw_os_error())),
                }
            });
        }
    }
}

#[test]
fn iu_07_a_ring_that_is_refused_in_use_fails_the_write_and_does_not_hang() {
    if !offered() {
        return;
    }
    apart(|| {
        let dir = tempfile::tempdir().unwrap();
        let disk = open_dir(dir.path(), BackendChoice::IoUring).unwrap();
        refuse(ENTER.0, Errno::PERM);
        // The probe ran before; the queue's ring opens, and then nothing goes in.
        assert_eq!(write_once(&disk).unwrap_err().raw_os_error(), Some(Errno::PERM.raw_os_error()));
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"");
    });
}

/// Runs `test` with a disk on threads and a file, in a thread whose calls `refused` fail.
fn with_refused(refused: &[(i64, Errno)], test: impl FnOnce(&Arc<dyn Disk>, Arc<dyn File>) + Send) {
    apart(|| {
        let dir = tempfile::tempdir().unwrap();
        let disk = open_dir(dir.path(), BackendChoice::Threads).unwrap();
        let file = disk.open("a", OpenMode::CreateNew { direct: false }).unwrap();
        for (number, errno) in refused {
            refuse(*number, *errno);
        }
        test(&disk, file);
    });
}

/// Writes three bytes on threads and returns how it went.
fn write_on_threads(disk: &Arc<dyn Disk>, file: Arc<dyn File>, durability: Durability) -> Option<i32> {
    let mut buffer = Buffer::with_capacity(3);
    buffer.extend(b"abc");
    let mut queue = disk.queue().unwrap();
    queue.submit(WriteOp { tag: 1, file, offset: 0, buffer, durability });
    queue.wait().result.err().map(|error| error.raw_os_error().unwrap())
}

#[test]
fn writes_on_threads_are_synced_as_asked() {
    let io = Errno::IO.raw_os_error();
    let sync_fails = (libc::SYS_fdatasync, Errno::IO);
    let dsync_fails = (libc::SYS_pwritev2, Errno::IO);
    for (durability, refused, expected) in [
        (Durability::ThenSync, vec![sync_fails], Some(io)),
        (Durability::ThenSync, vec![dsync_fails], None),
        (Durability::None, vec![sync_fails, dsync_fails], None),
        (Durability::Dsync, vec![dsync_fails], Some(io)),
        (Durability::Dsync, vec![sync_fails], None),
    ] {
        with_refused(&refused, |disk, file| {
            assert_eq!(write_on_threads(disk, file, durability), expected, "{durability:?} {refused:?}");
        });
    }
}

#[test]
fn a_kernel_without_durable_writes_is_given_a_write_and_a_sync() {
    for unknown in [Errno::NOSYS, Errno::OPNOTSUPP] {
        let no_dsync = (libc::SYS_pwritev2, unknown);
        with_refused(&[no_dsync], |disk, file| {
            assert_eq!(write_on_threads(disk, Arc::clone(&file), Durability::Dsync), None);
            let mut bytes = [0; 4];
            assert_eq!((file.read_at(0, &mut bytes).unwrap(), &bytes), (3, b"abc\0"));
        });
        with_refused(&[no_dsync, (libc::SYS_fdatasync, Errno::IO)], |disk, file| {
            assert_eq!(write_on_threads(disk, file, Durability::Dsync), Some(Errno::IO.raw_os_error()));
        });
    }
}

#[test]
fn fs_05_a_failed_directory_sync_is_an_error_and_a_missing_one_is_not() {
    with_refused(&[(libc::SYS_fsync, Errno::IO)], |disk, _| {
        assert_eq!(disk.sync_dir().unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    });
    with_refused(&[(libc::SYS_fsync, Errno::INVAL)], |disk, _| disk.sync_dir().unwrap());
}

#[test]
fn room_that_cannot_be_reserved_is_still_length() {
    with_refused(&[(libc::SYS_fallocate, Errno::OPNOTSUPP)], |_, file| {
        file.allocate(5000).unwrap();
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 5000);
    });
    with_refused(&[(libc::SYS_fallocate, Errno::NOSPC)], |_, file| {
        assert_eq!(file.allocate(5000).unwrap_err().kind(), ErrorKind::StorageFull);
    });
}

#[test]
fn iu_16_a_ring_keeps_the_lock_of_a_directory_whose_owner_is_gone() {
    use rustix::fs::{FlockOperation, flock};
    if !offered() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let open = || std::fs::File::create(dir.path().join("LOCK")).unwrap();
    let owner = open();
    flock(&owner, FlockOperation::NonBlockingLockExclusive).unwrap();
    let queue = super::uring::open_queue(&[owner.as_raw_fd()]).unwrap();
    // As the kernel does for a dead process: closed, not unlocked.
    drop(owner);
    assert_eq!(flock(open(), FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    drop(queue);
    // The ring is torn down in its own time.
    flock(open(), FlockOperation::LockExclusive).unwrap();
}

const CHILD: &str = "ARBORLOG_TEST_KILLED_WRITER";
const PIECE: usize = 256 * 1024;

/// Holds the lock and writes without end, four pieces at a time.
fn write_until_killed(dir: &Path) {
    let disk = open_dir(dir, BackendChoice::Auto).unwrap();
    let _lock = disk.lock("LOCK").unwrap();
    let name = format!("{}", std::process::id());
    let file = disk.open(&name, OpenMode::CreateNew { direct: true }).unwrap();
    let mut queue = disk.queue().unwrap();
    for round in 0u64.. {
        while queue.under_way() == super::QUEUE_DEPTH {
            queue.wait().result.unwrap();
        }
        let mut buffer = Buffer::with_capacity(PIECE);
        buffer.resize_zeroed(PIECE);
        buffer.as_mut_slice().fill(round.to_le_bytes()[0]);
        let offset = round % 8 * PIECE as u64;
        let durability = Durability::Dsync;
        // One that would overlap a write under way is waited for: there are half as many as places.
        while queue.under_way() > 0 && round % 4 == 0 {
            queue.wait().result.unwrap();
        }
        queue.submit(WriteOp { tag: round, file: Arc::clone(&file), offset, buffer, durability });
        if round == 16 {
            println!("writing {name}");
        }
    }
}

#[test]
fn iu_16_a_killed_writer_leaves_the_lock_once_its_last_write_has_ended() {
    if let Some(dir) = std::env::var_os(CHILD) {
        write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let disk = open_dir(dir.path(), BackendChoice::Threads).unwrap();
    let name = "io::refused::iu_16_a_killed_writer_leaves_the_lock_once_its_last_write_has_ended";
    for _ in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains("writing ")).expect("it writes");
        let file = line.rsplit(' ').next().unwrap().to_owned();
        assert_eq!(disk.lock("LOCK").unwrap_err().kind(), ErrorKind::WouldBlock);
        child.kill().unwrap();
        // At once, even before the dead process is collected. A living one answers WouldBlock: until the
        // signal has arrived it does live.
        let lock = loop {
            match disk.lock("LOCK") {
                Ok(lock) => break lock,
                Err(error) if error.to_string().contains("locked by process") => {}
                Err(error) => panic!("{error}"),
            }
        };
        let before = std::fs::read(dir.path().join(&file)).unwrap();
        // Interrupted, the test merely sees less.
        let _ = rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 0, tv_nsec: 50_000_000 });
        assert!(std::fs::read(dir.path().join(&file)).unwrap() == before, "a write of the dead came later");
        drop(lock);
        child.wait().unwrap();
    }
}
