use std::sync::Arc;

use crate::base::{Error, Result, Zxid};
use crate::format::snapshot::{
    BlockPlace, SNAPSHOT_BLOCK_HEADER_BYTES, SNAPSHOT_HEADER_BYTES, SNAPSHOT_TRAILER_BYTES, SnapshotBlock,
    SnapshotBlockKind, SnapshotHeader, SnapshotTrailer, body_check, decode_index,
};
use crate::format::{DatabaseId, Numbering};
use crate::io::File;

/// Bytes that are read and sent, or received and written, at a time.
pub(super) const COPIED_AT_ONCE: usize = 256 * 1024;

/// What a snapshot says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The file's name.
    pub file: String,
    /// The last txn whose effect every node has: where the walk began.
    pub start: Zxid,
    /// Where the snapshot is consistent.
    pub end: Zxid,
    /// The tree's digest at `end`.
    pub digest: u64,
    /// How many nodes the walk has met.
    pub nodes: u64,
    /// How many sessions there were.
    pub sessions: u64,
    /// How many txns make it consistent.
    pub txns: u64,
    /// The bytes of the file.
    pub file_bytes: u64,
    /// When it was begun, in milliseconds since 1970.
    pub created_ms: i64,
}

/// Bytes of a snapshot's file that are not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct DamagedRange {
    /// Where it begins.
    pub offset: u64,
    /// Where it ends.
    pub end_offset: u64,
    /// A stable word for what is wrong; see [`Error::code`].
    pub code: &'static str,
}

/// A snapshot's file, open to be read: its header, trailer and index hold.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    file: Arc<dyn File>,
    seed: u32,
    pub(crate) numbering: Numbering,
    pub(crate) info: SnapshotInfo,
    pub(crate) blocks: Vec<BlockPlace>,
    /// Whether a thread of its own reads and verifies blocks. The simulator needs the same order of calls each time.
    pub(super) reads_ahead: bool,
}

impl SnapshotFile {
    /// Reads header, trailer and index, of a snapshot of this database.
    pub(crate) fn open(
        file: Arc<dyn File>,
        database_id: DatabaseId,
        numbering: Numbering,
    ) -> Result<SnapshotFile> {
        let name = file.name().to_owned();
        Self::read(file, Some((database_id, numbering))).map_err(|e| e.in_file(&name))
    }

    /// The same of the file whose name says that it ends at `end`.
    pub(crate) fn open_named(
        file: Arc<dyn File>,
        end: Zxid,
        database_id: DatabaseId,
        numbering: Numbering,
    ) -> Result<SnapshotFile> {
        SnapshotFile::open(file, database_id, numbering)?.named(end)
    }

    /// The same, of whatever database.
    pub(crate) fn open_any_named(file: Arc<dyn File>, end: Zxid) -> Result<SnapshotFile> {
        SnapshotFile::open_any(file)?.named(end)
    }

    fn named(self, end: Zxid) -> Result<SnapshotFile> {
        if self.info.end != end {
            let what = format!("the name says {end}, the snapshot {}", self.info.end);
            return Err(Error::corrupt("snapshot_misnamed", what).in_file(&self.info.file).at_offset(0));
        }
        Ok(self)
    }

    /// Reads header, trailer and index, of a snapshot of whatever database.
    pub(crate) fn open_any(file: Arc<dyn File>) -> Result<SnapshotFile> {
        let name = file.name().to_owned();
        Self::read(file, None).map_err(|e| e.in_file(&name))
    }

    fn read(file: Arc<dyn File>, expected: Option<(DatabaseId, Numbering)>) -> Result<SnapshotFile> {
        let len = file.len().map_err(wrap)?;
        let header = SnapshotHeader::decode(&read_up_to(file.as_ref(), 0, SNAPSHOT_HEADER_BYTES)?)
            .map_err(|e| e.at_offset(0))?;
        let found = (header.database_id, header.numbering);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            let what = format!("the snapshot is of database {}, not of {}", found.0, expected.0);
            return Err(Error::corrupt("snapshot_foreign", what).at_offset(0));
        }
        let seed = header.seed();
        let trailer_at = len.saturating_sub(SNAPSHOT_TRAILER_BYTES as u64).max(SNAPSHOT_HEADER_BYTES as u64);
        let bytes = read_up_to(file.as_ref(), trailer_at, SNAPSHOT_TRAILER_BYTES)?;
        let trailer = SnapshotTrailer::decode(&bytes, seed)
            .filter(|t| t.file_bytes == len && t.start == header.start && t.index_offset < trailer_at);
        let Some(trailer) = trailer else { return Err(no_trailer(file.as_ref(), seed, len)) };
        let (index, body) =
            read_block(file.as_ref(), seed, trailer.blocks, trailer.index_offset, trailer_at)?;
        let places = decode_index(&body, SNAPSHOT_HEADER_BYTES as u64, trailer.index_offset)
            .filter(|places| places.len() as u64 == trailer.blocks)
            .filter(|places| index.kind == SnapshotBlockKind::Index && index.count as usize == places.len())
            .filter(|_| trailer.index_offset.checked_add(index.total_bytes()) == Some(trailer_at));
        let blocks = places.ok_or_else(|| {
            let what = "the index of blocks contradicts the file";
            Error::corrupt("snapshot_index", what).at_offset(trailer.index_offset)
        })?;
        let info = SnapshotInfo {
            file: file.name().to_owned(),
            start: header.start,
            end: trailer.end,
            digest: trailer.digest,
            nodes: trailer.nodes,
            sessions: trailer.sessions,
            txns: trailer.txns,
            file_bytes: len,
            created_ms: header.created_ms,
        };
        Ok(SnapshotFile { file, seed, numbering: header.numbering, info, blocks, reads_ahead: false })
    }

    /// Writes the whole file, as it is, to somewhere else.
    pub(crate) fn copy_to(&self, out: &mut dyn std::io::Write) -> Result<()> {
        let mut at = 0;
        while at < self.info.file_bytes {
            let count = (self.info.file_bytes - at).min(COPIED_AT_ONCE as u64);
            let bytes = read_up_to(self.file.as_ref(), at, usize::try_from(count).expect("it fits"))
                .map_err(|e| e.in_file(&self.info.file))?;
            if bytes.is_empty() {
                let what = "the file has become shorter while it was read";
                return Err(Error::corrupt("snapshot_truncated", what)
                    .in_file(&self.info.file)
                    .at_offset(at));
            }
            out.write_all(&bytes).map_err(|e| Error::io("send a snapshot", e))?;
            at += bytes.len() as u64;
        }
        out.flush().map_err(|e| Error::io("send a snapshot", e))
    }

    /// All blocks that do not hold.
    pub(super) fn damaged_blocks(&self) -> Vec<DamagedRange> {
        let damage = |number: usize| {
            let (place, error) = (self.blocks[number], self.block(number).err()?);
            Some(DamagedRange { offset: place.offset, end_offset: place.end(), code: error.code() })
        };
        (0..self.blocks.len()).filter_map(damage).collect()
    }

    /// Reads and verifies the block of this number.
    pub(crate) fn block(&self, number: usize) -> Result<(SnapshotBlock, Vec<u8>)> {
        let place = self.blocks[number];
        read_block(self.file.as_ref(), self.seed, number as u64, place.offset, place.end())
            .map_err(|e| e.in_file(&self.info.file))
    }
}

