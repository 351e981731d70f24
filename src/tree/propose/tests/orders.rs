//! Which of several faults a client is told: the first that ZooKeeper meets.

use super::*;

/// What is wrong with a request, from what is found last to what is found first. Each list is checked from the end
/// of it on: with all faults the last is told, without that one the one before it.
fn told_in_order(faults: &[(&str, Code)], attempt: impl Fn(&[&str]) -> Code) {
    for count in 0..=faults.len() {
        let wrong: Vec<&str> = faults[..count].iter().map(|(fault, _)| *fault).collect();
        let expected = faults[..count].last().map_or(Code::OK, |(_, code)| *code);
        assert_eq!(attempt(&wrong), expected, "{wrong:?}");
    }
}

#[test]
fn creates_are_checked_in_order() {
    let faults = [
        ("quota", Code::QUOTA_EXCEEDED),
        ("ephemeral parent", Code::NO_CHILDREN_FOR_EPHEMERALS),
        ("exists", Code::NODE_EXISTS),
        ("bad path", Code::BAD_ARGUMENTS),
        ("no auth", Code::NO_AUTH),
        ("no parent", Code::NO_NODE),
        ("bad acl", Code::INVALID_ACL),
        ("bad form", Code::BAD_ARGUMENTS),
        ("dead session", Code::SESSION_EXPIRED),
        ("bad ttl", Code::BAD_ARGUMENTS),
        ("no ttl", Code::UNIMPLEMENTED),
    ];
    told_in_order(&faults, |wrong| {
        let is = |fault| wrong.contains(&fault);
        let mut leader = Leader::new(options().extended_types(!is("no ttl")).enforce_quota(true));
        leader.begin_session(5);
        let parent_mode = if is("ephemeral parent") { CreateMode::Ephemeral } else { CreateMode::Persistent };
        let perms = if is("no auth") { Perms::READ } else { Perms::ALL };
        if !is("no parent") {
            leader.must(Request::Create(CreateRequest {
                mode: parent_mode,
                ..CreateRequest::new("/p", b"", world(perms))
            }));
        }
        if is("exists") && !is("ephemeral parent") {
            leader.must(create("/p/n", b""));
        }
        if is("quota") {
            leader.must(create("/zookeeper/quota/p", b""));
            leader.must(create("/zookeeper/quota/p/zookeeper_limits", b"countHardLimit=1"));
        }
        if is("dead session") {
            leader.propose(Request::CloseSession);
        }
        let path = if is("bad form") {
            "p"
        } else if is("bad path") {
            "/p/n\u{1}"
        } else {
            "/p/n"
        };
        let acl = if is("bad acl") { &[] } else { open() };
        let ttl_ms = i64::from(!is("bad ttl"));
        let request =
            CreateRequest { mode: CreateMode::Ttl { ttl_ms }, ..CreateRequest::new(path, b"", acl) };
        // A node cannot be there under an ephemeral one, so its turn is its parent's path.
        let request =
            if is("exists") && is("ephemeral parent") && path == "/p/n" && !is("no parent") && !is("no auth")
            {
                leader.must(create("/x", b""));
                CreateRequest { path: "/x", ..request }
            } else {
                request
            };
        leader.propose(Request::Create(request))
    });
}

#[test]
fn deletes_are_checked_in_order() {
    let faults = [
        ("children", Code::NOT_EMPTY),
        ("version", Code::BAD_VERSION),
        ("no node", Code::NO_NODE),
        ("no auth", Code::NO_AUTH),
        ("no parent", Code::NO_NODE),
        ("bad form", Code::BAD_ARGUMENTS),
        ("dead session", Code::SESSION_EXPIRED),
    ];
    told_in_order(&faults, |wrong| {
        let is = |fault| wrong.contains(&fault);
        let mut leader = Leader::new(options());
        leader.begin_session(5);
        leader.must(create("/p", b""));
        if !is("no node") {
            leader.must(create("/p/n", b""));
        }
        if is("children") && !is("no node") {
            leader.must(create("/p/n/c", b""));
        }
        let perms = if is("no auth") { Perms::new(31 & !8) } else { Perms::DELETE };
        leader.must(Request::SetAcl { path: "/p", acl: world(perms), version: -1 });
        if is("dead session") {
            leader.propose(Request::CloseSession);
        }
        let path = match () {
            () if is("bad form") => "p",
            () if is("no parent") => "/none/n",
            () => "/p/n",
        };
        leader.propose(Request::Delete { path, version: if is("version") { 7 } else { 0 } })
    });
    let mut leader = Leader::new(options());
    for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "a", "", "/a\0"] {
        assert_eq!(leader.propose(delete(path)), Code::BAD_ARGUMENTS, "{path:?}");
        assert_eq!(leader.propose(Request::DeleteRecursive { path }), Code::BAD_ARGUMENTS, "{path:?}");
    }
    leader.must(create("/zookeeper/x", b""));
    leader.must(delete("/zookeeper/x"));
}

