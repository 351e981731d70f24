use std::sync::Arc;

use super::choices::Choices;
use super::model::Model;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::engine::home::Home;
use crate::engine::pipeline::Unobserved;
use crate::engine::sim_home::SimHome;
use crate::engine::take::take_snapshot;
use crate::engine::{Caller, Commit, Engine, EngineOptions, OpenReport, Standby};
use crate::format::Acl;
use crate::log::LogOptions;
use crate::tree::{CreateRequest, Request};

/// An engine, its disks, and all that it is held against.
pub(super) struct Run<'a> {
    pub(super) home: Arc<SimHome>,
    pub(super) options: EngineOptions,
    pub(super) model: Model,
    pub(super) choices: Choices<'a>,
    time_ms: i64,
    /// Operations and openings that did not come to their end.
    refused: u64,
    /// Beside the engine, some txns behind it or of a state that is no more.
    pub(super) standby: Option<Standby>,
    /// A snapshot that was sent once, by a leader of another database or by this one, with its end and digest.
    pub(super) sent: (Vec<u8>, Zxid, u64),
}

/// Runs an engine on simulated disks through the lives that a fuzzer's bytes stand for: requests, snapshots,
/// truncations, installs, restores, plans of a leader, checkpoints, epochs, openings and power cuts. What comes back
/// is held against a tree that never loses anything. Tells whether the power was never in the way.
///
/// # Panics
/// If the engine has lost, invented or refused what it must not: that is what it is for.
pub fn simulate_engine(input: &[u8]) -> bool {
    let Some((seed, bytes)) = input.split_first() else { return true };
    Run::new(u64::from(*seed), Choices::Bytes(bytes)).lives(6) == 0
}

