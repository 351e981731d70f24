//! A leader in small, and what the tests of this module share.

mod faults;
mod orders;
mod pipelined;
mod quotas;
mod session;

use super::super::acl_check::Identity;
use super::super::data_tree::DataTree;
use super::*;
use crate::base::{Code, Zxid};
use crate::format::{Acl, Perms, TxnBody};

/// Proposes, and applies when it is told to.
struct Leader<'r> {
    tree: DataTree,
    proposer: Proposer,
    zxid: u64,
    time_ms: i64,
    session_id: i64,
    identities: Vec<Identity>,
    /// What is proposed and not applied.
    log: Vec<Proposal<'r>>,
}

impl<'r> Leader<'r> {
    fn new(options: ProposeOptions) -> Leader<'r> {
        Leader {
            tree: DataTree::new(),
            proposer: Proposer::new(options),
            zxid: 0,
            time_ms: 1_700_000_000_000,
            session_id: 0,
            identities: Vec::new(),
            log: Vec::new(),
        }
    }

    fn propose(&mut self, request: Request<'r>) -> Code {
        self.zxid += 1;
        self.time_ms += 1;
        let context = RequestContext {
            zxid: Zxid::new(self.zxid),
            time_ms: self.time_ms,
            session_id: self.session_id,
            cxid: 0,
            identities: &self.identities,
        };
        let proposal = self.proposer.propose(&self.tree, &request, &context);
        let code = proposal.code();
        self.log.push(proposal);
        code
    }

    fn last(&self) -> &Proposal<'r> {
        self.log.last().unwrap()
    }

    fn created(&self) -> &str {
        self.last().created_path(0).unwrap()
    }

    /// Applies the oldest `count` of what is proposed. What was proposed as good is good when it is applied.
    fn apply(&mut self, count: usize) {
        for proposal in self.log.drain(..count) {
            let txn = proposal.to_buf();
            proposal.with_txn(|proposed| assert_eq!(txn.as_txn(), *proposed, "it reads as it was written"));
            assert!(txn.as_bytes().len() as u64 <= proposal.body.bytes_max(), "{proposal:?}");
            let outcome = self.tree.apply(&txn.as_txn(), &mut ());
            assert_eq!(outcome.code(), proposal.code(), "{proposal:?}");
            self.proposer.applied(proposal.zxid());
        }
    }

    fn apply_all(&mut self) {
        self.apply(self.log.len());
        assert_eq!(self.proposer.outstanding_len(), 0, "nothing is kept that the tree has");
    }

    /// Proposes and applies at once.
    fn must(&mut self, request: Request<'r>) {
        assert_eq!(self.propose(request), Code::OK, "{request:?}");
        self.apply_all();
    }

    fn begin_session(&mut self, id: i64) {
        self.session_id = id;
        self.must(Request::CreateSession { timeout_ms: 1000 });
    }
}

/// A list that lets everybody do everything.
fn open() -> &'static [Acl] {
    Vec::leak(vec![Acl::open()])
}

/// A list that grants everybody these permissions.
fn world(perms: Perms) -> &'static [Acl] {
    Vec::leak(vec![Acl::new(perms, "world", "anyone")])
}

fn create<'r>(path: &'r str, data: &'r [u8]) -> Request<'r> {
    Request::Create(CreateRequest::new(path, data, open()))
}

fn create_as(mode: CreateMode, path: &str) -> Request<'_> {
    Request::Create(CreateRequest { mode, ..CreateRequest::new(path, b"", open()) })
}

fn create_with<'r>(acl: &'r [Acl], path: &'r str) -> Request<'r> {
    Request::Create(CreateRequest::new(path, b"", acl))
}

fn delete(path: &str) -> Request<'_> {
    Request::Delete { path, version: -1 }
}

fn set<'r>(path: &'r str, data: &'r [u8]) -> Request<'r> {
    Request::SetData { path, data: Some(data), version: -1 }
}

fn options() -> ProposeOptions {
    ProposeOptions::new().extended_types(true)
}