#[test]
fn other_requests_are_checked_in_order() {
    let faults = [
        ("version", Code::BAD_VERSION),
        ("quota", Code::QUOTA_EXCEEDED),
        ("no auth", Code::NO_AUTH),
        ("no node", Code::NO_NODE),
        ("bad acl", Code::INVALID_ACL),
        ("bad path", Code::BAD_ARGUMENTS),
        ("dead session", Code::SESSION_EXPIRED),
    ];
    for kind in ["set", "acl", "check", "stat"] {
        let of_kind = |fault: &str| match fault {
            "quota" => kind == "set",
            "bad acl" => kind == "acl",
            _ => true,
        };
        let faults: Vec<_> = faults.iter().copied().filter(|(fault, _)| of_kind(fault)).collect();
        told_in_order(&faults, |wrong| {
            let is = |fault| wrong.contains(&fault);
            let mut leader = Leader::new(options().enforce_quota(true));
            leader.begin_session(5);
            if !is("no node") {
                let wanted = match kind {
                    "set" => Perms::WRITE,
                    "acl" => Perms::ADMIN,
                    _ => Perms::READ,
                };
                let perms = if is("no auth") { Perms::new(31 & !wanted.get()) } else { wanted };
                leader.must(create_with(world(perms), "/n"));
            }
            if is("quota") {
                leader.must(create("/zookeeper/quota/n", b""));
                leader.must(create("/zookeeper/quota/n/zookeeper_limits", b"byteHardLimit=0"));
            }
            if is("dead session") {
                leader.propose(Request::CloseSession);
            }
            let path = if is("bad path") { "/n/" } else { "/n" };
            let version = if is("version") { 7 } else { 0 };
            leader.propose(match kind {
                "set" => Request::SetData { path, data: Some(b"1"), version },
                "acl" => Request::SetAcl { path, acl: if is("bad acl") { &[] } else { open() }, version },
                "check" => Request::Check { path, version },
                _ => {
                    let expected = StatCheck { version: Some(version), ..StatCheck::default() };
                    Request::CheckStat { path, expected }
                }
            })
        });
    }
}

#[test]
fn versions_go_up_from_the_one_that_is_expected() {
    let mut leader = Leader::new(options());
    leader.must(create("/a", b""));
    leader.must(Request::SetData { path: "/a", data: None, version: 0 });
    leader.must(Request::SetAcl { path: "/a", acl: open(), version: 0 });
    leader.must(Request::SetAcl { path: "/a", acl: open(), version: 1 });
    let stat = leader.tree.exists("/a").unwrap();
    assert_eq!((stat.version, stat.aversion), (1, 2));
    assert_eq!(leader.propose(Request::Delete { path: "/a", version: 0 }), Code::BAD_VERSION);
    assert_eq!(leader.propose(Request::Delete { path: "/a", version: 1 }), Code::OK);
}

#[test]
fn who_may_do_what_depends_on_the_identity() {
    let mut leader = Leader::new(options());
    leader.identities = vec![Identity::new("digest", "bob:h")];
    let auth = Vec::leak(vec![Acl::new(Perms::ALL, "auth", "")]);
    leader.must(create_with(auth, "/a"));
    let stored: Vec<_> = leader.tree.get("/a").unwrap().acl().iter().map(|e| (e.scheme, e.id)).collect();
    assert_eq!(stored, [("digest", "bob:h")]);
    leader.must(set("/a", b"1"));
    leader.identities = vec![Identity::new("digest", "eve:h")];
    assert_eq!(leader.propose(set("/a", b"1")), Code::NO_AUTH);
    leader.identities = vec![Identity::new("super", "")];
    assert_eq!(leader.propose(set("/a", b"1")), Code::OK);
    let mut lax = Leader::new(options().skip_acl(true));
    lax.must(create_with(world(Perms::READ), "/a"));
    lax.must(set("/a", b"1"));
    assert_eq!(lax.propose(create_with(&[], "/b")), Code::INVALID_ACL, "lists are looked at all the same");
}

