//! Tests of the pure core: completions are made up here, in any order.

use super::*;
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Zxid, checksum};
use crate::format::{DatabaseId, GroupHeader, GroupKind, Numbering};
use crate::io::{Completion, Durability, WriteOp};
use crate::log::options::{Gather, GroupPolicy, LogOptions};
use crate::log::prepare::{SegmentPlan, prepare_now};
use crate::sim::SimDisk;

/// A core with a segment and the next one, both of 16 KiB in blocks of 512.
fn core(in_flight: usize) -> GroupCommit {
    core_of(&options(in_flight), Epoch::ZERO)
}

fn options(in_flight: usize) -> LogOptions {
    LogOptions::new()
        .segment_bytes(16_384)
        .block_bytes(512)
        .numbering(Numbering::Index)
        .group(policy().in_flight_max(in_flight))
}

fn policy() -> GroupPolicy {
    GroupPolicy::new().bytes_max(4096).records_max(4).gather(Gather::Off)
}

fn core_of(options: &LogOptions, epoch: Epoch) -> GroupCommit {
    core_at(options, Position { last_zxid: Zxid::ZERO, epoch, time_max_ms: i64::MIN })
}

fn core_at(options: &LogOptions, position: Position) -> GroupCommit {
    let disk = SimDisk::new(1).handle();
    let mut random = Random::from_seed(1);
    let id = DatabaseId::random(&mut random);
    let plan = SegmentPlan::of(options, id, disk.as_ref());
    let clock = Clock::Virtual(std::sync::Arc::default());
    let mut segment = |seq| prepare_now(&disk, &plan, seq, &clock, &mut random).expect("a segment");
    let (active, next) = (segment(1), segment(2));
    GroupCommit::new(options, id.seed(), position, active, Some(next))
}

fn append(core: &mut GroupCommit, payloads: &[&[u8]]) -> Result<Admission, Error> {
    let incoming: Vec<Incoming<'_>> = payloads
        .iter()
        .map(|payload| Incoming {
            zxid: None,
            epoch: core.epoch(),
            time_ms: 0,
            payload,
            payload_crc: checksum::crc32(0, payload),
        })
        .collect();
    core.append(&incoming, 0)
}

fn start(core: &mut GroupCommit) -> Started {
    match core.start(Leader::Waiter, 0) {
        Start::Group(started) => started,
        other => panic!("a group was to start: {other:?}"),
    }
}

/// One record in a group of its own, handed out.
fn group(core: &mut GroupCommit) -> WriteOp {
    append(core, &[b"record"]).expect("room");
    start(core).write
}

fn done(op: WriteOp) -> Completion {
    Completion { tag: op.tag, buffer: op.buffer, result: Ok(()) }
}

fn failed(op: WriteOp) -> Completion {
    Completion { tag: op.tag, buffer: op.buffer, result: Err(std::io::Error::other("broken")) }
}

fn header(core: &GroupCommit, op: &WriteOp) -> GroupHeader {
    let active = core.active();
    GroupHeader::decode(op.buffer.as_slice(), active.seed, active.header.seq, op.offset).expect("a group")
}

#[test]
fn groups_that_end_in_reverse_are_acknowledged_in_order() {
    let mut core = core(3);
    let (one, two, three) = (group(&mut core), group(&mut core), group(&mut core));
    assert_eq!(core.complete(done(three), 0), None);
    assert_eq!(core.complete(done(two), 0), None);
    assert_eq!(core.durable_zxid(), Zxid::ZERO);
    let progress = core.complete(done(one), 0).expect("all three");
    assert_eq!((progress.first_batch, progress.end_batch, progress.records), (0, 3, 3));
    assert_eq!(core.durable_zxid(), Zxid::new(3));
}

/// What is refused changes nothing, and what stands just within the bounds is taken.
#[test]
fn an_append_is_held_against_the_last_one_and_the_bounds() {
    let mut core = core(3);
    let record = |core: &GroupCommit, zxid: u64, payload| Incoming {
        zxid: Some(Zxid::new(zxid)),
        epoch: core.epoch(),
        time_ms: 0,
        payload,
        payload_crc: checksum::crc32(0, payload),
    };
    let seven = record(&core, 7, b"record");
    core.append(&[seven], 0).expect("room");
    for zxids in [&[7][..], &[6], &[8, 8], &[9, 8]] {
        let records: Vec<Incoming<'_>> = zxids.iter().map(|zxid| record(&core, *zxid, b"record")).collect();
        assert_eq!(core.append(&records, 0).expect_err("order").kind(), ErrorKind::OutOfOrder, "{zxids:?}");
    }
    assert_eq!(append(&mut core, &[]).expect_err("none").kind(), ErrorKind::Invalid);
    assert_eq!(append(&mut core, &[&b"x"[..]; 5]).expect_err("four are a group").kind(), ErrorKind::Invalid);
    assert_eq!((core.logged_zxid(), core.forming_records()), (Zxid::new(7), 1));
    append(&mut core, &[&b"x"[..]; 3]).expect("room for three more");
    assert!(matches!(append(&mut core, &[b"x"]), Ok(Admission::GroupFull)));
}

