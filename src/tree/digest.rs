//! ZooKeeper's digest of the tree, version 2: the sum of all nodes' digests, kept up to date change by change.

use super::stored_stat::StoredStat;
use crate::base::checksum;

/// A node's data with the checksum of its path and them: what a node's digest begins with. Kept with each node, so
/// that a change of its other fields costs the same whatever its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    pub(super) data: Option<&'a [u8]>,
    pub(super) crc: u32,
}

impl<'a> Content<'a> {
    pub(super) fn of(path: &str, data: Option<&'a [u8]>) -> Content<'a> {
        // The root's path counts as empty.
        let path = if path == super::path::ROOT { "" } else { path };
        let crc = checksum::crc32(checksum::crc32(0, path.as_bytes()), data.unwrap_or(&[]));
        Content { data, crc }
    }
}

/// A node's digest: CRC-32 over path, data and the fields as ZooKeeper writes them, big-endian.
///
/// Source: `org.apache.zookeeper.server.DigestCalculator`.
pub(super) fn node_digest(content_crc: u32, stat: &StoredStat) -> u64 {
    let mut fields = [0; 60];
    let longs = [
        stat.czxid.get(),
        stat.mzxid.get(),
        stat.pzxid.get(),
        stat.ctime_ms.cast_unsigned(),
        stat.mtime_ms.cast_unsigned(),
    ];
    for (field, long) in fields.chunks_exact_mut(8).zip(longs) {
        field.copy_from_slice(&long.to_be_bytes());
    }
    for (field, int) in fields[40..52].chunks_exact_mut(4).zip([stat.version, stat.cversion, stat.aversion]) {
        field.copy_from_slice(&int.to_be_bytes());
    }
    fields[52..].copy_from_slice(&stat.owner.to_raw().to_be_bytes());
    checksum::crc32(content_crc, &fields).into()
}
