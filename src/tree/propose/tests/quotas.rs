//! Quotas: totals that are the tree's own, and limits that hold.

use super::*;

pub(super) fn with_quota(path: &'static str, limits: &'static str) -> Leader<'static> {
    let mut leader = Leader::new(options().enforce_quota(true));
    leader.must(create("/q", b""));
    limit(&mut leader, path, limits);
    leader
}

fn limit(leader: &mut Leader<'static>, path: &'static str, limits: &'static str) {
    let mut at = String::from("/zookeeper/quota");
    for name in path[1..].split('/') {
        at = format!("{at}/{name}");
        if leader.tree.get(&at).is_none() {
            leader.must(create(at.clone().leak(), b""));
        }
    }
    leader.must(create(format!("{at}/zookeeper_limits").leak(), limits.as_bytes()));
    leader.must(create(format!("{at}/zookeeper_stats").leak(), b"whatever, count=\xff"));
}

pub(super) fn stats(leader: &Leader<'_>, path: &str) -> String {
    let stats = leader.tree.get(&format!("/zookeeper/quota{path}/zookeeper_stats")).unwrap();
    assert_eq!(usize::try_from(stats.stat().data_bytes), Ok(stats.data().unwrap().len()));
    assert_eq!(&*stats.data_to_keep().unwrap(), stats.data().unwrap());
    String::from_utf8(stats.data().unwrap().to_vec()).unwrap()
}

#[test]
fn totals_follow_the_tree() {
    let mut leader = with_quota("/q", "count=1,bytes=1");
    assert_eq!(stats(&leader, "/q"), "count=1,bytes=0");
    leader.must(create("/q/a", b"12345"));
    leader.must(create("/q/a/b", b"1"));
    leader.must(create("/qq", b"1"));
    assert_eq!(stats(&leader, "/q"), "count=3,bytes=6");
    leader.must(set("/q/a", b"12"));
    leader.must(Request::SetData { path: "/q/a/b", data: None, version: -1 });
    assert_eq!(stats(&leader, "/q"), "count=3,bytes=2");
    leader.must(set("/zookeeper/quota/q/zookeeper_stats", b"count=1000,bytes=1000"));
    assert_eq!(stats(&leader, "/q"), "count=3,bytes=2", "what a client writes is not looked at");
    // One inside another: both have all that is in them.
    limit(&mut leader, "/q/a", "");
    leader.must(create("/q/a/c", b"123"));
    assert_eq!(
        (stats(&leader, "/q"), stats(&leader, "/q/a")),
        ("count=4,bytes=5".into(), "count=3,bytes=5".into())
    );
    leader.must(Request::DeleteRecursive { path: "/q" });
    assert_eq!(
        (stats(&leader, "/q"), stats(&leader, "/q/a")),
        ("count=0,bytes=0".into(), "count=0,bytes=0".into())
    );
    leader.must(create("/q", b"1"));
    assert_eq!(stats(&leader, "/q"), "count=1,bytes=1");
    leader.must(delete("/zookeeper/quota/q/zookeeper_limits"));
    leader.must(delete("/zookeeper/quota/q/a/zookeeper_limits"));
    assert_eq!(stats(&leader, "/q"), "count=1000,bytes=1000", "without a quota a node as any other");
    assert!(leader.tree.quotas.is_empty());
}

#[test]
fn the_nearest_limits_hold() {
    let mut leader = with_quota("/q", "countHardLimit=2");
    leader.must(create("/q/a", b""));
    assert_eq!(leader.propose(create("/q/b", b"")), Code::QUOTA_EXCEEDED);
    leader.apply_all();
    limit(&mut leader, "/q/a", "countHardLimit=5,byteHardLimit=3");
    leader.must(create("/q/a/b", b"123"));
    assert_eq!(leader.propose(set("/q/a/b", b"1234")), Code::QUOTA_EXCEEDED);
    leader.must(set("/q/a/b", b""));
    assert_eq!(leader.propose(create("/q/b", b"")), Code::QUOTA_EXCEEDED);
    leader.must(set("/zookeeper/quota/q/zookeeper_limits", b"countHardLimit=4"));
    leader.must(create("/q/b", b""));
    leader.must(set("/zookeeper/quota/q/zookeeper_limits", b"countHardLimit=1"));
    leader.must(set("/q/b", b"more"));
    assert_eq!(leader.propose(create("/q/c", b"")), Code::QUOTA_EXCEEDED, "only this makes it worse");
    let mut lax = with_quota("/q", "countHardLimit=1");
    lax.proposer = Proposer::new(options());
    lax.must(create("/q/b", b""));
}

#[test]
fn limits_that_are_on_their_way_hold() {
    let mut leader = Leader::new(options().enforce_quota(true));
    let ops = [
        create("/q", b"12"),
        create("/q/a", b"3"),
        create("/zookeeper/quota/q", b""),
        create("/zookeeper/quota/q/zookeeper_limits", b"countHardLimit=3;byteHardLimit=4"),
        create("/q/b", b"4"),
    ];
    assert_eq!(leader.propose(Request::Multi(&ops)), Code::OK);
    assert_eq!(leader.propose(create("/q/c", b"")), Code::QUOTA_EXCEEDED);
    assert_eq!(leader.propose(set("/q/b", b"44")), Code::QUOTA_EXCEEDED);
    assert_eq!(leader.propose(delete("/q/b")), Code::OK);
    assert_eq!(leader.propose(create("/q/c", b"4")), Code::OK);
    assert_eq!(leader.propose(delete("/zookeeper/quota/q/zookeeper_limits")), Code::OK);
    assert_eq!(leader.propose(create("/q/d", b"5555")), Code::OK);
    leader.apply_all();
}

#[test]
fn totals_are_shown_by_their_node_alone() {
    let mut leader = with_quota("/q", "countHardLimit=9");
    leader.must(delete("/zookeeper/quota/q/zookeeper_stats"));
    // It takes the place of the one that is gone.
    leader.must(create("/a", b"mine"));
    assert_eq!(leader.tree.get("/a").unwrap().data(), Some(&b"mine"[..]));
    leader.must(create("/zookeeper/quota/q/zookeeper_stats", b""));
    assert_eq!(stats(&leader, "/q"), "count=1,bytes=0");
}
