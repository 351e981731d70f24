use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::base::{Code, Random, Zxid};
use crate::format::{AclList, Ops, Paths, TxnBody};
use crate::tree::tests::{create, txn};
use crate::tree::{Change, DataTree, Observer, SharedTree};

use WatchEventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
use WatchKind::{Child, Data, Persistent, PersistentRecursive};

type Told = (u64, WatchEventKind, String);

const KINDS: [WatchKind; 4] = [Data, Child, Persistent, PersistentRecursive];

fn told(event: WatchEvent<'_>) -> Told {
    (event.watcher, event.kind, event.path.to_owned())
}

fn fire(table: &mut WatchTable, change: Change<'_>) -> Vec<Told> {
    let mut all = Vec::new();
    table.trigger(Zxid::new(7), change, &mut |event| {
        assert_eq!(event.zxid, Some(Zxid::new(7)));
        all.push(told(event));
    });
    all
}

fn table(watches: &[(u64, &str, WatchKind)]) -> WatchTable {
    let mut table = WatchTable::new();
    watches.iter().for_each(|(watcher, path, kind)| table.add(*watcher, path, *kind).unwrap());
    table
}

/// Expected events, as text is easier to read than tuples.
fn events(expected: &[(u64, WatchEventKind, &str)]) -> Vec<Told> {
    expected.iter().map(|(watcher, kind, path)| (*watcher, *kind, (*path).to_owned())).collect()
}

const CREATED: Change<'_> = Change::Created { path: "/a/b" };
const DELETED: Change<'_> = Change::Deleted { path: "/a/b" };
const DATA_SET: Change<'_> = Change::DataSet { path: "/a/b" };

/// Every kind of watch, by its own watcher, on the node, its parent, its child and its sibling.
fn everywhere() -> WatchTable {
    let mut watches = Vec::new();
    for (at, path) in (0..).zip(["/a/b", "/a", "/a/b/c", "/a/bc"]) {
        watches.extend((1..).zip(KINDS).map(|(number, kind)| (10 * at + number, path, kind)));
    }
    table(&watches)
}

#[test]
fn a_creation_fires_data_watches_of_the_node_and_child_watches_of_the_parent() {
    let mut table = everywhere();
    let expected = [
        (1, NodeCreated, "/a/b"),
        (3, NodeCreated, "/a/b"),
        (4, NodeCreated, "/a/b"),
        (14, NodeCreated, "/a/b"),
        (12, NodeChildrenChanged, "/a"),
        (13, NodeChildrenChanged, "/a"),
    ];
    assert_eq!(fire(&mut table, CREATED), events(&expected));
    assert!(!table.contains(1, "/a/b", None) && !table.contains(12, "/a", None), "they fire once");
    assert_eq!(table.len(), 14);
}

#[test]
fn a_deletion_fires_data_and_child_watches_of_the_node_and_child_watches_of_the_parent() {
    let mut table = everywhere();
    let expected = [
        (1, NodeDeleted, "/a/b"),
        (2, NodeDeleted, "/a/b"),
        (3, NodeDeleted, "/a/b"),
        (4, NodeDeleted, "/a/b"),
        (14, NodeDeleted, "/a/b"),
        (12, NodeChildrenChanged, "/a"),
        (13, NodeChildrenChanged, "/a"),
    ];
    assert_eq!(fire(&mut table, DELETED), events(&expected));
    assert_eq!(table.len(), 13);
}

#[test]
fn setting_data_fires_data_watches_only() {
    let mut table = everywhere();
    let expected = [
        (1, NodeDataChanged, "/a/b"),
        (3, NodeDataChanged, "/a/b"),
        (4, NodeDataChanged, "/a/b"),
        (14, NodeDataChanged, "/a/b"),
    ];
    assert_eq!(fire(&mut table, DATA_SET), events(&expected));
    assert_eq!(table.len(), 15);
}

#[test]
fn acls_and_sessions_fire_nothing() {
    let mut table = everywhere();
    for change in
        [Change::AclSet { path: "/a/b" }, Change::SessionCreated { id: 1 }, Change::SessionClosed { id: 1 }]
    {
        assert_eq!(fire(&mut table, change), []);
    }
    assert_eq!(table.len(), 16);
}

