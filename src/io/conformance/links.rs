//! Second names of files, and copies where there are none.

use std::io::ErrorKind;
use std::sync::Arc;

use super::super::{Backend, BackendChoice, Disk, Duplicated, OpenMode, copy, duplicate, open_dir, sim};
use super::fixture::Fixture;
use super::{CREATE, read_all};

pub(super) fn a_link_is_the_same_file(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    file.write_all_at(0, b"abc").unwrap();
    file.sync().unwrap();
    f.disk.sync_dir().unwrap();
    f.disk.hard_link("a", f.disk.as_ref(), "b").unwrap();
    file.write_all_at(3, b"def").unwrap();
    file.sync().unwrap();
    let linked = f.disk.open("b", OpenMode::Read).unwrap();
    assert_eq!((linked.name(), read_all(linked.as_ref())), ("b", b"abcdef".to_vec()));
    f.disk.sync_dir().unwrap();
    f.disk.remove("a").unwrap();
    f.disk.sync_dir().unwrap();
    assert_eq!((f.behind.bytes("a"), f.behind.durable_bytes("b")), (None, Some(b"abcdef".to_vec())));
    // The same again from a copy's side.
    assert_eq!(copy(f.disk.as_ref(), "b", f.disk.as_ref(), 4).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let (_guard, elsewhere) = elsewhere();
    assert_eq!(copy(f.disk.as_ref(), "b", elsewhere.as_ref(), 4).unwrap(), 4);
    assert_eq!(read_all(elsewhere.open("b", OpenMode::Read).unwrap().as_ref()), b"abcd");
}

/// A directory of the real file system, which is another one than the simulated.
fn elsewhere() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let guard = tempfile::tempdir().unwrap();
    let disk = open_dir(guard.path(), BackendChoice::Threads).unwrap();
    (guard, disk)
}

pub(super) fn what_cannot_be_linked_is_told(f: &Fixture) {
    f.behind.put_file("a", b"abc");
    f.behind.put_file("b", b"b");
    let link = |from: &str, to: &str| f.disk.hard_link(from, f.disk.as_ref(), to).map_err(|e| e.kind());
    assert_eq!(link("a", "b"), Err(ErrorKind::AlreadyExists));
    assert_eq!(link("absent", "c"), Err(ErrorKind::NotFound));
    for name in f.behind.put_others() {
        assert_eq!(link(name, "c"), Err(ErrorKind::InvalidInput), "{name}");
        assert_eq!(link("a", name), Err(ErrorKind::AlreadyExists), "{name}");
    }
    for name in ["", "..", "x/y"] {
        assert_eq!(link(name, "c"), Err(ErrorKind::InvalidInput));
        assert_eq!(link("a", name), Err(ErrorKind::InvalidInput));
    }
    assert_eq!(f.behind.bytes("b").unwrap(), b"b");
    let (_guard, elsewhere) = elsewhere();
    let simulated = sim::SimDisk::new(9).handle();
    assert_eq!(f.disk.hard_link("a", simulated.as_ref(), "a").unwrap_err().kind(), ErrorKind::CrossesDevices);
    let brought = duplicate(f.disk.as_ref(), "a", elsewhere.as_ref()).unwrap();
    let is_real = f.disk.info().backend != Backend::Simulated;
    assert!(matches!(brought, Duplicated::Linked) == is_real, "{brought:?}");
    assert_eq!(read_all(elsewhere.open("a", OpenMode::Read).unwrap().as_ref()), b"abc");
}
