//! Faults of real systems, by their numbers.

use super::quotas::{stats, with_quota};
use super::*;
use crate::format::{AclBuf, AclList, Create, CreateKind, Txn};

#[test]
fn tc_01_a_sessions_number_is_never_taken_for_another_owner() {
    let container = i64::MIN;
    let ttl = 0xff00_0000_0000_0001_u64.cast_signed();
    for id in [0, container, ttl, 0xff00_00ff_ffff_ffff_u64.cast_signed()] {
        let mut leader = Leader::new(options());
        leader.session_id = id;
        assert_eq!(leader.propose(Request::CreateSession { timeout_ms: 1 }), Code::BAD_ARGUMENTS, "{id:#x}");
        assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, "/e")), Code::SESSION_EXPIRED);
    }
    let ids =
        [0xfe00_0000_0000_0001_u64, 0x7f00_0000_0000_0001, 0x8000_0000_0000_03e8, 0xff00_0100_0000_0000];
    for id in ids.map(u64::cast_signed) {
        let mut leader = Leader::new(options());
        leader.begin_session(id);
        leader.must(create_as(CreateMode::Ephemeral, "/e"));
        leader.must(create_as(CreateMode::Ttl { ttl_ms: 1 }, "/t"));
        leader.must(create_as(CreateMode::Container, "/c"));
        assert_eq!(leader.tree.exists("/e").unwrap().ephemeral_owner, id);
        assert_eq!(leader.tree.expired_paths(i64::MAX), ["/t"]);
        leader.must(Request::CloseSession);
        assert!(leader.tree.get("/e").is_none() && leader.tree.get("/t").is_some());
    }
    // Without extended types that number is nothing but a session's, as in a ZooKeeper without them.
    let mut leader = Leader::new(ProposeOptions::new());
    leader.begin_session(ttl);
    leader.must(create_as(CreateMode::Ephemeral, "/e"));
    assert!(leader.tree.expired_paths(i64::MAX).is_empty());
    leader.must(Request::CloseSession);
    assert!(leader.tree.get("/e").is_none());
}

#[test]
fn tc_03_a_container_that_is_in_use_again_stays() {
    let mut leader = Leader::new(options());
    leader.must(create_as(CreateMode::Container, "/c"));
    assert!(leader.tree.expired_paths(i64::MAX).is_empty(), "not used yet");
    leader.must(create("/c/a", b""));
    leader.must(delete("/c/a"));
    leader.must(create_as(CreateMode::Ttl { ttl_ms: 5 }, "/t"));
    let expired = leader.tree.expired_paths(leader.time_ms + 10);
    assert_eq!(expired, ["/c", "/t"]);
    let mark = leader.time_ms;
    let due = |leader: &mut Leader<'static>, path| leader.propose(Request::DeleteContainer { path });
    assert_eq!(leader.propose(create("/c/b", b"")), Code::OK);
    assert_eq!(due(&mut leader, "/c"), Code::NOT_EMPTY, "a child is on its way");
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/c" }), Code::OK);
    assert_eq!(due(&mut leader, "/c"), Code::NO_NODE);
    assert_eq!(leader.propose(create("/c", b"")), Code::OK);
    assert_eq!(due(&mut leader, "/c"), Code::BAD_VERSION, "another node of that name");
    leader.time_ms = mark + 10;
    assert_eq!(leader.propose(set("/t", b"")), Code::OK);
    assert_eq!(due(&mut leader, "/t"), Code::BAD_VERSION, "it was changed");
    leader.time_ms += 10;
    assert_eq!(due(&mut leader, "/t"), Code::OK);
    leader.apply_all();
}

/// A txn that is not proposed but imported.
fn import(leader: &mut Leader<'_>, body: TxnBody<'_>) {
    leader.zxid += 1;
    let zxid = Zxid::new(leader.zxid);
    let txn = Txn { zxid, time_ms: 1, session_id: 0, cxid: 0, digest: None, body };
    leader.tree.apply(&txn, &mut ());
}

/// Makes a parent's count of children what it says.
fn import_cversion(leader: &mut Leader<'_>, parent: &str, cversion: i32) {
    let path = format!("{parent}/imported-{cversion}");
    let kind = CreateKind::Plain { ephemeral: false };
    let create =
        Create { path: &path, data: None, acl: AclList::EMPTY, kind, parent_cversion: Some(cversion) };
    import(leader, TxnBody::Create(create));
    import(leader, TxnBody::Delete { path: &path });
}