#[test]
fn a_watcher_is_told_once_of_an_event_but_of_node_and_parent_apart() {
    let mut all = Vec::new();
    for path in ["/", "/a", "/a/b"] {
        all.extend(KINDS.map(|kind| (1, path, kind)));
    }
    let once = [(1, NodeDeleted, "/a/b"), (1, NodeChildrenChanged, "/a")];
    assert_eq!(fire(&mut table(&all), DELETED), events(&once));
    // A child watch on the node ends although the watcher hears of it from a recursive one.
    let mut table = table(&[(1, "/a", PersistentRecursive), (1, "/a/b", Child)]);
    assert_eq!(fire(&mut table, DELETED), events(&once[..1]));
    assert_eq!((table.len(), table.contains(1, "/a/b", None)), (1, false));
    assert_eq!(fire(&mut table, DELETED), events(&once[..1]), "the next one is told again");
}

#[test]
fn recursive_watches_see_the_node_and_all_below_it_and_no_changes_of_children() {
    let mut table = table(&[(1, "/a", PersistentRecursive), (2, "/", PersistentRecursive)]);
    for (path, is_below) in [("/a", true), ("/a/b/c/d", true), ("/ab", false), ("/b/a", false), ("/", false)]
    {
        let mut expected = vec![(2, NodeDataChanged, path)];
        if is_below {
            expected.insert(0, (1, NodeDataChanged, path));
        }
        assert_eq!(fire(&mut table, Change::DataSet { path }), events(&expected), "{path}");
    }
    assert_eq!(fire(&mut table, Change::Created { path: "/a/x" }).len(), 2);
    assert!(table.remove(2, "/", Some(PersistentRecursive)) && table.remove(1, "/a", None));
    assert_eq!(fire(&mut table, DELETED), []);
}

#[test]
fn children_of_the_root_are_watched_at_the_root() {
    let mut table = table(&[(1, "/", Child)]);
    assert_eq!(fire(&mut table, Change::Created { path: "/a" }), events(&[(1, NodeChildrenChanged, "/")]));
}

#[test]
fn kinds_are_removed_apart_or_together() {
    let mut table = everywhere();
    KINDS.into_iter().for_each(|kind| table.add(9, "/a/b", kind).unwrap());
    table.add(9, "/a/b", Data).unwrap();
    assert_eq!((table.watches_of(9), table.len()), (4, 20), "the same watch counts once");
    assert!(!table.remove(9, "/a", None) && !table.remove(8, "/a/b", None));
    assert!(table.remove(9, "/a/b", Some(Persistent)));
    assert!(!table.remove(9, "/a/b", Some(Persistent)) && !table.contains(9, "/a/b", Some(Persistent)));
    assert!(table.contains(9, "/a/b", Some(Child)) && table.contains(9, "/a/b", None));
    assert!(table.remove(9, "/a/b", None));
    assert_eq!((table.watches_of(9), table.len(), table.watcher_count()), (0, 16, 16));
}

#[test]
fn a_closed_connection_takes_all_of_its_watches_along() {
    let mut table = everywhere();
    for path in ["/a", "/b", "/a/b"] {
        KINDS.into_iter().for_each(|kind| table.add(1, path, kind).unwrap());
    }
    assert_eq!(table.remove_watcher(1), 12);
    assert_eq!(table.remove_watcher(1), 0);
    assert_eq!((table.len(), table.path_count(), table.watcher_count()), (15, 4, 15));
    assert!(fire(&mut table, DELETED).iter().all(|(watcher, ..)| *watcher != 1));
}

#[test]
fn limits_hold_in_all_and_for_each_watcher() {
    let mut table = WatchTable::with_limits(WatchLimits { total: 3, per_watcher: 2 });
    assert_eq!(table.add(1, "/a", Data), Ok(()));
    assert_eq!(table.add(1, "/a", Child), Ok(()));
    assert_eq!(table.add(1, "/b", Data), Err(Code::QUOTA_EXCEEDED));
    assert_eq!(table.add(1, "/a", Data), Ok(()), "is there");
    assert_eq!(table.add(2, "/b", Data), Ok(()));
    assert_eq!(table.add(2, "/b", Child), Err(Code::QUOTA_EXCEEDED));
    assert_eq!((table.path_count(), table.watcher_count()), (2, 2));
    assert!(table.remove(1, "/a", Some(Child)));
    assert_eq!(table.add(2, "/b", Child), Ok(()));
}

