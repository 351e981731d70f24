//! One simulated process: the log without its threads, stepped by hand.

use std::sync::Arc;

use super::model::{Appended, Launched, Model, Recovered};
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result, Zxid, checksum};
use crate::format::Numbering;
use crate::io::Disk;
use crate::log::commit::Incoming;
use crate::log::directory::read_manifest;
use crate::log::directory::take_lock;
use crate::log::engine::{Begin, Patience, Shared, StartOptions, UnderWay};
use crate::log::handle::{open_locked, truncate_locked};
use crate::log::options::LogOptions;
use crate::log::prepare::Preparation;
use crate::log::read::{LogReader, Record, Replay};
use crate::log::retain::{PurgeReport, Retention, TruncateReport, purge};
use crate::sim::SimDisk;

/// How a log is opened each time.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) options: LogOptions,
    pub(super) seed: u64,
}

/// A log that is open, with the groups that are under way and the segment that is being prepared.
pub(super) struct Process {
    // Dropped in this order: writes under way end before the lock is let go.
    under_way: Vec<UnderWay>,
    preparation: Option<Preparation>,
    pub(super) shared: Arc<Shared>,
    hand: Arc<std::sync::atomic::AtomicU64>,
    failed_at: Option<Zxid>,
}

impl Process {
    pub(super) fn open(disk: &SimDisk, setup: &Setup) -> Result<Process> {
        let handle: Arc<dyn Disk> = disk.handle();
        let lock = take_lock(handle.as_ref())?;
        let clock: Clock = disk.clock();
        // Another salt for each life: the count of operations tells lives apart.
        let mut random = Random::from_seed(setup.seed ^ disk.operations().wrapping_mul(0x9e37_79b9));
        let mut replayed = Vec::new();
        let mut visit = |r: Record<'_>| replayed.push(Arc::new(Appended::of(&r)));
        // Some lives begin with a replay, from anywhere in the log.
        let floor = read_manifest(handle.as_ref()).ok().flatten().map(|m| m.floor_zxid);
        let after = floor.filter(|_| random.below(3) == 0).map(|f| Zxid::new(f.get() + random.below(60)));
        let mut replay = after.map(|after| Replay::new(after, &mut visit));
        let opened = open_locked(&handle, &setup.options, &clock, &mut random, replay.as_mut())?;
        let handed_out = replay.map(|r| r.handed_out());
        let start = StartOptions { options: setup.options.clone(), clock, random, lock: Some(lock) };
        let shared = Shared::new(opened, start)?;
        shared.clear_leftovers();
        let process =
            Process { under_way: Vec::new(), preparation: None, shared, hand: disk.nanos(), failed_at: None };
        if let (Some(after), Some(handed_out)) = (after, handed_out) {
            let durable = process.shared.durable();
            assert!(
                handed_out == after.max(durable),
                "a replay after {after} ended with {handed_out}, the log with {durable}"
            );
            // Power may be cut while it is read.
            if let Ok(mut records) = process.read() {
                records.retain(|r| r.zxid > after);
                assert!(records == replayed, "a replay handed out other records than a reader");
            }
        }
        Ok(process)
    }

    pub(super) fn flights(&self) -> usize {
        self.under_way.len()
    }

    pub(super) fn first_seq(&self) -> u64 {
        self.shared.directory.manifest().first_seq
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.shared.inner().core.epoch()
    }

    pub(super) fn is_failed(&self) -> bool {
        self.shared.failure().is_some() || self.shared.inner().core.failure().is_some()
    }

    /// Does something to the log and takes in what it promised by it. Groups that started inside are noted
    /// with what was durable before: they cannot claim less.
    fn watched<T>(&mut self, model: &mut Model, act: impl FnOnce(&mut Process) -> T) -> T {
        let (batch, logged, durable) = {
            let inner = self.shared.inner();
            (inner.core.forming_batch(), inner.core.logged_zxid(), self.shared.durable())
        };
        let was_failed = self.is_failed();
        let done = act(self);
        if self.shared.inner().core.forming_batch() > batch {
            let is_mark = model.launched.last().is_some_and(|g| g.last == logged);
            model.launched.push(Launched { is_mark, ended: false, last: logged, claims: durable });
        }
        let now = self.shared.durable();
        if was_failed {
            let at = *self.failed_at.get_or_insert(now);
            assert!(now == at, "{now} was acknowledged although the log had failed at {at}");
            assert!(self.is_failed(), "a failed log forgot that it had failed");
        }
        model.acknowledge(now);
        let idle = self.under_way.is_empty() && !self.is_failed();
        model.launched.iter_mut().for_each(|g| g.ended |= idle || !g.is_mark && g.last <= now);
        done
    }

