//! Writes under way.

use std::sync::atomic::Ordering;

use super::*;

#[test]
fn a_dsync_write_is_durable_when_it_ends_and_only_its_own_bytes_are() {
    for durability in [Durability::Dsync, Durability::ThenSync] {
        let (disk, handle) = disk();
        disk.write_file("f", &[1; 1024]);
        let file = handle.open("f", WRITE).unwrap();
        file.write_all_at(0, &[2; 1024]).unwrap();
        put(&handle, &file, 10, &[3; 1100], durability);
        let expected = [[1; 10].as_slice(), &[3; 1100]].concat();
        assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), expected);
        let expected = [[2; 10].as_slice(), &[3; 1100]].concat();
        assert_eq!(disk.read_file("f").unwrap(), expected);
    }
}

#[test]
fn a_write_asked_for_no_durability_has_none() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 10]);
    let file = handle.open("f", WRITE).unwrap();
    put(&handle, &file, 0, &[2; 10], Durability::None);
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 10]);
    assert_eq!((disk.counters().writes, disk.counters().durable_writes), (1, 0));
}

#[test]
fn a_sync_covers_only_writes_that_had_ended() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 10]);
    let file = handle.open("f", WRITE).unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, &[2; 10], Durability::None));
    file.sync().unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [1; 10], "not visible under way");
    queue.wait().result.unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [2; 10]);
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 10]);
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [2; 10]);
}

#[test]
fn each_sector_of_a_write_under_way_lands_on_its_own() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 512]);
    let file = handle.open("f", WRITE).unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, &[2; 1536], Durability::Dsync));
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 512]);
    assert_eq!(after(&disk, CrashImage::KeepAll).unwrap(), [2; 1536]);
    let seen = outcomes(&disk, |image| {
        let bytes = image.read_file("f").unwrap();
        bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>()
    });
    // Two choices in the old part; behind it one, two or four by how much of the length landed.
    assert_eq!(seen.len(), 2 * (1 + 2 + 4), "{seen:?}");
}

#[test]
fn torn_sectors_are_noise_only_when_asked_for() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 4096]);
    let file = handle.open("f", WRITE).unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, &[2; 4096], Durability::Dsync));
    let noisy = |image: &SimDisk| image.read_file("f").unwrap().iter().any(|byte| ![1, 2].contains(byte));
    assert_eq!(outcomes(&disk, noisy), BTreeSet::from([false]));
    disk.set_torn_garbage(true);
    assert_eq!(outcomes(&disk, noisy), BTreeSet::from([false, true]));
}

#[test]
fn nothing_lands_behind_a_truncation_that_was_undone() {
    let (disk, handle) = disk();
    disk.write_file("f", &[1; 2048]);
    let file = handle.open("f", WRITE).unwrap();
    file.set_len(512).unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 512, &[2; 512], Durability::Dsync));
    for bytes in outcomes(&disk, |image| image.read_file("f").unwrap()) {
        let old_behind = bytes[512..].contains(&1);
        assert!(!(old_behind && bytes.contains(&2)), "{bytes:?}");
    }
}

#[test]
fn writes_end_in_every_order_and_each_once() {
    let mut orders = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let handle = disk.handle();
        let file = handle.open("f", NEW).unwrap();
        let mut queue = handle.queue().unwrap();
        for tag in 0..3 {
            queue.submit(write_op(tag, &file, 512 * tag, &[1; 512], Durability::Dsync));
        }
        assert_eq!(queue.under_way(), 3);
        orders.insert([0; 3].map(|_| queue.wait().tag));
        assert_eq!(queue.under_way(), 0);
    }
    assert_eq!(orders.len(), 6);
}

#[test]
fn dropping_a_queue_ends_its_writes() {
    let (disk, handle) = disk();
    let file = handle.open("f", NEW).unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, b"x", Durability::Dsync));
    drop(queue);
    assert_eq!(disk.read_file("f").unwrap(), b"x");
}

#[test]
fn a_file_of_another_disk_is_refused() {
    let (_, handle) = disk();
    let (_other, file) = disk_with(b"x");
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(0, &file, 0, b"y", Durability::None));
    assert_eq!(queue.wait().result.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn direct_writes_must_be_aligned_and_reads_need_not() {
    let (disk, handle) = disk();
    disk.write_file("f", &[0; 700]);
    let file = handle.open("f", OpenMode::Write { direct: true }).unwrap();
    assert_eq!(file.align_bytes(), 512);
    let mut buffer = Buffer::with_capacity(4096);
    buffer.resize_zeroed(1024);
    assert_eq!(file.read_at(0, buffer.as_mut_slice()).unwrap(), 700);
    assert_eq!(file.read_at(1, &mut buffer.as_mut_slice()[1..512]).unwrap(), 511);
    assert!(file.write_all_at(1, &buffer.as_slice()[..512]).is_err());
    assert!(file.write_all_at(0, &buffer.as_slice()[..511]).is_err());
    assert!(file.write_all_at(0, &buffer.as_slice()[1..513]).is_err());
    file.write_all_at(512, &buffer.as_slice()[..512]).unwrap();

    disk.set_direct_align_bytes(None);
    let handle = disk.handle();
    assert!(!handle.info().direct);
    assert_eq!(handle.open("f", OpenMode::Write { direct: true }).unwrap().align_bytes(), 1);
}

#[test]
fn durable_writes_take_virtual_time() {
    let (disk, handle) = disk();
    let file = handle.open("f", NEW).unwrap();
    disk.set_durable_nanos(500);
    put(&handle, &file, 0, b"x", Durability::Dsync);
    put(&handle, &file, 0, b"x", Durability::None);
    file.sync().unwrap();
    assert_eq!((disk.nanos().load(Ordering::Relaxed), disk.clock().nanos()), (1000, 1000));
    assert_eq!(disk.fork(CrashImage::KeepAll).clock().nanos(), 1000, "time does not go back at a crash");
}

#[test]
fn every_change_counts_as_one_operation() {
    let (disk, handle) = disk();
    let file = handle.open("f", NEW).unwrap();
    put(&handle, &file, 0, b"x", Durability::ThenSync); // Handing in, and the end.
    file.write_all_at(0, b"y").unwrap();
    file.set_len(2).unwrap();
    file.allocate(10).unwrap();
    file.sync().unwrap();
    handle.rename("f", "g").unwrap();
    handle.remove("g").unwrap();
    handle.sync_dir().unwrap();
    assert_eq!(disk.operations(), 10);
    file.read_at(0, &mut [0; 2]).unwrap();
    handle.list().unwrap();
    assert_eq!(disk.operations(), 10, "looking changes nothing");
}
