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
    let group =
        GroupPolicy::new().bytes_max(4096).records_max(4).in_flight_max(in_flight).gather(Gather::Off);
    let options =
        LogOptions::new().segment_bytes(16_384).block_bytes(512).numbering(Numbering::Index).group(group);
    let disk = SimDisk::new(1).handle();
    let mut random = Random::from_seed(1);
    let id = DatabaseId::random(&mut random);
    let plan = SegmentPlan::of(&options, id, disk.as_ref());
    let clock = Clock::Virtual(std::sync::Arc::default());
    let mut segment = |seq| prepare_now(&disk, &plan, seq, &clock, &mut random).expect("a segment");
    let (active, next) = (segment(1), segment(2));
    let position = Position { last_zxid: Zxid::ZERO, epoch: Epoch::ZERO, time_max_ms: i64::MIN };
    GroupCommit::new(&options, id.seed(), position, active, Some(next))
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