#[test]
fn who_watches_first_is_told_first_whatever_went_before() {
    let mut table =
        table(&[(3, "/a/b", Data), (1, "/a/b", Persistent), (2, "/a/b", Data), (4, "/a/b", Data)]);
    table.remove_watcher(2);
    table.add(2, "/a/b", Data).unwrap();
    let order: Vec<u64> = fire(&mut table, DATA_SET).into_iter().map(|(watcher, ..)| watcher).collect();
    assert_eq!(order, [3, 1, 4, 2]);
}

#[test]
fn nobody_is_forgotten_when_the_count_of_firings_begins_anew() {
    let mut table = table(&[(1, "/a/b", Persistent), (2, "/a/b", Data)]);
    fire(&mut table, DATA_SET);
    table.set_round_to_last();
    assert_eq!(fire(&mut table, DATA_SET), events(&[(1, NodeDataChanged, "/a/b")]));
    assert_eq!(fire(&mut table, DATA_SET), events(&[(1, NodeDataChanged, "/a/b")]));
}

#[test]
fn wa_03_a_failed_multi_fires_nothing_and_a_good_one_each_operation_in_order() {
    let mut tree = DataTree::new();
    let mut table = table(&[(1, "/a", Data), (1, "/a", Child), (1, "/", Child)]);
    let mut ops = vec![create("/a", b"", AclList::EMPTY, 1), create("/a/b", b"", AclList::EMPTY, 1)];
    let mut all = Vec::new();
    let mut run = |tree: &mut DataTree, table: &mut WatchTable, zxid, body: TxnBody<'_>| {
        all.clear();
        tree.apply(&txn(zxid, body), &mut |change: Change<'_>| {
            table.trigger(Zxid::new(zxid), change, &mut |event| all.push(told(event)));
        });
        all.clone()
    };
    ops.push(TxnBody::Error { code: Code::NO_NODE });
    assert_eq!(run(&mut tree, &mut table, 1, TxnBody::Multi(Ops::from_slice(&ops))), []);
    assert_eq!(table.len(), 3);
    ops.pop();
    let expected = [(1, NodeCreated, "/a"), (1, NodeChildrenChanged, "/"), (1, NodeChildrenChanged, "/a")];
    assert_eq!(run(&mut tree, &mut table, 2, TxnBody::Multi(Ops::from_slice(&ops))), events(&expected));
    assert!(table.is_empty());
}

#[test]
fn in_a_group_each_event_has_the_zxid_of_its_txn() {
    struct Watching(WatchTable, Zxid, Vec<(Zxid, String)>);
    impl Observer for Watching {
        fn begins(&mut self, zxid: Zxid) {
            self.1 = zxid;
        }

        fn changed(&mut self, change: Change<'_>) {
            let Watching(table, zxid, told) = self;
            table.trigger(*zxid, change, &mut |event| told.push((event.zxid.unwrap(), event.path.into())));
        }
    }
    let tree = SharedTree::default();
    let mut watching = Watching(table(&[(1, "/", PersistentRecursive)]), Zxid::ZERO, Vec::new());
    let txns = [
        txn(5, create("/a", b"", AclList::EMPTY, 1)),
        txn(6, TxnBody::Error { code: Code::NO_NODE }),
        txn(8, create("/b", b"", AclList::EMPTY, 2)),
    ];
    tree.apply_group(txns, &mut watching);
    assert_eq!(watching.2, [(Zxid::new(5), "/a".to_owned()), (Zxid::new(8), "/b".to_owned())]);
}

