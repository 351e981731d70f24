//! The logs behind the snapshot.

use super::ahead::{EntryBatch, EntryBatches};
use super::directory::NamedFile;
use super::log_file::flawed;
use super::read_txn::Decoded;
use super::recover::Recovery;
use super::report::{Finding, FindingKind};
use crate::base::{Error, Result, Zxid};
use crate::engine::{Activity, Progress};
use crate::format::Txn;
use crate::snapshot::read_ahead;
use crate::tree::{AHEAD, Outcome};

impl Recovery<'_> {
    /// Applies the txns behind `base`, up to the target.
    pub(super) fn replay(&mut self, base: Zxid, target: Zxid) -> Result<()> {
        let logs = self.source.logs();
        // The one that begins at the next txn or before it has it.
        let first =
            logs.iter().rposition(|file| file.zxid.get() <= base.get().saturating_add(1)).unwrap_or(0);
        let mut course = Course {
            order: Order { base, last: None },
            target,
            done_bytes: 0,
            total_bytes: logs[first..].iter().map(|file| file.len_bytes).sum(),
        };
        for file in &logs[..first] {
            self.check_left_out(file, base)?;
        }
        for file in &logs[first..] {
            match self.replay_log(file, &mut course) {
                Ok(true) => {}
                Ok(false) => {
                    self.has_passed_target = true;
                    return Ok(());
                }
                // The state ends before the damage: what stands behind it may depend on what is lost.
                Err(error) => return self.damage(FindingKind::LogDamage, error),
            }
        }
        self.judge_reach(base, course.order.last, &logs[..first]);
        Ok(())
    }

    /// A log that is not needed by its name must not have what comes behind the snapshot: then it was renamed. Damage of it
    /// is of no concern.
    fn check_left_out(&mut self, file: &NamedFile, base: Zxid) -> Result<()> {
        let limit = self.options.length_limit;
        let Ok(mut log) = self.source.open_log(&file.name, limit) else { return Ok(()) };
        let Ok(Some((offset, payload))) = log.next_payload() else { return Ok(()) };
        match Decoded::read(payload, limit) {
            Ok(txn) if txn.zxid > base => {
                let error = renamed(txn.zxid).in_file(&file.name).at_offset(offset);
                self.damage(FindingKind::LogDamage, error.with_zxids(txn.zxid, txn.zxid))
            }
            _ => Ok(()),
        }
    }

    /// Applies a log's txns; false once the target is reached.
    fn replay_log(&mut self, file: &NamedFile, course: &mut Course) -> Result<bool> {
        let mut log = self.source.open_log(&file.name, self.options.length_limit)?;
        let (mut is_first, begin_bytes) = (true, course.done_bytes);
        let mut batches = EntryBatches::new(&mut log);
        let goes_on = read_ahead(
            || batches.read(),
            |batch: EntryBatch| {
                let payloads: Vec<_> = batch.payloads().collect();
                for group in payloads.chunks(AHEAD) {
                    if !self.replay_group(group, file, &mut is_first, course)? {
                        return Ok(false);
                    }
                }
                course.done_bytes = begin_bytes + payloads.last().map_or(0, |(offset, _)| *offset);
                self.tell_replay(course);
                Ok(true)
            },
        )?;
        course.done_bytes = begin_bytes + file.len_bytes;
        self.log_end = Some((file.name.clone(), log.offset()));
        if let Some(finding) = log.end().and_then(|end| Finding::of_end(end, &file.name, log.offset())) {
            self.report.findings.push(finding);
        }
        Ok(goes_on)
    }

    fn tell_replay(&self, course: &Course) {
        self.options.progress.tell(&Progress {
            activity: Activity::ReplayLog,
            done_bytes: course.done_bytes,
            total_bytes: Some(course.total_bytes),
            done: self.report.replayed,
            total: None,
        });
    }

    /// Applies some entries together: their look-ups wait for memory at once. False once the target is reached.
    fn replay_group(
        &mut self,
        group: &[(u64, &[u8])],
        file: &NamedFile,
        is_first: &mut bool,
        course: &mut Course,
    ) -> Result<bool> {
        let (mut fit, mut offsets, mut end) = (Vec::with_capacity(group.len()), Vec::new(), Ok(true));
        for (offset, payload) in group {
            let placed = |error: Error| error.in_file(&file.name).at_offset(*offset);
            let txn = match Decoded::read(payload, self.options.length_limit) {
                Ok(txn) => txn,
                Err(flaw) => {
                    end = Err(placed(flawed(flaw, payload)));
                    break;
                }
            };
            let begin = std::mem::take(is_first).then_some(file.zxid);
            if let Err(error) = course.order.check(txn.zxid, begin) {
                end = Err(placed(error.with_zxids(txn.zxid, txn.zxid)));
                break;
            }
            if txn.zxid > course.target {
                end = Ok(false);
                break;
            }
            if txn.zxid > course.order.base {
                fit.push(txn);
                offsets.push(*offset);
            } else if self.is_unproven
                && let Err(error) = self.check_held(&txn, course.order.base)
            {
                end = Err(placed(error));
                break;
            }
        }
        let ops: Vec<_> = fit.iter().map(Decoded::ops).collect();
        let txns: Vec<Txn<'_>> = fit.iter().zip(&ops).map(|(txn, ops)| txn.shown(ops)).collect();
        let hints = self.tree.warm_for(&txns);
        for ((txn, hint), offset) in txns.iter().zip(hints).zip(offsets) {
            let outcome = self.tree.apply_hinted(txn, hint, &mut ());
            if matches!(outcome, Outcome::Failed(_) | Outcome::Multi(_)) || self.unexplained.is_waiting() {
                self.unexplained.note(&self.tree, txn, &outcome);
            }
            self.report.replayed += 1;
            self.report.source_time_ms = Some(txn.time_ms);
            self.compare(txn.zxid, txn.digest, (&file.name, Some(offset)))?;
        }
        end
    }

    /// Holds the tree against the digests that are told of this moment.
    fn compare(&mut self, zxid: Zxid, told: Option<u64>, place: (&str, Option<u64>)) -> Result<()> {
        if let Some(ahead) = self.ahead {
            if zxid < ahead.zxid {
                return Ok(());
            }
            self.ahead = None;
            // Where the nodes are ahead of the digest, it is that of no moment.
            if let Some(digest) = ahead.digest.filter(|_| zxid == ahead.zxid) {
                self.check_digest(zxid, digest, place)?;
            }
        }
        match told {
            Some(told) => self.check_digest(zxid, told, place),
            None => Ok(()),
        }
    }

    pub(super) fn check_digest(&mut self, zxid: Zxid, told: u64, place: (&str, Option<u64>)) -> Result<()> {
        let digest = self.tree.digest();
        if digest == told {
            self.report.digests_held += 1;
            return Ok(());
        }
        // One is enough: all that follow are wrong then.
        if self.report.findings.iter().any(|finding| finding.kind == FindingKind::Digest) {
            return Ok(());
        }
        let why = format!("the tree's digest is {digest:#x}, and the server's was {told:#x}");
        let error = Error::corrupt("zk_digest", why).in_place(Some(place)).with_zxids(zxid, zxid);
        self.damage(FindingKind::Digest, error)
    }
}

