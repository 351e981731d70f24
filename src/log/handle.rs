use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid};
use crate::format::{DatabaseId, IndexEntry, Numbering};
use crate::io::{BackendInfo, Disk, Lock};
use crate::log::directory::{check_exists, open_log_dir, take_lock};
use crate::log::engine::{OnDurable, Shared, StartOptions, Threads};
use crate::log::options::LogOptions;
use crate::log::read::{Damage, LogReader, Record, Replay, not_in_log, verify};
use crate::log::recover::{Opened, RecoveryReport, create, judge, open_recovered, survey_replaying};
use crate::log::retain::{
    Execution, LogPin, Pin, PurgeReport, Retention, TruncateReport, purge, truncate_on,
};
use crate::log::stats::{Health, LogStats};

/// An open transaction log: the one live owner of its directory.
///
/// Share it by reference or in an `Arc`; every method but [`close`](Log::close) and
/// [`truncate`](Log::truncate) takes `&self`. See the crate's documentation for an example.
///
/// Dropping a log lets go of it without a clean close: what was acknowledged is safe, what was not may or
/// may not be there, and the next open verifies and starts a new segment. It waits for writes under way,
/// but not for one that is stuck.
pub struct Log {
    pub(super) shared: Arc<Shared>,
    threads: Threads,
}

impl LogOptions {
    /// Opens the log in directory `dir`, which must exist; creates it if the directory holds none.
    ///
    /// # Errors
    /// - [`ErrorKind::Corrupt`]: acknowledged bytes have changed, or files are missing, swapped or foreign.
    ///   Not one byte on disk was changed.
    /// - [`ErrorKind::Locked`]: someone else has it open. [`ErrorKind::WrongOwner`]: another database.
    ///   [`ErrorKind::Unsupported`]: written by a newer version. [`ErrorKind::Invalid`]: an option is out of
    ///   its bounds. [`ErrorKind::NoSpace`], [`ErrorKind::Io`].
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<(Log, RecoveryReport)> {
        self.check()?;
        let disk = open_log_dir(dir.as_ref(), self.backend_choice())?;
        self.open_on(&disk, None, None)
    }

