//! Content and lengths after a power cut.

use super::*;
use crate::io::sim::Side;

#[test]
fn un_synced_bytes_are_kept_or_dropped_whole_by_the_extreme_images() {
    let (disk, file) = disk_with(&[1; 1000]);
    file.write_all_at(500, &[2; 1000]).unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 1000]);
    assert_eq!(after(&disk, CrashImage::KeepAll).unwrap(), [[1; 500].as_slice(), &[2; 1000]].concat());
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced), after(&disk, CrashImage::KeepAll));
}

#[test]
fn each_un_synced_sector_is_kept_on_its_own() {
    let (disk, file) = disk_with(&[1; 2048]);
    file.write_all_at(0, &[2; 2048]).unwrap();
    let seen = outcomes(&disk, |image| {
        let bytes = image.read_file("f").unwrap();
        bytes
            .chunks(512)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is never torn");
                sector[0]
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(seen.len(), 16, "every subset of four sectors");
}

#[test]
fn a_length_is_old_or_new_or_between() {
    let (disk, file) = disk_with(&[1; 512]);
    file.set_len(2048).unwrap();
    let seen = outcomes(&disk, |image| image.read_file("f").unwrap().len());
    assert_eq!(seen, BTreeSet::from([512, 1024, 1536, 2048]));
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap().len(), 512);
}

#[test]
fn a_truncation_is_undone_whole_with_what_was_written_behind_it() {
    let (disk, file) = disk_with(&[1; 2048]);
    file.set_len(700).unwrap();
    file.set_len(2048).unwrap();
    file.write_all_at(1536, &[3; 512]).unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), [1; 2048]);
    for bytes in outcomes(&disk, |image| image.read_file("f").unwrap()) {
        assert!(bytes[..700].iter().all(|byte| *byte == 1));
        if bytes != [1; 2048] {
            assert!(bytes[700..].iter().all(|byte| *byte != 1), "old bytes live on behind a cut that held");
        }
    }
}

#[test]
fn a_durable_write_behind_a_truncation_makes_it_durable() {
    let (disk, handle) = super::disk();
    disk.write_file("f", &[1; 2048]);
    let file = handle.open("f", WRITE).unwrap();
    file.set_len(512).unwrap();
    put(&handle, &file, 0, &[4; 100], Durability::Dsync);
    let expected = [[4; 100].as_slice(), &[1; 1948]].concat();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), expected, "before it, only its bytes");
    put(&handle, &file, 1024, &[5; 512], Durability::Dsync);
    let expected = [[4; 100].as_slice(), &[1; 412], &[0; 512], &[5; 512]].concat();
    assert_eq!(after(&disk, CrashImage::DropUnsynced).unwrap(), expected);
}

#[test]
fn old_bytes_do_not_come_back_when_a_file_is_cut_and_grows() {
    let (disk, file) = disk_with(&[1; 5000]);
    file.set_len(100).unwrap();
    file.set_len(5000).unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [[1; 100].as_slice(), &[0; 4900]].concat());
    file.sync().unwrap();
    assert_eq!(after(&disk, CrashImage::DropUnsynced), disk.read_file("f"));
}

#[test]
fn a_fork_leaves_the_original_alone_and_the_original_the_fork() {
    let (disk, file) = disk_with(&[1; 600]);
    file.write_all_at(0, &[2; 600]).unwrap();
    let fork = disk.fork(CrashImage::DropUnsynced);
    assert_eq!(disk.read_file("f").unwrap(), [2; 600]);
    fork.handle().open("f", WRITE).unwrap().write_all_at(0, &[3; 10]).unwrap();
    file.write_all_at(0, &[4; 600]).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.read_file("f").unwrap(), [4; 600]);
    assert_eq!(fork.read_file("f").unwrap(), [[3; 10].as_slice(), &[1; 590]].concat());
}

#[test]
fn a_crash_kills_processes_and_lets_go_of_their_locks() {
    let (disk, handle) = super::disk();
    let file = handle.open("f", NEW).unwrap();
    let lock = handle.lock("LOCK").unwrap();
    let mut queue = handle.queue().unwrap();
    queue.submit(write_op(9, &file, 0, b"x", Durability::Dsync));
    disk.crash(CrashImage::KeepAll);

    assert!(handle.list().is_err() && handle.sync_dir().is_err() && handle.open("f", WRITE).is_err());
    assert!(file.len().is_err() && file.sync().is_err() && file.read_at(0, &mut [0]).is_err());
    let completion = queue.wait();
    assert!(completion.tag == 9 && completion.result.is_err() && completion.buffer.as_slice() == b"x");

    let next = disk.handle();
    let held = next.lock("LOCK").unwrap();
    drop(lock);
    assert!(next.lock("LOCK").is_err(), "a dead process's guard must not free a living one's lock");
    drop(held);
    assert!(next.lock("LOCK").is_ok());
    assert_eq!(disk.read_file("f").unwrap(), b"x");
}

#[test]
fn afterwards_nothing_is_open_to_a_second_crash() {
    let (disk, file) = disk_with(&[1; 3000]);
    file.write_all_at(100, &[2; 4000]).unwrap();
    file.set_len(3500).unwrap();
    disk.handle().open("g", NEW).unwrap();
    for seed in 0..200 {
        let image = disk.fork(CrashImage::Random(seed));
        let second = image.fork(CrashImage::DropUnsynced);
        assert_eq!(image.snapshot_bytes(), second.snapshot_bytes());
    }
}

#[test]
fn crash_at_lets_the_operation_not_happen() {
    let (disk, file) = disk_with(b"old");
    let next = disk.operations() + 1;
    disk.crash_at(next + 1, CrashImage::KeepAll);
    file.write_all_at(0, b"new").unwrap();
    assert!(file.set_len(1).is_err());
    assert_eq!((disk.read_file("f").unwrap(), disk.operations()), (b"new".to_vec(), next));
}

#[test]
fn moments_are_taken_on_both_sides_of_an_operation() {
    let (disk, file) = disk_with(b"old");
    let first = disk.operations() + 1;
    disk.capture_moments(move |operation, _| operation == first + 1);
    file.write_all_at(0, b"new").unwrap();
    file.sync().unwrap();
    file.write_all_at(0, b"odd").unwrap();
    let moments = disk.take_moments();
    let sides: Vec<_> = moments.iter().map(|moment| (moment.operation(), moment.side())).collect();
    assert_eq!(sides, [(first + 1, Side::Before), (first + 1, Side::After)]);
    let dropped = |at: usize| moments[at].image(CrashImage::DropUnsynced).read_file("f").unwrap();
    assert_eq!((dropped(0), dropped(1)), (b"old".to_vec(), b"new".to_vec()));
    assert_eq!(moments[0].image(CrashImage::KeepAll).read_file("f").unwrap(), b"new");
    assert!(disk.take_moments().is_empty());
}

#[test]
fn the_same_seeds_give_the_same_images() {
    let run = || {
        let (disk, handle) = super::disk();
        let file = handle.open("f", NEW).unwrap();
        file.write_all_at(0, &[7; 9000]).unwrap();
        handle.rename("f", "g").unwrap();
        let mut queue = handle.queue().unwrap();
        queue.submit(write_op(1, &file, 4000, &[8; 3000], Durability::Dsync));
        disk.set_torn_garbage(true);
        (0..100).map(|seed| disk.fork(CrashImage::Random(seed)).snapshot_bytes()).collect::<Vec<_>>()
    };
    let images = run();
    assert_eq!(images, run());
    assert!(images.iter().collect::<BTreeSet<_>>().len() > 50, "and other seeds give others");
}
