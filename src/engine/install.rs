use std::io::{Read, Write};

use super::generation::Generation;
use super::handle::Engine;
use super::learn::SyncSource;
use super::order::check_follows;
use super::report::OpenReport;
use super::shared::EngineShared;
use super::take::take_snapshot;
use crate::base::{Epoch, Error, ErrorKind, Result};
use crate::format::{EngineManifest, Numbering, TxnBuf};
use crate::snapshot::{SnapshotInfo, load};
use crate::tree::{DataTree, Outcome};

impl Engine {
    /// Writes the bytes of the newest snapshot that holds to `out`: for a peer that [installs](Engine::install) it.
    /// If there is none, one is made. It is read and checked first, unless that was done since the engine was opened.
    /// Snapshots go on being made and removed meanwhile.
    ///
    /// The txns behind [`SnapshotInfo::end`] come from [`changes`](Engine::changes).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) of the disk or of `out`; why there is no snapshot.
    pub fn send_snapshot(&self, out: &mut dyn Write) -> Result<SnapshotInfo> {
        let shared = self.shared();
        let file = if let Some(file) = shared.store.open_newest()? {
            file
        } else {
            let info = take_snapshot(shared)?;
            shared.store.open_file(info.end)?
        };
        file.copy_to(out)?;
        Ok(file.info)
    }

    /// Replaces the whole state by that of a snapshot, which a leader has [sent](Engine::send_snapshot): the bytes of
    /// its file, up to the end of `source`. The leader's database may have another id; this one keeps its own. The
    /// engine is opened anew, with its observer, who is told nothing of what this changes.
    ///
    /// The old state stays untouched until the new one is durable, log and snapshot: whatever fails, and whenever the
    /// power is cut, opening gives one of them, whole. Epochs that were promised stay promised. The disk has room for
    /// the old state, the bytes received, and the new state; the memory, for one state.
    ///
    /// # Errors
    /// After each the engine is closed, and opening it gives the old state; if the manifest could not be written, or
    /// the last opening failed, perhaps the new one.
    /// - [`ErrorKind::Fenced`](crate::ErrorKind::Fenced): a newer leader was accepted.
    /// - [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): what came is damaged, or not all of a snapshot.
    /// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): it has txns of a later epoch than its sender's.
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io) of the disk or of `source`; else as
    ///   [`EngineOptions::open`](super::EngineOptions::open).
    pub fn install(self, leader: Epoch, source: &mut dyn Read) -> Result<(Engine, OpenReport)> {
        let (engine, opened, _) = self.replace(leader, &mut Alone(source))?;
        Ok((engine, opened))
    }

    /// The same, with the txns that come behind the snapshot, and how many. They are there at once with it: what is
    /// acknowledged here may be behind the snapshot's end.
    pub(super) fn replace(
        self,
        leader: Epoch,
        source: &mut dyn SyncSource,
    ) -> Result<(Engine, OpenReport, u64)> {
        self.shared().check_leader(leader)?;
        let shared = self.stop()?;
        let observer = shared.pipeline.take_observer();
        let EngineShared { log, pipeline, store, manifest, options, home, lock, clock, .. } = shared;
        let epoch = log.epoch();
        log.close_replaced()?;
        // There may be no memory for two states.
        drop((pipeline, store));
        let EngineManifest { database_id, generation, spare, .. } = manifest.get();
        // What an earlier attempt left, which nobody else can have made.
        if spare != 0 {
            home.remove(spare)?;
        }
        let number = home.generations()?.last().map_or(generation, |last| *last.max(&generation)) + 1;
        manifest.commit(|manifest| manifest.spare = number)?;
        let next = Generation { home: &home, number, database_id, options: &options, clock: &clock };
        let store = next.store()?;
        let received = store.receive(source.snapshot())?;
        let end = received.file.info.end;
        if received.file.numbering != Numbering::Zxid || end.epoch() > leader {
            let what = format!("a snapshot up to {end} is none of the leader of epoch {leader}");
            return Err(Error::invalid(what));
        }
        let (mut tree, _) = load(&received.file, &mut |done| options.progress.loaded(done))?;
        drop(received);
        let mut txns = 0;
        while let Some(txn) = source.next_txn()? {
            take(&mut tree, leader, &txn)?;
            txns += 1;
        }
        let end = tree.last_zxid();
        let commit = || {
            manifest.commit(|manifest| {
                (manifest.generation, manifest.spare) = (number, generation);
                manifest.accepted = manifest.accepted.max(end.epoch());
            })
        };
        if crate::planted("install_before_durable") {
            commit()?;
        }
        next.write(&store, tree, epoch)?;
        commit()?;
        drop((store, lock));
        let (engine, opened) = options.open_home(home, observer)?;
        Ok((engine, opened, txns))
    }
}

/// A snapshot that nothing comes behind.
struct Alone<'a>(&'a mut dyn Read);

impl SyncSource for Alone<'_> {
    fn next_txn(&mut self) -> Result<Option<TxnBuf>> {
        Ok(None)
    }

    fn snapshot(&mut self) -> &mut dyn Read {
        self.0
    }
}

/// Applies a txn behind a snapshot.
fn take(tree: &mut DataTree, leader: Epoch, txn: &TxnBuf) -> Result<()> {
    let zxid = txn.zxid();
    if zxid.epoch() > leader {
        return Err(Error::invalid(format!("{zxid} is of a later epoch than its leader's, {leader}")));
    }
    check_follows(tree.last_zxid(), zxid)?;
    let txn = txn.as_txn();
    let outcome = tree.apply(&txn, &mut ());
    if matches!(outcome, Outcome::Failed(_)) && !txn.body.may_fail() {
        let why = format!("{zxid} does not fit the state before it");
        return Err(Error::new(ErrorKind::OutOfOrder, "out_of_order", why).with_zxids(zxid, zxid));
    }
    Ok(())
}
