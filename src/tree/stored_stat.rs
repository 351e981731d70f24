use super::owner::Owner;
use crate::base::Zxid;
use crate::format::Stat;

/// The state of a node as it is stored, beside its path, data and ACL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StoredStat {
    /// The txn that created the node.
    pub czxid: Zxid,
    /// The txn that last set its data.
    pub mzxid: Zxid,
    /// The txn that last created or deleted a child, or the node itself.
    pub pzxid: Zxid,
    /// When it was created, in milliseconds.
    pub ctime_ms: i64,
    /// When its data was last set, in milliseconds.
    pub mtime_ms: i64,
    /// How often its data was set.
    pub version: i32,
    /// How many children were created: not what a client sees.
    pub cversion: i32,
    /// How often its ACL was set.
    pub aversion: i32,
    /// Who it belongs to.
    pub owner: Owner,
}

impl StoredStat {
    /// Of a node that a txn creates.
    pub(super) fn created(zxid: Zxid, time_ms: i64, owner: Owner) -> StoredStat {
        StoredStat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: time_ms,
            mtime_ms: time_ms,
            owner,
            ..StoredStat::default()
        }
    }

    /// As a client sees it, who is also told what is counted elsewhere.
    #[inline]
    pub(super) fn shown(&self, child_count: u32, data_bytes: usize) -> Stat {
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime_ms: self.ctime_ms,
            mtime_ms: self.mtime_ms,
            version: self.version,
            cversion: self.shown_cversion(child_count),
            aversion: self.aversion,
            ephemeral_owner: self.owner.session_id(),
            data_bytes: i32::try_from(data_bytes).unwrap_or(i32::MAX),
            child_count: i32::try_from(child_count).unwrap_or(i32::MAX),
            pzxid: self.pzxid,
        }
    }

    /// The count of children created and deleted.
    pub(super) fn shown_cversion(&self, child_count: u32) -> i32 {
        self.cversion.wrapping_mul(2).wrapping_sub(child_count.cast_signed())
    }

    /// Whether a node without children may be deleted by the server: a container at any time, a TTL node when it
    /// was not changed for longer than its time.
    pub(super) fn may_go(&self, now_ms: i64) -> bool {
        match self.owner {
            Owner::Container => true,
            Owner::Ttl { ttl_ms } => now_ms.saturating_sub(self.mtime_ms) > ttl_ms,
            Owner::Persistent | Owner::Session(_) => false,
        }
    }
}
