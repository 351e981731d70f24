use std::sync::Arc;

use super::device::Pace;
use super::file::{SnapshotFile, SnapshotInfo};
use super::output::Output;
use super::read::{Reading, verify};
use super::store::StoreShared;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::format::snapshot::{
    BlockPlace, NodeEncoder, NodeEntry, NodeRow, SESSION_BYTES, SNAPSHOT_HEADER_BYTES,
    SNAPSHOT_TRAILER_BYTES, SnapshotBlock, SnapshotBlockKind, SnapshotHeader, SnapshotTrailer, SnapshotTxn,
    body_check, encode_index, encode_session, encode_txn, snapshot_name, snapshot_temp_name,
};
use crate::io::OpenMode;
use crate::tree::{Owner, SharedTree, Walk, WalkedNode};

/// A block is closed once it has so many bytes.
pub(super) const BLOCK_BYTES: usize = 120 * 1024;
/// Places of the store between two looks at how full the block is.
const STRIDE: u32 = 32;

/// Writes one snapshot: nodes, then sessions, then txns, then the seal. Dropped before, it leaves nothing behind.
pub(crate) struct SnapshotWriter {
    /// First, so that nobody writes any more when the file goes.
    output: Output,
    temp: Temp,
    header: SnapshotHeader,
    offset: u64,
    places: Vec<BlockPlace>,
    kind: SnapshotBlockKind,
    body: Vec<u8>,
    count: u32,
    nodes: NodeEncoder,
    counts: [u64; 3],
    last_txn: Zxid,
}

impl std::fmt::Debug for SnapshotWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotWriter").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The temporary file, and the right to write one. Gone with its owner.
#[derive(Debug)]
pub(super) struct Temp {
    pub(super) store: Arc<StoreShared>,
    pub(super) name: Option<String>,
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // What cannot be removed now is removed when the store is opened.
            let _ = self.store.disk.remove(name);
        }
        self.store.finish_writing();
    }
}

impl SnapshotWriter {
    pub(super) fn begin(
        store: Arc<StoreShared>,
        header: SnapshotHeader,
        pace: Pace,
    ) -> Result<SnapshotWriter> {
        let name = snapshot_temp_name(header.start);
        let temp = Temp { store, name: Some(name.clone()) };
        let wrap = |e| Error::io("make a snapshot", e).in_file(&name);
        match temp.store.disk.remove(&name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(wrap(e)),
            _ => {}
        }
        let file = temp.store.disk.open(&name, OpenMode::CreateNew { direct: true }).map_err(wrap)?;
        let output = Output::begin(file, &header, pace, temp.store.has_threads())?;
        Ok(SnapshotWriter {
            output,
            temp,
            header,
            offset: SNAPSHOT_HEADER_BYTES as u64,
            places: Vec::new(),
            kind: SnapshotBlockKind::Nodes,
            body: Vec::with_capacity(BLOCK_BYTES + 4096),
            count: 0,
            nodes: NodeEncoder::default(),
            counts: [0; 3],
            last_txn: header.start,
        })
    }

