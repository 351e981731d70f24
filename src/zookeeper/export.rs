use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::compression::{Compression, SNAPPY_BLOCK_BYTES, SNAPPY_HEADER};
use super::format::ZkFormat;
use super::log_file::{ENTRY_END, MAGIC};
use super::target_dir::{FileWriter, TargetDir};
use super::write_snapshot::{leaves_out_config, raw, write_snapshot};
use super::write_txn::put_txn;
use crate::base::{Clock, Error, ErrorKind, Result, Zxid};
use crate::engine::{
    Activity, Progress, RestoreTarget, Source, Told, check_apart, close_sessions, replay_telling,
};
use crate::format::Txn;
use crate::log::Execution;
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
    sessions: bool,
    source_log_dir: Option<PathBuf>,
    execution: Execution,
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
            sessions: true,
            source_log_dir: None,
            execution: Execution::Real,
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

    /// Whether sessions, and the ephemeral nodes that they own, are written (default: they are). If not, each is closed by
    /// a txn of its own behind the target, which takes a snapshot of the state: no tail of the log.
    #[must_use]
    pub fn sessions(mut self, kept: bool) -> ExportOptions {
        self.sessions = kept;
        self
    }

    /// Whether the files are written, or only made up and told of (default [`Execution::Real`]). A dry run needs no
    /// destination that exists.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> ExportOptions {
        self.execution = execution;
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExportReport {
    /// The end of the engine's snapshot with which it began; none if an empty tree was the beginning.
    pub began_with: Option<Zxid>,
    /// Newer snapshots of the engine that could not be used, and why.
    pub skipped: Vec<(Zxid, Error)>,
    /// As [`RestoreReport::log_begins_after`](crate::RestoreReport::log_begins_after).
    pub log_begins_after: Option<Zxid>,
    /// How many txns of the engine's log came after its snapshot.
    pub replayed: u64,
    /// How many of these could not be done, though they were no errors when they were logged. None are counted for a tail.
    pub replay_failures: u64,
    /// The last txn of the engine that is in the state.
    pub source_zxid: Zxid,
    /// Sessions that were closed, each by a txn of its own.
    pub closed_sessions: u64,
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
/// - [`ErrorKind::Invalid`]: something is in `dest`, or one of the two is inside the other; there is no engine in `source`; the state has what servers of the
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
    check_apart((dest.as_ref(), None), (source.as_ref(), what.source_log_dir.as_deref()))?;
    if what.log_tail && !what.sessions {
        return Err(Error::invalid(
            "a log's tail ends with the engine's last txn: sessions are not closed behind it",
        ));
    }
    let engine = Source::in_dir(source.as_ref(), what.source_log_dir.as_deref())?;
    let ((mut tree, base, skipped), target, log) = engine.begin(what.target, &what.progress)?;
    let mut report = ExportReport {
        began_with: base.map(|info| info.end),
        skipped,
        log_begins_after: engine.log_begins_after(),
        ..ExportReport::of_nothing()
    };
    if !what.log_tail {
        let replayed = replay_telling(log, &mut tree, target, &what.progress)?;
        (report.replayed, report.replay_failures) = (replayed.txns, replayed.failures);
        report.source_zxid = tree.last_zxid();
    }
    if !what.sessions {
        report.closed_sessions = close_sessions(&mut tree, Clock::real().wall_ms())?;
    }
    let dir = match what.execution {
        Execution::Real => Some(TargetDir::begin(dest.as_ref())?),
        Execution::DryRun => {
            TargetDir::check(dest.as_ref())?;
            None
        }
    };
    put_snapshot(dir.as_ref(), &tree, what, &mut report)?;
    if what.log_tail {
        let mut logs =
            LogWriter { dir: dir.as_ref(), format: what.format, open: None, len: 0, report: &mut report };
        let mut reader = log.records(tree.last_zxid())?;
        while let Some(record) = reader.next_record()?.filter(|record| record.zxid <= target) {
            let txn = Txn::decode(record.zxid, record.time_ms, record.payload)?;
            tree.apply(&txn, &mut ());
            logs.put(&txn, tree.digest())?;
        }
        logs.finish()?;
        (report.source_zxid, report.replayed) = (tree.last_zxid(), report.txns);
    }
    (report.last_zxid, report.digest) = (tree.last_zxid(), tree.digest());
    let current = report.last_zxid.epoch();
    if let Some(dir) = dir {
        dir.put("currentEpoch", &current.get().to_string())?;
        dir.put("acceptedEpoch", &engine.accepted().max(current).get().to_string())?;
        dir.publish()?;
    }
    Ok(report)
}

