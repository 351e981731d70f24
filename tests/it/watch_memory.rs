//! What watches cost in memory, and that nothing of them stays.

use arborlog::{Change, WatchKind, WatchTable, Zxid};

use crate::allocations::{held_bytes, peak_bytes};

const KINDS: [WatchKind; 4] =
    [WatchKind::Data, WatchKind::Child, WatchKind::Persistent, WatchKind::PersistentRecursive];

fn held_by<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let before = held_bytes();
    let value = make();
    (value, held_bytes() - before)
}

#[test]
fn wa_05_a_crowd_at_one_path_costs_little() {
    const CROWD: u64 = 100_000;
    let (mut table, bytes) = held_by(|| {
        let mut table = WatchTable::new();
        (0..CROWD).for_each(|watcher| table.add(watcher, "/crowd", WatchKind::Data).unwrap());
        table
    });
    // A pair and a watcher each, and the tables' own few.
    let each = bytes.cast_unsigned() / CROWD;
    println!("{each} bytes a watch");
    assert!((48..=64).contains(&each), "{each}");
    let (told, peak) = peak_bytes(|| {
        let mut told = 0;
        table.trigger(Zxid::new(1), Change::Deleted { path: "/crowd" }, &mut |_| told += 1);
        told
    });
    assert_eq!((told, table.len()), (CROWD, 0));
    assert!(peak < 16 * CROWD, "what is free is remembered until the last one goes, {peak}");
    let ((), left) = held_by(|| drop(table));
    assert!(left > -4096, "an empty table holds next to nothing, {left}");
}

#[test]
fn a_session_with_many_paths_costs_what_is_stated() {
    const PATHS: u64 = 30_000;
    let paths: Vec<String> = (0..PATHS).map(|number| format!("/service/node-{number:010}")).collect();
    let (table, bytes) = held_by(|| {
        let mut table = WatchTable::new();
        paths.iter().for_each(|path| KINDS.into_iter().for_each(|kind| table.add(1, path, kind).unwrap()));
        table
    });
    assert_eq!(u64::from(table.len()), 4 * PATHS);
    let each = bytes.cast_unsigned() / PATHS - paths[0].len() as u64;
    println!("{each} bytes a path");
    assert!((48..=74).contains(&each), "a pair and a path, {each}");
}

#[test]
fn wa_01_a_million_watches_leave_nothing_behind() {
    const ROUNDS: u64 = 1_000_000;
    let paths: Vec<String> = (0..1000).map(|number| format!("/p{}/n{number}", number % 10)).collect();
    let mut state = 7_u64;
    let mut pick = move |count: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % count
    };
    let (mut told, mut most) = (0_u64, 0);
    let (mut table, _) = held_by(WatchTable::new);
    let before = held_bytes();
    for _ in 0..ROUNDS {
        let (watcher, path) = (pick(1000), &paths[usize::try_from(pick(1000)).expect("small")][..]);
        let kind = KINDS[usize::try_from(pick(4)).expect("small")];
        match pick(16) {
            0..9 => table.add(watcher, path, kind).unwrap(),
            9..14 => {
                table.remove(watcher, path, (kind == WatchKind::Data).then_some(kind));
            }
            14 if pick(20) == 0 => {
                table.remove_watcher(watcher);
            }
            _ => table.trigger(Zxid::new(1), Change::Deleted { path }, &mut |_| told += 1),
        }
        most = most.max(table.len());
    }
    assert!(told > ROUNDS / 100 && most > 1000, "{told} told, {most} at once");
    for watcher in 0..1000 {
        table.remove_watcher(watcher);
    }
    assert_eq!((table.len(), table.path_count(), table.watcher_count()), (0, 0, 0));
    assert!(held_bytes() - before < 4096, "{}", held_bytes() - before);
}