#[test]
fn tc_03_a_container_whose_count_has_wrapped_was_used() {
    let mut leader = Leader::new(options());
    leader.must(create_as(CreateMode::Container, "/c"));
    import_cversion(&mut leader, "/c", i32::MAX);
    import_cversion(&mut leader, "/c", i32::MIN);
    assert_eq!(leader.tree.get("/c").unwrap().stored().cversion, i32::MIN);
    assert_eq!(leader.tree.expired_paths(i64::MAX), ["/c"]);
}

#[test]
fn qu_01_a_quota_holds_to_the_byte_within_a_multi() {
    let limits = "countHardLimit=10;byteHardLimit=100";
    let data = |bytes| &*Vec::leak(vec![b'x'; bytes]);
    let mut leader = with_quota("/q", limits);
    let ops =
        |last| &*Vec::leak(vec![create("/q/a", data(50)), set("/q/a", data(60)), create("/q/b", data(last))]);
    assert_eq!(leader.propose(Request::Multi(ops(41))), Code::QUOTA_EXCEEDED);
    leader.apply_all();
    assert_eq!(stats(&leader, "/q"), "count=1,bytes=0");
    assert_eq!(leader.propose(Request::Multi(ops(40))), Code::OK);
    leader.apply_all();
    assert_eq!(stats(&leader, "/q"), "count=3,bytes=100");
}

#[test]
fn qu_01_a_quota_counts_what_is_on_its_way() {
    let mut leader = with_quota("/q", "countHardLimit=10");
    for path in ["/q/1", "/q/2", "/q/3", "/q/4", "/q/5", "/q/6", "/q/7"] {
        leader.must(create(path, b""));
    }
    let at_once = ["/q/a", "/q/b", "/q/c", "/q/d", "/q/e"];
    let codes = at_once.map(|path| leader.propose(create(path, b"")));
    assert_eq!(codes.iter().filter(|code| code.is_ok()).count(), 2, "{codes:?}");
    assert_eq!(leader.propose(delete("/q/a")), Code::OK);
    assert_eq!(leader.propose(create("/q/e", b"")), Code::OK);
    leader.apply_all();
    assert_eq!(stats(&leader, "/q"), "count=10,bytes=0");
}

#[test]
fn qu_03_totals_are_no_part_of_the_digest_and_survive_a_load() {
    let mut plain = Leader::new(options());
    let mut limited = Leader::new(options());
    for leader in [&mut plain, &mut limited] {
        leader.must(create("/q", b"1"));
    }
    for path in
        ["/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_stats", "/zookeeper/quota/q/zookeeper_limits"]
    {
        limited.must(create(path, b"x"));
    }
    for leader in [&mut plain, &mut limited] {
        leader.zxid = 100;
        leader.time_ms = 1_800_000_000_000;
        for request in [create("/q/a", b"22"), create("/q/b", b""), set("/q/b", b"333"), delete("/q/a")] {
            leader.must(request);
        }
    }
    assert_eq!(plain.tree.digest(), limited.tree.digest());
    let mut builder = DataTree::loader();
    let mut walk = crate::tree::Walk::new();
    while limited.tree.walk(&mut walk, 100, &mut |node| builder.node(&node)) {}
    let loaded = builder.finish(limited.tree.last_zxid()).tree;
    assert_eq!(loaded.digest(), limited.tree.digest());
    assert_eq!(loaded.approximate_bytes(), limited.tree.approximate_bytes());
    let shown =
        |tree: &DataTree| tree.get("/zookeeper/quota/q/zookeeper_stats").unwrap().data().unwrap().to_vec();
    assert_eq!(shown(&loaded), b"count=2,bytes=4");
    assert_eq!(shown(&limited.tree), b"count=2,bytes=4");
}

#[test]
fn pf_01_acl_lists_go_with_the_nodes_that_had_them() {
    let mut leader = Leader::new(options());
    let before = leader.tree.acls.counts();
    let unique =
        |n: usize| &*Vec::leak(vec![Acl::open(), Acl::new(Perms::READ, "digest", format!("u{n}:h"))]);
    for n in 0..500 {
        for request in [
            create_with(unique(2 * n), "/a"),
            Request::SetAcl { path: "/a", acl: unique(2 * n + 1), version: -1 },
            delete("/a"),
        ] {
            assert_eq!(leader.propose(request), Code::OK);
        }
        if n % 7 == 0 {
            leader.apply_all();
        }
    }
    leader.apply_all();
    assert_eq!(leader.tree.acls.counts(), before);
}