#[test]
fn the_first_failure_is_the_one_that_is_told() {
    let mut core = core(3);
    let failure = |code| Error::new(ErrorKind::Io, code, String::new());
    core.fail(failure("first"));
    core.fail(failure("second"));
    assert_eq!(core.failure().map(Error::code), Some("first"));
}

#[test]
fn nothing_is_acknowledged_after_a_failure() {
    let mut core = core(3);
    let (one, two, three) = (group(&mut core), group(&mut core), group(&mut core));
    assert!(core.complete(done(one), 0).is_some());
    assert_eq!(core.complete(failed(two), 0), None);
    assert_eq!(core.complete(done(three), 0), None);
    assert_eq!(core.durable_zxid(), Zxid::new(1));
    assert_eq!(append(&mut core, &[b"late"]).expect_err("refused").kind(), ErrorKind::Poisoned);
    assert!(matches!(core.start(Leader::Waiter, 0), Start::Nothing));
}

#[test]
fn a_header_claims_what_was_durable_when_it_was_made() {
    let mut core = core(2);
    let (one, two) = (group(&mut core), group(&mut core));
    assert_eq!(header(&core, &two).durable_zxid, Zxid::ZERO, "the first was under way");
    core.complete(done(one), 0);
    core.complete(done(two), 0);
    let three = group(&mut core);
    assert_eq!(header(&core, &three).durable_zxid, Zxid::new(2));
    assert_eq!(header(&core, &three).prev_zxid, Zxid::new(2));
}

/// An epoch changes while the log is idle. Whoever changes it waits for that, and then for the manifest, which may take
/// longer than the log is idle before a mark is due.
#[test]
fn no_mark_starts_while_the_epoch_changes() {
    let mut core = core(2);
    let first = group(&mut core);
    core.complete(done(first), 0);
    core.shut(ErrorKind::Fenced);
    assert!(core.is_idle() && !core.wants_mark());
    assert!(matches!(core.start_mark(0), Start::Nothing));
    core.reopen(Epoch::new(1));
    assert!(core.wants_mark() && matches!(core.start_mark(0), Start::Group(_)));
}

#[test]
fn a_mark_proves_the_last_group_and_only_once() {
    let mut core = core(2);
    let one = group(&mut core);
    assert!(matches!(core.start_mark(0), Start::Nothing), "not while a group is under way");
    core.complete(done(one), 0);
    let Start::Group(mark) = core.start_mark(0) else { panic!("nothing proves the first group yet") };
    let head = header(&core, &mark.write);
    assert_eq!((head.kind, head.durable_zxid), (GroupKind::Mark, Zxid::new(1)));
    assert_eq!((head.first_zxid, head.last_zxid, head.prev_zxid), (Zxid::new(1), Zxid::new(1), Zxid::new(1)));
    core.complete(done(mark.write), 0);
    assert!(matches!(core.start_mark(0), Start::Nothing));
}

#[test]
fn a_batch_is_never_split() {
    let mut core = core(2);
    append(&mut core, &[b"a", b"b", b"c"]).expect("room");
    let before = core.logged_zxid();
    assert_eq!(append(&mut core, &[b"d", b"e"]).expect("open"), Admission::GroupFull);
    assert_eq!(core.logged_zxid(), before, "nothing of it was let in");
    let one = start(&mut core);
    assert_eq!(header(&core, &one.write).record_count, 3);
    assert!(matches!(append(&mut core, &[b"d", b"e"]), Ok(Admission::Logged { batch: 1, .. })));
    assert_eq!(append(&mut core, &[&b"f"[..]; 5]).expect_err("above the bound").kind(), ErrorKind::Invalid);
}

/// Fills the first segment until a group goes to the next one.
fn roll(core: &mut GroupCommit) -> Started {
    for _ in 0..40 {
        append(core, &[&[7; 3000]]).expect("room");
        let started = start(core);
        if started.rolled.is_some() {
            return started;
        }
        core.complete(done(started.write), 0);
    }
    panic!("the segment never filled up");
}

