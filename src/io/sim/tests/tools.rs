//! The test's own hands.

use super::*;

#[test]
fn tools_act_on_cache_and_medium_alike() {
    let disk = SimDisk::new(0);
    disk.write_file("a", &[1; 8]);
    disk.copy_file("a", "b");
    disk.flip("b", 0, 0x5a);
    disk.zero("b", 2, 3);
    disk.chop("b", 6);
    disk.rename_file("b", "c");
    disk.put_other("d");
    disk.write_file("e", b"");
    disk.remove_file("e");
    disk.remove_file("never there");
    for disk in [disk.clone(), disk.fork(CrashImage::DropUnsynced)] {
        assert_eq!(disk.names(), ["a", "c", "d"]);
        assert_eq!(disk.read_file("c").unwrap(), [0x5b, 1, 0, 0, 0, 1]);
        assert_eq!((disk.read_file("b"), disk.read_file("d")), (None, None));
        assert_eq!(disk.snapshot_bytes().keys().collect::<Vec<_>>(), ["a", "c"]);
    }
    assert_eq!(disk.operations(), 0);
}

#[test]
#[should_panic(expected = "to damage")]
fn damage_behind_the_end_is_a_mistake_of_the_test() {
    let disk = SimDisk::new(0);
    disk.write_file("a", &[1; 8]);
    disk.flip("a", 8, 1);
}

#[test]
fn a_sparse_gigabyte_takes_no_memory_and_a_thousand_forks_little_time() {
    let (disk, file) = disk_with(b"");
    file.set_len(1 << 30).unwrap();
    file.write_all_at(0, &[1; 100]).unwrap();
    disk.capture_moments(|_, _| true);
    for at in 0..1000 {
        file.write_all_at(at * 40, &[2; 40]).unwrap();
    }
    assert_eq!(disk.take_moments().len(), 2000);
}
