use std::sync::Arc;

use super::leader::{Leader, send};
use super::model::Model;
use super::run::Run;
use crate::base::{Epoch, ErrorKind, Result, Zxid};
use crate::engine::home::{Home, Room};
use crate::engine::pipeline::Unobserved;
use crate::engine::restore::in_place;
use crate::engine::sim_home::{Cut, SimHome};
use crate::engine::{Engine, OpenReport, RestoreOptions, RestoreTarget, Standby, SyncPlan};

/// Later than all that are entered.
const LATEST: Epoch = Epoch::new(u32::MAX as u64);

/// What does more to an engine than a request.
impl Run<'_> {
    pub(super) fn promote(&mut self, mut standby: Standby) -> Result<(Engine, OpenReport)> {
        let accepted = self.model.accepted;
        if accepted > Epoch::ZERO {
            let older = standby.promote(Epoch::new(self.choices.below(accepted.get())));
            let error = older.expect_err("an older leader was promoted");
            assert!(error.kind() == ErrorKind::Fenced || error.code() == "io", "{error}");
        }
        // What a promotion has begun with may be accepted, and an epoch of an older leader be entered.
        let epoch = Epoch::new(accepted.get() + 10_000 * self.choices.below(2));
        let promoted = standby.promote(epoch);
        match &promoted {
            Ok((engine, _)) => {
                assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (epoch, epoch));
                self.model.accepted = epoch;
            }
            // Promised to a newer one by a change that came to no end.
            Err(error) if error.kind() == ErrorKind::Fenced => return self.open(),
            Err(_) => {}
        }
        promoted
    }

    /// Beside the engine.
    pub(super) fn look(&mut self) -> Result<()> {
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

    /// Onto disks of its own, of which one may lose its power.
    pub(super) fn checkpoint(&mut self, engine: &Engine) -> Result<()> {
        let double = Arc::new(SimHome::new(self.choices.number()));
        let is_cut = self.choices.below(3) == 0;
        if is_cut {
            self.cut_somewhere(&double);
        }
        let made = engine.checkpoint_to(double.as_ref());
        for disk in double.disks() {
            disk.crash(self.choices.image());
        }
        double.cut_no_next();
        let opened = self.options.open_home(double, Box::new(Unobserved));
        let (opened, opening) = match (&made, opened) {
            (Err(error), _) if !is_cut => return Err(error.clone()),
            // Nothing there is taken for an engine.
            (Err(_), Err(error)) => {
                assert_eq!(error.code(), "engine_manifest_missing", "{error}");
                return Ok(());
            }
            (Err(_), Ok((_, opening))) if opening.created => return Ok(()),
            (_, opened) => opened.expect("nothing fails there"),
        };
        if let Ok(report) = made {
            assert_eq!(opening.last_zxid, report.last_zxid);
        }
        assert!(opening.last_zxid >= self.model.acked, "what was acknowledged is not in the checkpoint");
        assert_eq!(self.model.digests.get(&opening.last_zxid), Some(&opening.digest));
        assert!(opened.accepted_epoch() >= self.model.accepted, "the checkpoint has forgotten a promise");
        Ok(())
    }

    /// Of the disks of a home or of those that are made next, one loses its power soon.
    fn cut_somewhere(&mut self, home: &SimHome) {
        let disks = home.disks().len();
        let place = match self.choices.size(disks + 2) {
            0 => Cut::Next(Room::Log),
            1 => Cut::Next(Room::Snapshots),
            at => Cut::Disk(at - 2),
        };
        home.cut_at(place, 1 + self.choices.below(25), self.choices.image());
    }

    /// What was sent once becomes the state, unless it is damaged on its way.
    pub(super) fn install(&mut self, engine: Engine) -> Result<Engine> {
        let (mut bytes, end, digest) = self.sent.clone();
        let is_damaged = self.choices.below(6) == 0;
        if is_damaged {
            let at = self.choices.size(bytes.len());
            if self.choices.below(2) == 0 { bytes.truncate(at) } else { bytes[at] ^= 4 }
        }
        if self.choices.below(3) == 0 {
            let home = self.home.clone();
            self.cut_somewhere(&home);
        }
        self.model.replacing = Some((end, digest));
        let installed = engine.install(LATEST, &mut bytes.as_slice());
        self.home.cut_no_next();
        match installed {
            Ok((engine, opened)) => {
                assert!(!is_damaged, "damage was installed");
                assert_eq!((opened.last_zxid, opened.digest), (end, digest));
                self.model.recovered(&engine, &opened);
                Ok(engine)
            }
            Err(error) if is_damaged && error.kind() == ErrorKind::Corrupt => {
                self.model.replacing = None;
                self.reopen()
            }
            Err(error) => Err(error),
        }
    }

    /// Some txn of the newest ones.
    fn known(&mut self) -> Zxid {
        let known: Vec<Zxid> = self.model.digests.keys().rev().take(30).copied().collect();
        known[self.choices.size(known.len())]
    }

    pub(super) fn truncate(&mut self, engine: Engine) -> Result<Engine> {
        // What nobody waited for is there when the engine is closed.
        let (last, to, acked) = (self.model.last(), self.known(), self.model.acked);
        self.model.acked = to.min(acked);
        match engine.truncate(LATEST, to) {
            Ok((engine, report, opened)) => {
                assert_eq!((report.last_zxid, opened.last_zxid), (to, to), "of {last}");
                self.model.recovered(&engine, &opened);
                Ok(engine)
            }
            Err(error) if error.kind() == ErrorKind::NotInLog => {
                // It cannot be rebuilt: nothing was changed.
                self.model.acked = acked;
                self.reopen()
            }
            Err(error) => Err(error),
        }
    }

    /// An earlier state takes the place of the last one.
    pub(super) fn restore(&mut self, engine: Engine) -> Result<Engine> {
        engine.close()?;
        let last = self.model.last();
        self.model.acked = last;
        let (target, to) = if self.choices.below(3) == 0 {
            (RestoreTarget::Newest, last)
        } else {
            let to = self.known();
            (RestoreTarget::Zxid(to), to)
        };
        if self.choices.below(3) == 0 {
            let home = self.home.clone();
            self.cut_somewhere(&home);
        }
        self.model.replacing = Some((to, self.model.digests[&to]));
        let home: Arc<dyn Home> = self.home.clone();
        let restored = in_place(&home, &self.options, &RestoreOptions::new().target(target));
        self.home.cut_no_next();
        match restored {
            Ok(report) => {
                assert_eq!((report.last_zxid, report.digest), (to, self.model.digests[&to]));
                // The state from before is no answer any more.
                self.model.acked = to;
                let (engine, opened) = self.open()?;
                assert_eq!((opened.last_zxid, opened.digest), (to, report.digest), "it was restored");
                self.model.recovered(&engine, &opened);
                Ok(engine)
            }
            Err(error) if error.kind() == ErrorKind::NotInLog => {
                self.model.replacing = None;
                self.reopen()
            }
            Err(error) => Err(error),
        }
    }

    /// Another is elected, which has a part of what is here and some txns of its own; this one becomes as it is.
    pub(super) fn learn(&mut self, engine: Engine) -> Result<Engine> {
        let double = Arc::new(SimHome::new(self.choices.number()));
        engine.checkpoint_to(double.as_ref())?;
        // What only this one has is what the leader has not.
        for _ in 0..self.choices.below(6) {
            self.submit(&engine)?;
        }
        let (history, txns) = (self.model.digests.clone(), self.choices.below(4));
        let leader = Leader::new(double, &self.options, history, txns).expect("nothing fails there");
        let plan = leader.engine.sync_plan(engine.logged_zxid()).decision.plan;
        if self.choices.below(3) == 0 {
            let home = self.home.clone();
            self.cut_somewhere(&home);
        }
        self.begin_learning(&leader);
        let learnt = engine.learn(leader.epoch, plan, &mut send(&leader.engine, plan));
        self.home.cut_no_next();
        let (engine, report) = match learnt {
            // Once it has entered an epoch, its log takes nothing of an older one.
            Err(error) if error.kind() == ErrorKind::NotInLog => {
                assert!(matches!(plan, SyncPlan::Diff { .. }), "{plan:?}: {error}");
                let engine = self.reopen()?;
                self.begin_learning(&leader);
                let whole = SyncPlan::Snapshot;
                engine.learn(leader.epoch, whole, &mut send(&leader.engine, whole))?
            }
            learnt => learnt?,
        };
        let digest = engine.tree().digest();
        assert_eq!((report.acknowledged, digest), (leader.last(), leader.engine.tree().digest()), "{plan:?}");
        assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (leader.epoch, leader.epoch));
        self.model.accepted = leader.epoch;
        self.model.stands(&engine, report.acknowledged, digest);
        Ok(engine)
    }

    /// What the leader has, too, stays; the rest of it may come.
    fn begin_learning(&mut self, leader: &Leader) {
        let Model { digests, acked, learning, .. } = &mut self.model;
        let common = leader.history.keys().rev().find(|zxid| digests.contains_key(zxid));
        *acked = (*acked).min(*common.expect("it began as this one"));
        *learning = Some(leader.history.clone());
    }
}