fn renamed(first: Zxid) -> Error {
    Error::corrupt("zk_order", format!("the log's first txn is {first}, and its name tells another"))
}

/// How far a replay has come, and how far it goes.
#[derive(Debug)]
struct Course {
    order: Order,
    target: Zxid,
    done_bytes: u64,
    total_bytes: u64,
}

/// Holds zxids to the order that they have in an undamaged log.
#[derive(Debug)]
struct Order {
    base: Zxid,
    last: Option<Zxid>,
}

impl Order {
    /// `begin` is the zxid in the log's name, of its first txn.
    fn check(&mut self, zxid: Zxid, begin: Option<Zxid>) -> Result<()> {
        if begin.is_some_and(|begin| begin != zxid) {
            return Err(renamed(zxid));
        }
        if let Some(last) = self.last.filter(|last| zxid <= *last) {
            return Err(Error::corrupt("zk_order", format!("it follows {last}")));
        }
        // Of what the snapshot has, nothing need be there.
        let before = self.last.unwrap_or(Zxid::ZERO).max(self.base);
        self.last = Some(zxid);
        let first_of_epoch = zxid.epoch() > before.epoch() && zxid.counter() <= 1;
        if zxid > before && zxid.get() != before.get().saturating_add(1) && !first_of_epoch {
            return Err(Error::corrupt("zk_gap", format!("txns are missing between {before} and {zxid}")));
        }
        Ok(())
    }
}