#[test]
fn nodes_that_go_with_others_or_their_session_fire_as_deleted() {
    let mut tree = DataTree::new();
    for (zxid, path) in (1..).zip(["/a", "/a/b", "/c"]) {
        tree.apply(&txn(zxid, create(path, b"", AclList::EMPTY, 1)), &mut ());
    }
    let mut table = table(&[(1, "/", PersistentRecursive)]);
    let mut all = Vec::new();
    let lists = [["/a/b".to_owned(), "/a".to_owned()].to_vec(), vec!["/c".to_owned()]];
    let bodies = [
        TxnBody::DeleteAll { paths: Paths::from_slice(&lists[0]) },
        TxnBody::CloseSession { paths: Some(Paths::from_slice(&lists[1])) },
    ];
    for (zxid, body) in (4..).zip(bodies) {
        tree.apply(&txn(zxid, body), &mut |change: Change<'_>| {
            table.trigger(Zxid::new(zxid), change, &mut |event| all.push(told(event)));
        });
    }
    assert_eq!(all, events(&[(1, NodeDeleted, "/a/b"), (1, NodeDeleted, "/a"), (1, NodeDeleted, "/c")]));
}

#[test]
fn watches_set_again_tell_what_was_missed() {
    let mut tree = DataTree::new();
    for (zxid, path) in (1..).zip(["/old", "/set", "/crowd", "/same"]) {
        tree.apply(&txn(zxid, create(path, b"", AclList::EMPTY, 1)), &mut ());
    }
    tree.apply(&txn(5, TxnBody::SetData { path: "/set", data: None, version: 1 }), &mut ());
    tree.apply(&txn(6, create("/crowd/x", b"", AclList::EMPTY, 1)), &mut ());
    let wanted = SetWatches {
        seen: Zxid::new(4),
        data: &["/old", "/set", "/gone", "/same"],
        exist: &["/gone", "/same"],
        child: &["/old", "/crowd", "/gone"],
        persistent: &["/set", "/gone"],
        recursive: &["/crowd"],
    };
    let mut table = WatchTable::new();
    let mut all = Vec::new();
    let mut note = |event: WatchEvent<'_>| {
        assert_eq!(event.zxid, None);
        all.push(told(event));
    };
    table.set_watches(1, &tree, &wanted, &mut note).unwrap();
    let expected = [
        (1, NodeDataChanged, "/set"),
        (1, NodeDeleted, "/gone"),
        (1, NodeCreated, "/same"),
        (1, NodeChildrenChanged, "/crowd"),
        (1, NodeDeleted, "/gone"),
    ];
    assert_eq!(all, events(&expected));
    let set = [
        ("/old", Data),
        ("/same", Data),
        ("/gone", Data),
        ("/old", Child),
        ("/set", Persistent),
        ("/gone", Persistent),
        ("/crowd", PersistentRecursive),
    ];
    assert!(set.iter().all(|(path, kind)| table.contains(1, path, Some(*kind))));
    assert_eq!(table.len(), 7);
    let mut small = WatchTable::with_limits(WatchLimits { total: 6, per_watcher: 9 });
    assert_eq!(small.set_watches(1, &tree, &wanted, &mut |_| ()), Err(Code::QUOTA_EXCEEDED));
}

/// The rules as plainly as they can be written down.
#[derive(Default)]
struct Model(BTreeMap<(u64, String), BTreeSet<WatchKind>>);

impl Model {
    fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    fn fire(&mut self, kind: WatchEventKind, path: &str, hear: &[WatchKind], expected: &mut Vec<Told>) {
        for ((watcher, at), kinds) in &mut self.0 {
            let here = at == path && hear.iter().any(|kind| kinds.contains(kind));
            let above = at == "/" || path.starts_with(&format!("{at}/"));
            let recursive = kind != NodeChildrenChanged && above && kinds.contains(&PersistentRecursive);
            let event = (*watcher, kind, path.to_owned());
            if (here || recursive) && !expected.contains(&event) {
                expected.push(event);
            }
            if at == path {
                kinds.retain(|kind| !hear.contains(kind) || matches!(kind, Persistent | PersistentRecursive));
            }
        }
        self.0.retain(|_, kinds| !kinds.is_empty());
    }

