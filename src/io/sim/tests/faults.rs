//! Calls that go wrong by rule, and a disk that is full.

use std::io::ErrorKind;

use super::*;
use crate::io::sim::{Effect, Fault, FaultOp, NamePattern};

const DROP: Fault = Fault {
    op: FaultOp::Sync,
    name: NamePattern::Any,
    nth: 1,
    times: 1,
    effect: Effect::SyncFailsAndDropsPages,
};

#[test]
fn fs_01_a_later_sync_does_not_bring_dropped_pages_back() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_all_at(0, &[2; 1024]).unwrap();
    disk.inject(DROP);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [2; 1024], "reads still show the bytes");
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 1024]);
    assert_eq!(after(&disk, CrashImage::KeepAll).unwrap(), [1; 1024], "no image has them");

    file.write_all_at(0, &[2; 512]).unwrap();
    file.sync().unwrap();
    let expected = [[2; 512], [1; 512]].concat();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), expected, "written again they are durable");
}

#[test]
fn a_sync_that_follows_a_write_can_drop_its_bytes_too() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 512]);
    let file = handle.open("f", WRITE).unwrap();
    disk.inject(DROP);
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, &[2; 512], Durability::ThenSync));
    assert!(queue.wait().result.is_err());
    file.sync().unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [2; 512]);
    assert_eq!(after(&disk, CrashImage::KeepAll).unwrap(), [1; 512]);
}

#[test]
fn a_plainly_failed_sync_leaves_its_pages_dirty_and_a_lying_one_makes_nothing_durable() {
    let (disk, file) = disk_with(&[1; 10]);
    file.write_all_at(0, &[2; 10]).unwrap();
    disk.inject(Fault::next(FaultOp::Sync, Effect::EIO));
    disk.inject(Fault::next(FaultOp::Sync, Effect::LostWrite).nth(2));
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 10]);
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [2; 10]);
}

#[test]
fn rules_count_only_what_they_match() {
    let (disk, handle) = disk();
    let fault = Fault::next(FaultOp::Create, Effect::ENOSPC).nth(2).times(2);
    disk.inject(fault.on(NamePattern::Suffix(".log".into())));
    disk.inject(Fault::next(FaultOp::Create, Effect::EIO).on(NamePattern::Exact("x".into())).times(u64::MAX));
    let mut create = |name: &str| handle.open(name, NEW).map_err(|error| error.kind()).err();
    assert_eq!(
        ["a.log", "b", "c.log", "d.log", "e.log"].map(&mut create),
        [None, None, Some(ErrorKind::StorageFull), Some(ErrorKind::StorageFull), None]
    );
    assert!(create("x").is_some() && create("x").is_some());
    assert_eq!(disk.fault_hits(), 4);
    disk.clear_faults();
    assert_eq!(create("x"), None);
    assert_eq!(disk.names(), ["a.log", "b", "e.log", "x"], "what failed did nothing");
}

#[test]
fn every_call_can_fail_and_then_does_nothing() {
    let (disk, handle) = disk();
    disk.write_file("f", b"abc");
    let file = handle.open("f", WRITE).unwrap();
    let calls: [(FaultOp, &dyn Fn() -> bool); 12] = [
        (FaultOp::Create, &|| handle.open("new", NEW).is_ok()),
        (FaultOp::Open, &|| handle.open("f", OpenMode::Read).is_ok()),
        (FaultOp::Read, &|| file.read_at(0, &mut [0]).is_ok()),
        (FaultOp::Write, &|| file.write_all_at(0, b"x").is_ok()),
        (FaultOp::Sync, &|| file.sync().is_ok()),
        (FaultOp::SyncDir, &|| handle.sync_dir().is_ok()),
        (FaultOp::Rename, &|| handle.rename("f", "g").is_ok()),
        (FaultOp::Remove, &|| handle.remove("f").is_ok()),
        (FaultOp::SetLen, &|| file.set_len(1).is_ok()),
        (FaultOp::Allocate, &|| file.allocate(100).is_ok()),
        (FaultOp::List, &|| handle.list().is_ok()),
        (FaultOp::Lock, &|| handle.lock("LOCK").is_ok()),
    ];
    let before = disk.snapshot_bytes();
    for (op, call) in calls {
        disk.inject(Fault::next(op, Effect::EIO));
        assert!(!call(), "{op:?}");
        assert_eq!(disk.snapshot_bytes(), before, "{op:?}");
    }
    assert_eq!(disk.fault_hits(), 12);
    for (op, call) in calls.iter().filter(|(op, _)| Effect::LostWrite.fits(*op)) {
        disk.inject(Fault::next(*op, Effect::LostWrite));
        assert!(call(), "{op:?}");
        assert_eq!(disk.snapshot_bytes(), before, "{op:?} claims success");
    }
}

