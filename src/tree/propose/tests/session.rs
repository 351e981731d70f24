//! Sessions: who may own nodes, and what goes with them.

use super::*;

fn listed(leader: &Leader<'_>) -> Vec<String> {
    leader.last().with_txn(|txn| match txn.body {
        TxnBody::CloseSession { paths: Some(paths) } | TxnBody::DeleteAll { paths } => {
            paths.iter().map(str::to_owned).collect()
        }
        _ => panic!("{txn:?}"),
    })
}

#[test]
fn only_a_live_session_owns_nodes() {
    let mut leader = Leader::new(options());
    for id in [0, 5] {
        leader.session_id = id;
        assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, "/e")), Code::SESSION_EXPIRED, "{id}");
    }
    assert_eq!(leader.propose(create("/p", b"")), Code::OK, "anything else goes without");
    leader.session_id = 0;
    assert_eq!(leader.propose(Request::CloseSession), Code::BAD_ARGUMENTS, "the server has no end");
    leader.session_id = 5;
    assert_eq!(leader.propose(Request::CreateSession { timeout_ms: 9 }), Code::OK);
    assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, "/e")), Code::OK, "on its way is live");
    assert_eq!(leader.propose(Request::CloseSession), Code::OK);
    for request in [
        create_as(CreateMode::Ephemeral, "/f"),
        create("/f", b""),
        delete("/p"),
        set("/p", b""),
        Request::DeleteRecursive { path: "/p" },
        Request::SetAcl { path: "/p", acl: open(), version: -1 },
        Request::Check { path: "/p", version: -1 },
        Request::CheckNotExists { path: "/x" },
        Request::Reconfig { data: None },
        Request::Multi(&[Request::Check { path: "/p", version: -1 }]),
    ] {
        assert_eq!(leader.propose(request), Code::SESSION_EXPIRED, "{request:?}");
    }
    assert_eq!(leader.propose(Request::CloseSession), Code::OK, "of the server, at the same time");
    assert!(listed(&leader).is_empty());
    leader.apply_all();
    assert!(leader.tree.get("/e").is_none() && leader.tree.sessions().is_empty());
    assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, "/e")), Code::SESSION_EXPIRED);
}

/// As a leader without local sessions answers; what a server of 3.8.0 does with each of these was looked up in its log.
#[test]
fn a_session_that_nobody_knows_does_nothing_if_the_options_say_so() {
    let requests = [
        create_as(CreateMode::Ephemeral, "/e"),
        create_as(CreateMode::Ephemeral, "no path"),
        create_as(CreateMode::Container, "/c"),
        create("/p", b""),
        delete("/nope"),
        set("/nope", b""),
        Request::SetAcl { path: "/nope", acl: open(), version: -1 },
        Request::Check { path: "/nope", version: -1 },
        Request::Multi(&[Request::Check { path: "/", version: -1 }]),
    ];
    let mut leader = Leader::new(options().only_known_sessions(true));
    leader.session_id = 5;
    for request in requests {
        assert_eq!(leader.propose(request), Code::SESSION_EXPIRED, "{request:?}");
    }
    assert_eq!(leader.propose(Request::CreateSession { timeout_ms: 9 }), Code::OK);
    assert_eq!(leader.propose(create("/on-its-way", b"")), Code::OK);
    leader.apply_all();
    assert_eq!(leader.propose(create("/known", b"")), Code::OK);
    assert_eq!(leader.propose(Request::CloseSession), Code::OK);
    leader.apply_all();
    assert_eq!(leader.propose(create("/ended", b"")), Code::SESSION_EXPIRED);
    leader.session_id = 0;
    assert_eq!(leader.propose(create("/of-the-server", b"")), Code::OK);
}

#[test]
fn a_session_takes_with_it_what_it_has_by_then() {
    let mut leader = Leader::new(options());
    leader.begin_session(6);
    leader.must(create_as(CreateMode::Ephemeral, "/other"));
    leader.begin_session(5);
    leader.must(create("/p", b""));
    for path in ["/p/stays", "/p/deleted", "/p/replaced", "/p/changed"] {
        leader.must(create_as(CreateMode::Ephemeral, path));
    }
    for request in [
        delete("/p/deleted"),
        delete("/p/replaced"),
        create("/p/replaced", b""),
        create_as(CreateMode::EphemeralSequential, "/p/new-"),
        set("/p/changed", b"1"),
        create_as(CreateMode::Ephemeral, "/p/gone"),
        delete("/p/gone"),
        Request::CloseSession,
    ] {
        assert_eq!(leader.propose(request), Code::OK);
    }
    assert_eq!(listed(&leader), ["/p/changed", "/p/new-0000000005", "/p/stays"]);
    assert_eq!(leader.propose(create_as(CreateMode::Persistent, "/p/stays")), Code::SESSION_EXPIRED);
    leader.session_id = 6;
    assert_eq!(leader.propose(create("/p/stays", b"")), Code::OK, "the name is free at once");
    leader.apply_all();
    assert_eq!(leader.tree.ephemeral_owners(), [6]);
    assert_eq!(leader.tree.get("/p").unwrap().child_count(), 2);
}

#[test]
fn a_close_that_is_rolled_back_leaves_the_session_alive() {
    let mut leader = Leader::new(options());
    leader.begin_session(5);
    leader.must(create_as(CreateMode::Ephemeral, "/e"));
    assert_eq!(leader.propose(Request::CloseSession), Code::OK);
    leader.proposer.roll_back(leader.last().zxid());
    leader.log.clear();
    assert_eq!(leader.propose(create_as(CreateMode::Ephemeral, "/f")), Code::OK);
    assert_eq!(leader.propose(Request::CloseSession), Code::OK);
    assert_eq!(listed(&leader), ["/e", "/f"]);
}
