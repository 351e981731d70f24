use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::compression::{Compression, SNAPPY_BLOCK_BYTES, SNAPPY_HEADER};
use super::format::ZkFormat;
use super::log_file::{ENTRY_END, MAGIC};
use super::target_dir::{FileWriter, TargetDir};
use super::write_snapshot::{raw, write_snapshot};
use super::write_txn::put_txn;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::engine::{Activity, Progress, RestoreTarget, Source, Told, replay_telling};
use crate::format::Txn;
use crate::tree::DataTree;

/// A log is left for the next one when it has so many bytes, as a server does.
const LOG_BYTES: u64 = 64 << 20;
/// The version, and the database, which is none.
const LOG_HEADER_REST: &[u8; 12] = b"\0\0\0\x02\0\0\0\0\0\0\0\0";

/// What to write for ZooKeeper.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    format: ZkFormat,
    target: RestoreTarget,
    log_tail: bool,
    compression: Compression,
    source_log_dir: Option<PathBuf>,
    progress: Told,
}

impl ExportOptions {
    /// The newest state as a snapshot by itself, not compressed.
    pub fn new(format: ZkFormat) -> ExportOptions {
        ExportOptions {
            format,
            target: RestoreTarget::Newest,
            log_tail: false,
            compression: Compression::None,
            source_log_dir: None,
            progress: Told::default(),
        }
    }

    /// Which state (default [`RestoreTarget::Newest`]).
    #[must_use]
    pub fn target(mut self, target: RestoreTarget) -> ExportOptions {
        self.target = target;
        self
    }

    /// Whether the newest snapshot is written with the txns behind it in a log (default: the state is written as one
    /// snapshot).
    #[must_use]
    pub fn log_tail(mut self, kept: bool) -> ExportOptions {
        self.log_tail = kept;
        self
    }

    /// How the snapshot is compressed (default: it is not). Servers read it since 3.6.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> ExportOptions {
        self.compression = compression;
        self
    }

    /// Where the engine has its log, if not beside its snapshots.
    #[must_use]
    pub fn source_log_dir(mut self, dir: impl Into<PathBuf>) -> ExportOptions {
        self.source_log_dir = Some(dir.into());
        self
    }

    /// Has `tell` told how far the loading of the engine's snapshot, the replay of its log and the writing have come, some
    /// times for each MiB, so it must be quick.
    #[must_use]
    pub fn on_progress(mut self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> ExportOptions {
        self.progress = Told::new(tell);
        self
    }
}

/// What an export has written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExportReport {
    /// The snapshot's name.
    pub snapshot: String,
    /// Its nodes.
    pub nodes: u64,
    /// Its sessions.
    pub sessions: u64,
    /// The logs' names.
    pub logs: Vec<String>,
    /// The txns in them.
    pub txns: u64,
    /// The last txn of the state.
    pub last_zxid: Zxid,
    /// The tree's digest there.
    pub digest: u64,
}

/// Writes a state of the engine in `source` for a ZooKeeper server whose `dataDir` is `dest`, which must exist and be
/// empty: `version-2` with a snapshot, epochs, and a log if it is wanted. Nothing in `source` is locked or changed.
///
/// # Errors
/// There is no `version-2` then. What an export has left that was cut off is removed by the next one.
/// - [`ErrorKind::Invalid`]: something is in `dest`; there is no engine in `source`; the state has what servers of the
///   format do not know.
/// - [`ErrorKind::TooLarge`]: a node or a txn is longer than servers of the format read.
/// - [`ErrorKind::NotInLog`], [`ErrorKind::Corrupt`]: as [`restore`](crate::restore).
pub fn export(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    what: &ExportOptions,
) -> Result<ExportReport> {
    if what.compression != Compression::None && !what.format.has_digests() {
        return Err(Error::invalid(format!("ZooKeeper {} reads no compressed snapshots", what.format)));
    }
    let engine = Source::in_dir(source.as_ref(), what.source_log_dir.as_deref())?;
    let (mut tree, target, log) = engine.begin(what.target, &what.progress)?;
    if !what.log_tail {
        replay_telling(log, &mut tree, target, &what.progress)?;
    }
    let dir = TargetDir::begin(dest.as_ref())?;
    let mut report = put_snapshot(&dir, &tree, what)?;
    if what.log_tail {
        let mut logs = LogWriter { dir: &dir, format: what.format, open: None, report: &mut report };
        let mut reader = log.records(tree.last_zxid())?;
        while let Some(record) = reader.next_record()?.filter(|record| record.zxid <= target) {
            let txn = Txn::decode(record.zxid, record.time_ms, record.payload)?;
            tree.apply(&txn, &mut ());
            logs.put(&txn, tree.digest())?;
        }
        logs.finish()?;
    }
    (report.last_zxid, report.digest) = (tree.last_zxid(), tree.digest());
    let current = report.last_zxid.epoch();
    dir.put("currentEpoch", &current.get().to_string())?;
    dir.put("acceptedEpoch", &engine.accepted().max(current).get().to_string())?;
    dir.publish()?;
    Ok(report)
}

