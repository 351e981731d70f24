//! Runs in which calls fail, and runs on a disk that lies.

use super::damage::check_damaged;
use super::evidence::{Hit, hit_groups};
use super::world::World;
use crate::format::GroupKind;
use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern};

impl World {
    pub(super) fn run_disturbed(&mut self) {
        self.disturbed = true;
        if self.one_in(4) {
            self.inject_some();
        }
        self.start();
        for _ in 0..60 + self.random.below(100) {
            if self.one_in(12) {
                self.inject_some();
            }
            self.step();
            match self.random.below(50) {
                0 | 1 => self.check_fork(),
                2 => self.restart_disturbed(),
                3 => self.read_flipped(),
                _ => {}
            }
            if !self.is_open() || self.process().is_failed() {
                self.after_failure();
            }
        }
        self.check_fork();
    }

    fn after_failure(&mut self) {
        if self.is_open() {
            // A failed log stays failed, whatever is asked of it; acknowledgements are watched.
            for _ in 0..self.random.below(4) {
                self.step();
                if !self.is_open() {
                    break;
                }
            }
        }
        self.restart_disturbed();
    }

    fn restart_disturbed(&mut self) {
        if self.is_open() {
            self.check_fork();
            if self.one_in(2) {
                self.kill();
            } else {
                let image = self.random_image();
                self.crash(image);
            }
        }
        if !self.one_in(4) {
            self.disk.clear_faults();
        }
        if self.one_in(3) {
            self.inject_some();
        }
        self.open();
    }

    /// A rule or two that some call will meet. None of them may ever cost an acknowledged record, or make a
    /// log unreadable once the disk works again.
    fn inject_some(&mut self) {
        for _ in 0..1 + self.random.below(2) {
            let op = self.pick(&[
                FaultOp::Write,
                FaultOp::Write,
                FaultOp::Sync,
                FaultOp::Sync,
                FaultOp::SyncDir,
                FaultOp::Create,
                FaultOp::Open,
                FaultOp::Read,
                FaultOp::Rename,
                FaultOp::Remove,
                FaultOp::Allocate,
                FaultOp::List,
                FaultOp::Lock,
            ]);
            let error = self.pick(&[Effect::EIO, Effect::ENOSPC]);
            let effect = match op {
                FaultOp::Write => {
                    let short = Effect::ShortThenError { bytes: self.random.below(9000), errno: 5 };
                    self.pick(&[error, short, Effect::Interrupted])
                }
                FaultOp::Sync | FaultOp::SyncDir => self.pick(&[error, Effect::SyncFailsAndDropsPages]),
                FaultOp::Read => self.pick(&[error, Effect::Interrupted]),
                _ => error,
            };
            self.remount_due |= op == FaultOp::SyncDir && effect == Effect::SyncFailsAndDropsPages;
            let suffix = self.pick(&["", ".seg", ".seg.tmp", ".tmp", "manifest"]);
            let name = if suffix.is_empty() { NamePattern::Any } else { NamePattern::Suffix(suffix.into()) };
            let nth = 1 + self.random.below(5);
            let times = if self.one_in(4) { 3 } else { 1 };
            let fault = Fault::next(op, effect).on(name).nth(nth).times(times);
            self.tell(&fault);
            self.disk.inject(fault);
        }
    }

    /// A reader on a disk that flips a bit shows what was appended, or an error.
    fn read_flipped(&mut self) {
        if !self.is_open() {
            return;
        }
        let offset = self.random.below(20_000);
        self.disk.clear_faults();
        self.disk.inject(Fault::next(FaultOp::Read, Effect::FlipBit { offset }));
        if let Ok(records) = self.process().read() {
            let same = self.model.records.iter().map(|k| &k.record).zip(&records).all(|(a, b)| a == b);
            assert!(same, "a reader served bytes that were never appended");
        }
        self.disk.clear_faults();
    }

    /// A disk that loses or misplaces one write of a group, and says that all is well.
    pub(super) fn run_lying(&mut self) {
        self.open();
        for _ in 0..20 + self.random.below(40) {
            self.step_without_restart();
        }
        let hits = self.lie();
        for _ in 0..self.random.below(30) {
            self.step_without_restart();
        }
        if self.one_in(2) {
            self.flush();
            self.mark();
            self.finish_all();
        }
        if self.one_in(4) {
            self.close();
        }
        for _ in 0..3 {
            let image = self.random_image();
            let fork = self.disk.fork(image);
            check_damaged(self, &fork, &hits);
        }
    }

    /// Has the disk lie about the next group. Returns what was hit.
    fn lie(&mut self) -> Vec<Hit> {
        self.flush();
        self.prepare_all();
        self.append_surely(1, 600);
        let before = self.disk.fork(CrashImage::KeepAll).snapshot_bytes();
        let effect = if self.one_in(2) {
            Effect::LostWrite
        } else {
            Effect::MisdirectedWrite { to_offset: 512 * self.random.below(64) }
        };
        let prev = self.model.launched.last().map_or(self.model.manifest_durable, |g| g.last);
        let struck = self.disk.fault_hits();
        self.disk.inject(Fault::next(FaultOp::Write, effect).on(NamePattern::Suffix(".seg".into())));
        self.begin();
        self.finish_all();
        self.disk.clear_faults();
        assert!(self.disk.fault_hits() > struck, "the disk was to lie and did not");
        let mut hits = hit_groups(&before, &self.disk.snapshot_bytes());
        hits.push(Hit { kind: GroupKind::Records, prev, last: self.model.acked });
        hits
    }

    fn step_without_restart(&mut self) {
        match self.random.below(20) {
            0..9 => self.append(),
            9..12 => drop(self.begin()),
            12..15 => self.finish(),
            15..17 => drop(self.prepare()),
            17 => self.purge(),
            18 => {
                self.flush();
                self.mark();
            }
            _ => self.flush(),
        }
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[super::world::crate_index(&mut self.random, from.len())]
    }
}
