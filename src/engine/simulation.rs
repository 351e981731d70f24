//! The whole engine on simulated disks that lose power at any operation, held against a tree that never does.
//!
//! `ARBORLOG_ENGINE_RUNS=N cargo test --lib engine::simulation` makes more runs; `ARBORLOG_ENGINE_SEED=S` repeats one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::home::{Home, Room};
use super::pipeline::Unobserved;
use super::sim_home::{Cut, SimHome};
use super::take::take_snapshot;
use super::*;
use crate::base::{Epoch, Random, Result, Zxid};
use crate::format::Acl;
use crate::log::LogOptions;
use crate::sim::CrashImage;
use crate::tree::{CreateRequest, DataTree, ProposeOptions, Proposer, Request, RequestContext};

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a size")
}

fn image(random: &mut Random) -> CrashImage {
    match random.below(4) {
        0 => CrashImage::DropUnsynced,
        1 => CrashImage::KeepAll,
        _ => CrashImage::Random(random.next_u64()),
    }
}

/// Cuts the power of them all, each with an image of its own.
fn crash(home: &SimHome, random: &mut Random) {
    for disk in home.disks() {
        disk.crash(image(random));
    }
}

/// What must come back.
struct Model {
    tree: DataTree,
    proposer: Proposer,
    /// The digest behind each txn that was ever submitted and not truncated away.
    digests: BTreeMap<Zxid, u64>,
    acked: Zxid,
    accepted: Epoch,
    /// What an install that was begun makes of it, if it comes to its end.
    installing: Option<(Zxid, u64)>,
}

impl Model {
    fn new() -> Model {
        let tree = DataTree::new();
        let digests = BTreeMap::from([(Zxid::ZERO, tree.digest())]);
        let proposer = Proposer::new(ProposeOptions::new());
        Model { tree, proposer, digests, acked: Zxid::ZERO, accepted: Epoch::ZERO, installing: None }
    }

    fn submitted(&mut self, request: &Request<'_>, zxid: Zxid, time_ms: i64) {
        let context = RequestContext { zxid, time_ms, session_id: 0, cxid: 0, identities: &[] };
        let proposal = self.proposer.propose(&self.tree, request, &context);
        proposal.with_txn(|txn| self.tree.apply(txn, &mut ()));
        self.proposer.applied(zxid);
        self.digests.insert(zxid, self.tree.digest());
    }

    /// Takes what was recovered for the truth, once it is seen to be a truth.
    fn recovered(&mut self, engine: &Engine, report: &OpenReport) {
        let (last, digest) = (report.last_zxid, report.digest);
        if self.installing.take() == Some((last, digest)) {
            self.digests = BTreeMap::from([(last, digest)]);
            self.acked = last;
        }
        assert!(last >= self.acked, "{last} came back, {} was acknowledged", self.acked);
        assert_eq!(self.digests.get(&last), Some(&digest), "the state at {last} is another");
        assert_eq!(report.replay_failures, 0, "the log and the snapshot differ");
        assert!(engine.accepted_epoch() >= self.accepted, "a promise was forgotten");
        assert!(engine.current_epoch() <= engine.accepted_epoch());
        let tree = engine.tree();
        assert_eq!(tree.digest(), digest);
        self.digests.retain(|zxid, _| *zxid <= last);
        self.acked = last;
        // A copy by a walk: the model goes on from here.
        let mut loader = DataTree::loader();
        let mut walk = crate::tree::Walk::new();
        while tree.walk(&mut walk, 64, &mut |node| loader.node(&node)) {}
        self.tree = loader.finish(last).tree;
        assert_eq!(self.tree.digest(), digest);
        self.proposer = Proposer::new(ProposeOptions::new());
    }
}