/// Why a file has no trailer: it ends too early, goes on too long, or is damaged.
fn no_trailer(file: &dyn File, seed: u32, len: u64) -> Error {
    let (mut offset, mut number) = (SNAPSHOT_HEADER_BYTES as u64, 0);
    loop {
        let head = match read_up_to(file, offset, SNAPSHOT_BLOCK_HEADER_BYTES.max(SNAPSHOT_TRAILER_BYTES)) {
            Ok(head) => head,
            Err(error) => return error,
        };
        if let Some(trailer) = SnapshotTrailer::decode(&head, seed) {
            let end = offset + SNAPSHOT_TRAILER_BYTES as u64;
            if trailer.file_bytes == end && end < len {
                return Error::corrupt("snapshot_trailing", "something stands behind the snapshot's end")
                    .at_offset(end);
            }
        }
        let short = (head.len() as u64) < SNAPSHOT_TRAILER_BYTES as u64;
        match SnapshotBlock::decode(&head, seed, number, offset) {
            Ok(block) if offset + block.total_bytes() <= len => {
                (offset, number) = (offset + block.total_bytes(), number + 1);
            }
            Err(_) if !short => {
                return Error::corrupt("snapshot_trailer", "the snapshot has no valid trailer")
                    .at_offset(offset);
            }
            // The file is over in the middle of a block, between two, or in its trailer.
            _ => return Error::corrupt("snapshot_truncated", "the file ends too early").at_offset(len),
        }
    }
}

/// Reads and verifies a block, which ends at `limit` at the latest.
pub(super) fn read_block(
    file: &dyn File,
    seed: u32,
    number: u64,
    offset: u64,
    limit: u64,
) -> Result<(SnapshotBlock, Vec<u8>)> {
    let head = read_up_to(file, offset, SNAPSHOT_BLOCK_HEADER_BYTES)?;
    let block = SnapshotBlock::decode(&head, seed, number, offset).map_err(|e| e.at_offset(offset))?;
    // No more than the file has is ever made room for.
    if offset.checked_add(block.total_bytes()).is_none_or(|end| end > limit) {
        return Err(Error::corrupt("snapshot_block", "the block is longer than its place").at_offset(offset));
    }
    let at = offset + SNAPSHOT_BLOCK_HEADER_BYTES as u64;
    let body = read_up_to(file, at, usize::try_from(block.body_bytes).expect("32 bits"))?;
    check_body(&block, &body, seed).map_err(|e| e.at_offset(offset))?;
    Ok((block, body))
}

/// Verifies a block, all of whose bytes these are.
pub(super) fn decode_block(
    bytes: &[u8],
    seed: u32,
    number: u64,
    offset: u64,
) -> Result<(SnapshotBlock, &[u8])> {
    let (head, body) = bytes.split_at(bytes.len().min(SNAPSHOT_BLOCK_HEADER_BYTES));
    let block = SnapshotBlock::decode(head, seed, number, offset)?;
    check_body(&block, body, seed)?;
    Ok((block, body))
}

fn check_body(block: &SnapshotBlock, body: &[u8], seed: u32) -> Result<()> {
    let is_whole = body.len() as u64 == u64::from(block.body_bytes);
    if !is_whole || body_check(seed, block.index, body) != block.body_crc {
        return Err(Error::corrupt("snapshot_checksum", "a block's checksum does not match"));
    }
    Ok(())
}

/// So many bytes, or what the file has of them.
fn read_up_to(file: &dyn File, offset: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    let read = file.read_at(offset, &mut out).map_err(wrap)?;
    out.truncate(read);
    Ok(out)
}

fn wrap(error: std::io::Error) -> Error {
    Error::io("read a snapshot", error)
}
