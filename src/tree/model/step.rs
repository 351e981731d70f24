use crate::base::{Code, Zxid};
use crate::format::{AclBuf, Create, CreateKind, Ops, Paths, Txn, TxnBody};
use crate::tree::{DataTree, Observer, Outcome};

/// A txn that owns what is in it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Step {
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
    pub(super) session_id: i64,
    pub(super) op: Op,
}

/// What a txn does, owned.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Op {
    Create {
        path: String,
        data: Option<Vec<u8>>,
        acl: AclBuf,
        kind: CreateKind,
        parent_cversion: Option<i32>,
    },
    Delete {
        path: String,
    },
    DeleteContainer {
        path: String,
    },
    DeleteAll {
        paths: Vec<String>,
    },
    SetData {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    Reconfig {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: AclBuf,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession {
        paths: Option<Vec<String>>,
    },
    Error {
        code: Code,
    },
    Multi(Vec<Op>),
}

impl Step {
    pub(super) fn apply_to(&self, tree: &mut DataTree, observer: &mut impl Observer) -> Outcome {
        self.with_txn(|txn| tree.apply(txn, observer))
    }

    /// Hands out the txn, which borrows from here.
    pub(super) fn with_txn<T>(&self, take: impl FnOnce(&Txn<'_>) -> T) -> T {
        let ops: Vec<TxnBody<'_>>;
        let body = if let Op::Multi(list) = &self.op {
            ops = list.iter().map(Op::body).collect();
            TxnBody::Multi(Ops::from_slice(&ops))
        } else {
            self.op.body()
        };
        let (zxid, time_ms, session_id) = (self.zxid, self.time_ms, self.session_id);
        take(&Txn { zxid, time_ms, session_id, cxid: 0, digest: None, body })
    }
}

impl Op {
    /// Of any operation but a multi.
    fn body(&self) -> TxnBody<'_> {
        match self {
            Op::Create { path, data, acl, kind, parent_cversion } => TxnBody::Create(Create {
                path,
                data: data.as_deref(),
                acl: acl.as_list(),
                kind: *kind,
                parent_cversion: *parent_cversion,
            }),
            Op::Delete { path } => TxnBody::Delete { path },
            Op::DeleteContainer { path } => TxnBody::DeleteContainer { path },
            Op::DeleteAll { paths } => TxnBody::DeleteAll { paths: Paths::from_slice(paths) },
            Op::SetData { path, data, version } => {
                TxnBody::SetData { path, data: data.as_deref(), version: *version }
            }
            Op::Reconfig { path, data, version } => {
                TxnBody::Reconfig { path, data: data.as_deref(), version: *version }
            }
            Op::SetAcl { path, acl, version } => {
                TxnBody::SetAcl { path, acl: acl.as_list(), version: *version }
            }
            Op::Check { path, version } => TxnBody::Check { path, version: *version },
            Op::CreateSession { timeout_ms } => TxnBody::CreateSession { timeout_ms: *timeout_ms },
            Op::CloseSession { paths } => {
                TxnBody::CloseSession { paths: paths.as_deref().map(Paths::from_slice) }
            }
            Op::Error { code } => TxnBody::Error { code: *code },
            Op::Multi(_) => unreachable!("a multi holds no multi"),
        }
    }
}
