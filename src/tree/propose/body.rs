use std::borrow::Cow;
use std::sync::Arc;

use super::super::store::len_of;
use crate::base::Code;
use crate::format::{AclList, Create, CreateKind, Ops, Paths, TxnBody};

/// What a proposed txn does. Borrows from the request what it can.
#[derive(Clone, Debug)]
pub(super) enum Body<'r> {
    Create {
        path: Cow<'r, str>,
        data: Option<&'r [u8]>,
        acl: Arc<[u8]>,
        kind: CreateKind,
        parent_cversion: i32,
    },
    Delete {
        path: &'r str,
    },
    DeleteContainer {
        path: &'r str,
    },
    DeleteAll {
        paths: Vec<String>,
    },
    SetData {
        path: &'r str,
        data: Option<&'r [u8]>,
        version: i32,
    },
    Reconfig {
        path: &'r str,
        data: Option<&'r [u8]>,
        version: i32,
    },
    SetAcl {
        path: &'r str,
        acl: Arc<[u8]>,
        version: i32,
    },
    Check {
        path: &'r str,
        version: i32,
    },
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession {
        paths: Vec<String>,
    },
    Error {
        code: Code,
    },
    Multi(Vec<Body<'r>>),
}

impl Body<'_> {
    /// Hands out the same as a txn carries it.
    pub(super) fn with<T>(&self, take: impl FnOnce(TxnBody<'_>) -> T) -> T {
        if let Body::Multi(ops) = self {
            let ops: Vec<TxnBody<'_>> = ops.iter().map(Body::single).collect();
            return take(TxnBody::Multi(Ops::from_slice(&ops)));
        }
        take(self.single())
    }

    fn single(&self) -> TxnBody<'_> {
        match *self {
            Body::Create { ref path, data, ref acl, kind, parent_cversion } => TxnBody::Create(Create {
                path,
                data,
                acl: AclList::of_valid(acl),
                kind,
                parent_cversion: Some(parent_cversion),
            }),
            Body::Delete { path } => TxnBody::Delete { path },
            Body::DeleteContainer { path } => TxnBody::DeleteContainer { path },
            Body::DeleteAll { ref paths } => TxnBody::DeleteAll { paths: Paths::from_slice(paths) },
            Body::SetData { path, data, version } => TxnBody::SetData { path, data, version },
            Body::Reconfig { path, data, version } => TxnBody::Reconfig { path, data, version },
            Body::SetAcl { path, ref acl, version } => {
                TxnBody::SetAcl { path, acl: AclList::of_valid(acl), version }
            }
            Body::Check { path, version } => TxnBody::Check { path, version },
            Body::CreateSession { timeout_ms } => TxnBody::CreateSession { timeout_ms },
            Body::CloseSession { ref paths } => {
                TxnBody::CloseSession { paths: Some(Paths::from_slice(paths)) }
            }
            Body::Error { code } => TxnBody::Error { code },
            // A request for one is refused.
            Body::Multi(_) => TxnBody::Error { code: Code::BAD_ARGUMENTS },
        }
    }

    /// At least as many bytes as it takes in a log, the txn's header included.
    pub(super) fn bytes_max(&self) -> u64 {
        /// The txn's header, or kind, flags, numbers and lengths of an operation, with room to spare.
        const FIXED: u64 = 64;
        let list = |paths: &[String]| paths.iter().map(|path| path_bytes_max(path)).sum();
        let more = match self {
            Body::Create { path, data, acl, .. } => {
                path.len() as u64 + len_of(*data) as u64 + acl.len() as u64
            }
            Body::SetData { path, data, .. } | Body::Reconfig { path, data, .. } => {
                path.len() as u64 + len_of(*data) as u64
            }
            Body::SetAcl { path, acl, .. } => path.len() as u64 + acl.len() as u64,
            Body::Delete { path } | Body::DeleteContainer { path } | Body::Check { path, .. } => {
                path.len() as u64
            }
            Body::DeleteAll { paths } | Body::CloseSession { paths } => list(paths),
            Body::Multi(ops) => ops.iter().map(Body::bytes_max).sum(),
            Body::CreateSession { .. } | Body::Error { .. } => 0,
        };
        FIXED + more
    }
}

/// At least as many bytes as a path takes in a list.
pub(super) fn path_bytes_max(path: &str) -> u64 {
    path.len() as u64 + 4
}

/// What a list of paths takes beside them.
pub(super) const LIST_BYTES_MAX: u64 = 64;
