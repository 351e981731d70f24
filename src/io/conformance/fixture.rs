//! The disks that the suite runs on, and a way past each of them to what it keeps.

use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};

use super::super::sim::{CrashImage, SimDisk};
use super::super::{BackendChoice, Disk, open_dir};

/// A disk to test, and what stands behind it.
pub(super) struct Fixture {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) behind: Box<dyn Behind>,
}

/// The directory of a disk, not by way of the disk.
pub(super) trait Behind {
    /// Makes a file of these bytes.
    fn put_file(&self, name: &str, bytes: &[u8]);
    /// Makes entries that are no regular files, of every kind there is, and names them. Links lead to `a` and
    /// to `nowhere`.
    fn put_others(&self) -> Vec<&'static str>;
    /// What is in the file; none if there is no such name.
    fn bytes(&self, name: &str) -> Option<Vec<u8>>;
    /// The same after a power cut that keeps no more than it has to. Real disks are spared that: theirs is
    /// what [`bytes`](Behind::bytes) tells.
    fn durable_bytes(&self, name: &str) -> Option<Vec<u8>>;
    /// Other handles and names for the lock file `lock`, as others may have them.
    fn other_ways_to(&self, lock: &str) -> Vec<(Arc<dyn Disk>, String)>;
    /// Asserts that a refused lock names the owner of the fixture's disk.
    fn check_owner(&self, lock: &str, refusal: &io::Error);
}

/// A fresh directory of the real file system; none where the kernel refuses io_uring.
pub(super) fn real(choice: BackendChoice) -> Option<Fixture> {
    let guard = tempfile::tempdir().unwrap();
    match open_dir(guard.path(), choice) {
        Ok(disk) => Some(Fixture { disk, behind: Box::new(guard) }),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A fresh simulated disk, as its first process has it.
#[expect(clippy::unnecessary_wraps, reason = "the suite takes what `real` gives")]
pub(super) fn simulated(direct_align_bytes: Option<u32>) -> Option<Fixture> {
    let disk = SimDisk::new(1);
    disk.set_direct_align_bytes(direct_align_bytes);
    Some(Fixture { disk: disk.handle(), behind: Box::new(disk) })
}

impl Behind for tempfile::TempDir {
    fn put_file(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    fn put_others(&self) -> Vec<&'static str> {
        let path = |name| self.path().join(name);
        symlink("a", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        let dir = rustix::fs::open(self.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        rustix::fs::mknodat(&dir, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
        // The name stays when the socket is closed.
        UnixListener::bind(path("socket")).unwrap();
        vec!["link", "dangling", "directory", "pipe", "socket"]
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        match std::fs::read(self.path().join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            bytes => Some(bytes.unwrap()),
        }
    }

    fn durable_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.bytes(name)
    }

    fn other_ways_to(&self, lock: &str) -> Vec<(Arc<dyn Disk>, String)> {
        let open = |path| open_dir(path, BackendChoice::Threads).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let linked = elsewhere.path().join("linked");
        symlink(self.path(), &linked).unwrap();
        std::fs::hard_link(self.path().join(lock), self.path().join("hard")).unwrap();
        vec![
            (open(self.path()), lock.to_owned()),
            (open(self.path()), "hard".to_owned()),
            (open(&linked), lock.to_owned()),
        ]
    }

    fn check_owner(&self, lock: &str, refusal: &io::Error) {
        let pid = std::process::id().to_string();
        assert!(refusal.to_string().contains(&pid), "{refusal}");
        assert_eq!(String::from_utf8(self.bytes(lock).unwrap()).unwrap().trim(), pid);
    }
}

impl Behind for SimDisk {
    fn put_file(&self, name: &str, bytes: &[u8]) {
        self.write_file(name, bytes);
    }

    fn put_others(&self) -> Vec<&'static str> {
        self.put_other("other");
        vec!["other"]
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.read_file(name)
    }

    fn durable_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.fork(CrashImage::DropUnsynced).read_file(name)
    }

    fn other_ways_to(&self, lock: &str) -> Vec<(Arc<dyn Disk>, String)> {
        vec![(self.handle(), lock.to_owned())]
    }

    fn check_owner(&self, _lock: &str, refusal: &io::Error) {
        assert!(refusal.to_string().ends_with("process 1"), "{refusal}");
    }
}