    /// How many bytes were written, and how many nodes were taken.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.offset, self.counts[0])
    }

    /// Goes on with a walk for at most `places` places, or until a block is full; false at its end. The tree is
    /// locked only while nodes are copied out, not while they are written.
    pub(crate) fn walk(&mut self, tree: &SharedTree, walk: &mut Walk, places: u32) -> Result<bool> {
        self.enter(SnapshotBlockKind::Nodes)?;
        let (mut left, mut goes_on) = (places, true);
        {
            let tree = tree.read();
            while goes_on && left > 0 && self.body.len() < BLOCK_BYTES {
                let stride = left.min(STRIDE);
                goes_on = tree.walk(walk, stride, &mut |node| self.add_node(&node));
                left -= stride;
            }
        }
        self.close_if_full()?;
        Ok(goes_on)
    }

    fn add_node(&mut self, node: &WalkedNode<'_>) {
        let (parent, name) = node.path.rsplit_once('/').unwrap_or(("", node.path));
        let stat = &node.stat;
        let owner = match stat.owner {
            Owner::Persistent => (0, 0),
            Owner::Session(id) => (1, id),
            Owner::Container => (2, 0),
            Owner::Ttl { ttl_ms } => (3, ttl_ms),
        };
        let row = NodeRow {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            ctime_ms: stat.ctime_ms,
            mtime_ms: stat.mtime_ms,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            owner,
        };
        self.nodes.encode(&mut self.body, &NodeEntry { parent, name, data: node.data, acl: node.acl, row });
        self.added(0);
    }

    /// Adds a session.
    pub(crate) fn session(&mut self, id: i64, timeout_ms: i32) -> Result<()> {
        self.enter(SnapshotBlockKind::Sessions)?;
        encode_session(&mut self.body, id, timeout_ms);
        self.added(1);
        self.close_if_full()
    }

    /// Adds a txn that came after the start, as its record in the log holds it; they come in order.
    pub(crate) fn txn(&mut self, zxid: Zxid, time_ms: i64, payload: &[u8]) -> Result<()> {
        if zxid <= self.last_txn {
            let what = format!("{zxid} does not come after {}", self.last_txn);
            return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", what));
        }
        self.enter(SnapshotBlockKind::Txns)?;
        encode_txn(&mut self.body, &SnapshotTxn { zxid, time_ms, payload });
        self.last_txn = zxid;
        self.added(2);
        self.close_if_full()
    }

    /// Ends the snapshot: it is consistent at `end`, the last txn that was added, where the tree has this digest.
    /// All of it is synced, and was read again where that is done beside writing.
    pub(crate) fn seal(mut self, end: Zxid, digest: u64) -> Result<Sealed> {
        if end != self.last_txn {
            let what = format!("the last txn is {}, not {end}", self.last_txn);
            return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", what));
        }
        self.close()?;
        let index_offset = self.offset;
        let blocks = self.places.len() as u64;
        self.kind = SnapshotBlockKind::Index;
        self.body = encode_index(&self.places);
        self.count = u32::try_from(blocks).expect("a block has 120 KiB");
        self.write_block()?;
        let [nodes, sessions, txns] = self.counts;
        let start = self.header.start;
        let file_bytes = self.offset + SNAPSHOT_TRAILER_BYTES as u64;
        let trailer =
            SnapshotTrailer { blocks, index_offset, nodes, sessions, txns, start, end, digest, file_bytes };
        self.output.push(&trailer.encode(self.header.seed()))?;
        let read_back = self.output.finish()?;
        Ok(Sealed { temp: self.temp, end, file_bytes, read_back, verified: false })
    }

    fn enter(&mut self, kind: SnapshotBlockKind) -> Result<()> {
        if kind < self.kind {
            return Err(Error::invalid("a snapshot has nodes first, then sessions, then txns"));
        }
        if kind > self.kind {
            self.close()?;
            self.kind = kind;
        }
        Ok(())
    }

    fn added(&mut self, kind: usize) {
        self.count += 1;
        self.counts[kind] += 1;
    }

    fn close_if_full(&mut self) -> Result<()> {
        if self.body.len() < BLOCK_BYTES { Ok(()) } else { self.close() }
    }

    fn close(&mut self) -> Result<()> {
        if self.count == 0 { Ok(()) } else { self.write_block() }
    }

    fn write_block(&mut self) -> Result<()> {
        let body_bytes = u32::try_from(self.body.len()).map_err(|_| {
            Error::new(ErrorKind::TooLarge, "record_too_large", "a block of 4 GiB".to_owned())
        })?;
        let (index, offset, seed) = (self.places.len() as u64, self.offset, self.header.seed());
        let body_crc = body_check(seed, index, &self.body);
        let block = SnapshotBlock { kind: self.kind, count: self.count, index, offset, body_bytes, body_crc };
        self.output.push(&block.encode(seed))?;
        self.output.push(&self.body)?;
        self.offset += block.total_bytes();
        if self.kind != SnapshotBlockKind::Index {
            let place = BlockPlace { offset, body_bytes };
            self.output.block_ended(place);
            self.places.push(place);
        }
        self.body.clear();
        self.body.shrink_to(BLOCK_BYTES + 4096);
        self.count = 0;
        self.nodes = NodeEncoder::default();
        Ok(())
    }
}

/// A snapshot that is whole and synced, under its temporary name. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Sealed {
    temp: Temp,
    end: Zxid,
    file_bytes: u64,
    /// What was read of its blocks after they were written.
    read_back: Option<Reading>,
    verified: bool,
}

impl Sealed {
    /// How many bytes it has.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Reads and checks all that was written, past the page cache where the file system can; of blocks that were read
    /// again beside writing only that they are all.
    pub(crate) fn verify(&mut self) -> Result<()> {
        let store = &self.temp.store;
        let name = self.name();
        let file = store.disk.open(name, OpenMode::Write { direct: true });
        let file = file.map_err(|e| Error::io("open a snapshot", e).in_file(name))?;
        let mut file = SnapshotFile::open(file, store.database_id, store.numbering)?;
        if let Some(reading) = &self.read_back {
            reading.finish(&file.info)?;
        } else {
            file.reads_ahead = store.has_threads();
            verify(&file)?;
        }
        self.verified = true;
        Ok(())
    }

    /// Gives it its name. One that has the name is replaced, once this one is verified.
    ///
    /// To be called only once the log is durable up to the snapshot's end.
    pub(crate) fn publish(mut self) -> Result<SnapshotInfo> {
        let store = self.temp.store.clone();
        if !self.verified && store.has(self.end) {
            self.verify()?;
        }
        let (from, to) = (self.name().to_owned(), snapshot_name(self.end));
        let wrap = |e| Error::io("publish a snapshot", e).in_file(&to);
        store.disk.rename(&from, &to).map_err(wrap)?;
        self.temp.name = None;
        store.disk.sync_dir().map_err(|e| Error::io("sync the snapshots' directory", e))?;
        let file = store.open_file(self.end)?;
        store.published(self.end, self.verified);
        Ok(file.info)
    }

    fn name(&self) -> &str {
        self.temp.name.as_deref().expect("it is published once")
    }
}

const _: () = assert!(BLOCK_BYTES > SESSION_BYTES);

#[cfg(test)]
mod large_tests;
