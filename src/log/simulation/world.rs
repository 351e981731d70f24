//! One disk, the process on it, and the model beside it; every choice comes from one seed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::model::{Model, Recovered};
use super::oracle::check_image;
use super::process::{Process, Setup, is_of_the_disk, new_batch, truncate};
use crate::base::{Epoch, Error, ErrorKind, Random, Zxid};
use crate::format::{Numbering, SegmentFill};
use crate::io::WriteMode;
use crate::log::options::{Gather, GroupPolicy, LogOptions};
use crate::sim::{CrashImage, SimDisk};

/// What a run met with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) runs: u64,
    pub(super) steps: u64,
    pub(super) crashes: u64,
    pub(super) recoveries: u64,
    pub(super) refusals: u64,
    pub(super) damages: u64,
    pub(super) faults_hit: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.recoveries += other.recoveries;
        self.refusals += other.refusals;
        self.damages += other.damages;
        self.faults_hit += other.faults_hit;
    }
}

pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) setup: Setup,
    pub(super) model: Model,
    /// The model as it was before the step that is running, with what that step attempts: for those who look
    /// at the disk in the middle of it.
    pub(super) published: Arc<Mutex<Model>>,
    process: Option<Process>,
    pub(super) random: Random,
    pub(super) tally: Tally,
    /// Whether calls may fail by an injected fault.
    pub(super) disturbed: bool,
    /// A directory sync may have failed: a file system that lets that happen has to be mounted anew.
    pub(super) remount_due: bool,
    told: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let mut random = Random::from_seed(seed);
        let options = random_options(&mut random);
        World::with(seed, options, random)
    }

    pub(super) fn with(seed: u64, options: LogOptions, random: Random) -> World {
        options.check().expect("the simulator asks for what is allowed");
        World {
            disk: SimDisk::new(seed),
            setup: Setup { options, seed },
            model: Model::default(),
            published: Arc::default(),
            process: None,
            random,
            tally: Tally { runs: 1, ..Tally::default() },
            disturbed: false,
            remount_due: false,
            told: std::env::var("ARBORLOG_SIM_SEED").is_ok(),
        }
    }

    /// Tells what happens, where a run is replayed.
    pub(super) fn tell(&self, what: &dyn std::fmt::Debug) {
        if self.told {
            let (operation, acked, last) = (self.disk.operations(), self.model.acked, self.model.last());
            eprintln!("operation {operation}, {acked} of {last}: {what:?}");
        }
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    pub(super) fn publish(&self) {
        *self.published.lock() = self.model.clone();
    }

    pub(super) fn is_open(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn process(&self) -> &Process {
        self.process.as_ref().expect("open")
    }

    /// Lets the open process do something to the log.
    pub(super) fn act<T>(&mut self, act: impl FnOnce(&mut Process, &mut Model) -> T) -> T {
        self.publish();
        let done = act(self.process.as_mut().expect("open"), &mut self.model);
        self.publish();
        done
    }

    /// An error is fine only where faults are injected, and only of the disk.
    fn excuse(&self, error: &Error, doing: &str) {
        self.tell(&(doing, error.to_string()));
        assert!(self.disturbed && is_of_the_disk(error), "{doing} failed: {error}");
    }

    /// Opens the log, at last without faults, and holds it against the model.
    pub(super) fn open(&mut self) {
        assert!(self.process.is_none(), "one process at a time");
        self.publish();
        let mut tries = 0;
        let process = loop {
            if self.remount_due {
                let image = self.random_image();
                self.disk.crash(image);
            }
            match Process::open(&self.disk, &self.setup) {
                Ok(process) => break process,
                Err(error) => self.excuse(&error, "opening"),
            }
            tries += 1;
            if tries > 2 {
                self.disk.clear_faults();
            }
            assert!(tries < 5, "the log does not open without faults");
        };
        if self.disturbed {
            self.disk.clear_faults();
            self.remount_due = false;
        }
        let got: Recovered = process.read_back();
        self.model.check(&got, self.model.acked);
        self.model.adopt(&got);
        self.tally.recoveries += 1;
        self.process = Some(process);
        self.tell(&("opened", got.records.len(), got.epoch));
        self.publish();
    }

    /// Ends the process without a word.
    pub(super) fn kill(&mut self) {
        self.tell(&"kill");
        self.process = None;
        self.publish();
    }

    /// Cuts the power.
    pub(super) fn crash(&mut self, image: CrashImage) {
        self.tally.crashes += 1;
        self.tell(&image);
        self.disk.crash(image);
        self.kill();
    }

    /// What a power cut now would leave must be in order; this world goes on unharmed.
    pub(super) fn check_fork(&mut self) {
        let image = self.random_image();
        let fork = self.disk.fork(image);
        self.tell(&("fork", image));
        self.tally.crashes += 1;
        self.tally.recoveries += check_image(&fork, &self.setup, &self.model, &mut self.random);
    }

    pub(super) fn random_image(&mut self) -> CrashImage {
        match self.random.below(5) {
            0 => CrashImage::DropUnsynced,
            1 => CrashImage::KeepAll,
            _ => CrashImage::Random(self.random.next_u64()),
        }
    }

    pub(super) fn append(&mut self) {
        let large = self.one_in(25);
        let records = if self.one_in(4) { 1 + self.random.below(4) } else { 1 };
        let bytes_max = if large { 40_000 } else { [0, 200, 1500][crate_index(&mut self.random, 3)] };
        self.append_sized(records, bytes_max);
    }

    /// Appends a batch, or does what is needed for room.
    pub(super) fn append_sized(&mut self, records: u64, bytes_max: u64) -> bool {
        let records = records.min(u64::from(self.setup.options.group.records_max));
        let batch = {
            let World { process, model, random, .. } = self;
            new_batch(process.as_ref().expect("open"), model, random, records, bytes_max)
        };
        let named = !self.one_in(2) || !is_dense(&batch, &self.model, self.process().epoch());
        match self.act(|p, m| p.append(m, batch, named)) {
            Ok(true) => return true,
            Ok(false) => {
                self.begin();
                self.prepare();
            }
            Err(error) => {
                self.excuse(&error, "an append");
                self.prepare();
            }
        }
        false
    }

    /// Appends one record of just these bytes.
    pub(super) fn append_exactly(&mut self, bytes: usize) {
        let mut batch = new_batch(self.process(), &self.model, &mut Random::from_seed(1), 1, 0);
        batch[0].payload = vec![0x5a; bytes];
        let done = self.act(|p, m| p.append(m, batch, true));
        assert!(done.is_ok_and(|there_was_room| there_was_room), "a record of {bytes} bytes found no room");
    }

    /// Appends until there was room.
    pub(super) fn append_surely(&mut self, records: u64, bytes_max: u64) {
        for _ in 0..100 {
            if self.append_sized(records, bytes_max) {
                return;
            }
            self.finish_all();
        }
        panic!("there is never room for a record");
    }

    pub(super) fn begin(&mut self) -> bool {
        self.act(Process::begin)
    }

    pub(super) fn mark(&mut self) -> bool {
        self.act(Process::begin_mark)
    }

    pub(super) fn finish(&mut self) {
        let flights = self.process().flights();
        if flights > 0 {
            let at = crate_index(&mut self.random, flights);
            self.act(|p, m| p.finish(m, at));
        }
    }

    pub(super) fn finish_all(&mut self) {
        self.act(Process::finish_all);
    }

    pub(super) fn flush(&mut self) {
        self.act(Process::flush);
    }

    pub(super) fn prepare(&mut self) -> bool {
        self.act(Process::prepare)
    }

    pub(super) fn prepare_all(&mut self) {
        while !self.process().is_failed() && self.prepare() {}
    }

    pub(super) fn read(&mut self) {
        let got = self.process().read();
        match got {
            Ok(records) => {
                let kept = self.model.records.iter().map(|k| &k.record);
                let durable = kept.take_while(|r| r.zxid <= self.model.acked);
                assert!(durable.eq(records.iter()), "a reader shows other records than were appended");
            }
            Err(error) => self.excuse(&error, "reading"),
        }
    }

    pub(super) fn advance_epoch(&mut self, by: u64) {
        let epoch = Epoch::new(self.process().epoch().get() + by);
        self.model.epoch_max = self.model.epoch_max.max(epoch);
        if let Err(error) = self.act(|p, m| p.advance_epoch(m, epoch)) {
            self.excuse(&error, "an epoch change");
        }
    }

    /// A leader that was replaced must be kept out.
    pub(super) fn old_leader(&mut self) {
        let now = self.process().epoch();
        if now == Epoch::ZERO || self.process().is_failed() {
            return;
        }
        let old = Epoch::new(self.random.below(now.get()));
        let answer = self.act(|p, m| p.advance_epoch(m, old));
        let kind = answer.expect_err("an older epoch was made the log's epoch").kind();
        assert!(matches!(kind, ErrorKind::Fenced | ErrorKind::Poisoned), "an older epoch met {kind:?}");
        let World { process, model, random, .. } = self;
        let mut batch = new_batch(process.as_ref().expect("open"), model, random, 1, 10);
        batch[0].epoch = old;
        let answer = self.act(|p, m| p.append(m, batch, true));
        assert!(answer.is_err(), "an append of epoch {old} was let in, and {now} is durable");
    }

    pub(super) fn purge(&mut self) {
        let records = self.model.records.len() as u64;
        if records == 0 {
            return;
        }
        let at = crate_index(&mut self.random, self.model.records.len());
        self.purge_through(self.model.records[at].record.zxid);
    }

    pub(super) fn purge_through(&mut self, through: Zxid) {
        self.model.floor_max = self.model.floor_max.max(through.min(self.model.acked));
        if let Err(error) = self.act(|p, m| p.purge(m, through)) {
            self.excuse(&error, "a purge");
        }
    }

    /// Closes cleanly; the process is gone, whatever the answer.
    pub(super) fn close(&mut self) -> bool {
        self.publish();
        let process = self.process.take().expect("open");
        let done = process.close(&mut self.model);
        self.publish();
        if let Err(error) = &done {
            self.excuse(error, "closing");
        }
        done.is_ok()
    }

    pub(super) fn truncate_anywhere(&mut self) {
        let at = crate_index(&mut self.random, self.model.records.len() + 1);
        let to = at.checked_sub(1).map_or(self.model.floor, |at| self.model.records[at].record.zxid);
        self.truncate(to);
    }

    /// Closes, truncates, and leaves it to the caller to open.
    pub(super) fn truncate(&mut self, to: Zxid) {
        let to = to.min(self.model.last());
        if !self.close() {
            return;
        }
        self.model.truncating = Some(to);
        self.publish();
        if let Err(error) = truncate(&self.disk, &mut self.model, to) {
            self.excuse(&error, "a truncation");
        }
        self.publish();
    }
}

/// Whether the log would choose the same zxids by itself.
fn is_dense(batch: &[super::model::Appended], model: &Model, epoch: Epoch) -> bool {
    let mut last = model.last();
    batch.iter().all(|r| {
        let first_of_epoch = r.zxid.get() == (epoch.get() << 32) + 1 && last.epoch() < epoch;
        let follows = r.zxid.get() == last.get() + 1 || first_of_epoch;
        last = r.zxid;
        follows
    })
}

/// A random index below `bound`.
pub(super) fn crate_index(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a usize")
}

fn random_options(random: &mut Random) -> LogOptions {
    let mut pick = |n: usize| crate_index(random, n);
    let group = GroupPolicy::new()
        .bytes_max([4096, 8192, 16_384][pick(3)])
        .records_max([2, 5, 1000][pick(3)])
        .in_flight_max(1 + pick(3))
        .gather([Gather::Off, Gather::Adaptive, Gather::Always(Duration::from_micros(50))][pick(3)])
        .delay(Duration::from_micros([0, 0, 100][pick(3)]));
    LogOptions::new()
        .segment_bytes([16_384, 20_480, 65_536][pick(3)])
        .block_bytes([512, 4096][pick(2)])
        .fill(
            [SegmentFill::Zeroed, SegmentFill::Zeroed, SegmentFill::Allocated, SegmentFill::Growing][pick(4)],
        )
        .write_mode([WriteMode::DirectDsync, WriteMode::DirectThenSync, WriteMode::BufferedThenSync][pick(3)])
        .numbering([Numbering::Zxid, Numbering::Index][pick(2)])
        .group(group)
}
