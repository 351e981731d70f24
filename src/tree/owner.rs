/// Who a node belongs to, and so when it goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Owner {
    /// Nobody: it stays until it is deleted.
    #[default]
    Persistent,
    /// The session whose end deletes it.
    Session(i64),
    /// A container: deleted some time after its last child.
    Container,
    /// Deleted some time after its last change, when it has no children.
    Ttl {
        /// How long after, in milliseconds: 1 to [`Owner::TTL_MAX_MS`].
        ttl_ms: i64,
    },
}

impl Owner {
    /// The longest time that a TTL node can be given, in milliseconds: about 34 years.
    pub const TTL_MAX_MS: i64 = crate::base::limits::TTL_MS_MAX;
    const CONTAINER: i64 = i64::MIN;
    /// The top byte says that it is no session; the next two, all zero, that it is a TTL.
    const EXTENDED: u64 = 0xff << 56;

    /// As ZooKeeper keeps it in the node's `ephemeralOwner`, and counts it into the digest.
    ///
    /// Source: `org.apache.zookeeper.server.EphemeralType` with extended types enabled.
    pub const fn to_raw(self) -> i64 {
        match self {
            Owner::Persistent => 0,
            Owner::Session(id) => id,
            Owner::Container => Owner::CONTAINER,
            Owner::Ttl { ttl_ms } => (Owner::EXTENDED | ttl_ms.cast_unsigned()).cast_signed(),
        }
    }

    /// The owner that ZooKeeper keeps as that number. `extended` says whether its server had extended types
    /// enabled: without them, what would be a TTL is a session.
    pub const fn from_raw(raw: i64, extended: bool) -> Owner {
        match raw {
            0 => Owner::Persistent,
            Owner::CONTAINER => Owner::Container,
            _ if extended && raw.cast_unsigned() >> 40 == Owner::EXTENDED >> 40 => {
                Owner::Ttl { ttl_ms: raw & Owner::TTL_MAX_MS }
            }
            id => Owner::Session(id),
        }
    }

    /// What a client sees: the session, or 0.
    pub const fn session_id(self) -> i64 {
        match self {
            Owner::Session(id) => id,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_zookeeper() {
        let ttl = Owner::Ttl { ttl_ms: 5000 };
        assert_eq!(ttl.to_raw().cast_unsigned(), 0xff00_0000_0000_1388);
        assert_eq!(Owner::Container.to_raw(), i64::MIN);
        for owner in [Owner::Persistent, Owner::Session(7), Owner::Session(-9), Owner::Container, ttl] {
            assert_eq!(Owner::from_raw(owner.to_raw(), true), owner);
        }
        assert_eq!(Owner::from_raw(ttl.to_raw(), false), Owner::Session(ttl.to_raw()));
    }
}
