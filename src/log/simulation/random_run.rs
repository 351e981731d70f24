//! Random runs: a log in use, with power cuts, kills and restarts; and the tests that run many of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::world::{Tally, World};
use crate::base::Random;
use crate::sim::CrashImage;

/// What a run is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Power cuts and kills at any moment.
    Plain,
    /// Also calls that fail.
    Disturbed,
    /// Bytes and files that change at rest.
    Damaged,
    /// A disk that lies about single writes.
    Lying,
}

pub(super) fn kind_of(seed: u64) -> Kind {
    [Kind::Plain, Kind::Disturbed, Kind::Damaged, Kind::Lying][(seed % 4) as usize]
}

/// Runs one seed; panics if the log did what it must not.
pub(super) fn run(seed: u64) -> Tally {
    let mut world = World::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xa5);
    world.tell(&world.setup.options);
    match kind_of(seed) {
        Kind::Plain => world.run_plain(),
        Kind::Disturbed => world.run_disturbed(),
        Kind::Damaged => world.run_damaged(),
        Kind::Lying => world.run_lying(),
    }
    world.tally.faults_hit += world.disk.fault_hits();
    world.tally
}

impl World {
    fn run_plain(&mut self) {
        self.start();
        for _ in 0..40 + self.random.below(100) {
            self.step();
            match self.random.below(60) {
                0 | 1 => self.check_fork(),
                2 => self.restart(),
                3 => self.crash_inside(),
                _ => {}
            }
        }
        self.check_fork();
    }

    /// Opens for the first time; half of the runs lose power while the log is being made.
    pub(super) fn start(&mut self) {
        if self.one_in(2) {
            self.crash_while_opening();
        }
        self.open();
    }

    /// Ends the process in some way and opens the log again.
    pub(super) fn restart(&mut self) {
        match self.random.below(4) {
            0 => self.kill(),
            1 => drop(self.close()),
            _ => {
                let image = self.random_image();
                self.crash(image);
            }
        }
        if self.one_in(3) {
            self.crash_while_opening();
        }
        self.open();
    }

    /// Opens the log and loses power at some operation of that.
    fn crash_while_opening(&mut self) {
        for _ in 0..1 + self.random.below(2) {
            let at = self.disk.operations() + 1 + self.random.below(12);
            let image = self.random_image();
            self.disk.crash_at(at, image);
            self.publish();
            let opened = super::process::Process::open(&self.disk, &self.setup);
            if let Err(error) = &opened {
                assert!(super::process::is_of_the_disk(error), "opening after a crash failed: {error}");
            }
            drop(opened);
            self.tally.crashes += 1;
            self.disk.crash(CrashImage::KeepAll);
        }
    }

    /// Does something rare and loses power in the middle of it.
    fn crash_inside(&mut self) {
        self.finish_all();
        let at = self.disk.operations() + 1 + self.random.below(16);
        let image = self.random_image();
        self.disk.crash_at(at, image);
        self.disturbed = true;
        match self.random.below(5) {
            0 => self.advance_epoch(1),
            1 => self.purge(),
            2 => self.truncate_anywhere(),
            3 => drop(self.close()),
            _ => {
                self.append();
                self.flush();
            }
        }
        self.disturbed = false;
        self.tally.crashes += 1;
        let image = self.random_image();
        self.crash(image);
        self.open();
    }

    /// One thing that a server does with its log.
    pub(super) fn step(&mut self) {
        self.tally.steps += 1;
        let step = self.random.below(100);
        self.tell(&("step", step));
        match step {
            0..42 => self.append(),
            42..60 => drop(self.begin()),
            60..76 => self.finish(),
            76..85 => drop(self.prepare()),
            85..88 => {
                self.flush();
                self.mark();
            }
            88..90 => self.read(),
            90 => self.advance_epoch(1),
            91 => self.old_leader(),
            92 => self.purge(),
            93 => {
                self.truncate_anywhere();
                self.open();
            }
            94 => {
                self.close();
                self.open();
            }
            _ => {
                self.append();
                self.flush();
            }
        }
    }
}

/// Runs one seed and says how to run it again if it fails.
pub(super) fn run_reporting(seed: u64) -> Tally {
    match catch_unwind(AssertUnwindSafe(|| run(seed))) {
        Ok(tally) => tally,
        Err(panic) => {
            eprintln!(
                "simulation failed; to replay: ARBORLOG_SIM_SEED={seed} cargo test --lib simulation_replay"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

/// A number from the environment.
fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn simulation_short() {
    let mut sum = Tally::default();
    (0..300).for_each(|seed| sum.add(&run_reporting(seed)));
    // Each of these that stayed at zero would be a test that tests nothing.
    let met = [sum.crashes, sum.recoveries, sum.refusals, sum.damages, sum.faults_hit, sum.steps];
    assert!(met.iter().all(|n| *n > 100), "{sum:?}");
}

#[test]
#[ignore = "minutes: run it in release, see docs/TESTING.md"]
fn simulation_long() {
    let runs = from_environment("ARBORLOG_SIM_RUNS").unwrap_or(10_000);
    let start = from_environment("ARBORLOG_SIM_START").unwrap_or(1000);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8) as u64;
    let sum = parking_lot::Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let sum = &sum;
            scope.spawn(move || {
                for seed in (start + worker..start + runs).step_by(usize::try_from(workers).expect("few")) {
                    let tally = run_reporting(seed);
                    let mut sum = sum.lock();
                    sum.add(&tally);
                    if sum.runs.is_multiple_of(2500) {
                        eprintln!("{} of {runs} runs", sum.runs);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner();
    assert!(sum.runs == runs, "only {} runs of {runs} were made", sum.runs);
    println!(
        "simulation: runs={} steps={} crashes={} recoveries={} damages={} refusals={} faults_hit={}",
        sum.runs, sum.steps, sum.crashes, sum.recoveries, sum.damages, sum.refusals, sum.faults_hit
    );
}

#[test]
fn same_seed_same_run() {
    for seed in 0..8 {
        let (one, two) = (run(seed), run(seed));
        assert_eq!(format!("{one:?}"), format!("{two:?}"), "seed {seed}");
    }
    assert_ne!(Random::from_seed(1).next_u64(), Random::from_seed(2).next_u64());
}
