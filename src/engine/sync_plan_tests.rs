//! The vectors of ZooKeeper's `LearnerHandlerTest`, and what goes beyond them.

use super::*;

/// A log of which nothing is known before its first txn.
struct Disk(Vec<Zxid>);

impl SyncLog for Disk {
    fn after(&self) -> Zxid {
        self.0[0]
    }

    fn last(&self) -> Zxid {
        *self.0.last().unwrap()
    }

    fn at_or_before(&self, zxid: Zxid) -> Result<Option<Zxid>> {
        Ok(self.0.iter().copied().rfind(|z| *z <= zxid))
    }

    fn next_after(&self, zxid: Zxid) -> Result<Option<Zxid>> {
        Ok(self.0.iter().copied().find(|z| *z > zxid))
    }

    fn bytes_after(&self, zxid: Zxid) -> u64 {
        100 * self.0.iter().filter(|z| **z > zxid).count() as u64
    }
}

fn z(raw: u64) -> Zxid {
    Zxid::new(raw)
}

fn e(epoch: u32, counter: u32) -> Zxid {
    Zxid::from_parts(epoch, counter)
}

fn small(zxids: &[u64]) -> Vec<Zxid> {
    zxids.iter().copied().map(Zxid::new).collect()
}

/// The plan, and the txns that are sent by it.
fn plan(disk: &[Zxid], recent: &[Zxid], last: Zxid, peer: Zxid) -> (SyncPlan, Vec<Zxid>) {
    let log = (!disk.is_empty()).then(|| Disk(disk.to_vec()));
    let log = log.as_ref().map(|log| log as &dyn SyncLog);
    let plan = SyncInput { peer, last, applied: last, recent, log, log_bytes_max: u64::MAX }.decide().plan;
    let (after, through) = match plan {
        SyncPlan::Diff { after, through } => (after, through),
        SyncPlan::TruncateDiff { to, through } => (to, through),
        _ => return (plan, Vec::new()),
    };
    let mut sent: Vec<Zxid> = disk.iter().chain(recent).copied().collect();
    sent.retain(|zxid| *zxid > after && *zxid <= through);
    sent.sort();
    sent.dedup();
    (plan, sent)
}

#[test]
fn without_anything_in_memory() {
    assert_eq!(plan(&[], &[], z(1), z(3)).0, SyncPlan::Truncate { to: z(1) });
    assert_eq!(plan(&[], &[], z(1), z(1)).0, SyncPlan::UpToDate);
    assert_eq!(plan(&[], &[], z(1), z(0)).0, SyncPlan::Snapshot);
}

#[test]
fn from_memory() {
    let recent = small(&[2, 3, 5]);
    let truncated = SyncPlan::TruncateDiff { to: z(3), through: z(5) };
    assert_eq!(plan(&[], &recent, z(6), z(4)), (truncated, small(&[5])));
    let diff = SyncPlan::Diff { after: z(2), through: z(5) };
    assert_eq!(plan(&[], &recent, z(6), z(2)), (diff, small(&[3, 5])));
    assert_eq!(plan(&[], &recent, z(6), z(1)).0, SyncPlan::Snapshot);
    assert_eq!(plan(&[], &recent, z(6), z(6)).0, SyncPlan::UpToDate);
    assert_eq!(plan(&[], &recent, z(6), z(9)).0, SyncPlan::Truncate { to: z(5) });
    // All that is in memory, where the newest one is not there.
    assert_eq!(plan(&[], &recent, z(6), z(5)).0, SyncPlan::UpToDate);
}

#[test]
fn from_the_log_and_memory() {
    let (disk, recent) = (small(&[2, 3, 5, 6, 7, 8, 9]), small(&[6, 7, 8]));
    let truncated = SyncPlan::TruncateDiff { to: z(3), through: z(8) };
    assert_eq!(plan(&disk, &recent, z(9), z(4)), (truncated, small(&[5, 6, 7, 8])));
    let diff = SyncPlan::Diff { after: z(3), through: z(8) };
    assert_eq!(plan(&disk, &recent, z(9), z(3)), (diff, small(&[5, 6, 7, 8])));
}

#[test]
fn from_the_log_alone() {
    let disk = small(&[2, 3, 5, 6, 7, 8]);
    let truncated = SyncPlan::TruncateDiff { to: z(3), through: z(7) };
    assert_eq!(plan(&disk, &[], z(7), z(4)), (truncated, small(&[5, 6, 7])));
    let diff = SyncPlan::Diff { after: z(2), through: z(7) };
    assert_eq!(plan(&disk, &[], z(7), z(2)), (diff, small(&[3, 5, 6, 7])));
    assert_eq!(plan(&disk, &[], z(7), z(1)).0, SyncPlan::Snapshot);
    let one = SyncPlan::Diff { after: z(7), through: z(8) };
    assert_eq!(plan(&disk, &[], z(8), z(7)), (one, small(&[8])));
}