#[test]
fn modes_have_zookeepers_numbers() {
    use CreateMode::*;
    let modes = [Persistent, Ephemeral, PersistentSequential, EphemeralSequential, Container];
    for (flags, mode) in (0..).zip(modes) {
        assert_eq!(CreateMode::from_flags(flags, -1), Ok(mode));
        assert_eq!(CreateMode::from_flags(flags, 0), Err(Code::BAD_ARGUMENTS));
    }
    assert_eq!(CreateMode::from_flags(5, 9), Ok(Ttl { ttl_ms: 9 }));
    assert_eq!(CreateMode::from_flags(6, 9), Ok(TtlSequential { ttl_ms: 9 }));
    for flags in [-1, 7, i32::MAX] {
        assert_eq!(CreateMode::from_flags(flags, -1), Err(Code::BAD_ARGUMENTS));
    }
}

#[test]
fn sequential_nodes_take_their_parents_count() {
    let mut leader = Leader::new(options());
    let next = |leader: &mut Leader<'static>, path| {
        assert_eq!(leader.propose(create_as(CreateMode::PersistentSequential, path)), Code::OK);
        leader.created().to_owned()
    };
    leader.must(create("/q", b""));
    assert_eq!(next(&mut leader, "/q/s-"), "/q/s-0000000000");
    assert_eq!(leader.propose(create("/q/other", b"")), Code::OK, "counts as well");
    assert_eq!(leader.propose(create("/q/other", b"")), Code::NODE_EXISTS, "does not count");
    assert_eq!(leader.propose(delete("/q/other")), Code::OK, "nor does this");
    assert_eq!(next(&mut leader, "/q/"), "/q/0000000002");
    assert_eq!(leader.propose(create("/q/s-0000000004", b"")), Code::OK);
    assert_eq!(next(&mut leader, "/q/s-"), "/q/s-0000000005", "the next that is free");
    leader.apply_all();
    assert_eq!(next(&mut leader, "/q/s-"), "/q/s-0000000006");
    assert_eq!(next(&mut leader, "/"), "/0000000001", "the root has had one child");
    leader.apply_all();
    assert_eq!(leader.tree.get("/q").unwrap().stored().cversion, 7);
}

#[test]
fn what_zookeeper_does_not_have() {
    let mut leader = Leader::new(options());
    let absent = |path, data| Request::CreateIfAbsent(CreateRequest::new(path, data, open()));
    assert_eq!(leader.propose(absent("/a", b"1")), Code::OK);
    assert_eq!((leader.created(), leader.last().existing_stat(0)), ("/a", None));
    let czxid = leader.last().zxid();
    assert_eq!(leader.propose(absent("/a", b"22")), Code::OK);
    let stat = leader.last().existing_stat(0).expect("it is there");
    assert_eq!((stat.czxid, stat.data_bytes), (czxid, 1));
    leader.apply_all();
    assert_eq!(leader.tree.exists("/a"), Some(stat));
    let upsert = |path, data| Request::Upsert(CreateRequest::new(path, data, open()));
    leader.must(upsert("/a", b"333"));
    leader.must(upsert("/b", b"4"));
    assert_eq!(leader.tree.exists("/a").unwrap().version, 1);
    assert_eq!(leader.tree.get("/b").unwrap().data(), Some(&b"4"[..]));
    assert_eq!(leader.propose(Request::CheckNotExists { path: "/c" }), Code::OK);
    assert_eq!(leader.propose(Request::CheckNotExists { path: "/a" }), Code::NODE_EXISTS);
    let stat_check = |expected| Request::CheckStat { path: "/a", expected };
    assert_eq!(
        leader.propose(stat_check(StatCheck { czxid: Some(czxid), ..StatCheck::default() })),
        Code::OK
    );
    let other = StatCheck { czxid: Some(Zxid::new(77)), ..StatCheck::default() };
    assert_eq!(leader.propose(stat_check(other)), Code::BAD_VERSION);
    for request in [Request::CreateIfAbsent, Request::Upsert] {
        let mode = CreateMode::PersistentSequential;
        let create = CreateRequest { mode, ..CreateRequest::new("/s-", b"", open()) };
        assert_eq!(leader.propose(request(create)), Code::BAD_ARGUMENTS);
    }
    let secret = create_with(world(Perms::WRITE), "/secret");
    leader.must(secret);
    assert_eq!(leader.propose(absent("/secret", b"")), Code::NO_AUTH, "its Stat takes READ");
    assert_eq!(leader.propose(Request::CheckNotExists { path: "/secret" }), Code::NO_AUTH);
}