#[test]
fn the_first_group_behind_a_roll_waits_for_the_seal() {
    let mut core = core(2);
    let Started { write, rolled } = roll(&mut core);
    let durable = core.durable_zxid();
    assert_eq!(core.complete(done(write), 0), None, "the seal is not there yet");
    assert_eq!(core.durable_zxid(), durable);
    let seal = rolled.expect("rolled").seal;
    assert_eq!(seal.durability, Durability::Dsync);
    assert!(core.complete(done(seal), 0).is_some());
    assert_eq!(core.durable_zxid(), core.logged_zxid());
}

#[test]
fn a_failed_seal_fails_the_log() {
    let mut core = core(2);
    let Started { write, rolled } = roll(&mut core);
    let durable = core.durable_zxid();
    assert_eq!(core.complete(failed(rolled.expect("rolled").seal), 0), None);
    assert_eq!(core.complete(done(write), 0), None);
    assert_eq!(core.durable_zxid(), durable);
}

#[test]
fn a_record_that_needs_the_next_segment_waits_for_it() {
    let mut core = core(2);
    let Started { write, rolled } = roll(&mut core);
    core.complete(done(write), 0);
    core.complete(done(rolled.expect("rolled").seal), 0);
    let mut answers = Vec::new();
    for _ in 0..10 {
        let answer = append(&mut core, &[&[7; 3000]]).expect("open");
        answers.push(answer);
        if answer == Admission::SegmentFull {
            break;
        }
        let started = start(&mut core);
        core.complete(done(started.write), 0);
    }
    assert_eq!(answers.last(), Some(&Admission::SegmentFull));
    assert!(core.wants_next());
}

/// A failed log, one with something to write, and one that was opened with nothing to prove: none wants a mark.
#[test]
fn a_mark_is_for_a_log_at_rest_that_has_something_to_prove() {
    let proven_by_nothing = || {
        let mut core = core(3);
        let one = group(&mut core);
        core.complete(done(one), 0);
        assert!(core.wants_mark());
        core
    };
    let mut core = proven_by_nothing();
    append(&mut core, &[b"forming"]).expect("room");
    assert!(!core.wants_mark(), "the next group proves it");
    let under_way = start(&mut core).write;
    assert!(!core.wants_mark());
    core.complete(failed(under_way), 0);
    assert!(!core.wants_mark());
    let mut core = proven_by_nothing();
    core.fail(Error::new(ErrorKind::Io, "broken", String::new()));
    assert!(!core.wants_mark());
    // As an open leaves it that goes on in a segment: what stands there was proven by the manifest.
    let position = Position { last_zxid: Zxid::new(5), epoch: Epoch::ZERO, time_max_ms: i64::MIN };
    let mut core = core_at(&options(3), position);
    core.active.groups = 1;
    assert!(!core.wants_mark());
}

#[test]
fn what_is_forming_is_not_written_after_a_failure() {
    let mut core = core(3);
    append(&mut core, &[b"forming"]).expect("room");
    core.fail(Error::new(ErrorKind::Io, "broken", String::new()));
    assert!(matches!(core.start(Leader::Committer, u64::MAX), Start::Nothing));
}

#[test]
fn a_group_is_full_at_its_bound_and_not_before() {
    let mut core = core(3);
    // With its header of 32 bytes each takes 2000, and the group's header takes 96: 4096.
    append(&mut core, &[&[7; 1968]]).expect("room");
    assert_eq!(append(&mut core, &[&[7; 1976]]).expect("open"), Admission::GroupFull);
    assert!(matches!(append(&mut core, &[&[7; 1968]]), Ok(Admission::Logged { batch: 0, .. })));
    assert_eq!(append(&mut core, &[b""]).expect("open"), Admission::GroupFull);
}

/// From its first record on; but a group that takes hardly anything more is not kept back, nor one that is waited for
/// by who closes the log.
#[test]
fn a_group_waits_for_its_delay_unless_it_is_full() {
    let delay = std::time::Duration::from_millis(1);
    let delayed = || core_of(&options(3).group(policy().delay(delay)), Epoch::ZERO);
    let at = |core: &mut GroupCommit, now_ns, payload: &[u8]| {
        let (epoch, payload_crc) = (core.epoch(), checksum::crc32(0, payload));
        let record = Incoming { zxid: None, epoch, time_ms: 0, payload, payload_crc };
        core.append(&[record], now_ns).expect("room");
    };
    let mut core = delayed();
    at(&mut core, 500, b"first");
    at(&mut core, 900, b"second");
    assert!(matches!(core.start(Leader::Committer, 1_000_000), Start::WaitUntil(1_000_500)));
    at(&mut core, 901, b"third");
    at(&mut core, 902, b"fourth");
    assert!(matches!(core.start(Leader::Committer, 1_000_000), Start::Group(_)), "four are a group");
    let mut core = delayed();
    at(&mut core, 500, &[7; 3600]);
    assert!(matches!(core.start(Leader::Committer, 600), Start::Group(_)), "seven eighths of the bytes");
    let mut core = delayed();
    at(&mut core, 500, b"last");
    core.shut(ErrorKind::Closed);
    assert!(matches!(core.start(Leader::Committer, 600), Start::Group(_)));
}

