//! ZooKeeper's digest of the tree, version 2: the sum of all nodes' digests, kept up to date change by change.

use super::stored_stat::StoredStat;
use crate::base::Zxid;
use crate::base::checksum::{Crc32, crc32_of_difference};

/// What the fields of a node take in its digest.
const FIELDS: usize = 60;
/// Where they have pzxid and cversion, and those behind them.
const PZXID: usize = 16;
const CVERSION: usize = 44;

/// What a node's digest begins with: the checksum of its path and data, which can be worked out before the rest is known.
pub(super) fn content_crc(path: &str, data: Option<&[u8]>) -> Crc32 {
    // The root's path counts as empty.
    let path = if path == super::path::ROOT { "" } else { path };
    Crc32::of([path.as_bytes(), data.unwrap_or(&[])])
}

/// A node's digest: CRC-32 over path, data and the fields as ZooKeeper writes them, big-endian.
///
/// Source: `org.apache.zookeeper.server.DigestCalculator`.
#[inline]
pub(super) fn node_digest(content: Crc32, stat: &StoredStat) -> u32 {
    content.and(&fields(stat))
}

/// The same of all that it is made of.
pub(super) fn whole_digest(path: &str, data: Option<&[u8]>, stat: &StoredStat) -> u32 {
    node_digest(content_crc(path, data), stat)
}

/// The same after a change of fields alone: it needs neither path nor data.
pub(super) fn changed_digest(digest: u32, before: &StoredStat, after: &StoredStat) -> u32 {
    let (mut difference, after) = (fields(before), fields(after));
    difference.iter_mut().zip(after).for_each(|(byte, after)| *byte ^= after);
    digest ^ crc32_of_difference(&difference)
}

/// The same after a change of a parent's counts alone, as with each child that comes or goes.
#[inline]
pub(super) fn recounted_digest(digest: u32, before: (i32, Zxid), after: (i32, Zxid)) -> u32 {
    let pzxid = before.1.get() ^ after.1.get();
    let cversion = before.0 ^ after.0;
    // Equal bytes at the beginning change nothing.
    let mut difference = [0; FIELDS - PZXID];
    difference[..8].copy_from_slice(&pzxid.to_be_bytes());
    difference[CVERSION - PZXID..][..4].copy_from_slice(&cversion.to_be_bytes());
    digest ^ crc32_of_difference(&difference)
}

fn fields(stat: &StoredStat) -> [u8; FIELDS] {
    let mut fields = [0; FIELDS];
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
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;
    use crate::tree::Owner;

    #[test]
    fn a_change_of_fields_leads_to_the_digest_of_the_whole() {
        let mut random = Random::from_seed(11);
        let mut number = || random.next_u64();
        let mut stat_of = || StoredStat {
            czxid: Zxid::new(number()),
            mzxid: Zxid::new(number()),
            pzxid: Zxid::new(number()),
            ctime_ms: number().cast_signed(),
            mtime_ms: number().cast_signed(),
            version: i32::from_le_bytes(*number().to_le_bytes().first_chunk().unwrap()),
            cversion: i32::from_le_bytes(*number().to_le_bytes().first_chunk().unwrap()),
            aversion: i32::from_le_bytes(*number().to_le_bytes().first_chunk().unwrap()),
            owner: Owner::Session(number().cast_signed()),
        };
        for turn in 0..2000 {
            let whole = |stat: &StoredStat| whole_digest("/a/path", Some(&[7; 33][..turn % 33]), stat);
            let (before, after) = (stat_of(), stat_of());
            let digest = whole(&before);
            assert_eq!(changed_digest(digest, &before, &after), whole(&after));
            assert_eq!(changed_digest(digest, &before, &before), digest);
            let recounted = StoredStat { cversion: after.cversion, pzxid: after.pzxid, ..before };
            let counts = |stat: &StoredStat| (stat.cversion, stat.pzxid);
            assert_eq!(recounted_digest(digest, counts(&before), counts(&recounted)), whole(&recounted));
        }
    }
}