struct Run {
    home: Arc<SimHome>,
    options: EngineOptions,
    model: Model,
    random: Random,
    time_ms: i64,
    opens: u64,
    /// Beside the engine, some txns behind it or of a state that is no more.
    standby: Option<Standby>,
    /// A snapshot that was sent once, by a leader of another database or by this one, with its end and digest.
    sent: (Vec<u8>, Zxid, u64),
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::from_seed(seed);
        let log = LogOptions::new().segment_bytes(16 << 10).idle_mark(None);
        let commit = if random.below(2) == 0 { Commit::WhenDurable } else { Commit::ByServer };
        let options = EngineOptions::new().log(log).commit(commit).snap_count(0);
        let options = options.snapshots_kept(1 + below(&mut random, 2));
        let home = Arc::new(SimHome::new(seed));
        let sent = from_another(seed, &options).expect("nothing fails");
        Run { home, options, model: Model::new(), random, time_ms: 1, opens: 0, standby: None, sent }
    }

    fn open(&mut self) -> Result<(Engine, OpenReport)> {
        self.opens += 1;
        let home: Arc<dyn Home> = self.home.clone();
        self.options.open_home(home, Box::new(Unobserved))
    }

    /// Several lives, each ended by a power cut at some operation of some disk.
    fn lives(&mut self, lives: u64) {
        for life in 0..lives {
            if life > 0 {
                let disks = self.home.disks();
                let disk = &disks[below(&mut self.random, disks.len())];
                let operation = disk.operations() + 1 + self.random.below(60);
                let image = image(&mut self.random);
                disk.crash_at(operation, image);
            }
            let promoted = self.standby.take().filter(|_| self.random.below(2) == 0);
            let opened = match promoted {
                Some(standby) => self.promote(standby),
                None => self.open(),
            };
            match opened {
                Ok((engine, report)) => {
                    self.model.recovered(&engine, &report);
                    self.live(engine);
                }
                Err(error) => Run::excuse(&error),
            }
            let Run { home, random, .. } = self;
            crash(home, random);
        }
        let (engine, report) = self.open().expect("the power is back");
        self.model.recovered(&engine, &report);
        engine.close().expect("nothing fails");
        let (engine, again) = self.open().expect("it was closed");
        assert_eq!((again.last_zxid, again.digest), (report.last_zxid, report.digest), "twice the same");
        drop(engine);
    }

    fn promote(&mut self, mut standby: Standby) -> Result<(Engine, OpenReport)> {
        let accepted = self.model.accepted;
        if accepted > Epoch::ZERO {
            let older = standby.promote(Epoch::new(self.random.below(accepted.get())));
            let error = older.expect_err("an older leader was promoted");
            assert!(error.kind() == crate::base::ErrorKind::Fenced || error.code() == "io", "{error}");
        }
        // What a promotion has begun with may be accepted, and an epoch of an older leader be entered.
        let epoch = Epoch::new(accepted.get() + 10_000 * self.random.below(2));
        self.model.accepted = accepted.max(self.model.accepted);
        let promoted = standby.promote(epoch);
        match &promoted {
            Ok((engine, _)) => {
                assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (epoch, epoch));
                self.model.accepted = epoch;
            }
            // Promised to a newer one by a change that came to no end.
            Err(error) if error.kind() == crate::base::ErrorKind::Fenced => return self.open(),
            Err(_) => {}
        }
        promoted
    }

    /// Beside the engine.
    fn look(&mut self) -> Result<()> {
        let home: Arc<SimHome> = self.home.clone();
        let (reading, writing) = (home.clone(), move || -> Result<Arc<dyn Home>> { Ok(home.clone()) });
        if self.standby.is_none() {
            self.standby = Some(Standby::open(&self.options, reading, Box::new(writing))?);
        }
        let standby = self.standby.as_mut().expect("just made");
        standby.catch_up()?;
        let (last, digest) = (standby.last_zxid(), standby.tree().digest());
        assert_eq!(self.model.digests.get(&last), Some(&digest), "the standby's state at {last} is another");
        assert!(last >= self.model.acked, "the standby does not see what is durable");
        Ok(())
    }

    /// Onto disks of its own, on which nothing fails.
    fn checkpoint(&mut self, engine: &Engine) -> Result<()> {
        let double = Arc::new(SimHome::new(self.random.next_u64()));
        let report = engine.checkpoint_to(double.as_ref())?;
        assert!(report.last_zxid >= self.model.acked, "what was acknowledged is not in the checkpoint");
        crash(&double, &mut self.random);
        let (opened, opening) =
            self.options.open_home(double, Box::new(Unobserved)).expect("nothing fails there");
        assert_eq!(opening.last_zxid, report.last_zxid);
        assert_eq!(self.model.digests.get(&opening.last_zxid), Some(&opening.digest));
        assert!(opened.accepted_epoch() >= self.model.accepted);
        Ok(())
    }

    fn excuse(error: &crate::base::Error) {
        use crate::base::ErrorKind::{Closed, Io, Poisoned};
        assert!(matches!(error.kind(), Io | Poisoned | Closed), "not the power: {error}");
    }

    fn live(&mut self, mut engine: Engine) {
        // What an earlier life has promised, this one keeps: it is the leader of that epoch.
        if let Err(error) = engine.enter_epoch(engine.accepted_epoch()) {
            return Run::excuse(&error);
        }
        for _ in 0..40 + self.random.below(60) {
            let outcome = match self.random.below(26) {
                // In this thread, where bugs are planted.
                0 | 1 => take_snapshot(engine.shared()).map(drop),
                2 => match self.truncate(engine) {
                    Ok(opened) => {
                        engine = opened;
                        Ok(())
                    }
                    Err(error) => return Run::excuse(&error),
                },
                3 => match engine.close().and_then(|()| self.open()) {
                    Ok((opened, report)) => {
                        self.model.recovered(&opened, &report);
                        engine = opened;
                        Ok(())
                    }
                    Err(error) => return Run::excuse(&error),
                },
                4 => match self.install(engine) {
                    Ok(opened) => {
                        engine = opened;
                        Ok(())
                    }
                    Err(error) => return Run::excuse(&error),
                },
                7 => self.look(),
                8 => self.checkpoint(&engine),
                5 => {
                    let mut bytes = Vec::new();
                    let sent = engine.send_snapshot(&mut bytes);
                    sent.map(|info| self.sent = (bytes, info.end, info.digest))
                }
                6 => {
                    let epoch = Epoch::new(engine.accepted_epoch().get() + self.random.below(2));
                    let outcome = engine.enter_epoch(epoch);
                    if outcome.is_ok() {
                        self.model.accepted = epoch;
                        let older = Epoch::new(epoch.get().saturating_sub(1));
                        let is_fenced = engine.accept_epoch(older).is_err();
                        assert!(is_fenced || epoch == Epoch::ZERO, "an older leader was followed");
                    }
                    outcome
                }
                _ => self.submit(&engine),
            };
            if let Err(error) = outcome {
                return Run::excuse(&error);
            }
        }
    }

    fn submit(&mut self, engine: &Engine) -> Result<()> {
        let path = format!("/{}", self.random.below(8));
        let child = format!("{path}/{}", self.random.below(4));
        let data = vec![7; below(&mut self.random, 600)];
        let acl = [Acl::open()];
        let create = |path| Request::Create(CreateRequest::new(path, &data, &acl));
        let set = Request::SetData { path: &path, data: Some(&data), version: -1 };
        let ops = [create(&child), set];
        let request = match self.random.below(6) {
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
        if self.random.below(3) > 0 {
            ticket.wait()?;
            self.model.acked = zxid;
            assert_eq!(engine.tree().digest(), self.model.digests[&zxid]);
        }
        Ok(())
    }

    /// What was sent once becomes the state, unless it is damaged on its way.
    fn install(&mut self, engine: Engine) -> Result<Engine> {
        let (mut bytes, end, digest) = self.sent.clone();
        let is_damaged = self.random.below(6) == 0;
        if is_damaged {
            let at = below(&mut self.random, bytes.len());
            if self.random.below(2) == 0 { bytes.truncate(at) } else { bytes[at] ^= 4 }
        }
        if self.random.below(3) == 0 {
            let room = if self.random.below(2) == 0 { Room::Log } else { Room::Snapshots };
            self.home.cut_at(Cut::Next(room), 1 + self.random.below(25), image(&mut self.random));
        }
        self.model.installing = Some((end, digest));
        let installed = engine.install(Epoch::new(u64::from(u32::MAX)), &mut bytes.as_slice());
        self.home.cut_no_next();
        match installed {
            Ok((engine, opened)) => {
                assert!(!is_damaged, "damage was installed");
                assert_eq!((opened.last_zxid, opened.digest), (end, digest));
                self.model.recovered(&engine, &opened);
                Ok(engine)
            }
            Err(error) if is_damaged && error.kind() == crate::base::ErrorKind::Corrupt => {
                self.model.installing = None;
                let (engine, report) = self.open()?;
                self.model.recovered(&engine, &report);
                Ok(engine)
            }
            Err(error) => Err(error),
        }
    }

    fn truncate(&mut self, engine: Engine) -> Result<Engine> {
        // What nobody waited for is there when the engine is closed.
        let last = self.model.digests.last_key_value().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
        let known: Vec<Zxid> = self.model.digests.keys().rev().take(30).copied().collect();
        let to = known[below(&mut self.random, known.len())];
        let acked = self.model.acked;
        self.model.acked = to.min(acked);
        match engine.truncate(Epoch::new(u64::from(u32::MAX)), to) {
            Ok((engine, report, opened)) => {
                assert_eq!((report.last_zxid, opened.last_zxid), (to, to), "of {last}");
                self.model.recovered(&engine, &opened);
                Ok(engine)
            }
            Err(error) if error.kind() == crate::base::ErrorKind::NotInLog => {
                // It cannot be rebuilt: nothing was changed.
                self.model.acked = acked;
                let (engine, report) = self.open()?;
                self.model.recovered(&engine, &report);
                Ok(engine)
            }
            Err(error) => Err(error),
        }
    }
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

fn runs() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("ARBORLOG_ENGINE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ARBORLOG_ENGINE_RUNS").unwrap_or(60),
    }
}

pub(super) fn run(seed: u64) {
    Run::new(seed).lives(6);
}

#[test]
fn crashes_at_any_operation_lose_nothing() {
    for seed in runs() {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("ARBORLOG_ENGINE_SEED={seed} cargo test --lib engine::simulation");
            std::panic::resume_unwind(panic);
        }
    }
}