#[test]
fn ep_01_no_txn_has_the_counter_zero() {
    let mut core = core_of(&options(3).numbering(Numbering::Zxid), Epoch::new(2));
    for (epoch, counter, is_taken) in [(2, 0, false), (1, 9, false), (3, 1, false), (2, 1, true)] {
        let zxid = Some(Zxid::from_parts(epoch, counter));
        let record = Incoming {
            zxid,
            epoch: Epoch::new(2),
            time_ms: 0,
            payload: b"",
            payload_crc: checksum::crc32(0, b""),
        };
        match core.append(&[record], 0) {
            Ok(_) => assert!(is_taken, "{zxid:?}"),
            Err(error) => assert!(!is_taken && error.code() == "zxid_not_of_epoch", "{error}"),
        }
    }
}

/// A segment that holds nothing is not left, what was let in before is still written, and one roll is one.
#[test]
fn a_roll_that_was_asked_for_comes_with_the_next_record_and_once() {
    let mut core = core(3);
    core.roll_next();
    append(&mut core, &[b"first"]).expect("room");
    let first = start(&mut core);
    assert!(first.rolled.is_none(), "it was empty");
    core.complete(done(first.write), 0);
    // Nothing is rolled for a mark.
    core.roll_next();
    let Start::Group(mark) = core.start_mark(0) else { panic!("nothing proves the first group yet") };
    assert!(mark.rolled.is_none());
    core.complete(done(mark.write), 0);
    append(&mut core, &[b"second"]).expect("room");
    let Started { write, rolled } = start(&mut core);
    let rolled = rolled.expect("asked for");
    assert_eq!((rolled.retired.records, rolled.retired.last_zxid), (1, Zxid::new(1)));
    core.complete(done(rolled.seal), 0);
    core.complete(done(write), 0);
    // There is no next segment yet: the third may stay here, until it is asked for once more.
    append(&mut core, &[b"third"]).expect("room");
    core.roll_next();
    let third = start(&mut core);
    assert!(third.rolled.is_none());
    core.complete(done(third.write), 0);
    assert_eq!(append(&mut core, &[b"fourth"]).expect("open"), Admission::SegmentFull);
}

/// To the last block, with the room for the seal; and a record that is larger than a segment has one for itself.
#[test]
fn a_segment_is_filled_to_its_end_and_holds_one_record_at_any_rate() {
    let mut core = core(2);
    for n in 0_u64.. {
        append(&mut core, &[b"record"]).expect("room");
        let Started { write, rolled } = start(&mut core);
        let Some(rolled) = rolled else {
            core.complete(done(write), 0);
            continue;
        };
        let retired = rolled.retired;
        assert_eq!((retired.end_offset, retired.records, n), (16_384, 23, 23));
        assert_eq!(retired.index.len(), 1, "one place for all that is so near");
        assert_eq!(retired.index[0].time_max_before_ms, i64::MIN, "nothing came before it");
        core.complete(done(rolled.seal), 0);
        core.complete(done(write), 0);
        break;
    }
    assert_eq!(core.spare.len(), 2, "the seal's memory is none of theirs");
    let mut core = core_of(&options(2), Epoch::ZERO);
    append(&mut core, &[&vec![7; 70_000]]).expect("room");
    let large = start(&mut core);
    assert!(large.rolled.is_none() && core.active().offset > 16_384);
    core.complete(done(large.write), 0);
    assert!(
        core.spare.iter().all(|buffer| buffer.capacity() <= 65_536),
        "nor is that of a large record kept"
    );
}

/// Without syncs nothing is known to be durable, whatever was written.
#[test]
fn fs_11_groups_that_are_not_synced_claim_nothing() {
    let mut core = core_of(&options(2).write_mode(crate::WriteMode::Unsynced), Epoch::ZERO);
    let one = group(&mut core);
    core.complete(done(one), 0);
    let two = group(&mut core);
    assert_eq!((core.durable_zxid(), header(&core, &two).durable_zxid), (Zxid::new(1), Zxid::ZERO));
}