#[test]
fn tx_01_whatever_is_proposed_can_be_read_back() {
    // Leaders in these tests read back all that they apply; here are those which ZooKeeper could not.
    let mut leader = Leader::new(options());
    let checks = [Request::Check { path: "/", version: -1 }, Request::CheckNotExists { path: "/none" }];
    let failing = [Request::Check { path: "/none", version: 0 }];
    for request in [
        Request::Check { path: "/", version: 0 },
        Request::Check { path: "/none", version: 0 },
        Request::Multi(&[]),
        Request::Multi(Vec::leak(checks.to_vec())),
        Request::Multi(Vec::leak(failing.to_vec())),
        Request::Multi(Vec::leak(vec![Request::Multi(&[]), Request::CloseSession])),
        Request::Multi(Vec::leak(vec![Request::CreateSession { timeout_ms: 1 }])),
        Request::Reconfig { data: None },
        Request::SetData { path: "/", data: None, version: -1 },
        create_as(CreateMode::Ttl { ttl_ms: i64::MAX }, "/t"),
    ] {
        leader.propose(request);
    }
    leader.apply_all();
}

#[test]
fn tx_03_versions_wrap_past_the_one_that_stands_for_any() {
    let mut leader = Leader::new(options());
    leader.must(create("/a", b""));
    let acl = AclBuf::new();
    for (imported, next) in [(i32::MAX, i32::MIN), (-2, 0), (-1, 0), (-3, -2)] {
        import(&mut leader, TxnBody::SetData { path: "/a", data: None, version: imported });
        import(&mut leader, TxnBody::SetAcl { path: "/a", acl: acl.as_list(), version: imported });
        leader.must(Request::SetData { path: "/a", data: None, version: imported });
        leader.must(Request::SetAcl { path: "/a", acl: open(), version: imported });
        let stat = leader.tree.exists("/a").unwrap();
        assert_eq!((stat.version, stat.aversion), (next, next));
    }
}

#[test]
fn tx_03_numbers_of_sequential_nodes_go_on_past_the_end() {
    let mut leader = Leader::new(options());
    leader.must(create("/q", b""));
    let next = |leader: &mut Leader<'static>| {
        assert_eq!(leader.propose(create_as(CreateMode::PersistentSequential, "/q/n")), Code::OK);
        leader.created().to_owned()
    };
    assert_eq!(next(&mut leader), "/q/n0000000000");
    leader.apply_all();
    import_cversion(&mut leader, "/q", i32::MAX);
    assert_eq!(next(&mut leader), "/q/n2147483647");
    assert_eq!(next(&mut leader), "/q/n-2147483648");
    leader.apply_all();
    assert_eq!(next(&mut leader), "/q/n-2147483647");
    leader.apply_all();
    for cversion in [i32::MIN / 2, -1] {
        import_cversion(&mut leader, "/q", cversion);
    }
    assert_eq!(next(&mut leader), "/q/n-000000001");
    assert_eq!(next(&mut leader), "/q/n0000000001", "0 is taken");
    leader.apply_all();
    assert_eq!(leader.tree.get("/q").unwrap().stored().cversion, 2);
}