fn put_snapshot(
    dir: Option<&TargetDir>,
    tree: &DataTree,
    what: &ExportOptions,
    report: &mut ExportReport,
) -> Result<()> {
    let name = format!("snapshot.{:x}{}", raw(tree.last_zxid())?, what.compression.suffix());
    let wrap = |e| Error::io("write a snapshot", e).in_file(&name);
    let mut tell = |done| {
        let (activity, total) = (Activity::WriteSnapshot, Some(tree.len()));
        what.progress.tell(&Progress { activity, done_bytes: 0, total_bytes: None, done, total });
    };
    report.snapshot.clone_from(&name);
    report.nodes = tree.len() - u64::from(leaves_out_config(tree, what.format));
    report.sessions = tree.sessions().len() as u64;
    let Some(dir) = dir else {
        return write_snapshot(tree, what.format, &mut std::io::sink(), &mut tell);
    };
    let mut write =
        |out: &mut dyn Write| write_snapshot(tree, what.format, out, &mut tell).map_err(|e| e.in_file(&name));
    let out = dir.create(&name)?;
    let out = match what.compression {
        Compression::None => {
            let mut out = out;
            write(&mut out)?;
            out
        }
        Compression::Gz => {
            let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            write(&mut packed)?;
            packed.finish().map_err(wrap)?
        }
        Compression::Snappy => {
            let mut packed = SnappyWriter { out, block: Vec::with_capacity(SNAPPY_BLOCK_BYTES) };
            packed.out.write_all(SNAPPY_HEADER).map_err(wrap)?;
            write(&mut packed)?;
            packed.put_block().map_err(wrap)?;
            packed.out
        }
    };
    TargetDir::finish(out).map(drop)
}

impl ExportReport {
    fn of_nothing() -> ExportReport {
        ExportReport {
            began_with: None,
            skipped: Vec::new(),
            log_begins_after: None,
            replayed: 0,
            replay_failures: 0,
            source_zxid: Zxid::ZERO,
            closed_sessions: 0,
            snapshot: String::new(),
            nodes: 0,
            sessions: 0,
            logs: Vec::new(),
            txns: 0,
            last_zxid: Zxid::ZERO,
            digest: 0,
        }
    }
}

/// Writes entries into logs.
struct LogWriter<'a> {
    /// None of a dry run.
    dir: Option<&'a TargetDir>,
    format: ZkFormat,
    /// The log in use, and its length; 0 if there is none.
    open: Option<BufWriter<FileWriter>>,
    len: u64,
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
        if self.len >= LOG_BYTES {
            self.finish()?;
        }
        if self.len == 0 {
            let name = format!("log.{:x}", raw(txn.zxid)?);
            if let Some(dir) = self.dir {
                let mut out = dir.create(&name)?;
                let begun = out.write_all(MAGIC).and_then(|()| out.write_all(LOG_HEADER_REST));
                begun.map_err(|e| Error::io("write a log", e).in_file(&name))?;
                self.open = Some(out);
            }
            self.report.logs.push(name);
            self.len = 16;
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut entry = u64::from(adler2::adler32_slice(&payload)).to_be_bytes().to_vec();
        entry.extend_from_slice(&length.to_be_bytes());
        entry.extend_from_slice(&payload);
        entry.push(ENTRY_END);
        if let Some(out) = &mut self.open {
            out.write_all(&entry).map_err(|e| Error::io("write a log", e).in_file(out.get_ref().name()))?;
        }
        self.len += entry.len() as u64;
        self.report.txns += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.len = 0;
        match self.open.take() {
            None => Ok(()),
            Some(out) => TargetDir::finish(out).map(drop),
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
