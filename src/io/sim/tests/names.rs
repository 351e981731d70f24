//! The directory: what is durable when.

use std::io::ErrorKind;

use super::*;

fn names_after(disk: &SimDisk) -> BTreeSet<Vec<String>> {
    outcomes(disk, SimDisk::names)
}

fn sets(expected: &[&[&str]]) -> BTreeSet<Vec<String>> {
    expected.iter().map(|names| names.iter().map(ToString::to_string).collect()).collect()
}

#[test]
fn a_synced_file_without_a_synced_name_is_lost() {
    let (disk, handle) = disk();
    let file = handle.open("f", NEW).unwrap();
    file.write_all_at(0, b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced), None);
    handle.sync_dir().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), b"x");
}

#[test]
fn a_synced_name_without_a_synced_file_is_empty() {
    let (disk, handle) = disk();
    let file = handle.open("f", NEW).unwrap();
    file.write_all_at(0, b"x").unwrap();
    handle.sync_dir().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), b"");
}

#[test]
fn a_removal_comes_back_unless_synced() {
    let (disk, handle) = disk();
    disk.write_file("f", b"x");
    handle.remove("f").unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), b"x");
    assert_eq!(names_after(&disk), sets(&[&[], &["f"]]));
    handle.sync_dir().unwrap();
    assert_eq!(names_after(&disk), sets(&[&[]]));
}

#[test]
fn a_rename_shows_both_names_changed_or_neither() {
    let (disk, handle) = disk();
    disk.write_file("f", b"old");
    disk.write_file("f.tmp", b"new");
    handle.rename("f.tmp", "f").unwrap();
    let read = |image: &SimDisk| (image.read_file("f"), image.read_file("f.tmp"));
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    assert_eq!(read(&disk), (new.clone(), None));
    assert_eq!(outcomes(&disk, read), BTreeSet::from([(old, new.clone()), (new.clone(), None)]));
    handle.sync_dir().unwrap();
    assert_eq!(outcomes(&disk, read), BTreeSet::from([(new, None)]));
}

#[test]
fn steps_on_different_names_are_kept_in_any_combination() {
    let (disk, handle) = disk();
    for name in ["a", "b", "c"] {
        handle.open(name, NEW).unwrap();
    }
    assert_eq!(names_after(&disk).len(), 8);
}

#[test]
fn steps_on_one_name_are_kept_in_their_order() {
    let (disk, handle) = disk();
    handle.open("a.tmp", NEW).unwrap();
    handle.rename("a.tmp", "a").unwrap();
    handle.rename("a", "b").unwrap();
    assert_eq!(names_after(&disk), sets(&[&[], &["a.tmp"], &["a"], &["b"]]));
}

#[test]
fn a_file_lives_while_it_is_open_and_no_longer() {
    let (disk, handle) = disk();
    disk.set_space_bytes(Some(4096));
    let file = handle.open("f", NEW).unwrap();
    file.write_all_at(0, &[1; 4096]).unwrap();
    handle.remove("f").unwrap();
    handle.sync_dir().unwrap();
    let mut byte = [0];
    assert_eq!((file.read_at(4095, &mut byte).unwrap(), byte), (1, [1]));
    let other = handle.open("g", NEW).unwrap();
    assert_eq!(other.write_all_at(0, b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    drop(file);
    other.write_all_at(0, b"x").unwrap();
}

#[test]
fn refusals_have_their_kinds() {
    let (disk, handle) = disk();
    disk.put_other("pipe");
    disk.write_file("f", b"");
    let open = |name, mode| handle.open(name, mode).unwrap_err().kind();
    assert_eq!(open("f", NEW), ErrorKind::AlreadyExists);
    assert_eq!(open("pipe", NEW), ErrorKind::AlreadyExists);
    assert_eq!(open("pipe", OpenMode::Read), ErrorKind::InvalidInput);
    assert_eq!(open("a/b", NEW), ErrorKind::InvalidInput);
    assert_eq!(open("none", WRITE), ErrorKind::NotFound);
    assert_eq!(handle.rename("none", "f").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.remove("none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.lock("pipe").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(handle.open("f", OpenMode::Read).unwrap().write_all_at(0, b"x").is_err());

    let _held = handle.lock("LOCK").unwrap();
    let refused = disk.handle().lock("LOCK").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("process 1"), "{refused}");
}

#[test]
fn a_failed_directory_sync_may_lose_its_steps_for_good() {
    use crate::io::sim::{Effect, Fault, FaultOp};
    let (disk, handle) = disk();
    handle.open("f", NEW).unwrap();
    disk.inject(Fault::next(FaultOp::SyncDir, Effect::SyncFailsAndDropsPages));
    assert!(handle.sync_dir().is_err());
    handle.open("g", NEW).unwrap();
    handle.sync_dir().unwrap();
    assert_eq!(disk.names(), ["f", "g"]);
    assert_eq!(names_after(&disk), sets(&[&["g"]]));
}
