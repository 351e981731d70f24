//! Requests that build on each other get the same txns, whether or not those before them are applied.

use std::collections::BTreeSet;

use super::*;
use crate::base::Random;
use crate::format::Txn;

const PATHS: &[&str] = &["/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/q", "/q/s-", "/", "/zookeeper/x"];
const LIMITS: &[&str] = &["/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/b/zookeeper_limits"];
const TEXTS: &[&[u8]] =
    &[b"", b"countHardLimit=3", b"count=1,bytes=2=;byteHardLimit=20;countHardLimit=6", b"x"];

/// Draws requests; what they borrow lives as long as the test.
struct Client {
    random: Random,
    acls: Vec<&'static [Acl]>,
}

impl Client {
    fn new(seed: u64) -> Client {
        let some = Acl::new(Perms::READ | Perms::CREATE, "world", "anyone");
        let mine = Acl::new(Perms::ALL, "digest", "me:h");
        let acls = [vec![Acl::open()], vec![Acl::open()], vec![some, mine], vec![]];
        Client { random: Random::from_seed(seed), acls: acls.into_iter().map(|a| &*Vec::leak(a)).collect() }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() >> 8).unwrap() % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn version(&mut self) -> i32 {
        self.pick(&[-1, -1, -1, 0, 1, 2])
    }

    fn create(&mut self) -> CreateRequest<'static> {
        use CreateMode::*;
        let ttl_ms = self.pick(&[5, 5, 0]);
        let mode = self.pick(&[
            Persistent,
            Persistent,
            Persistent,
            Ephemeral,
            PersistentSequential,
            EphemeralSequential,
            Container,
            Ttl { ttl_ms },
            TtlSequential { ttl_ms },
        ]);
        let acl = self.pick(&self.acls.clone());
        CreateRequest {
            mode,
            with_stat: self.below(2) == 0,
            ..CreateRequest::new(self.pick(PATHS), b"12345", acl)
        }
    }

    fn single(&mut self) -> Request<'static> {
        let (path, version) = (self.pick(PATHS), self.version());
        match self.below(16) {
            0..5 => Request::Create(self.create()),
            5 => Request::CreateIfAbsent(self.create()),
            6 => Request::Upsert(self.create()),
            7 | 8 => Request::Delete { path, version },
            9 => Request::DeleteRecursive { path },
            10 => Request::DeleteContainer { path },
            11 => Request::SetAcl { path, acl: self.pick(&self.acls.clone()), version },
            12 => Request::Check { path, version },
            13 => Request::CheckNotExists { path },
            14 => {
                let child_count = Some(u32::try_from(self.below(3)).unwrap());
                Request::CheckStat { path, expected: StatCheck { child_count, ..StatCheck::default() } }
            }
            _ => {
                Request::SetData { path, data: self.pick(&[None, Some(b"1"), Some(b"0123456789")]), version }
            }
        }
    }

    /// Who asks. A session that has ended asks nothing any more: how long that is remembered depends on the tree.
    fn session(&mut self, ended: &[i64]) -> i64 {
        let id = self.pick(&[0, 1, 2, 3]);
        if ended.contains(&id) { 0 } else { id }
    }

    fn request(&mut self) -> Request<'static> {
        match self.below(24) {
            0..4 => Request::Multi(Vec::leak((0..self.below(5)).map(|_| self.single()).collect())),
            4 => Request::CreateSession { timeout_ms: 7 },
            5 => Request::CloseSession,
            6 => Request::Reconfig { data: Some(b"server.1") },
            7 => Request::Upsert(CreateRequest::new(self.pick(LIMITS), self.pick(TEXTS), self.acls[0])),
            8 => Request::Delete { path: self.pick(LIMITS), version: -1 },
            _ => self.single(),
        }
    }
}

fn same(a: &Proposal<'_>, b: &Proposal<'_>) {
    a.with_txn(|a: &Txn<'_>| b.with_txn(|b| assert_eq!(a, b)));
    for op in 0..5 {
        assert_eq!(a.existing_stat(op), b.existing_stat(op));
    }
}

fn leader() -> Leader<'static> {
    let mut leader = Leader::new(options().enforce_quota(true));
    for path in ["/zookeeper/quota/a", "/zookeeper/quota/a/b"] {
        leader.must(create(path, b""));
    }
    leader
}