#[test]
fn over_the_start_of_an_epoch() {
    let (disk, recent) = ([e(0, 1), e(1, 1), e(1, 2)], [e(1, 1), e(1, 2)]);
    let last = e(2, 0);
    assert_eq!(plan(&disk, &recent, last, e(0, 0)).0, SyncPlan::Snapshot);
    let diff = SyncPlan::Diff { after: e(1, 0), through: e(1, 2) };
    assert_eq!(plan(&disk, &recent, last, e(1, 0)), (diff, vec![e(1, 1), e(1, 2)]));
    assert_eq!(plan(&disk, &recent, last, last).0, SyncPlan::UpToDate);
    let disk = [e(0, 1), e(0, 1), e(1, 1), e(1, 1), e(1, 2), e(1, 2)];
    assert_eq!(plan(&disk, &recent, last, e(1, 0)), (diff, vec![e(1, 1), e(1, 2)]));
}

#[test]
fn never_truncates_across_epochs() {
    let disk = [e(1, 1), e(2, 1), e(2, 2), e(4, 1)];
    assert_eq!(plan(&disk, &[], e(6, 0), e(3, 1)).0, SyncPlan::Snapshot);
    // Also where nothing else is the matter.
    let log = Disk(disk.to_vec());
    let (peer, last) = (e(3, 1), e(4, 1));
    let log_bytes_max = u64::MAX;
    let input = SyncInput { peer, last, applied: last, recent: &[], log: Some(&log), log_bytes_max };
    assert_eq!(input.decide(), decided(SyncPlan::Snapshot, SyncReason::ForeignEpoch));
}

/// A quorum has what our disk is still to write: whoever has it is part of that quorum.
#[test]
fn what_is_applied_is_not_taken_from_a_peer() {
    let log = Disk(vec![e(2, 1), e(2, 2)]);
    let decide = |peer| {
        let (last, applied) = (e(2, 2), e(2, 5));
        let input = SyncInput { peer, last, applied, recent: &[], log: Some(&log), log_bytes_max: u64::MAX };
        input.decide()
    };
    assert_eq!(decide(e(2, 2)), decided(SyncPlan::UpToDate, SyncReason::SameEnd));
    for counter in 3..=5 {
        assert_eq!(decide(e(2, counter)), decided(SyncPlan::UpToDate, SyncReason::AheadOfOurDisk));
    }
    for peer in [e(2, 6), e(2, u32::MAX), e(3, 1)] {
        assert_eq!(
            decide(peer),
            decided(SyncPlan::Truncate { to: e(2, 5) }, SyncReason::AheadOfUs),
            "{peer}"
        );
    }
    assert_eq!(decide(e(3, 0)), decided(SyncPlan::Snapshot, SyncReason::ForeignEpoch));
    // Behind our disk all is as ever.
    assert_eq!(decide(e(2, 1)).plan, SyncPlan::Diff { after: e(2, 1), through: e(2, 2) });
}

/// What a peer of an older epoch has beyond our disk is not what a quorum has: that is of the newest one.
#[test]
fn what_an_older_epoch_has_left_behind_is_taken_from_a_peer() {
    let log = Disk(vec![e(1, 1), e(1, 2)]);
    let (peer, last, applied) = (e(1, 9), e(1, 2), e(2, 3));
    let input = SyncInput { peer, last, applied, recent: &[], log: Some(&log), log_bytes_max: u64::MAX };
    assert_eq!(input.decide(), decided(SyncPlan::Truncate { to: last }, SyncReason::AheadOfUs));
}

#[test]
fn a_hole_between_log_and_memory_is_no_diff() {
    assert_eq!(plan(&small(&[2, 3, 4]), &small(&[7, 8]), z(8), z(3)).0, SyncPlan::Snapshot);
    let diff = SyncPlan::Diff { after: z(3), through: z(8) };
    assert_eq!(
        plan(&small(&[2, 3, 4, 7]), &small(&[7, 8]), z(8), z(3)),
        (diff, small(&[4, 7, 8])),
        "they meet"
    );
}

#[test]
fn a_peer_of_an_epoch_to_come_gets_a_snapshot() {
    assert_eq!(plan(&[], &[e(1, 1)], e(1, 1), e(2, 0)).0, SyncPlan::Snapshot);
}

#[test]
fn too_many_bytes_and_damage_are_no_diff() {
    struct Damaged;
    impl SyncLog for Damaged {
        fn after(&self) -> Zxid {
            Zxid::ZERO
        }
        fn last(&self) -> Zxid {
            Zxid::new(9)
        }
        fn at_or_before(&self, _: Zxid) -> Result<Option<Zxid>> {
            Err(Error::corrupt("log_damaged", "rot"))
        }
        fn next_after(&self, zxid: Zxid) -> Result<Option<Zxid>> {
            self.at_or_before(zxid)
        }
        fn bytes_after(&self, _: Zxid) -> u64 {
            0
        }
    }
    let input = SyncInput {
        peer: z(3),
        last: z(9),
        applied: z(9),
        recent: &[],
        log: Some(&Damaged),
        log_bytes_max: 1,
    };
    assert_eq!(input.decide(), decided(SyncPlan::Snapshot, SyncReason::Damaged));
    let disk = Disk(small(&[2, 3, 4, 5, 6, 7, 8, 9]));
    let input = SyncInput { log: Some(&disk), log_bytes_max: 599, ..input };
    assert_eq!(input.decide(), decided(SyncPlan::Snapshot, SyncReason::TooMuch));
    assert_eq!(SyncInput { log_bytes_max: 600, ..input }.decide().reason, SyncReason::OnOurHistory);
}
