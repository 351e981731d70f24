//! Files that are read and checked in a thread of their own, while the caller's makes a tree of what came before.

use std::ops::Range;

use super::bytes::OnDisk;
use super::log_file::LogFile;
use super::snapshot_file::{AclTable, SnapshotFile, SnapshotNode, list_of};
use crate::base::{Error, Result};

/// Batches that are read before they are asked for.
const BATCHES_AHEAD: usize = 3;
/// A batch is handed over once it has so much.
const BATCH_BYTES: u64 = 256 * 1024;
/// The same for small entries.
const BATCH_COUNT: usize = 1024;

/// Takes what `next` makes, in order, until there is none, or `take` wants no more (it tells false then). An error of
/// `next` comes after all that was made before it.
pub(super) fn read_ahead<T: Send>(
    mut next: impl FnMut() -> Result<Option<T>> + Send,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    std::thread::scope(|scope| {
        let (sender, batches) = crossbeam_channel::bounded(BATCHES_AHEAD);
        scope.spawn(move || {
            while let Some(batch) = next().transpose() {
                let failed = batch.is_err();
                // Whoever takes no more has found a fault, or has enough.
                if sender.send(batch).is_err() || failed {
                    return;
                }
            }
        });
        for batch in batches {
            if !take(batch?)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Nodes of a snapshot, away from their file.
#[derive(Debug, Default)]
pub(super) struct NodeBatch {
    paths: String,
    data: Vec<u8>,
    nodes: Vec<(Range<usize>, Option<Range<usize>>, SnapshotNode<'static>)>,
    /// How many bytes of the file had been read, as it stands on disk.
    pub(super) read_bytes: u64,
}

impl NodeBatch {
    /// The next nodes; none behind the last one.
    pub(super) fn read(file: &mut SnapshotFile<OnDisk>) -> Result<Option<NodeBatch>> {
        let mut batch = NodeBatch::default();
        while batch.nodes.len() < BATCH_COUNT && (batch.paths.len() + batch.data.len()) as u64 <= BATCH_BYTES
        {
            // If it fails here, the snapshot is not used at all: what came before is of no interest.
            let Some(node) = file.next_node()? else { break };
            let (path_at, data_at) = (batch.paths.len(), batch.data.len());
            batch.paths.push_str(node.path);
            batch.data.extend_from_slice(node.data.unwrap_or(&[]));
            let data = node.data.map(|_| data_at..batch.data.len());
            let fields = SnapshotNode { path: "", data: None, acl: None, ..node };
            batch.nodes.push((path_at..batch.paths.len(), data, fields));
        }
        batch.read_bytes = file.read_bytes();
        Ok((!batch.nodes.is_empty()).then_some(batch))
    }

    /// The nodes, with their lists from the file's table.
    pub(super) fn nodes<'a>(&'a self, acls: &'a AclTable) -> impl Iterator<Item = SnapshotNode<'a>> {
        self.nodes.iter().map(|(path, data, fields)| SnapshotNode {
            path: &self.paths[path.clone()],
            data: data.clone().map(|data| &self.data[data]),
            acl: list_of(acls, fields.acl_id),
            ..*fields
        })
    }
}

/// Entries of a log, away from their file.
#[derive(Debug, Default)]
pub(super) struct EntryBatch {
    bytes: Vec<u8>,
    entries: Vec<(u64, Range<usize>)>,
}

impl EntryBatch {
    /// Where each entry begins, and its payload.
    pub(super) fn payloads(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().map(|(offset, range)| (*offset, &self.bytes[range.clone()]))
    }
}

/// Reads entries, some at once.
#[derive(Debug)]
pub(super) struct EntryBatches<'a> {
    log: &'a mut LogFile<OnDisk>,
    failed: Option<Error>,
}

impl<'a> EntryBatches<'a> {
    pub(super) fn new(log: &'a mut LogFile<OnDisk>) -> EntryBatches<'a> {
        EntryBatches { log, failed: None }
    }

    /// The next entries; none at the log's end. An error comes behind all entries before it.
    pub(super) fn read(&mut self) -> Result<Option<EntryBatch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut batch = EntryBatch::default();
        while batch.entries.len() < BATCH_COUNT && batch.bytes.len() as u64 <= BATCH_BYTES {
            match self.log.next_payload() {
                Ok(Some((offset, payload))) => {
                    let at = batch.bytes.len();
                    batch.bytes.extend_from_slice(payload);
                    batch.entries.push((offset, at..batch.bytes.len()));
                }
                Ok(None) => break,
                Err(error) if batch.entries.is_empty() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok((!batch.entries.is_empty()).then_some(batch))
    }
}