fn put_snapshot(dir: &TargetDir, tree: &DataTree, what: &ExportOptions) -> Result<ExportReport> {
    let zxid = tree.last_zxid();
    let name = format!("snapshot.{:x}{}", raw(zxid)?, what.compression.suffix());
    let out = dir.create(&name)?;
    let wrap = |e| Error::io("write a snapshot", e).in_file(&name);
    let mut tell = |done| {
        let (activity, total) = (Activity::WriteSnapshot, Some(tree.len()));
        what.progress.tell(&Progress { activity, done_bytes: 0, total_bytes: None, done, total });
    };
    let out = match what.compression {
        Compression::None => {
            let mut out = out;
            write_snapshot(tree, what.format, &mut out, &mut tell)?;
            out
        }
        Compression::Gz => {
            let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            write_snapshot(tree, what.format, &mut packed, &mut tell)?;
            packed.finish().map_err(wrap)?
        }
        Compression::Snappy => {
            let mut packed = SnappyWriter { out, block: Vec::with_capacity(SNAPPY_BLOCK_BYTES) };
            packed.out.write_all(SNAPPY_HEADER).map_err(wrap)?;
            write_snapshot(tree, what.format, &mut packed, &mut tell)?;
            packed.put_block().map_err(wrap)?;
            packed.out
        }
    };
    TargetDir::finish(out)?;
    Ok(ExportReport {
        snapshot: name,
        nodes: tree.len(),
        sessions: tree.sessions().len() as u64,
        logs: Vec::new(),
        txns: 0,
        last_zxid: zxid,
        digest: tree.digest(),
    })
}

/// Writes entries into logs.
struct LogWriter<'a> {
    dir: &'a TargetDir,
    format: ZkFormat,
    /// The log in use, and its length.
    open: Option<(BufWriter<FileWriter>, u64)>,
    report: &'a mut ExportReport,
}

impl LogWriter<'_> {
    /// Appends a txn; `digest` is the tree's after it.
    fn put(&mut self, txn: &Txn<'_>, digest: u64) -> Result<()> {
        let mut payload = Vec::new();
        put_txn(&mut payload, txn, Some(digest), self.format)?;
        if payload.len() > self.format.length_limit() {
            let what = format!("the txn is longer than a server of {} reads", self.format);
            return Err(Error::new(ErrorKind::TooLarge, "zk_length", what).with_zxids(txn.zxid, txn.zxid));
        }
        let wrap = |e| Error::io("write a log", e);
        if self.open.as_ref().is_some_and(|(_, len)| *len >= LOG_BYTES) {
            self.finish()?;
        }
        let (out, len) = match &mut self.open {
            Some(open) => open,
            none => {
                let name = format!("log.{:x}", raw(txn.zxid)?);
                let mut out = self.dir.create(&name)?;
                out.write_all(MAGIC).and_then(|()| out.write_all(LOG_HEADER_REST)).map_err(wrap)?;
                self.report.logs.push(name);
                none.insert((out, 16))
            }
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut entry = u64::from(adler2::adler32_slice(&payload)).to_be_bytes().to_vec();
        entry.extend_from_slice(&length.to_be_bytes());
        entry.extend_from_slice(&payload);
        entry.push(ENTRY_END);
        out.write_all(&entry).map_err(wrap)?;
        *len += entry.len() as u64;
        self.report.txns += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        match self.open.take() {
            None => Ok(()),
            Some((out, _)) => TargetDir::finish(out).map(drop),
        }
    }
}

/// Writes blocks of snappy, each behind its length.
struct SnappyWriter {
    out: BufWriter<FileWriter>,
    block: Vec<u8>,
}

impl SnappyWriter {
    fn put_block(&mut self) -> std::io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let packed = snap::raw::Encoder::new().compress_vec(&self.block).map_err(std::io::Error::other)?;
        let length = u32::try_from(packed.len()).map_err(std::io::Error::other)?;
        self.out.write_all(&length.to_be_bytes())?;
        self.out.write_all(&packed)?;
        self.block.clear();
        Ok(())
    }
}

impl Write for SnappyWriter {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let len = buf.len().min(SNAPPY_BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(&buf[..len]);
        if self.block.len() == SNAPPY_BLOCK_BYTES {
            self.put_block()?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
