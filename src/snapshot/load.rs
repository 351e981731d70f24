use crossbeam_channel::{bounded, unbounded};

use super::file::{SnapshotFile, SnapshotInfo};
use super::read::{LoadProgress, Visitor, read, walked};
use crate::base::{Error, Result, Zxid};
use crate::format::TxnBuf;
use crate::format::snapshot::{NodeEntry, SnapshotTxn};
use crate::tree::{DataTree, NodeBatch, TreeLoader};

/// A parcel is handed over when it has so many entries or bytes; a node can have more.
const ENTRIES_MAX: usize = 4096;
const BYTES_MAX: usize = 512 * 1024;
/// The same at the end of a block: to hand over less would cost more than the other thread gains by having it early.
const BYTES_AT_END: usize = BYTES_MAX / 2;
/// No node takes less in a file.
const NODE_BYTES_MIN: u64 = 12;
/// Parcels that are under way at a time.
const PARCELS: usize = 4;

/// Loads the tree of a snapshot, as it is at its end. Every attempt begins with nothing.
pub(crate) fn load(
    file: &SnapshotFile,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<(DataTree, SnapshotInfo)> {
    let info = file.info.clone();
    // A file that lies about its nodes is not to cost more than it has bytes.
    let expected = info.nodes.min(info.file_bytes / NODE_BYTES_MIN);
    let mut loading = Loading { loader: Some(DataTree::loader_for(expected)), tree: None, start: info.start };
    let mut take = |parcel: &Parcel| {
        loading.take(parcel);
        parcel.progress.into_iter().for_each(&mut *progress);
    };
    if file.reads_ahead {
        in_two_threads(file, &mut take)?;
    } else {
        let send = |parcel: Parcel| {
            take(&parcel);
            parcel.emptied()
        };
        Packing::new(send).read(file)?;
    }
    let tree = loading.into_tree();
    if tree.digest() != info.digest {
        let what = format!("the tree's digest is {:#x}, not {:#x}", tree.digest(), info.digest);
        return Err(Error::corrupt("snapshot_digest", what)
            .in_file(&info.file)
            .with_zxids(info.end, info.end));
    }
    Ok((tree, info))
}

/// Reads, verifies and decodes in a thread of its own, which takes about as long as to make nodes of it in the caller's.
fn in_two_threads(file: &SnapshotFile, take: &mut dyn FnMut(&Parcel)) -> Result<()> {
    std::thread::scope(|scope| {
        let (full, parcels) = bounded::<Parcel>(PARCELS);
        let (back, empty) = unbounded();
        let thread = std::thread::Builder::new().name("arborlog-reader".into());
        let read = move || {
            let mut made = 1;
            let send = |parcel: Parcel| {
                // The other thread goes only by a panic, which is the caller's then.
                drop(full.send(parcel));
                made += 1;
                let used = if made <= PARCELS { None } else { empty.recv().ok() };
                used.unwrap_or_else(Parcel::default)
            };
            Packing::new(send).read(file)
        };
        let reader = thread.spawn_scoped(scope, read).map_err(|e| Error::io("start a thread", e))?;
        for parcel in parcels {
            take(&parcel);
            // Nobody wants it when all is read.
            drop(back.send(parcel.emptied()));
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Entries on their way from a snapshot's file into a tree: nodes before sessions, and these before txns, as in the file.
#[derive(Debug, Default)]
struct Parcel {
    nodes: NodeBatch,
    sessions: Vec<(i64, i32)>,
    txns: Vec<TxnBuf>,
    /// That of the last block that has ended in it.
    progress: Option<LoadProgress>,
}

impl Parcel {
    fn emptied(mut self) -> Parcel {
        self.nodes.clear();
        self.sessions.clear();
        self.txns.clear();
        self.progress = None;
        self
    }
}

/// Packs the entries of a snapshot into parcels.
struct Packing<S> {
    parcel: Parcel,
    bytes: usize,
    path: String,
    /// Takes a full parcel and gives an empty one.
    send: S,
}

impl<S: FnMut(Parcel) -> Parcel> Packing<S> {
    fn new(send: S) -> Packing<S> {
        Packing { parcel: Parcel::default(), bytes: 0, path: String::new(), send }
    }

    fn read(mut self, file: &SnapshotFile) -> Result<()> {
        read(file, &mut self)?;
        self.hand_over();
        Ok(())
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
        let Parcel { nodes, sessions, txns, .. } = &self.parcel;
        if self.bytes >= BYTES_MAX || nodes.len().max(sessions.len()).max(txns.len()) >= ENTRIES_MAX {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        let full = std::mem::take(&mut self.parcel);
        self.parcel = (self.send)(full);
    }
}

impl<S: FnMut(Parcel) -> Parcel> Visitor for Packing<S> {
    fn node(&mut self, node: &NodeEntry<'_>) {
        let node = walked(node, &mut self.path);
        self.parcel.nodes.push(&node);
        let bytes = node.path.len() + node.data.map_or(0, <[u8]>::len) + node.acl.as_bytes().len();
        self.count(bytes);
    }

    fn session(&mut self, id: i64, timeout_ms: i32) {
        self.parcel.sessions.push((id, timeout_ms));
        self.count(0);
    }

    fn txn(&mut self, txn: &SnapshotTxn<'_>) -> Result<()> {
        self.parcel.txns.push(TxnBuf::from_bytes(txn.zxid, txn.time_ms, txn.payload)?);
        self.count(txn.payload.len());
        Ok(())
    }

    fn block_done(&mut self, progress: LoadProgress) {
        self.parcel.progress = Some(progress);
        if self.bytes >= BYTES_AT_END {
            self.hand_over();
        }
    }
}

struct Loading {
    loader: Option<TreeLoader>,
    /// Once there is a txn.
    tree: Option<DataTree>,
    start: Zxid,
}

impl Loading {
    fn take(&mut self, parcel: &Parcel) {
        if let Some(loader) = &mut self.loader {
            loader.batch(&parcel.nodes);
            parcel.sessions.iter().for_each(|(id, timeout_ms)| loader.session(*id, *timeout_ms));
        }
        if !parcel.txns.is_empty()
            && let Some(loader) = self.loader.take()
        {
            // What has no parent was deleted while the walk was under way; the txns tell.
            self.tree = Some(loader.finish(self.start).tree);
        }
        if let Some(tree) = &mut self.tree {
            parcel.txns.iter().for_each(|txn| drop(tree.apply(&txn.as_txn(), &mut ())));
        }
    }

    fn into_tree(self) -> DataTree {
        let Loading { loader, tree, start } = self;
        tree.or_else(|| loader.map(|loader| loader.finish(start).tree)).unwrap_or(DataTree::new())
    }
}
