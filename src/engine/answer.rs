use crate::base::{Code, Zxid};
use crate::format::Stat;
use crate::tree::Outcome;

/// What became of a request: applied, and durable before that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Its txn's place in the order; of a request that took several txns, the last one's.
    pub zxid: Zxid,
    /// The time of the txn, in milliseconds since 1970.
    pub time_ms: i64,
    /// What the txn did. Of a request that failed, why.
    pub outcome: Outcome,
    pub(super) found: Option<Box<Found>>,
}

/// What a proposal knows and its txn does not tell. There is nothing for most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// For each operation, the path of the node that it creates.
    pub(super) created: Vec<Option<String>>,
    /// For each operation, the Stat of the node that a create-if-absent has found.
    pub(super) existing: Vec<Option<Stat>>,
}

impl Answer {
    /// Why the request failed, of a multi why its failing operation did; or [`Code::OK`].
    pub fn code(&self) -> Code {
        let codes = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::code).find(|code| !code.is_ok());
        match &self.outcome {
            Outcome::Multi(outcomes) => codes(outcomes).unwrap_or(Code::OK),
            outcome => outcome.code(),
        }
    }

    /// The path of the node that the request, or the nth operation of a multi, has created: with its number if it
    /// is sequential. None if the request failed.
    pub fn created_path(&self, op: usize) -> Option<&str> {
        self.found.as_ref()?.created.get(op)?.as_deref().filter(|_| self.code().is_ok())
    }

    /// The Stat of the node that a [`CreateIfAbsent`](crate::Request::CreateIfAbsent), also the nth operation of a
    /// multi, has found to be there.
    pub fn existing_stat(&self, op: usize) -> Option<Stat> {
        self.found.as_ref()?.existing.get(op).copied().flatten()
    }
}
