use super::Progress;
use crate::base::Result;
use crate::format::Txn;
use crate::format::snapshot::{NodeEntry, SnapshotTxn};
use crate::snapshot::{Reading, SnapshotFile, Visitor, walked};
use crate::tree::WalkedNode;

/// What a snapshot's file holds.
#[derive(Clone, Debug)]
pub enum SnapshotItem<'a> {
    /// A node as the walk has met it. Nodes come in no order, and one that was deleted and made anew meanwhile may
    /// come twice.
    Node(WalkedNode<'a>),
    /// A session.
    Session {
        /// Its number.
        id: i64,
        /// Its timeout in milliseconds.
        timeout_ms: i32,
    },
    /// A txn of the walk's time.
    Txn(Txn<'a>),
}

/// Hands out all entries in order, until `visit` says no more.
pub(super) fn read_items(
    file: &SnapshotFile,
    visit: &mut dyn FnMut(SnapshotItem<'_>) -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let info = &file.info;
    let mut taking = Taking { visit, goes_on: true, path: String::new() };
    let mut reading = Reading::new(info.start);
    for number in 0..file.blocks.len() {
        let (block, body) = file.block(number)?;
        reading
            .block(&block, &body, &mut taking)
            .map_err(|e| e.in_file(&info.file).at_offset(block.offset))?;
        if !taking.goes_on {
            return Ok(());
        }
        let done_bytes = block.offset + block.total_bytes();
        progress(Progress { done_bytes, total_bytes: info.file_bytes });
    }
    reading.finish(info)
}

struct Taking<'v> {
    visit: &'v mut dyn FnMut(SnapshotItem<'_>) -> bool,
    goes_on: bool,
    path: String,
}

impl Taking<'_> {
    fn take(&mut self, item: SnapshotItem<'_>) {
        self.goes_on = self.goes_on && (self.visit)(item);
    }
}

impl Visitor for Taking<'_> {
    fn node(&mut self, node: &NodeEntry<'_>) {
        let mut path = std::mem::take(&mut self.path);
        self.take(SnapshotItem::Node(walked(node, &mut path)));
        self.path = path;
    }

    fn session(&mut self, id: i64, timeout_ms: i32) {
        self.take(SnapshotItem::Session { id, timeout_ms });
    }

    fn txn(&mut self, txn: &SnapshotTxn<'_>) -> Result<()> {
        self.take(SnapshotItem::Txn(Txn::decode(txn.zxid, txn.time_ms, txn.payload)?));
        Ok(())
    }
}
