//! One suite for every disk: what the log relies on, as tests. A new backend adds one `suite!` line.

mod fixture;
mod links;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::Random;

use self::fixture::{Fixture, real, simulated};
use self::links::{a_link_is_the_same_file, what_cannot_be_linked_is_told};
use super::{
    Backend, BackendChoice, Buffer, Durability, EntryKind, File, OpenMode, Queue, WriteOp, open_dir,
};

macro_rules! suite {
    ($backend:ident, $open:expr) => {
        mod $backend {
            suite! { @cases $open,
                creating_is_exclusive names_stay_inside list_tells_kinds_and_lengths
                what_is_no_regular_file_is_refused_at_once absent_files_are_not_found reads_end_with_the_file
                what_was_written_is_read_back_at_any_range queue_answers_each_write_once
                queue_takes_all_it_promises queue_carries_large_buffers dropping_a_queue_drains_it
                a_file_may_be_dropped_while_it_is_written queue_is_full_with_a_panic
                a_queue_moves_between_threads a_failed_write_names_its_errno locked_twice_tells_the_owner
                locks_are_released_on_drop rename_replaces a_link_is_the_same_file
                what_cannot_be_linked_is_told removed_is_gone lengths_and_room behind_the_data_are_zeros
                directory_syncs
            }
        }
    };
    (@cases $open:expr, $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                if let Some(fixture) = $open {
                    super::$case(&fixture);
                }
            }
        )*
    };
}

suite!(threads, super::real(super::BackendChoice::Threads));
suite!(uring, super::real(super::BackendChoice::IoUring));
suite!(simulated, super::simulated(Some(512)));
suite!(simulated_with_large_blocks, super::simulated(Some(4096)));
suite!(simulated_without_direct_writes, super::simulated(None));

const CREATE: OpenMode = OpenMode::CreateNew { direct: false };
const ALL_DURABILITIES: [Durability; 3] = [Durability::Dsync, Durability::ThenSync, Durability::None];

/// Bytes that differ between any two places and seeds.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::from_seed(seed);
    (0..len.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).take(len).collect()
}

fn buffer(bytes: &[u8]) -> Buffer {
    let mut buffer = Buffer::with_capacity(bytes.len());
    buffer.extend(bytes);
    buffer
}

fn write_op(tag: u64, file: &Arc<dyn File>, offset: u64, bytes: &[u8], durability: Durability) -> WriteOp {
    WriteOp { tag, file: Arc::clone(file), offset, buffer: buffer(bytes), durability }
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let len = usize::try_from(file.len().unwrap()).unwrap();
    let mut bytes = vec![0; len + 1];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), len);
    bytes.truncate(len);
    bytes
}

