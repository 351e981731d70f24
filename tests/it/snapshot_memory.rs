//! The memory of snapshots: those that nobody writes, whose nodes wait for a parent that never comes, take no more than
//! their bytes allow; and a walk takes none of what changes under it.

use arborlog::{
    Acl, AclBuf, AclList, Create, CreateKind, DataTree, Outcome, StoredStat, Txn, TxnBody, Walk, WalkedNode,
    Zxid,
};

use crate::allocations::{held_bytes, peak_bytes};

/// In a file, a node under the same parent and with the same ACL as the one before it takes fifteen bytes.
#[test]
fn a_long_path_and_a_long_acl_are_kept_once_for_all_who_wait_there() {
    const NODES: u32 = 20_000;
    let deep = "/a".repeat(20_000);
    let acl: AclBuf = (0..1000)
        .map(|n| Acl::new(arborlog::Perms::ALL, "ip", n.to_string()))
        .collect::<Vec<_>>()
        .iter()
        .map(Acl::as_entry)
        .collect();
    let mut path = String::new();
    let ((orphans, len), peak) = peak_bytes(|| {
        let mut loader = DataTree::loader();
        for n in 0..NODES {
            path.clear();
            path.extend([&deep, "/", &n.to_string()]);
            let stat = StoredStat::default();
            loader.node(&WalkedNode { path: &path, data: None, acl: acl.as_list(), stat });
        }
        let done = loader.finish(Zxid::new(1));
        (done.orphans, done.tree.len())
    });
    // Those that servers keep are in every tree.
    assert_eq!((orphans, len), (NODES.into(), DataTree::new().len()));
    assert!(peak < 1024 * u64::from(NODES), "{peak} bytes");
}

fn apply(tree: &mut DataTree, zxid: &mut u64, body: TxnBody<'_>) {
    *zxid += 1;
    let txn = Txn { zxid: Zxid::new(*zxid), time_ms: 1, session_id: 0, cxid: 0, digest: None, body };
    assert!(!matches!(tree.apply(&txn, &mut ()), Outcome::Failed(_)));
}

/// Every node is written three times, and some are deleted and made anew, while one walk goes over them: nothing is
/// kept of what they were.
#[test]
fn pf_04_a_walk_keeps_no_versions_of_what_changes_under_it() {
    const NODES: u32 = 100_000;
    let (mut tree, mut zxid) = (DataTree::new(), 0);
    let paths: Vec<String> = (0..NODES).map(|n| format!("/node-{n:08}")).collect();
    let data = [7; 100];
    let create = |path| {
        let kind = CreateKind::Plain { ephemeral: false };
        TxnBody::Create(Create { path, data: Some(&data), acl: AclList::EMPTY, kind, parent_cversion: None })
    };
    let empty = held_bytes();
    paths.iter().for_each(|path| apply(&mut tree, &mut zxid, create(path)));
    let base = held_bytes();
    let live = base - empty;
    let (met, peak) = peak_bytes(|| {
        let (mut walk, mut met, mut goes_on) = (Walk::new(), 0_u32, true);
        for round in 0..3_u8 {
            for (n, path) in paths.iter().enumerate() {
                if n % 10 == 0 {
                    apply(&mut tree, &mut zxid, TxnBody::Delete { path });
                    apply(&mut tree, &mut zxid, create(path));
                } else {
                    let data = [round; 100];
                    apply(
                        &mut tree,
                        &mut zxid,
                        TxnBody::SetData { path, data: Some(&data), version: i32::from(round) + 1 },
                    );
                }
                // A third of it in each round.
                if n % 30 == 0 && goes_on {
                    goes_on = tree.walk(&mut walk, 10, &mut |_| met += 1);
                }
            }
        }
        while tree.walk(&mut walk, 64, &mut |_| met += 1) {}
        met
    });
    assert!(met >= NODES - NODES / 10, "{met}");
    let (held, percent) = (held_bytes() - base, live / 100);
    assert!(held.abs() <= 2 * percent, "{held} bytes more than {live}");
    assert!(
        i64::try_from(peak).unwrap() <= 10 * percent,
        "{peak} bytes at the worst moment, {live} at first"
    );
}