    /// Opens the log and hands every record after `after` to `visit`, in order, as it is verified: for a server
    /// that rebuilds its state, at half the cost of an open and a [reader](Log::reader). `visit` runs in the
    /// calling thread, while one for each further processor (up to seven) reads and verifies what comes next.
    ///
    /// Whether the log can be opened is known only at its end: after an error, what was visited counts for
    /// nothing. After success it is exactly the log.
    ///
    /// # Errors
    /// As [`open`](LogOptions::open), and [`ErrorKind::NotInLog`] if records after `after` were purged.
    pub fn open_replaying(
        &self,
        dir: impl AsRef<Path>,
        after: Zxid,
        mut visit: impl FnMut(Record<'_>),
    ) -> Result<(Log, RecoveryReport)> {
        self.check()?;
        let disk = open_log_dir(dir.as_ref(), self.backend_choice())?;
        self.open_replaying_on(&disk, after, &mut visit)
    }

    /// Opens the log on a simulated disk, with real threads.
    ///
    /// # Errors
    /// As [`open`](LogOptions::open).
    #[cfg(any(test, feature = "sim"))]
    pub fn open_sim(&self, disk: &crate::sim::SimDisk) -> Result<(Log, RecoveryReport)> {
        self.check()?;
        self.open_on(&disk.handle(), None, None)
    }

    /// [`open_replaying`](LogOptions::open_replaying) on a simulated disk.
    ///
    /// # Errors
    /// As there.
    #[cfg(any(test, feature = "sim"))]
    pub fn open_replaying_sim(
        &self,
        disk: &crate::sim::SimDisk,
        after: Zxid,
        mut visit: impl FnMut(Record<'_>),
    ) -> Result<(Log, RecoveryReport)> {
        self.check()?;
        self.open_replaying_on(&disk.handle(), after, &mut visit)
    }

    /// [`open_replaying`](LogOptions::open_replaying) in a directory that is open already.
    pub(crate) fn open_replaying_on(
        &self,
        disk: &Arc<dyn Disk>,
        after: Zxid,
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(Log, RecoveryReport)> {
        let mut replay = Replay::new(after, visit);
        let (log, report) = self.open_on(disk, None, Some(&mut replay))?;
        let (visited, last) = (replay.handed_out(), report.last_zxid.max(after));
        if visited != last {
            let what = format!("the records up to {visited} were handed out, and the log ends with {last}");
            return Err(Error::corrupt("replay_differs", what));
        }
        Ok((log, report))
    }

    fn open_on(
        &self,
        disk: &Arc<dyn Disk>,
        lock: Option<Box<dyn Lock>>,
        replay: Option<&mut Replay<'_>>,
    ) -> Result<(Log, RecoveryReport)> {
        let clock = Clock::real();
        if self.must_exist {
            check_exists(disk.as_ref())?;
        }
        // Before any queue is made: a ring keeps the lock until its last write has ended.
        let lock = lock.map_or_else(|| take_lock(disk.as_ref()), Ok)?;
        let mut random = Random::from_system();
        let opened = open_locked(disk, self, &clock, &mut random, replay)?;
        let report = opened.report.clone();
        let start = StartOptions { options: self.clone(), clock, random, lock: Some(lock) };
        let shared = Shared::new(opened, start)?;
        let threads = Threads::start(&shared)?;
        Ok((Log { shared, threads }, report))
    }
}

/// Everything between the lock and the threads: the part that the simulator runs as well.
pub(crate) fn open_locked(
    disk: &Arc<dyn Disk>,
    options: &LogOptions,
    clock: &Clock,
    random: &mut Random,
    replay: Option<&mut Replay<'_>>,
) -> Result<Opened> {
    let start = clock.nanos();
    let after = replay.as_ref().map(|replay| replay.after());
    let mut found = survey_replaying(disk, replay)?;
    let created = found.manifest.is_none();
    let mut read = clock.nanos();
    let judged = if let Some(manifest) = &found.manifest {
        let judged = judge(&found, manifest)?;
        if let Some(after) = after.filter(|after| *after < manifest.floor_zxid) {
            return Err(not_in_log(after, "it was purged"));
        }
        read = clock.nanos();
        judged
    } else {
        let (made, judged) = create(disk, &found, options, clock, random)?;
        found = made;
        judged
    };
    let mut opened = open_recovered(disk, &found, &judged, options, clock, random)?;
    opened.report.created = created;
    opened.report.read_ns = read - start;
    opened.report.total_ns = clock.nanos() - start;
    Ok(opened)
}

impl Log {
    /// Makes `epoch` durable and lets in only its appends from now on: older ones are fenced for ever, also
    /// after a crash. The same epoch again is fine.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if a newer epoch is durable already. [`ErrorKind::Invalid`] if it does not fit
    /// the 32 bits of ZooKeeper's numbering. A failed write poisons the log.
    pub fn advance_epoch(&self, epoch: Epoch) -> Result<()> {
        if self.shared.options.numbering == Numbering::Zxid && epoch.get() > u64::from(u32::MAX) {
            return Err(Error::invalid(format!("epoch {epoch} does not fit 32 bits")));
        }
        self.shared.advance_epoch(epoch)
    }

    /// Has `call` called with each new last durable zxid, after it was published and before most of those who wait
    /// for it are woken. Calls may come at the same time and in any order. It may not append, nor wait.
    ///
    /// # Panics
    /// If there is one already.
    pub(crate) fn on_durable(&self, call: impl Fn(Zxid) + Send + Sync + 'static) {
        assert!(self.shared.on_durable.set(OnDurable(Box::new(call))).is_ok(), "there is one call");
    }

    /// The newest durable epoch.
    pub fn epoch(&self) -> Epoch {
        self.shared.epoch()
    }

    /// The last record that was ordered: it may not be durable yet.
    pub fn logged_zxid(&self) -> Zxid {
        self.shared.inner().core.logged_zxid()
    }

    /// The last record that is durable. Never falls.
    pub fn durable_zxid(&self) -> Zxid {
        self.shared.durable()
    }

    /// The last record that was purged: the log holds what comes after it.
    pub fn floor_zxid(&self) -> Zxid {
        self.shared.segments.read().first().map_or(Zxid::ZERO, |s| s.floor_zxid)
    }

    /// Blocks until everything that was ordered before this call is durable.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write failed.
    pub fn flush(&self) -> Result<Zxid> {
        let (zxid, batch) = {
            let core = &self.shared.inner().core;
            // If nothing is forming, the last record is in the group before.
            let forming = u64::from(core.forming_records() > 0);
            (core.logged_zxid(), (core.forming_batch() + forming).saturating_sub(1))
        };
        self.shared.wait(zxid, batch, None)?;
        Ok(zxid)
    }

    /// Reads the records after `after`, in order, up to what is durable, and follows the log as it grows.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if some of them were purged.
    pub fn reader(&self, after: Zxid) -> Result<LogReader> {
        LogReader::new(self.shared.clone(), after)
    }

    /// Reads everything that is durable and lists what has changed since it was acknowledged, to be fetched
    /// from a peer. Appends go on meanwhile; [`repair_record`](crate::repair_record) puts records back, once
    /// the log is closed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if something cannot be read. Damage is no error here: it is the answer.
    pub fn verify(&self) -> Result<Vec<Damage>> {
        verify(&self.shared)
    }

    /// Reads from the first record on whose time is `time_ms` or later, by the running maximum of the times:
    /// a clock that jumped back hides nothing (all records from that one on are read).
    ///
    /// # Errors
    /// As [`reader`](Log::reader).
    pub fn reader_at_time(&self, time_ms: i64) -> Result<LogReader> {
        let start = self.zxid_before_time(time_ms)?;
        self.reader(start)
    }

    /// The record before the first one whose time is `time_ms` or later; the last one if there is none.
    fn zxid_before_time(&self, time_ms: i64) -> Result<Zxid> {
        // The last group before which all times are earlier: the first late record is in it or behind it.
        let early = |index: &[IndexEntry]| {
            let at = index.partition_point(|e| e.time_max_before_ms < time_ms);
            at.checked_sub(1).map(|i| Zxid::new(index[i].first_zxid.get() - 1))
        };
        let (in_use, in_use_first) = {
            let inner = self.shared.inner();
            let index = &inner.core.active().index;
            (early(index), index.first().copied())
        };
        let start = {
            let segments = self.shared.segments.read();
            let floor = segments.first().map_or(Zxid::ZERO, |s| s.floor_zxid);
            let mut indexes = segments.iter().filter_map(|s| s.ended.as_ref()).map(|e| &e.index);
            let first = indexes.find_map(|i| i.first().copied()).or(in_use_first);
            if first.is_some_and(|e| e.time_max_before_ms >= time_ms) {
                // The running maximum was reached by a record that is purged: all that is left comes after it.
                return Ok(floor);
            }
            let mut ended = segments.iter().rev().filter_map(|s| s.ended.as_ref());
            let earlier = in_use.or_else(|| ended.find_map(|e| early(&e.index)));
            earlier.unwrap_or(floor)
        };
        let mut reader = self.reader(start)?;
        let mut last = start;
        while let Some(record) = reader.next_record()? {
            if record.time_ms >= time_ms {
                break;
            }
            last = record.zxid;
        }
        Ok(last)
    }

    /// Closes the segment in use: the next record begins a new one, so that a purge with a snapshot of what is logged
    /// now can remove all before it. Records that the disk does not have yet may go to the new segment too; one that
    /// holds nothing stays in use. Until the new segment is prepared, appends wait.
    pub fn roll(&self) {
        self.shared.roll();
    }

    /// Keeps the records after `after` from being purged while the pin lives.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if some of them were purged.
    pub fn pin(&self, after: Zxid) -> Result<LogPin> {
        Pin::new(&self.shared, after).map(LogPin)
    }

    /// Removes whole segments from the front that hold nothing after `through`, as far as `retention` and
    /// pins let them go. `through` must come from what is durable elsewhere: a verified snapshot.
    ///
    /// # Errors
    /// [`ErrorKind::NoSpace`], [`ErrorKind::Io`], [`ErrorKind::Poisoned`]. A file that cannot be removed is no
    /// error: the report lists it.
    pub fn purge(&self, through: Zxid, retention: &Retention) -> Result<PurgeReport> {
        purge(&self.shared, through, retention)
    }

    /// Cuts off everything after `to` and opens the log anew. If `to` is no record of the log, it ends with
    /// the last one before it; the report says which. What was cut is kept in the directory.
    ///
    /// # Errors
    /// [`ErrorKind::NotInLog`] if `to` lies before the first record that is kept or after the last one; the
    /// log is unchanged, but it is closed all the same: open it again. Else as [`LogOptions::open`].
    pub fn truncate(self, to: Zxid) -> Result<(Log, TruncateReport)> {
        let disk = self.shared.directory.disk().clone();
        let options = self.shared.options.clone();
        let shared = self.shared.clone();
        let lock = self.close_keeping_lock()?;
        // Before it is done, and also if it fails: the next open may find it done.
        shared.cut(to);
        let report = truncate_locked(&disk, to)?;
        let (log, _) = options.open_on(&disk, lock, None)?;
        Ok((log, report))
    }

    /// Writes what is logged, marks the log as closed cleanly, and lets go of the directory.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write has failed: the log is closed, but not cleanly.
    pub fn close(self) -> Result<()> {
        self.close_keeping_lock().map(drop)
    }

    fn close_keeping_lock(mut self) -> Result<Option<Box<dyn Lock>>> {
        self.shared.drain(ErrorKind::Closed)?;
        self.threads.stop(&self.shared);
        self.shared.mark_closed()?;
        Ok(self.shared.take_lock())
    }

    /// What the log has done since it was opened.
    pub fn stats(&self) -> LogStats {
        let inner = self.shared.inner();
        LogStats {
            logged_zxid: inner.core.logged_zxid(),
            durable_zxid: inner.core.durable_zxid(),
            waiting_records: u64::from(inner.core.forming_records()),
            ..inner.stats.snapshot()
        }
    }

    /// Whether the log's disk is well.
    pub fn health(&self) -> Health {
        match self.shared.failure() {
            Some(error) => Health::Failed(error.clone()),
            None if self.shared.inner().stats.is_slow() => Health::Slow,
            None => Health::Fine,
        }
    }

    /// The backend in use, and why not another.
    pub fn backend(&self) -> BackendInfo {
        self.shared.directory.disk().info().clone()
    }

    /// The database that the log belongs to.
    pub fn database_id(&self) -> DatabaseId {
        self.shared.directory.manifest().database_id
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.abandon();
        self.threads.stop(&self.shared);
        self.shared.release_lock();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("durable", &self.shared.durable()).finish_non_exhaustive()
    }
}

/// Truncates the log of a directory that is locked and not open.
pub(crate) fn truncate_locked(disk: &Arc<dyn Disk>, to: Zxid) -> Result<TruncateReport> {
    truncate_on(disk, to, Execution::Real)
}
