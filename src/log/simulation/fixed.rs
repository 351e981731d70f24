//! Workloads of a few steps each, every operation of which is a moment to lose power.

use super::world::World;
use crate::base::Random;
use crate::format::{Numbering, SegmentFill};
use crate::io::WriteMode;
use crate::log::options::{Gather, GroupPolicy, LogOptions};
use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern};

/// A workload: its name, and what it does. It starts on an empty disk.
pub(super) struct Fixed {
    pub(super) name: &'static str,
    pub(super) run: fn(&mut World),
}

pub(super) const FIXED: &[Fixed] = &[
    Fixed { name: "creation", run: |w| w.open() },
    Fixed { name: "single appends", run: singles },
    Fixed { name: "batches", run: batches },
    Fixed { name: "roll by size", run: roll },
    Fixed { name: "large record", run: large },
    Fixed { name: "groups in flight, ending in reverse", run: reverse },
    Fixed { name: "epoch change", run: epoch },
    Fixed { name: "purge", run: purge },
    Fixed { name: "truncation inside a group", run: truncate_inside },
    Fixed { name: "truncation at a segment's edge", run: truncate_at_edge },
    Fixed { name: "clean close and reopening", run: reopen },
    Fixed { name: "recovery", run: recovery },
    Fixed { name: "seal that cannot be written", run: failed_seal },
    Fixed { name: "group that cannot be written", run: failed_group },
    Fixed { name: "kill after failed syncs over a roll", run: failed_syncs },
];

/// The world of a fixed workload.
pub(super) fn world(seed: u64) -> World {
    let mode = [WriteMode::DirectDsync, WriteMode::BufferedThenSync][(seed % 2) as usize];
    let fill = [SegmentFill::Zeroed, SegmentFill::Growing][(seed / 2 % 2) as usize];
    let numbering = [Numbering::Zxid, Numbering::Index][(seed / 4 % 2) as usize];
    let group = GroupPolicy::new().bytes_max(8192).records_max(6).in_flight_max(3).gather(Gather::Off);
    let options = LogOptions::new()
        .segment_bytes(16_384)
        .block_bytes(512)
        .fill(fill)
        .write_mode(mode)
        .numbering(numbering)
        .group(group);
    World::with(seed, options, Random::from_seed(seed))
}

fn one(w: &mut World, records: u64, bytes: u64) {
    w.append_surely(records, bytes);
    w.flush();
}

fn singles(w: &mut World) {
    w.open();
    (0..4).for_each(|_| one(w, 1, 900));
    w.mark();
    w.finish_all();
}

fn batches(w: &mut World) {
    w.open();
    for records in [2, 4, 3] {
        w.append_surely(records, 900);
        w.append_surely(records, 100);
        w.flush();
    }
}

/// Fills the first segment and goes on in the second.
fn roll(w: &mut World) {
    w.open();
    w.prepare_all();
    (0..9).for_each(|_| one(w, 2, 1500));
}

fn large(w: &mut World) {
    w.open();
    one(w, 1, 100);
    w.prepare_all();
    one(w, 1, 60_000);
    w.prepare_all();
    one(w, 1, 100);
}

fn reverse(w: &mut World) {
    w.open();
    w.prepare_all();
    for round in 0..3 {
        for _ in 0..3 {
            w.append_surely(2, 1200);
            w.begin();
        }
        for at in [2, 1, 0] {
            let at = at.min(w.process().flights().saturating_sub(1));
            if w.process().flights() > 0 {
                w.act(|p, m| p.finish(m, at));
            }
        }
        if round == 1 {
            w.prepare_all();
        }
    }
}

fn epoch(w: &mut World) {
    w.open();
    one(w, 1, 300);
    w.append_surely(1, 300);
    w.advance_epoch(1);
    one(w, 2, 300);
    w.old_leader();
    w.advance_epoch(3);
    w.old_leader();
}

fn purge(w: &mut World) {
    roll(w);
    w.purge_through(w.model.acked);
    one(w, 1, 300);
}

fn truncate_inside(w: &mut World) {
    w.open();
    one(w, 1, 300);
    one(w, 5, 300);
    one(w, 1, 300);
    let to = w.model.records[3].record.zxid;
    w.truncate(to);
    w.open();
    one(w, 1, 300);
}

fn truncate_at_edge(w: &mut World) {
    w.open();
    w.prepare_all();
    (0..8).for_each(|_| one(w, 2, 1500));
    let first =
        w.process().shared.segments.read().iter().next().and_then(|s| s.ended.as_ref().map(|e| e.last_zxid));
    w.truncate(first.expect("the first segment was left"));
    w.open();
    one(w, 1, 300);
    w.kill();
    w.open();
}

fn reopen(w: &mut World) {
    w.open();
    w.prepare_all();
    one(w, 2, 600);
    w.append_surely(1, 600);
    w.close();
    w.open();
    one(w, 1, 600);
    w.close();
    w.open();
    w.close();
}

/// The crash leaves a torn group and one behind it that landed; then recovery itself is interrupted.
fn recovery(w: &mut World) {
    w.open();
    w.prepare_all();
    one(w, 2, 600);
    for _ in 0..3 {
        w.append_surely(2, 1500);
        w.begin();
    }
    w.crash(CrashImage::Random(w.setup.seed));
    w.open();
    one(w, 1, 300);
    w.kill();
    w.open();
}

/// The write of a seal fails while the group behind it lands.
fn failed_seal(w: &mut World) {
    fail_writes(w, 6, Effect::EIO);
}

/// A group lands in part.
fn failed_group(w: &mut World) {
    fail_writes(w, 2, Effect::ShortThenError { bytes: 700, errno: 5 });
}

fn fail_writes(w: &mut World, groups: u64, effect: Effect) {
    w.open();
    w.prepare_all();
    (0..groups).for_each(|_| one(w, 1, 600));
    w.disturbed = true;
    w.disk.inject(Fault::next(FaultOp::Write, effect).on(NamePattern::Suffix(".seg".into())));
    // With six groups before it, this one is too large for what is left: it goes behind the seal, into the
    // next segment, and the seal is the first write.
    let bytes = if groups > 2 { 40_000 } else { 1500 };
    w.append_exactly(bytes);
    w.begin();
    w.finish_all();
    assert!(w.disk.fault_hits() == 1, "the write was to fail");
    w.append_sized(1, 100);
    w.kill();
    w.disk.clear_faults();
    w.open();
    w.disturbed = false;
}

/// Groups that are in the cache only, over a roll: recovery reads them, and must make durable what it counts on.
fn failed_syncs(w: &mut World) {
    w.open();
    w.prepare_all();
    (0..6).for_each(|_| one(w, 2, 700));
    w.disturbed = true;
    let effect = if w.setup.seed.is_multiple_of(3) { Effect::SyncFailsAndDropsPages } else { Effect::EIO };
    let rule = Fault::next(FaultOp::Sync, effect).on(NamePattern::Suffix(".seg".into())).times(u64::MAX);
    w.disk.inject(rule);
    for _ in 0..3 {
        w.append_surely(2, 3000);
        w.begin();
    }
    w.finish_all();
    w.kill();
    w.disk.clear_faults();
    w.open();
    w.disturbed = false;
}