#[test]
fn tx_05_nothing_bad_gets_into_the_log() {
    let mut leader = Leader::new(options().enforce_quota(true));
    let long = format!("/{}", "a".repeat(1 << 21)).leak();
    let paths = [
        "",
        "a",
        "//",
        "/a/",
        "/a//b",
        "/./",
        "/../",
        "/.",
        "/a/..",
        "/\0",
        "/\u{1}",
        "/\u{fffe}",
        "/\u{e000}",
    ];
    for path in paths {
        for request in [create(path, b""), set(path, b""), delete(path), Request::DeleteRecursive { path }] {
            let code = leader.propose(request);
            assert!([Code::BAD_ARGUMENTS, Code::NO_NODE].contains(&code), "{request:?}: {code}");
            let code = leader.propose(Request::Multi(Vec::leak(vec![request])));
            assert!([Code::BAD_ARGUMENTS, Code::NO_NODE].contains(&code), "{request:?}: {code}");
        }
    }
    for path in ["/\0", "/\u{1}", "//", "/\u{fffe}", ""] {
        let code = leader.propose(create_as(CreateMode::PersistentSequential, path));
        assert_eq!(code, Code::BAD_ARGUMENTS, "{path:?}");
    }
    assert_eq!(leader.propose(create("/", b"")), Code::NODE_EXISTS);
    assert_eq!(leader.propose(create("/zookeeper", b"")), Code::NODE_EXISTS);
    assert_eq!(leader.propose(create(long, b"")), Code::MARSHALLING_ERROR);
    assert_eq!(leader.propose(create("/a", Vec::leak(vec![0; 1 << 21]))), Code::MARSHALLING_ERROR);
    let op = create("/a", Vec::leak(vec![0; 700_000]));
    let ops = Vec::leak(vec![op, set("/a", b""), set("/a", Vec::leak(vec![0; 700_000]))]);
    assert_eq!(leader.propose(Request::Multi(ops)), Code::MARSHALLING_ERROR);
    for (scheme, id) in
        [("", ""), ("world", ""), ("nobody", "knows"), ("digest", "x"), ("ip", "1.2.3"), ("auth", "")]
    {
        let acl = Vec::leak(vec![Acl::new(Perms::ALL, scheme, id)]);
        assert_eq!(leader.propose(create_with(acl, "/a")), Code::INVALID_ACL, "{scheme}:{id}");
    }
    assert_eq!(leader.propose(create_with(&[], "/a")), Code::INVALID_ACL);
    // What stopped ZooKeeper's servers in the middle of a change: numbers that are none, and a quota of the root.
    for path in
        ["/zookeeper/quota/zookeeper_limits", "/zookeeper/quota/zookeeper_stats", "/zookeeper/quota/a"]
    {
        leader.must(create(path, b"\xff=,;count"));
    }
    leader.must(create("/zookeeper/quota/a/zookeeper_limits", b"bytes==;countHardLimit=9e9"));
    leader.must(create("/zookeeper/quota/a/zookeeper_stats", b"count="));
    leader.must(create("/a", b""));
    assert_eq!(stats(&leader, "/a"), "count=1,bytes=0");
    assert_eq!(leader.tree.len(), 4 + 6);
}

#[test]
fn tx_07_lists_in_a_txn_do_not_depend_on_hashes() {
    // Each leader has hash seeds of its own.
    let lists = [0, 50, 100].map(|applied| {
        let mut leader = Leader::new(options());
        leader.begin_session(5);
        for n in 0..100 {
            let path = format!("/{}", (n * 37) % 100).leak();
            assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, path)), Code::OK);
        }
        leader.apply(applied);
        assert_eq!(leader.propose(Request::CloseSession), Code::OK);
        leader.last().to_buf()
    });
    assert!(lists.iter().all(|list| *list == lists[0]));
}

#[test]
fn lg_01_a_session_with_more_nodes_than_a_txn_takes_goes_in_several() {
    let mut leader = Leader::new(options());
    leader.begin_session(5);
    leader.must(create("/p", b""));
    let name = "n".repeat(90);
    for n in 0..20_000 {
        let path = format!("/p/{name}{n:06}").leak();
        assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, path)), Code::OK);
        if n == 15_000 {
            leader.apply_all();
        }
    }
    let mut txns = 0;
    loop {
        assert_eq!(leader.propose(Request::CloseSession), Code::OK);
        assert!(leader.last().to_buf().as_bytes().len() as u64 <= crate::base::limits::RECORD_BYTES_DEFAULT);
        txns += 1;
        if !leader.last().is_unfinished() {
            break;
        }
        let code = leader.propose(create("/late", b""));
        assert_eq!(code, Code::SESSION_EXPIRED, "it can do nothing in between");
    }
    assert_eq!(txns, 2);
    leader.apply_all();
    assert!(leader.tree.sessions().is_empty() && leader.tree.ephemeral_owners().is_empty());
    assert_eq!(leader.tree.get("/p").unwrap().child_count(), 0);
}

#[test]
fn lg_03_deep_paths_need_no_stack() {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let deep = small.spawn(|| {
        let mut leader = Leader::new(options().enforce_quota(true).txn_bytes_max(1 << 30));
        let levels = 2000;
        let path = "/a".repeat(levels).leak();
        for level in 1..=levels {
            assert_eq!(leader.propose(create(&path[..2 * level], b"1")), Code::OK);
            if level == levels / 2 {
                leader.apply_all();
            }
        }
        for path in [
            "/zookeeper/quota/a",
            "/zookeeper/quota/a/zookeeper_limits",
            "/zookeeper/quota/a/zookeeper_stats",
        ] {
            assert_eq!(leader.propose(create(path, b"countHardLimit=2000")), Code::OK);
        }
        assert_eq!(leader.propose(create("/a/b", b"")), Code::QUOTA_EXCEEDED);
        leader.apply_all();
        assert_eq!(stats(&leader, "/a"), "count=2000,bytes=2000");
        leader.must(Request::DeleteRecursive { path: "/a" });
        assert_eq!(leader.tree.len(), 4 + 3);
    });
    deep.unwrap().join().unwrap();
}