#[test]
fn a_short_write_lands_in_part_and_is_not_durable() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 10]);
    let file = handle.open("f", WRITE).unwrap();
    disk.inject(Fault::next(FaultOp::Write, Effect::ShortThenError { bytes: 4, errno: 28 }));
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, &[2; 10], Durability::Dsync));
    assert_eq!(queue.wait().result.unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.read_file("f").unwrap(), [2, 2, 2, 2, 1, 1, 1, 1, 1, 1]);
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 10]);
}

#[test]
fn bits_flip_on_the_way_out_and_on_the_way_in() {
    let (disk, file) = disk_with(&[0; 8]);
    disk.inject(Fault::next(FaultOp::Read, Effect::FlipBit { offset: 11 }));
    let mut bytes = [0; 8];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0x10, 0, 0, 0, 0]);
    assert_eq!(disk.read_file("f").unwrap(), [0; 8]);
    disk.inject(Fault::next(FaultOp::Write, Effect::FlipBit { offset: 1 }));
    file.write_all_at(0, &[0; 8]).unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [0, 0x10, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn writes_go_missing_and_astray() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 10]);
    let file = handle.open("f", WRITE).unwrap();
    disk.inject(Fault::next(FaultOp::Write, Effect::LostWrite));
    disk.inject(Fault::next(FaultOp::Write, Effect::MisdirectedWrite { to_offset: 7 }).nth(2));
    put(&handle, &file, 0, &[2; 2], Durability::Dsync);
    assert_eq!(disk.read_file("f").unwrap(), [1; 10]);
    put(&handle, &file, 0, &[3; 2], Durability::Dsync);
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1, 1, 1, 1, 1, 1, 1, 3, 3, 1]);
}

#[test]
fn a_stale_read_does_not_show_the_last_write() {
    let (disk, file) = disk_with(&[1; 6]);
    file.write_all_at(0, &[2; 2]).unwrap();
    file.write_all_at(1, &[3; 2]).unwrap();
    disk.inject(Fault::next(FaultOp::Read, Effect::StaleRead));
    let mut bytes = [0; 5];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), 5);
    assert_eq!(bytes, [2, 2, 1, 1, 1]);
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 3, 3, 1, 1]);
}

#[test]
fn tt_05_interruptions_are_finished_inside() {
    let (disk, file) = disk_with(b"");
    for op in [FaultOp::Read, FaultOp::Write] {
        disk.inject(Fault::next(op, Effect::Interrupted).times(u64::MAX));
    }
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    file.write_all_at(0, &bytes).unwrap();
    let mut read = vec![0; 4000];
    assert_eq!(file.read_at(0, &mut read).unwrap(), 3000);
    assert_eq!(read[..3000], bytes);
    assert_eq!((disk.fault_hits(), disk.counters().writes), (2, 1));
}

#[test]
#[should_panic(expected = "would test nothing")]
fn a_rule_that_cannot_have_its_effect_is_refused() {
    disk().0.inject(Fault::next(FaultOp::Rename, Effect::StaleRead));
}

#[test]
fn df_01_a_full_disk_takes_what_it_has_blocks_for() {
    let (disk, handle) = disk();
    disk.set_space_bytes(Some(2 * 4096 + 100));
    let file = handle.open("f", NEW).unwrap();
    assert_eq!(file.write_all_at(10, &[1; 10_000]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 2 * 4096);
    file.write_all_at(0, &[2; 8192]).unwrap(); // Blocks it has can be written over.
    file.set_len(100_000).unwrap(); // A length takes none.
    file.set_len(4096).unwrap();
    file.write_all_at(4096, &[3; 4096]).unwrap(); // Cutting gives blocks back.
    disk.set_space_bytes(None);
    file.write_all_at(0, &[4; 10_000]).unwrap();
}

#[test]
fn df_04_a_reservation_is_whole_or_nothing_and_holds() {
    let (disk, handle) = disk();
    disk.set_space_bytes(Some(4 * 4096));
    let (file, other) = (handle.open("f", NEW).unwrap(), handle.open("g", NEW).unwrap());
    assert_eq!(file.allocate(4 * 4096 + 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 0);
    file.allocate(3 * 4096).unwrap();
    assert_eq!(file.len().unwrap(), 3 * 4096);
    assert!(other.write_all_at(0, &[1; 4097]).is_err());
    file.write_all_at(0, &[1; 3 * 4096]).unwrap();
    file.allocate(1).unwrap();
    assert_eq!(file.len().unwrap(), 3 * 4096, "a reservation never shortens");
    file.set_len(0).unwrap();
    other.write_all_at(0, &[1; 4 * 4096]).unwrap(); // Cutting gives reserved blocks back too.
}
