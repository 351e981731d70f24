//! Snapshots that nobody writes, whose nodes wait for a parent that never comes: they take no more memory than their
//! bytes allow.

use arborlog::{Acl, AclBuf, DataTree, StoredStat, WalkedNode, Zxid};

use crate::allocations::peak_bytes;

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
