use super::super::lookup::NodePlace;
use super::body::Body;
use crate::base::{Code, Zxid};
use crate::format::{Stat, Txn, TxnBody, TxnBuf};

/// What became of a request: a txn to be logged, also for one that failed, so that no zxid is left out.
#[derive(Clone, Debug)]
#[must_use = "the txn is to be logged, or to be rolled back"]
pub struct Proposal<'r> {
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
    pub(super) session_id: i64,
    pub(super) cxid: i32,
    pub(super) body: Body<'r>,
    /// For each operation, or for the only one.
    pub(super) existing: Vec<Option<Stat>>,
    pub(super) is_unfinished: bool,
    /// Where the node was found whose data is set.
    pub(super) place: Option<NodePlace>,
}

impl Proposal<'_> {
    /// The txn's zxid.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Hands out the txn, to be encoded or applied.
    pub fn with_txn<T>(&self, take: impl FnOnce(&Txn<'_>) -> T) -> T {
        self.body.with(|body| {
            take(&Txn {
                zxid: self.zxid,
                time_ms: self.time_ms,
                session_id: self.session_id,
                cxid: self.cxid,
                digest: None,
                body,
            })
        })
    }

    /// The txn, encoded: its bytes are the payload of a record.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general in its lifetime"
    )]
    pub fn to_buf(&self) -> TxnBuf {
        self.with_txn(|txn| txn.to_buf())
    }

    /// The same, encoded in a buffer that is kept for the next one.
    pub(crate) fn encoded_by(&self, buffer: &mut Vec<u8>) -> TxnBuf {
        self.with_txn(|txn| txn.encoded_by(buffer))
    }

    /// Why the request failed, of a multi why its failing operation did; or [`Code::OK`].
    pub fn code(&self) -> Code {
        self.with_txn(|txn| match txn.body {
            TxnBody::Error { code } => code,
            TxnBody::Multi(ops) => ops
                .iter()
                .find_map(|op| if let TxnBody::Error { code } = op { Some(code) } else { None })
                .unwrap_or(Code::OK),
            _ => Code::OK,
        })
    }

    /// The path of the node that a request, or the nth operation of a multi, creates: with its number if it is
    /// sequential.
    pub fn created_path(&self, op: usize) -> Option<&str> {
        let body = match &self.body {
            Body::Multi(ops) => ops.get(op)?,
            body => Some(body).filter(|_| op == 0)?,
        };
        if let Body::Create { path, .. } = body { Some(path) } else { None }
    }

    /// The Stat of the node that a [`CreateIfAbsent`](super::Request::CreateIfAbsent), also the nth operation of a
    /// multi, has found to be there: as it is when the txns before this one are applied.
    pub fn existing_stat(&self, op: usize) -> Option<Stat> {
        self.existing.get(op).copied().flatten()
    }

    /// Where the node was found that the txn is about, if that is known: for who applies it.
    pub(crate) fn place(&self) -> Option<NodePlace> {
        self.place
    }

    /// Whether the request is not yet done: a session has more ephemeral nodes than a txn takes. This txn deletes
    /// some of them; the same request has to be proposed again, with the next zxid. Until it is, the session is
    /// there but can do nothing.
    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }
}