    fn trigger(&mut self, change: Change<'_>) -> Vec<Told> {
        let mut expected = Vec::new();
        let parent = |path: &str| match path.rsplit_once('/') {
            Some(("", _)) | None => "/".to_owned(),
            Some((parent, _)) => parent.to_owned(),
        };
        let data = [Data, Persistent, PersistentRecursive];
        match change {
            Change::Created { path } => {
                self.fire(NodeCreated, path, &data, &mut expected);
                self.fire(NodeChildrenChanged, &parent(path), &[Child, Persistent], &mut expected);
            }
            Change::Deleted { path } => {
                self.fire(NodeDeleted, path, &KINDS, &mut expected);
                self.fire(NodeChildrenChanged, &parent(path), &[Child, Persistent], &mut expected);
            }
            Change::DataSet { path } => self.fire(NodeDataChanged, path, &data, &mut expected),
            _ => {}
        }
        expected.sort();
        expected
    }
}

#[test]
fn does_what_the_rules_say_at_random_and_ends_with_nothing_held() {
    let names = ["/a", "/a/a", "/a/a/a", "/a/b", "/ab", "/b", "/b/a"];
    let mut random = Random::from_seed(3);
    let mut pick = |count: usize| usize::try_from(random.next_u64() >> 40).unwrap() % count;
    let (mut tree, mut table, mut model) = (DataTree::new(), WatchTable::new(), Model::default());
    let (mut fired, mut removed) = (0, 0);
    for zxid in 1..40_000 {
        let watcher = u64::try_from(pick(6)).unwrap();
        let (path, kind) = (if pick(8) == 0 { "/" } else { names[pick(names.len())] }, KINDS[pick(4)]);
        match pick(12) {
            0..4 => {
                table.add(watcher, path, kind).unwrap();
                model.0.entry((watcher, path.to_owned())).or_default().insert(kind);
            }
            4 => {
                let kinds = model.0.entry((watcher, path.to_owned())).or_default();
                let wanted = (pick(2) == 0).then_some(kind);
                let before = kinds.len();
                kinds.retain(|kind| wanted.is_some_and(|wanted| wanted != *kind));
                let there = kinds.len() != before;
                model.0.retain(|_, kinds| !kinds.is_empty());
                assert_eq!(table.contains(watcher, path, wanted), there);
                assert_eq!(table.remove(watcher, path, wanted), there);
                removed += usize::from(there);
            }
            5 if pick(10) == 0 => {
                let before = model.len();
                model.0.retain(|(other, _), _| *other != watcher);
                assert_eq!(table.remove_watcher(watcher) as usize, before - model.len());
            }
            _ => {
                let body = match pick(3) {
                    0 => create(path, b"", AclList::EMPTY, i32::try_from(zxid).unwrap()),
                    1 if path != "/" && tree.get(path).is_some_and(|n| n.child_count() == 0) => {
                        TxnBody::Delete { path }
                    }
                    _ => TxnBody::SetData { path, data: None, version: 1 },
                };
                let (mut all, mut expected) = (Vec::new(), Vec::new());
                tree.apply(&txn(zxid, body), &mut |change: Change<'_>| {
                    expected.extend(model.trigger(change));
                    table.trigger(Zxid::new(zxid), change, &mut |event| all.push(told(event)));
                });
                all.sort();
                assert_eq!(all, expected, "{zxid}");
                fired += all.len();
            }
        }
        assert_eq!(table.len() as usize, model.len());
        let recursive = model.0.values().filter(|kinds| kinds.contains(&PersistentRecursive));
        assert_eq!(
            table.recursive_count() as usize,
            recursive.count(),
            "else ancestors are looked at in vain"
        );
    }
    assert!(fired > 10_000 && removed > 300, "{fired} {removed}");
    let watchers: BTreeSet<u64> = model.0.keys().map(|(watcher, _)| *watcher).collect();
    let paths: BTreeSet<&str> = model.0.keys().map(|(_, path)| &path[..]).collect();
    assert_eq!((table.watcher_count(), table.path_count()), (watchers.len(), paths.len()));
    watchers.into_iter().for_each(|watcher| assert!(table.remove_watcher(watcher) > 0));
    assert_eq!((table.len(), table.path_count(), table.watcher_count(), table.capacity()), (0, 0, 0, 0));
}