fn creating_is_exclusive(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    assert_eq!((file.name(), file.align_bytes(), file.len().unwrap()), ("a", 1, 0));
    for direct in [false, true] {
        let error = f.disk.open("a", OpenMode::CreateNew { direct }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    let file = f.disk.open("b", OpenMode::CreateNew { direct: true }).unwrap();
    let align = if f.disk.info().direct { f.disk.info().direct_align_bytes } else { 1 };
    assert_eq!(file.align_bytes(), align);
}

fn names_stay_inside(f: &Fixture) {
    for name in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0b"] {
        assert_eq!(f.disk.open(name, CREATE).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(f.disk.remove(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(f.disk.lock(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(f.disk.rename("a", name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(f.disk.rename(name, "a").unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
    assert_eq!(f.disk.list().unwrap(), []);
}

fn list_tells_kinds_and_lengths(f: &Fixture) {
    f.disk.open("a", CREATE).unwrap().write_all_at(0, b"abc").unwrap();
    f.disk.open("b", CREATE).unwrap();
    let mut expected = vec![("a".to_owned(), EntryKind::File, 3), ("b".to_owned(), EntryKind::File, 0)];
    for name in f.behind.put_others() {
        expected.push((name.to_owned(), EntryKind::Other, 0));
    }
    let mut found: Vec<_> = f.disk.list().unwrap().into_iter().map(|e| (e.name, e.kind, e.len)).collect();
    for (_, _, len) in found.iter_mut().filter(|(_, kind, _)| *kind == EntryKind::Other) {
        *len = 0; // means nothing there
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, expected);
}

/// HZ-08: neither followed nor waited for.
fn what_is_no_regular_file_is_refused_at_once(f: &Fixture) {
    f.behind.put_file("a", b"abc");
    for name in f.behind.put_others() {
        for mode in [OpenMode::Read, OpenMode::Write { direct: false }, OpenMode::Write { direct: true }] {
            let error = f.disk.open(name, mode).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name} {mode:?} {error}");
        }
        assert_eq!(f.disk.open(name, CREATE).unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
        assert_eq!(f.disk.lock(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
    }
    assert_eq!(f.behind.bytes("nowhere"), None, "a dangling link was followed");
    assert_eq!(f.behind.bytes("a").unwrap(), b"abc");
}

fn absent_files_are_not_found(f: &Fixture) {
    for mode in [OpenMode::Read, OpenMode::Write { direct: false }, OpenMode::Write { direct: true }] {
        assert_eq!(f.disk.open("a", mode).unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(f.disk.remove("a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(f.disk.rename("a", "b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(f.disk.list().unwrap(), []);
}

fn reads_end_with_the_file(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    file.write_all_at(0, &pattern(1, 700)).unwrap();
    for direct in [false, true] {
        let file = f.disk.open("a", OpenMode::Write { direct }).unwrap();
        for (offset, len, expected) in [
            (0, 700, 700),
            (0, 5000, 700),
            (512, 512, 188),
            (699, 2, 1),
            (700, 1, 0),
            (4096, 512, 0),
            (9, 0, 0),
        ] {
            let mut buf = vec![0xee; len];
            assert_eq!(file.read_at(offset, &mut buf).unwrap(), expected, "{direct} {offset} {len}");
            let at = usize::try_from(offset).unwrap();
            assert!(
                buf[..expected] == pattern(1, 700)[at.min(700)..(at + expected).min(700).max(at.min(700))]
            );
        }
    }
    let read_only = f.disk.open("a", OpenMode::Read).unwrap();
    read_only.will_read();
    assert_eq!(read_all(&*read_only), pattern(1, 700));
    assert!(read_only.write_all_at(0, b"x").is_err());
}

fn what_was_written_is_read_back_at_any_range(f: &Fixture) {
    for direct in [false, true] {
        let name = format!("direct-{direct}");
        let file = f.disk.open(&name, OpenMode::CreateNew { direct }).unwrap();
        let align = usize::try_from(file.align_bytes()).unwrap();
        let bytes = pattern(2, 600 * 1024);
        file.write_all_at(0, buffer(&bytes).as_slice()).unwrap();
        let again = pattern(3, align * 2);
        file.write_all_at(align as u64 * 3, buffer(&again).as_slice()).unwrap();
        file.sync().unwrap();
        let mut expected = bytes;
        expected[align * 3..align * 5].copy_from_slice(&again);
        for (offset, len) in [
            (0, 1),
            (1, 511),
            (511, 2),
            (512, 512),
            (4095, 4098),
            (4096, 4096),
            (3, 300_000),
            (262_143, 262_146),
        ] {
            let mut buf = vec![0; len];
            assert_eq!(file.read_at(offset as u64, &mut buf).unwrap(), len);
            assert!(buf == expected[offset..offset + len], "{direct} {offset} {len}");
        }
        assert!(read_all(&*f.disk.open(&name, OpenMode::Read).unwrap()) == expected, "{direct}");
        f.disk.sync_dir().unwrap();
        assert!(f.behind.durable_bytes(&name).unwrap() == expected, "{direct}");
    }
}

fn queue_answers_each_write_once(f: &Fixture) {
    for direct in [false, true] {
        for durability in ALL_DURABILITIES {
            for waiting in [false, true] {
                let name = format!("{direct}-{durability:?}-{waiting}");
                let file = f.disk.open(&name, OpenMode::CreateNew { direct }).unwrap();
                f.disk.sync_dir().unwrap();
                let queue = if waiting { f.disk.waiting_queue() } else { f.disk.queue() };
                write_in_pairs(f, &file, queue.unwrap(), durability);
            }
        }
    }
}

fn write_in_pairs(f: &Fixture, file: &Arc<dyn File>, mut queue: Box<dyn Queue>, durability: Durability) {
    let mut expected = vec![0; 8 * 4096];
    let place = |tag: u64| usize::try_from(4096 * tag).unwrap()..usize::try_from(4096 * (tag + 1)).unwrap();
    for round in 0..4 {
        let mut tags = Vec::new();
        for tag in [round * 2, round * 2 + 1] {
            let bytes = pattern(tag, 4096);
            queue.submit(write_op(tag, file, 4096 * tag, &bytes, durability));
            expected[place(tag)].copy_from_slice(&bytes);
            tags.push(tag);
        }
        assert_eq!(queue.under_way(), 2);
        for _ in 0..2 {
            let completion = queue.wait();
            completion.result.unwrap();
            let bytes = pattern(completion.tag, 4096);
            assert!(completion.buffer.as_slice() == bytes);
            if durability != Durability::None {
                let durable = f.behind.durable_bytes(file.name()).unwrap();
                assert!(durable.get(place(completion.tag)) == Some(&bytes[..]), "{}", file.name());
            }
            tags.retain(|tag| *tag != completion.tag);
        }
        assert_eq!((tags, queue.under_way()), (vec![], 0));
    }
    assert!(read_all(&**file) == expected, "{}", file.name());
    assert!(f.behind.bytes(file.name()).unwrap() == expected, "{}", file.name());
}

fn queue_takes_all_it_promises(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    let mut queue = f.disk.queue().unwrap();
    for round in 0..50 {
        for tag in 0..super::QUEUE_DEPTH as u64 {
            queue.submit(write_op(tag, &file, tag * 100, &pattern(round + tag, 100), Durability::ThenSync));
        }
        let mut tags: Vec<_> = (0..super::QUEUE_DEPTH)
            .map(|_| {
                let completion = queue.wait();
                completion.result.unwrap();
                completion.tag
            })
            .collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..super::QUEUE_DEPTH as u64).collect::<Vec<_>>());
    }
    assert_eq!(read_all(&*file)[..100], pattern(49, 100));
}

fn queue_carries_large_buffers(f: &Fixture) {
    for direct in [false, true] {
        let file = f.disk.open(&format!("{direct}"), OpenMode::CreateNew { direct }).unwrap();
        let mut queue = f.disk.queue().unwrap();
        let large = pattern(5, (3 << 20) + 4096);
        queue.submit(write_op(1, &file, 4096, &large, Durability::Dsync));
        queue.submit(write_op(2, &file, 0, &pattern(6, 4096), Durability::ThenSync));
        for _ in 0..2 {
            queue.wait().result.unwrap();
        }
        let all = read_all(&*file);
        assert!(all[..4096] == pattern(6, 4096) && all[4096..] == large);
    }
}

fn dropping_a_queue_drains_it(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    for round in 0..30 {
        let mut queue = f.disk.queue().unwrap();
        for tag in 0..2 {
            queue.submit(write_op(tag, &file, tag * 9000, &pattern(round + tag, 9000), Durability::ThenSync));
        }
        drop(queue);
        let all = read_all(&*file);
        assert!(all[..9000] == pattern(round, 9000) && all[9000..] == pattern(round + 1, 9000));
    }
}

fn a_file_may_be_dropped_while_it_is_written(f: &Fixture) {
    let mut queue = f.disk.queue().unwrap();
    for i in 0..20 {
        let name = format!("{i}");
        let file = f.disk.open(&name, CREATE).unwrap();
        queue.submit(write_op(i, &file, 0, &pattern(i, 5000), Durability::Dsync));
        drop(file);
        queue.wait().result.unwrap();
        assert!(read_all(&*f.disk.open(&name, OpenMode::Read).unwrap()) == pattern(i, 5000));
    }
}

fn queue_is_full_with_a_panic(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    let mut queue = f.disk.queue().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        for tag in 0..=super::QUEUE_DEPTH as u64 {
            queue.submit(write_op(tag, &file, tag * 10, &pattern(tag, 10), Durability::None));
        }
    }));
    assert!(panicked.is_err());
    assert_eq!(queue.under_way(), super::QUEUE_DEPTH);
    drop(queue);
    let panicked = catch_unwind(AssertUnwindSafe(|| f.disk.queue().unwrap().wait()));
    assert!(panicked.is_err());
}

/// IU-09: the thread that handed a write in may end before the write does.
fn a_queue_moves_between_threads(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    let mut queue = f.disk.queue().unwrap();
    for round in 0..50 {
        queue = std::thread::scope(|scope| {
            let hand_in = || {
                queue.submit(write_op(round, &file, 0, &pattern(round, 20_000), Durability::ThenSync));
                queue
            };
            scope.spawn(hand_in).join().unwrap()
        });
        queue.wait().result.unwrap();
        assert!(read_all(&*file) == pattern(round, 20_000));
    }
}

fn a_failed_write_names_its_errno(f: &Fixture) {
    f.disk.open("a", CREATE).unwrap();
    let read_only = f.disk.open("a", OpenMode::Read).unwrap();
    let mut queue = f.disk.queue().unwrap();
    for durability in ALL_DURABILITIES {
        queue.submit(write_op(7, &read_only, 0, b"x", durability));
        let completion = queue.wait();
        assert_eq!((completion.tag, completion.buffer.as_slice()), (7, &b"x"[..]));
        let error = completion.result.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()), "{durability:?}");
    }
}

fn locked_twice_tells_the_owner(f: &Fixture) {
    let held = f.disk.lock("LOCK").unwrap();
    let error = f.disk.lock("LOCK").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    f.behind.check_owner("LOCK", &error);
    // LK-01
    for (disk, name) in f.behind.other_ways_to("LOCK") {
        for disk in [&disk, &f.disk] {
            assert_eq!(disk.lock(&name).unwrap_err().kind(), ErrorKind::WouldBlock, "{name}");
        }
    }
    drop(held);
    f.disk.lock("LOCK").unwrap();
}

fn locks_are_released_on_drop(f: &Fixture) {
    for _ in 0..3 {
        let lock = f.disk.lock("LOCK").unwrap();
        let queue = f.disk.queue().unwrap();
        drop(lock);
        // The ring still has the file; letting go of the lock must not depend on it.
        let lock = f.disk.lock("LOCK").unwrap();
        drop((queue, lock));
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _lock = f.disk.lock("LOCK").unwrap();
        panic!("unwinds");
    }));
    assert!(panicked.is_err());
    f.disk.lock("LOCK").unwrap();
}

fn rename_replaces(f: &Fixture) {
    f.disk.open("a", CREATE).unwrap().write_all_at(0, b"new").unwrap();
    let old = f.disk.open("b", CREATE).unwrap();
    old.write_all_at(0, b"older").unwrap();
    f.disk.rename("a", "b").unwrap();
    assert_eq!(read_all(&*f.disk.open("b", OpenMode::Read).unwrap()), b"new");
    assert_eq!(read_all(&*old), b"older");
    assert_eq!(f.disk.open("a", OpenMode::Read).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(f.disk.list().unwrap().len(), 1);
}

fn removed_is_gone(f: &Fixture) {
    let file = f.disk.open("a", CREATE).unwrap();
    f.disk.remove("a").unwrap();
    assert_eq!(f.disk.list().unwrap(), []);
    file.write_all_at(0, b"still open").unwrap();
    assert_eq!(read_all(&*file), b"still open");
    assert_eq!(f.disk.open("a", CREATE).unwrap().len().unwrap(), 0);
}

fn lengths_and_room(f: &Fixture) {
    for direct in [false, true] {
        let file = f.disk.open(&format!("{direct}"), OpenMode::CreateNew { direct }).unwrap();
        file.allocate(0).unwrap();
        file.allocate(10_000).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        assert_eq!(read_all(&*file), vec![0; 10_000]);
        file.write_all_at(4096, buffer(&pattern(1, 4096)).as_slice()).unwrap();
        file.set_len(5000).unwrap();
        file.set_len(9000).unwrap();
        file.sync().unwrap();
        let mut expected = vec![0; 9000];
        expected[4096..5000].copy_from_slice(&pattern(1, 4096)[..904]);
        assert!(read_all(&*file) == expected, "{direct}");
        f.disk.sync_dir().unwrap();
        assert!(f.behind.durable_bytes(file.name()).unwrap() == expected, "{direct}");
    }
}

fn behind_the_data_are_zeros(f: &Fixture) {
    let file = f.disk.open("a", OpenMode::CreateNew { direct: false }).unwrap();
    assert_eq!(file.data_end().unwrap(), 0);
    file.write_all_at(0, b"first").unwrap();
    assert_eq!(file.data_end().unwrap(), 5, "no hole");
    file.write_all_at(1 << 20, b"second").unwrap();
    assert_eq!(file.data_end().unwrap(), (1 << 20) + 6, "a hole before data is none at the end");
    file.set_len(8 << 20).unwrap();
    let end = file.data_end().unwrap();
    assert!(((1 << 20) + 6..=8 << 20).contains(&end), "{end}");
    assert!(read_all(file.as_ref())[usize::try_from(end).unwrap()..].iter().all(|byte| *byte == 0));
}

fn directory_syncs(f: &Fixture) {
    let durable = |name| f.behind.durable_bytes(name).is_some();
    f.disk.open("a", CREATE).unwrap();
    f.disk.sync_dir().unwrap();
    assert!(durable("a"));
    f.disk.rename("a", "b").unwrap();
    f.disk.sync_dir().unwrap();
    assert!(durable("b") && !durable("a"));
    f.disk.remove("b").unwrap();
    f.disk.sync_dir().unwrap();
    assert!(!durable("b"));
    assert_eq!(f.disk.list().unwrap(), []);
}

#[test]
fn the_backend_asked_for_is_the_one_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let info = |choice| open_dir(dir.path(), choice).map(|disk| disk.info().clone());
    let threads = info(BackendChoice::Threads).unwrap();
    assert_eq!((threads.backend, threads.refused), (Backend::Threads, None));
    let auto = info(BackendChoice::Auto).unwrap();
    assert_eq!(auto.backend == Backend::Threads, auto.refused.is_some());
    println!("{auto:?}");
    match info(BackendChoice::IoUring) {
        Ok(required) => assert_eq!(required.backend, Backend::IoUring),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    }
}
