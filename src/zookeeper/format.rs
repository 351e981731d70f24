use std::fmt;

use crate::base::{Error, ErrorKind};

/// For which releases a directory is written. Later ones read it too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZkFormat {
    /// 3.4: no container, no time to live.
    V3_4,
    /// 3.5.
    V3_5,
    /// 3.6 to 3.8: with digests.
    V3_6,
    /// 3.9: with the last zxid behind the snapshot.
    V3_9,
}

impl ZkFormat {
    /// All of them, in order.
    pub const ALL: [ZkFormat; 4] = [ZkFormat::V3_4, ZkFormat::V3_5, ZkFormat::V3_6, ZkFormat::V3_9];

    /// As it is told to the tool: `3.4`, `3.5`, `3.6`, `3.9`.
    pub const fn name(self) -> &'static str {
        match self {
            ZkFormat::V3_4 => "3.4",
            ZkFormat::V3_5 => "3.5",
            ZkFormat::V3_6 => "3.6",
            ZkFormat::V3_9 => "3.9",
        }
    }

    /// Whether it has digests, and lists of paths where sessions end.
    pub(super) fn has_digests(self) -> bool {
        self >= ZkFormat::V3_6
    }

    /// Whether it has the last zxid behind a snapshot.
    pub(super) fn has_last_zxid(self) -> bool {
        self >= ZkFormat::V3_9
    }

    /// Whether it has containers, times to live and reconfigs.
    pub(super) fn has_extended_nodes(self) -> bool {
        self >= ZkFormat::V3_5
    }

    /// Something that no server of the format knows.
    pub(super) fn refuses(self, what: &str) -> Error {
        Error::new(ErrorKind::Invalid, "zk_format", format!("{what}: ZooKeeper {self} has none of that"))
    }

    /// The longest payload, string or buffer that a server with default settings reads, in bytes. Early releases of 3.5
    /// read as much as 3.4.
    pub(super) fn length_limit(self) -> usize {
        const MAX_BUFFER: usize = 0xf_ffff;
        if self.has_digests() { 2 * MAX_BUFFER } else { MAX_BUFFER + 1024 }
    }
}

impl fmt::Display for ZkFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