    /// Appends records as one. `Ok(false)`: there is no room at the moment.
    pub(super) fn append(&mut self, model: &mut Model, batch: Vec<Appended>, named: bool) -> Result<bool> {
        let incoming: Vec<Incoming<'_>> = batch
            .iter()
            .map(|r| Incoming {
                zxid: named.then_some(r.zxid),
                epoch: r.epoch,
                time_ms: r.time_ms,
                payload: &r.payload,
                payload_crc: checksum::crc32(0, &r.payload),
            })
            .collect();
        let last = batch.last().map_or(Zxid::ZERO, |r| r.zxid);
        let answer = self.watched(model, |p| p.shared.append(&incoming, Patience::None));
        drop(incoming);
        match answer {
            Ok((zxid, _)) => {
                assert!(zxid == last, "the log numbered a record {zxid}, and {last} was due");
                model.push_batch(batch);
                Ok(true)
            }
            Err(e) if e.kind() == ErrorKind::Busy => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Starts the forming group, at its time. False: nothing to start.
    pub(super) fn begin(&mut self, model: &mut Model) -> bool {
        self.watched(model, |p| {
            for _ in 0..3 {
                let begin = p.shared.begin(&mut p.shared.inner());
                match begin {
                    Begin::Group(group) => {
                        p.under_way.push(group);
                        return true;
                    }
                    Begin::WaitUntil(at) => drop(p.hand.fetch_max(at, std::sync::atomic::Ordering::Relaxed)),
                    Begin::Nothing => return false,
                }
            }
            panic!("the time of a group came and it did not start");
        })
    }

    /// Starts the mark of an idle log.
    pub(super) fn begin_mark(&mut self, model: &mut Model) -> bool {
        self.watched(model, |p| {
            let begin = p.shared.begin_mark(&mut p.shared.inner());
            let Begin::Group(group) = begin else { return false };
            p.under_way.push(group);
            true
        })
    }

    /// Sees one of the groups under way through.
    pub(super) fn finish(&mut self, model: &mut Model, at: usize) {
        self.watched(model, |p| {
            let group = p.under_way.remove(at);
            p.shared.finish(group);
        });
    }

    pub(super) fn finish_all(&mut self, model: &mut Model) {
        while !self.under_way.is_empty() {
            self.finish(model, 0);
        }
    }

    /// One piece of the work on the next segment. False: there is nothing to do.
    pub(super) fn prepare(&mut self, model: &mut Model) -> bool {
        self.watched(model, |p| {
            let mut inner = p.shared.inner();
            let Some(mut preparation) = p.preparation.take() else {
                let wanted = inner.core.wants_next() && inner.core.failure().is_none();
                p.preparation = wanted.then(|| p.shared.preparation(&mut inner));
                return wanted;
            };
            drop(inner);
            let outcome = match preparation.step() {
                Ok(None) => {
                    p.preparation = Some(preparation);
                    return true;
                }
                Ok(Some(segment)) => Ok(segment),
                Err(error) => Err(error),
            };
            p.shared.prepared(&preparation, outcome);
            true
        })
    }

    /// Makes all that is logged durable.
    pub(super) fn flush(&mut self, model: &mut Model) {
        while !self.is_failed() && (self.begin(model) || !self.under_way.is_empty()) {
            self.finish_all(model);
        }
        self.finish_all(model);
    }

    pub(super) fn advance_epoch(&mut self, model: &mut Model, epoch: Epoch) -> Result<()> {
        self.finish_all(model);
        model.epoch_max = model.epoch_max.max(epoch);
        self.watched(model, |p| p.shared.advance_epoch(epoch))?;
        assert!(epoch >= model.epoch, "epoch {epoch} was let in after {}", model.epoch);
        model.epoch = epoch;
        model.manifest_durable = model.acked;
        Ok(())
    }

    pub(super) fn purge(&mut self, model: &mut Model, through: Zxid) -> Result<PurgeReport> {
        model.floor_max = model.floor_max.max(through.min(model.acked));
        let answer = self.watched(model, |p| purge(&p.shared, through, &Retention::new()));
        // An error may come after the purge, from removing the files.
        let floor = self.shared.segments.read().first().map_or(Zxid::ZERO, |s| s.floor_zxid);
        assert!(
            answer.as_ref().map_or(true, |report| report.floor_zxid == floor),
            "a purge reports {answer:?}"
        );
        let limit = model.floor_max;
        model.purged(floor);
        if answer.is_err() {
            model.floor_max = limit;
        }
        answer
    }

    /// Closes cleanly.
    pub(super) fn close(mut self, model: &mut Model) -> Result<()> {
        self.finish_all(model);
        self.watched(model, |p| p.shared.drain(ErrorKind::Closed))?;
        let logged = self.shared.inner().core.logged_zxid();
        assert!(self.shared.durable() == logged, "a drained log has {logged} logged and less durable");
        self.shared.mark_closed()?;
        model.manifest_durable = model.acked;
        drop(self.shared.take_lock());
        Ok(())
    }

    /// All that is durable, read from the start. Checks it against the watermark.
    pub(super) fn read(&self) -> Result<Vec<Arc<Appended>>> {
        let floor = self.shared.segments.read().first().map_or(Zxid::ZERO, |s| s.floor_zxid);
        let durable = self.shared.durable();
        let mut reader = LogReader::new(self.shared.clone(), floor)?;
        let mut records = Vec::new();
        while let Some(r) = reader.next_record()? {
            records.push(Arc::new(Appended::of(&r)));
        }
        let last = records.last().map_or(floor, |r| r.zxid);
        assert!(last == durable, "a reader ends with {last}, and {durable} is durable");
        Ok(records)
    }

    /// What the log holds right after it was opened.
    pub(super) fn read_back(&self) -> Recovered {
        let records = self.read().unwrap_or_else(|e| panic!("a log that opened cannot be read: {e}"));
        let floor = self.shared.directory.manifest().floor_zxid;
        Recovered { floor, epoch: self.epoch(), last: self.shared.durable(), records }
    }

    /// Appends a few records and makes them durable, on a disk without faults.
    pub(super) fn append_some(&mut self, model: &mut Model, random: &mut Random) {
        for _ in 0..3 {
            let batch = new_batch(self, model, random, 1, 700);
            let mut tries = 0;
            while !self
                .append(model, batch.clone(), true)
                .unwrap_or_else(|e| panic!("a fresh log refuses: {e}"))
            {
                self.flush(model);
                self.prepare(model);
                tries += 1;
                assert!(tries < 100, "there is never room for a record");
            }
        }
        self.flush(model);
        assert!(model.acked == model.last(), "a flush left {} unacknowledged", model.last());
    }
}

/// Records that may come next: sometimes with a gap before them.
pub(super) fn new_batch(
    process: &Process,
    model: &Model,
    random: &mut Random,
    records: u64,
    bytes_max: u64,
) -> Vec<Appended> {
    let epoch = process.epoch();
    let mut last = model.last();
    (0..records)
        .map(|_| {
            let gap = if random.below(8) == 0 { random.below(5) } else { 0 };
            let of_epoch = process.shared.options.numbering == Numbering::Zxid && last.epoch() < epoch;
            let next = if of_epoch { (epoch.get() << 32) + 1 } else { last.get() + 1 };
            last = Zxid::new(next + gap);
            let mut payload = vec![0; usize::try_from(random.below(bytes_max + 1)).expect("small")];
            let seed = random.next_u64();
            let mut noise = Random::from_seed(seed);
            payload.iter_mut().for_each(|b| *b = noise.next_u64().to_le_bytes()[0]);
            let time_ms = i64::try_from(random.below(1_000_000)).expect("small");
            Appended { zxid: last, epoch, time_ms, payload }
        })
        .collect()
}

/// Truncates a log that is closed. Takes in what was answered.
pub(super) fn truncate(disk: &SimDisk, model: &mut Model, to: Zxid) -> Result<TruncateReport> {
    let handle: Arc<dyn Disk> = disk.handle();
    let _lock = take_lock(handle.as_ref())?;
    let (was, end) = (model.last(), model.end_of_truncation(to));
    let exact = model.records.iter().any(|k| k.record.zxid == to) || to == model.floor;
    model.truncating = Some(to);
    let report = truncate_locked(&handle, to)?;
    assert!(report.last_zxid == end, "truncation to {to} reports {} and not {end}", report.last_zxid);
    assert!(
        report.was_zxid == was && report.exact == exact,
        "truncation from {was} to {to} reports {report:?}"
    );
    model.truncated(end);
    Ok(report)
}

/// Whether a disk that fails may have caused this.
pub(super) fn is_of_the_disk(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Poisoned)
}
