use std::sync::Arc;

use super::DamagedBytes;
use super::manifest::ManifestInfo;
use super::memory_file::MemoryFile;
use super::stream::{FoundRecord, Item};
use crate::base::{Result, Zxid, limits};
use crate::format::{DatabaseId, GroupHeader, GroupKind, Manifest, SegmentHeader};
use crate::log::read::{Record, Records, scan_segment, verify_group};
use crate::log::walk::{Step, Until, Walk};

/// Reads a manifest out of bytes.
///
/// # Errors
/// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is damaged,
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it is of a newer version.
pub fn decode_manifest(bytes: &[u8]) -> Result<ManifestInfo> {
    Manifest::decode(bytes).map(|manifest| ManifestInfo::of(&manifest))
}

/// Reads a segment out of bytes: its header at once, its records as they are asked for.
///
/// # Errors
/// As for opening, if the header page is damaged, or of a newer version.
pub fn segment_from_bytes(bytes: &[u8]) -> Result<SegmentBytes> {
    let header = SegmentHeader::decode(bytes)?;
    let file = Arc::new(MemoryFile { bytes: bytes.to_vec() });
    let walk = Walk::new(file.clone(), header, None, Until::default())?;
    Ok(SegmentBytes { file, header, walk, group: None })
}

/// A segment in memory.
#[derive(Debug)]
pub struct SegmentBytes {
    file: Arc<MemoryFile>,
    header: SegmentHeader,
    walk: Walk,
    group: Option<(GroupHeader, Records)>,
}

/// What the scan that opens a log makes of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SegmentScanned {
    /// Where its first run of valid groups ends.
    pub end_offset: u64,
    /// Records in that run.
    pub records: u64,
    /// The first record.
    pub first_zxid: Option<Zxid>,
    /// The last record.
    pub last_zxid: Option<Zxid>,
    /// The most that any group of it claims to have been durable.
    pub claims_zxid: Zxid,
}

impl SegmentBytes {
    /// The place of a group at `offset` of this segment, for [`decode_group`].
    pub fn place(&self, offset: u64) -> GroupPlace {
        let SegmentHeader { database_id, seq, salt, block_bytes, .. } = self.header;
        GroupPlace { database_id, salt, seq, offset, block_bytes }
    }

    /// Runs the scan that opens a log, with the record at which a manifest would end the segment.
    ///
    /// # Errors
    /// None that bytes can cause.
    pub fn scan(&self, limit: Option<Zxid>) -> Result<SegmentScanned> {
        let scan = scan_segment(self.file.as_ref(), self.header.seq, self.header.database_id, limit)?;
        Ok(SegmentScanned {
            end_offset: scan.end_offset,
            records: scan.records,
            first_zxid: scan.first_zxid,
            last_zxid: scan.last_zxid,
            claims_zxid: scan.claims_anywhere(),
        })
    }

    /// The next record or damage, or `None` at the end. What is torn counts as damage here: bytes alone do
    /// not tell.
    ///
    /// # Errors
    /// None that bytes can cause.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        loop {
            if let Some((group, mut records)) = self.group.take() {
                let bytes = self.walk.group_bytes(&group)?;
                if let Some(record) = records.next(bytes) {
                    let at = record.payload.as_ptr().addr() - bytes.as_ptr().addr();
                    let (len, zxid, epoch, time_ms) =
                        (record.payload.len(), record.zxid, record.epoch, record.time_ms);
                    self.group = Some((group, records));
                    let payload = &self.walk.group_bytes(&group)?[at..at + len];
                    let (file, offset) = ("(bytes)", group.offset + at as u64);
                    return Ok(Some(Item::Record(FoundRecord {
                        zxid,
                        epoch,
                        time_ms,
                        payload,
                        file,
                        offset,
                    })));
                }
            }
            match self.walk.step()? {
                Some(Step::Group(group, records)) => self.group = Some((group, records)),
                Some(Step::Damage(damage)) => return Ok(Some(Item::Damage(damage))),
                None => return Ok(None),
            }
        }
    }
}

/// Where a group is to stand: its checksums depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupPlace {
    /// The database it belongs to.
    pub database_id: DatabaseId,
    /// The salt of its segment.
    pub salt: u64,
    /// The number of its segment.
    pub seq: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The unit that it is padded to.
    pub block_bytes: u64,
}

/// Verifies the group at the start of `bytes` and hands each of its records to `visit`. Returns how many bytes
/// the group has; zero if no valid group header stands there.
///
/// # Errors
/// [`DamagedBytes`] if the header is right and something behind it is not.
pub fn decode_group(
    bytes: &[u8],
    place: &GroupPlace,
    visit: &mut dyn FnMut(Record<'_>),
) -> std::result::Result<u64, DamagedBytes> {
    let block_bytes = place.block_bytes;
    let fill = crate::format::SegmentFill::Growing;
    let header = SegmentHeader {
        database_id: place.database_id,
        seq: place.seq,
        salt: place.salt,
        capacity: limits::SEGMENT_BYTES_MAX,
        block_bytes,
        fill,
        created_ms: 0,
    };
    let (seed, database_seed) = (header.seed(), place.database_id.seed());
    let Some(group) = GroupHeader::decode(bytes, seed, place.seq, place.offset) else { return Ok(0) };
    let damage = |code, at: u64, first: Zxid, last: Zxid| DamagedBytes {
        file: "(bytes)".to_owned(),
        code,
        offset: place.offset + at,
        end_offset: None,
        first_zxid: Some(first),
        last_zxid: Some(last),
    };
    let total = group.total_bytes(block_bytes.max(1));
    let whole = usize::try_from(total).ok().and_then(|total| bytes.get(..total));
    let Some(whole) = whole else {
        return Err(damage("group_short", 0, group.first_zxid, group.last_zxid));
    };
    verify_group(&group, whole, seed, database_seed)
        .map_err(|bad| damage(bad.code, bad.offset, bad.first_zxid, bad.last_zxid))?;
    if group.kind == GroupKind::Records {
        let mut records = Records::of(&group, database_seed);
        while let Some(record) = records.next(whole) {
            visit(record);
        }
    }
    Ok(total)
}
