use crate::base::limits;

/// How requests are checked. The same for all of a [`Proposer`](super::Proposer)'s.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, set by its own method")]
pub struct ProposeOptions {
    pub(super) extended_types: bool,
    pub(super) enforce_quota: bool,
    pub(super) skip_acl: bool,
    pub(super) only_known_sessions: bool,
    pub(super) txn_bytes_max: u64,
    pub(super) schemes: Vec<String>,
}

impl ProposeOptions {
    /// No TTL nodes, quotas not enforced, ACLs checked, txns as large as a log takes by default, and the schemes
    /// that every ZooKeeper has: what a ZooKeeper does that has no options set.
    pub fn new() -> ProposeOptions {
        ProposeOptions {
            extended_types: false,
            enforce_quota: false,
            skip_acl: false,
            only_known_sessions: false,
            txn_bytes_max: limits::RECORD_BYTES_DEFAULT,
            schemes: ["x509", "sasl"].map(str::to_owned).to_vec(),
        }
    }

    /// Whether there may be TTL nodes: ZooKeeper's `extendedTypesEnabled`.
    pub fn extended_types(mut self, on: bool) -> ProposeOptions {
        self.extended_types = on;
        self
    }

    /// Whether the hard limits of quotas hold: ZooKeeper's `enforceQuota`.
    pub fn enforce_quota(mut self, on: bool) -> ProposeOptions {
        self.enforce_quota = on;
        self
    }

    /// Whether everybody may do everything: ZooKeeper's `skipACL`. The lists of new nodes are still looked at.
    pub fn skip_acl(mut self, on: bool) -> ProposeOptions {
        self.skip_acl = on;
        self
    }

    /// Whether a session that is neither in the tree nor on its way may do nothing (default: it may do all but own nodes,
    /// as a session may that lives in another server's memory only). Session 0 is the server itself, and may.
    ///
    /// Source: `LeaderSessionTracker.checkSession`: a leader refuses such a session with
    /// [`Code::SESSION_EXPIRED`](crate::Code::SESSION_EXPIRED) unless `localSessionsEnabled` is set. A server of 3.8.0 that
    /// stands alone answers [`Code::UNKNOWN_SESSION`](crate::Code::UNKNOWN_SESSION), but `SESSION_EXPIRED` if an ephemeral
    /// node was asked for, or if the session is just being closed; that was tried.
    pub fn only_known_sessions(mut self, on: bool) -> ProposeOptions {
        self.only_known_sessions = on;
        self
    }

    /// The largest txn in bytes, as it is encoded for the log. A request whose txn could be larger fails.
    pub fn txn_bytes_max(mut self, bytes: u64) -> ProposeOptions {
        self.txn_bytes_max = bytes;
        self
    }

    /// The schemes that ACLs may name beside `world`, `auth`, `ip` and `digest`.
    pub fn schemes(mut self, schemes: impl IntoIterator<Item = impl Into<String>>) -> ProposeOptions {
        self.schemes = schemes.into_iter().map(Into::into).collect();
        self
    }
}

impl Default for ProposeOptions {
    fn default() -> ProposeOptions {
        ProposeOptions::new()
    }
}