/// What a client has asked for, and as whom.
type Asked = (Request<'static>, i64, Vec<Identity>);

/// One leader applies each txn before the next request, the other now and then; and now and then it takes back its
/// newest proposals and makes them again. Both are handed back with the codes that they met.
fn run(seed: u64) -> (Leader<'static>, Leader<'static>, BTreeSet<Code>) {
    let mut client = Client::new(seed);
    let (mut at_once, mut late) = (leader(), leader());
    let (mut requests, mut codes, mut ended) = (Vec::<Asked>::new(), BTreeSet::new(), Vec::new());
    for _ in 0..300 {
        let (request, session_id) = (client.request(), client.session(&ended));
        if matches!(request, Request::CloseSession) && session_id != 0 {
            ended.push(session_id);
        }
        let identities = if client.below(4) == 0 { vec![] } else { vec![Identity::new("digest", "me:h")] };
        for leader in [&mut at_once, &mut late] {
            (leader.session_id, leader.identities) = (session_id, identities.clone());
            codes.insert(leader.propose(request));
        }
        same(at_once.last(), late.last());
        requests.push((request, session_id, identities));
        at_once.apply_all();
        if client.below(10) == 0 {
            let count = client.below(late.log.len() + 1);
            take_back(&mut late, count, &requests);
        }
        if client.below(6) == 0 {
            let count = client.below(late.log.len() + 1);
            late.apply(count);
        }
    }
    late.apply_all();
    (at_once, late, codes)
}

#[test]
fn a_leader_that_applies_late_proposes_the_same() {
    let mut met = BTreeSet::new();
    for seed in 0..60 {
        let (at_once, late, codes) = run(seed);
        met.extend(codes);
        assert_eq!(late.tree.digest(), at_once.tree.digest(), "seed {seed}");
        assert_eq!(late.tree.sessions(), at_once.tree.sessions());
        for root in ["/a", "/a/b"] {
            assert_eq!(late.tree.quotas.state(root), at_once.tree.quotas.state(root), "seed {seed}");
        }
    }
    let expected = [
        Code::OK,
        Code::BAD_ARGUMENTS,
        Code::SESSION_EXPIRED,
        Code::NO_NODE,
        Code::NO_AUTH,
        Code::BAD_VERSION,
        Code::NO_CHILDREN_FOR_EPHEMERALS,
        Code::NODE_EXISTS,
        Code::NOT_EMPTY,
        Code::INVALID_ACL,
        Code::QUOTA_EXCEEDED,
    ];
    for code in expected {
        assert!(met.contains(&code), "{code} was never met");
    }
}

#[test]
fn pf_07_counts_are_what_a_recount_finds() {
    let mut quotas = 0;
    for seed in 100..130 {
        let tree = run(seed).1.tree;
        let mut path_bytes = 0;
        let mut ephemerals = 0;
        for node in tree.descendants("/", None) {
            path_bytes += node.path().len() as u64;
            ephemerals += usize::from(node.stat().ephemeral_owner != 0);
        }
        let totals = tree.subtree_totals("/").unwrap();
        assert_eq!(tree.len(), totals.nodes);
        assert_eq!(tree.approximate_bytes(), 1 + path_bytes + totals.data_bytes);
        let owned = tree.ephemeral_owners().into_iter().map(|id| tree.ephemeral_paths(id).len());
        assert_eq!(owned.sum::<usize>(), ephemerals);
        for root in ["/a", "/a/b"] {
            let Some(quota) = tree.quotas.state(root) else { continue };
            let totals = tree.subtree_totals(root).unwrap_or_default();
            let counted = (quota.nodes.cast_unsigned(), quota.bytes.cast_unsigned());
            assert_eq!(counted, (totals.nodes, totals.data_bytes), "{root}, seed {seed}");
            quotas += 1;
        }
    }
    assert!(quotas > 10, "{quotas} quotas were looked at");
}

fn take_back(late: &mut Leader<'static>, count: usize, requests: &[Asked]) {
    if count == 0 {
        return;
    }
    let before = late.log.split_off(late.log.len() - count);
    late.proposer.roll_back(before[0].zxid());
    late.zxid -= count as u64;
    late.time_ms -= i64::try_from(count).unwrap();
    for ((request, session_id, identities), before) in requests[requests.len() - count..].iter().zip(&before)
    {
        (late.session_id, late.identities) = (*session_id, identities.clone());
        late.propose(*request);
        same(before, late.last());
    }
}

#[test]
fn dependent_requests_go_in_one_group() {
    let mut leader = Leader::new(options());
    for request in [
        create("/a", b""),
        create("/a/b", b"1"),
        set("/a/b", b"22"),
        Request::SetData { path: "/a/b", data: None, version: 1 },
        Request::Check { path: "/a/b", version: 2 },
        delete("/a/b"),
        delete("/a"),
        create("/a", b"again"),
    ] {
        assert_eq!(leader.propose(request), Code::OK, "{request:?}");
    }
    assert_eq!(leader.propose(create("/a/b/c", b"")), Code::NO_NODE, "a deleted parent is gone at once");
    leader.apply_all();
    assert_eq!(leader.tree.get("/a").unwrap().data(), Some(&b"again"[..]));
    assert_eq!(leader.tree.len(), 5);
}

#[test]
fn an_acl_counts_from_the_request_on_that_sets_it() {
    let mut leader = Leader::new(options());
    leader.must(create("/a", b""));
    let none = world(Perms::READ);
    assert_eq!(leader.propose(Request::SetAcl { path: "/a", acl: none, version: -1 }), Code::OK);
    assert_eq!(leader.propose(set("/a", b"1")), Code::NO_AUTH);
    assert_eq!(leader.propose(create("/a/b", b"1")), Code::NO_AUTH);
    leader.apply_all();
    assert_eq!(leader.propose(set("/a", b"1")), Code::NO_AUTH);
}

#[test]
fn what_is_rolled_back_leaves_nothing_behind() {
    let mut leader = Leader::new(options().enforce_quota(true));
    leader.must(create("/zookeeper/quota/a", b""));
    leader.session_id = 5;
    let first = Request::Multi(Vec::leak(vec![
        create("/a", b""),
        create("/zookeeper/quota/a/zookeeper_limits", b"countHardLimit=9"),
    ]));
    assert_eq!(leader.propose(Request::CreateSession { timeout_ms: 1 }), Code::OK);
    assert_eq!(leader.propose(first), Code::OK);
    assert_eq!(leader.propose(create("/a/b", b"")), Code::OK);
    assert_eq!(leader.propose(set("/a", b"1")), Code::OK);
    assert_eq!(leader.propose(Request::CloseSession), Code::OK);
    // The tree comes to have what the rest was built on; the rest never happens.
    let rest = leader.log.split_off(2);
    leader.apply(2);
    leader.proposer.roll_back(rest[0].zxid());
    assert_eq!(leader.proposer.outstanding_len(), 0);
    assert_eq!(leader.propose(create("/a/b", b"")), Code::OK);
    assert_eq!(leader.propose(Request::Check { path: "/a", version: 0 }), Code::OK);
}