/// What is told and what is left are the same whether entries go one by one or with their index.
#[test]
fn wa_05_a_crowd_that_goes_costs_as_much_as_what_stays() {
    const CROWD: u64 = 20_000;
    // So many have a second watch at another path, so many have a watch at the crowd's path that stays.
    for (elsewhere, staying) in [(0, 0), (300, 0), (CROWD, 0), (0, 300), (0, CROWD), (700, 500)] {
        let mut table = WatchTable::new();
        for watcher in 0..CROWD {
            table.add(watcher, "/crowd", Data).unwrap();
            if watcher < elsewhere {
                table.add(watcher, "/elsewhere", Child).unwrap();
            }
        }
        (0..staying).for_each(|n| table.add(CROWD + n, "/crowd", Persistent).unwrap());
        let before = table.index_work();
        let events = fire(&mut table, Change::Deleted { path: "/crowd" });
        // An index is new after it was built anew.
        let work = table.index_work().checked_sub(before).unwrap_or(table.index_work());
        let wanted: Vec<Told> =
            (0..CROWD + staying).map(|watcher| (watcher, NodeDeleted, "/crowd".to_owned())).collect();
        assert_eq!(events, wanted, "in order");
        let left = elsewhere + staying;
        assert!(work <= 3 * left + 1, "{work} entries were touched where {left} watches stay");
        assert_eq!(u64::from(table.len()), left);
        assert_eq!(table.watcher_count() as u64, left);
        for watcher in 0..CROWD {
            assert!(!table.contains(watcher, "/crowd", None));
            assert_eq!(table.contains(watcher, "/elsewhere", Some(Child)), watcher < elsewhere);
        }
        (0..staying).for_each(|n| assert!(table.contains(CROWD + n, "/crowd", Some(Persistent))));
        // And it goes on as ever.
        table.add(0, "/crowd", Data).unwrap();
        let events = fire(&mut table, Change::DataSet { path: "/crowd" });
        assert_eq!(events.len() as u64, staying + 1);
        (0..CROWD + staying).for_each(|watcher| assert!(table.remove_watcher(watcher) < 3));
        assert_eq!((table.len(), table.path_count(), table.watcher_count(), table.capacity()), (0, 0, 0, 0));
    }
}

#[test]
fn wa_05_a_table_survives_a_panic_while_a_crowd_is_told() {
    let mut table = WatchTable::new();
    (0..5000).for_each(|watcher| table.add(watcher, "/crowd", Data).unwrap());
    let mut told = 0;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        table.trigger(Zxid::new(1), Change::DataSet { path: "/crowd" }, &mut |_| {
            told += 1;
            assert!(told < 3000, "as a caller may do");
        });
    }));
    assert!(result.is_err());
    assert_eq!((table.len(), table.contains(0, "/crowd", None)), (2001, false));
    table.add(0, "/crowd", Data).unwrap();
    table.add(1, "/other", Data).unwrap();
    assert_eq!(fire(&mut table, Change::DataSet { path: "/crowd" }).len(), 2002);
    assert!(table.remove(1, "/other", None));
    assert_eq!((table.len(), table.path_count(), table.watcher_count(), table.capacity()), (0, 0, 0, 0));
}

#[test]
fn records_are_used_again() {
    let mut table = table(&[(0, "/stays", Persistent)]);
    let mut capacity = 0;
    for round in 0..50 {
        for watcher in 1..=200 {
            let path = format!("/{round}/{}", watcher % 70);
            table.add(watcher, &path, KINDS[usize::try_from(watcher % 4).unwrap()]).unwrap();
            table.add(watcher, "/crowd", Data).unwrap();
        }
        assert_eq!((table.len(), table.path_count(), table.watcher_count()), (401, 72, 201));
        assert_eq!(fire(&mut table, Change::DataSet { path: "/crowd" }).len(), 200);
        (1..=200).for_each(|watcher| assert!(table.remove_watcher(watcher) > 0));
        assert_eq!((table.len(), table.path_count(), table.watcher_count()), (1, 1, 1));
        if round == 0 {
            capacity = table.capacity();
        }
        assert_eq!(table.capacity(), capacity);
    }
}