impl<'a> Run<'a> {
    #[cfg(test)]
    pub(super) fn of_seed(seed: u64) -> Run<'a> {
        Run::new(seed, Choices::Seed(crate::base::Random::from_seed(seed)))
    }

    fn new(seed: u64, mut choices: Choices<'a>) -> Run<'a> {
        let log = LogOptions::new().segment_bytes(16 << 10).idle_mark(None);
        let commit = if choices.below(2) == 0 { Commit::WhenDurable } else { Commit::ByServer };
        let options = EngineOptions::new().log(log).commit(commit).snap_count(0);
        let options = options.snapshots_kept(1 + choices.size(2));
        let home = Arc::new(SimHome::new(seed));
        let sent = from_another(seed, &options).expect("nothing fails");
        let model = Model::new();
        Run { home, options, model, choices, time_ms: 1, refused: 0, standby: None, sent }
    }

    pub(super) fn open(&mut self) -> Result<(Engine, OpenReport)> {
        let home: Arc<dyn Home> = self.home.clone();
        self.options.open_home(home, Box::new(Unobserved))
    }

    /// Opens what must be whole.
    pub(super) fn reopen(&mut self) -> Result<Engine> {
        let (engine, report) = self.open()?;
        self.model.recovered(&engine, &report);
        Ok(engine)
    }

    /// Several lives, each ended by a power cut at some operation of some disk. How many did not end of themselves.
    pub(super) fn lives(mut self, lives: u64) -> u64 {
        for life in 0..lives {
            if self.choices.is_at_end() {
                break;
            }
            if life > 0 {
                let disks = self.home.disks();
                let disk = &disks[self.choices.size(disks.len())];
                let operation = disk.operations() + 1 + self.choices.below(60);
                let image = self.choices.image();
                disk.crash_at(operation, image);
            }
            let promoted = self.standby.take().filter(|_| self.choices.below(2) == 0);
            let opened = match promoted {
                Some(standby) => self.promote(standby),
                None => self.open(),
            };
            let outcome = opened.and_then(|(engine, report)| {
                self.model.recovered(&engine, &report);
                self.live(engine)
            });
            if let Err(error) = outcome {
                excuse(&error);
                self.refused += 1;
            }
            // All lose their power, each with an image of its own.
            for disk in self.home.disks() {
                disk.crash(self.choices.image());
            }
        }
        let (engine, report) = self.open().expect("the power is back");
        self.model.recovered(&engine, &report);
        engine.close().expect("nothing fails");
        let (engine, again) = self.open().expect("it was closed");
        assert_eq!((again.last_zxid, again.digest), (report.last_zxid, report.digest), "twice the same");
        drop(engine);
        self.refused
    }

    fn live(&mut self, mut engine: Engine) -> Result<()> {
        // What an earlier life has promised, this one keeps: it is the leader of that epoch.
        engine.enter_epoch(engine.accepted_epoch())?;
        for _ in 0..40 + self.choices.below(60) {
            if self.choices.is_at_end() {
                break;
            }
            engine = match self.choices.below(28) {
                // In this thread, where bugs are planted.
                0 | 1 => take_snapshot(engine.shared()).map(|_| engine)?,
                2 => self.truncate(engine)?,
                3 => engine.close().and_then(|()| self.reopen())?,
                4 => self.install(engine)?,
                5 => {
                    let mut bytes = Vec::new();
                    let info = engine.send_snapshot(&mut bytes)?;
                    self.sent = (bytes, info.end, info.digest);
                    engine
                }
                6 => self.enter(&engine).map(|()| engine)?,
                7 => self.look().map(|()| engine)?,
                8 => self.checkpoint(&engine).map(|()| engine)?,
                9 => self.restore(engine)?,
                10 => self.learn(engine)?,
                _ => self.submit(&engine).map(|()| engine)?,
            };
        }
        Ok(())
    }

    fn enter(&mut self, engine: &Engine) -> Result<()> {
        let epoch = Epoch::new(engine.accepted_epoch().get() + self.choices.below(2));
        engine.enter_epoch(epoch)?;
        self.model.accepted = epoch;
        let older = Epoch::new(epoch.get().saturating_sub(1));
        let is_fenced = engine.accept_epoch(older).is_err();
        assert!(is_fenced || epoch == Epoch::ZERO, "an older leader was followed");
        Ok(())
    }

    pub(super) fn submit(&mut self, engine: &Engine) -> Result<()> {
        let path = format!("/{}", self.choices.below(8));
        let child = format!("{path}/{}", self.choices.below(4));
        let data = vec![7; self.choices.size(600)];
        let acl = [Acl::open()];
        let create = |path| Request::Create(CreateRequest::new(path, &data, &acl));
        let set = Request::SetData { path: &path, data: Some(&data), version: -1 };
        let ops = [create(&child), set];
        let request = match self.choices.below(6) {
            0 => create(&path),
            1 => create(&child),
            2 => Request::Delete { path: &child, version: -1 },
            3 => Request::Multi(&ops),
            4 => Request::DeleteRecursive { path: &path },
            _ => set,
        };
        self.time_ms += 1;
        let ticket = engine.submit_at(&request, &Caller::default(), self.time_ms)?;
        let zxid = ticket.zxid();
        self.model.submitted(&request, zxid, self.time_ms);
        if self.options.commit == Commit::ByServer {
            // A quorum has it, even if it is not durable here.
            engine.apply(zxid)?;
        }
        if self.choices.below(3) > 0 {
            ticket.wait()?;
            self.model.acked = zxid;
            assert_eq!(engine.tree().digest(), self.model.digests[&zxid]);
        }
        Ok(())
    }
}

/// Whether it is by the power that something failed.
pub(super) fn excuse(error: &Error) {
    use ErrorKind::{Closed, Io, Poisoned};
    assert!(matches!(error.kind(), Io | Poisoned | Closed), "not the power: {error}");
}

/// The snapshot of a leader of another database, with txns of some of the epochs that are entered here, too.
fn from_another(seed: u64, options: &EngineOptions) -> Result<(Vec<u8>, Zxid, u64)> {
    let options = options.clone().commit(Commit::WhenDurable);
    let (engine, _) = options.open_home(Arc::new(SimHome::new(!seed)), Box::new(Unobserved))?;
    engine.enter_epoch(Epoch::new(seed % 5))?;
    for n in 0..3 + seed % 40 {
        let (path, acl) = (format!("/{}", n % 9), [Acl::open()]);
        let create = Request::Create(CreateRequest::new(&path, b"another's", &acl));
        engine.submit_at(&create, &Caller::default(), 1)?.wait()?;
    }
    let mut bytes = Vec::new();
    let info = engine.send_snapshot(&mut bytes)?;
    Ok((bytes, info.end, info.digest))
}