#[test]
fn a_subtree_goes_at_once_and_children_first() {
    let mut leader = Leader::new(options());
    for path in ["/a", "/a/b", "/a/b/c", "/a-", "/a-/x"] {
        leader.must(create(path, b""));
    }
    // Some of it is only on its way.
    for request in [create("/a/d", b""), delete("/a/b/c"), create("/a/b/e", b"")] {
        assert_eq!(leader.propose(request), Code::OK);
    }
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/a" }), Code::OK);
    leader.last().with_txn(|txn| {
        let TxnBody::DeleteAll { paths } = txn.body else { panic!("{txn:?}") };
        assert_eq!(paths.iter().collect::<Vec<_>>(), ["/a/d", "/a/b/e", "/a/b", "/a"]);
    });
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/a" }), Code::NO_NODE);
    leader.apply_all();
    assert!(leader.tree.get("/a").is_none() && leader.tree.get("/a-/x").is_some());

    leader.must(create("/p", b""));
    leader.must(create_with(world(Perms::new(31 & !8)), "/p/q"));
    leader.must(create("/p/q/r", b""));
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/p" }), Code::NO_AUTH, "not under /p/q");
    leader.proposer = Proposer::new(options().txn_bytes_max(100));
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/a-" }), Code::OK);
    leader.apply_all();
    for path in ["/long", "/long/0123456789", "/long/0123456789/0123456789"] {
        leader.proposer = Proposer::new(options());
        leader.must(create(path, b""));
    }
    leader.proposer = Proposer::new(options().txn_bytes_max(100));
    assert_eq!(leader.propose(Request::DeleteRecursive { path: "/long" }), Code::MARSHALLING_ERROR);
    assert_eq!(leader.proposer.outstanding_len(), 0);
}

#[test]
fn a_multi_is_all_or_nothing() {
    let mut leader = Leader::new(options());
    let ops = [
        create("/a", b"1"),
        Request::Check { path: "/a", version: 0 },
        set("/a", b"2"),
        Request::CreateIfAbsent(CreateRequest::new("/a", b"", open())),
        create_as(CreateMode::PersistentSequential, "/a/s-"),
    ];
    assert_eq!(leader.propose(Request::Multi(&ops)), Code::OK);
    assert_eq!(leader.last().created_path(4), Some("/a/s-0000000000"));
    assert_eq!(leader.last().existing_stat(3).unwrap().version, 1);
    assert_eq!((leader.last().existing_stat(2), leader.last().existing_stat(4)), (None, None));

    let failing = [set("/a", b"3"), create("/a/b", b""), delete("/none"), create("/c", b""), delete("/none")];
    let kept = leader.proposer.outstanding_len();
    assert_eq!(leader.propose(Request::Multi(&failing)), Code::NO_NODE);
    assert_eq!(leader.proposer.outstanding_len(), kept, "nothing of it stays");
    leader.last().with_txn(|txn| {
        let TxnBody::Multi(ops) = txn.body else { panic!("{txn:?}") };
        let ops: Vec<_> = ops.iter().collect();
        assert_eq!(ops[0], TxnBody::SetData { path: "/a", data: Some(b"3"), version: 2 });
        assert!(matches!(ops[1], TxnBody::Create(create) if create.path == "/a/b"));
        assert_eq!(ops[2], TxnBody::Error { code: Code::NO_NODE });
        assert_eq!(ops[3..], [TxnBody::Error { code: Code::RUNTIME_INCONSISTENCY }; 2]);
    });
    assert_eq!(leader.propose(Request::Check { path: "/a", version: 1 }), Code::OK);
    let refused = [
        Request::Multi(&[]),
        Request::CloseSession,
        Request::CreateSession { timeout_ms: 1 },
        Request::Reconfig { data: None },
    ];
    for request in refused {
        assert_eq!(leader.propose(Request::Multi(Vec::leak(vec![request]))), Code::BAD_ARGUMENTS);
    }
    assert_eq!(leader.propose(Request::Multi(&[])), Code::OK);
    leader.apply_all();
    assert_eq!(leader.tree.get("/a").unwrap().data(), Some(&b"2"[..]));
}

#[test]
fn the_configuration_is_set_by_whom_its_acl_lets() {
    let mut leader = Leader::new(options());
    let request = Request::Reconfig { data: Some(b"server.1") };
    assert_eq!(leader.propose(request), Code::NO_AUTH);
    leader.identities = vec![Identity::new("super", "")];
    leader.must(request);
    leader.must(request);
    let config = leader.tree.get("/zookeeper/config").unwrap();
    assert_eq!((config.stat().version, config.data()), (-1, Some(&b"server.1"[..])));
}
