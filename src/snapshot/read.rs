use super::file::{SnapshotFile, SnapshotInfo};
use super::read_ahead::read_ahead;
use crate::base::{Error, Result, Zxid};
use crate::format::Txn;
use crate::format::snapshot::{
    NodeDecoder, NodeEntry, SESSION_BYTES, SnapshotBlock, SnapshotBlockKind, SnapshotTxn, decode_session,
    split_txn,
};
use crate::tree::{Owner, StoredStat, WalkedNode};

/// How far a load has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoadProgress {
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) done_nodes: u64,
    pub(crate) total_nodes: u64,
}

/// What the entries of a snapshot are handed to.
pub(crate) trait Visitor {
    fn node(&mut self, node: &NodeEntry<'_>);
    fn session(&mut self, id: i64, timeout_ms: i32);
    fn txn(&mut self, txn: &SnapshotTxn<'_>) -> Result<()>;
    /// All entries of a block were handed over.
    fn block_done(&mut self, _: LoadProgress) {}
}

/// Reads and checks all blocks, counts and the order of txns, without making a tree.
pub(super) fn verify(file: &SnapshotFile) -> Result<()> {
    read(file, &mut Checking)
}

/// Checks and takes nothing.
pub(crate) struct Checking;

impl Visitor for Checking {
    fn node(&mut self, _: &NodeEntry<'_>) {}
    fn session(&mut self, _: i64, _: i32) {}
    fn txn(&mut self, txn: &SnapshotTxn<'_>) -> Result<()> {
        Txn::decode(txn.zxid, txn.time_ms, txn.payload).map(drop)
    }
}

/// A node as it stands in the file, as the walk has met it. `path` is room for its path.
pub(crate) fn walked<'a>(node: &NodeEntry<'a>, path: &'a mut String) -> WalkedNode<'a> {
    path.clear();
    path.extend([node.parent, "/", node.name]);
    let row = &node.row;
    let owner = match row.owner {
        (1, id) => Owner::Session(id),
        (2, _) => Owner::Container,
        (3, ttl_ms) => Owner::Ttl { ttl_ms },
        _ => Owner::Persistent,
    };
    let stat = StoredStat {
        czxid: row.czxid,
        mzxid: row.mzxid,
        pzxid: row.pzxid,
        ctime_ms: row.ctime_ms,
        mtime_ms: row.mtime_ms,
        version: row.version,
        cversion: row.cversion,
        aversion: row.aversion,
        owner,
    };
    WalkedNode { path, data: node.data, acl: node.acl, stat }
}

/// Hands out all entries in order, each block verified before.
pub(super) fn read(file: &SnapshotFile, visitor: &mut dyn Visitor) -> Result<()> {
    let info = &file.info;
    let mut state = Reading::new(info.start);
    let mut take = |(block, body): (SnapshotBlock, Vec<u8>)| {
        state.block(&block, &body, visitor).map_err(|e| e.in_file(&info.file).at_offset(block.offset))?;
        visitor.block_done(LoadProgress {
            done_bytes: block.offset + block.total_bytes(),
            total_bytes: info.file_bytes,
            done_nodes: state.counts[0],
            total_nodes: info.nodes,
        });
        Ok(true)
    };
    let mut blocks = (0..file.blocks.len()).map(|number| file.block(number));
    if file.reads_ahead {
        // The disk has work while entries are decoded.
        read_ahead(|| blocks.next().transpose(), take)?;
    } else {
        blocks.try_for_each(|block| take(block?).map(drop))?;
    }
    state.finish(info)
}

/// What was read of a snapshot so far: that its blocks, counts and txns are in order.
#[derive(Debug)]
pub(crate) struct Reading {
    kind: SnapshotBlockKind,
    counts: [u64; 3],
    last_txn: Zxid,
}

impl Reading {
    /// Nothing yet, of a snapshot whose walk began at `start`.
    pub(crate) fn new(start: Zxid) -> Reading {
        Reading { kind: SnapshotBlockKind::Nodes, counts: [0; 3], last_txn: start }
    }

    /// After the last block: whether that was all.
    pub(crate) fn finish(&self, info: &SnapshotInfo) -> Result<()> {
        if self.counts != [info.nodes, info.sessions, info.txns] || self.last_txn != info.end {
            let what = "the blocks hold other counts or another end than the trailer says";
            return Err(Error::corrupt("snapshot_counts", what).in_file(&info.file));
        }
        Ok(())
    }

    pub(crate) fn block(
        &mut self,
        block: &SnapshotBlock,
        body: &[u8],
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        if block.kind < self.kind || block.kind == SnapshotBlockKind::Index {
            return Err(Error::corrupt("snapshot_order", "a block is not where its kind belongs"));
        }
        self.kind = block.kind;
        let bad = || Error::corrupt("snapshot_entry", "an entry of a block is none that is ever written");
        let count = block.count as usize;
        match block.kind {
            SnapshotBlockKind::Sessions => {
                if body.len() != count.saturating_mul(SESSION_BYTES) {
                    return Err(bad());
                }
                for (id, timeout_ms) in body.chunks_exact(SESSION_BYTES).map(decode_session) {
                    visitor.session(id, timeout_ms);
                }
                self.counts[1] += u64::from(block.count);
            }
            SnapshotBlockKind::Txns => {
                let mut rest = body;
                for _ in 0..count {
                    let (txn, behind) = split_txn(rest).ok_or_else(bad)?;
                    if txn.zxid <= self.last_txn {
                        let what = format!("{} does not come after {}", txn.zxid, self.last_txn);
                        return Err(Error::corrupt("snapshot_order", what));
                    }
                    visitor.txn(&txn)?;
                    (rest, self.last_txn) = (behind, txn.zxid);
                }
                if !rest.is_empty() {
                    return Err(bad());
                }
                self.counts[2] += u64::from(block.count);
            }
            _ => {
                let mut nodes = NodeDecoder::new(body);
                for _ in 0..count {
                    visitor.node(&nodes.next().ok_or_else(bad)?);
                }
                if !nodes.is_at_end() {
                    return Err(bad());
                }
                self.counts[0] += u64::from(block.count);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
