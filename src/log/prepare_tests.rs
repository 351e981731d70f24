use std::sync::atomic::AtomicU64;

use super::*;
use crate::io::WriteMode;
use crate::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};

const NO_SPACE: Effect = Effect::Error(28);

/// Two and a half pieces.
const BYTES: u64 = 160 * 1024;

fn options() -> LogOptions {
    LogOptions::new().segment_bytes(BYTES)
}

fn id() -> DatabaseId {
    DatabaseId::random(&mut Random::from_seed(1))
}

fn preparation(disk: &SimDisk, options: &LogOptions) -> Preparation {
    let disk = disk.handle();
    let plan = SegmentPlan::of(options, id(), disk.as_ref());
    let clock = Clock::Virtual(Arc::new(AtomicU64::new(7_000_000)));
    Preparation::new(&disk, &plan, 1, &clock, &mut Random::from_seed(2))
}

/// Steps until there is a segment or an error: a piece of work that is never done is neither.
fn finish(preparation: &mut Preparation) -> Result<ActiveSegment> {
    for _ in 0..20 {
        if let Some(segment) = preparation.step()? {
            return Ok(segment);
        }
    }
    panic!("it does not end");
}

fn length(disk: &SimDisk) -> u64 {
    disk.read_file(&segment_name(1)).expect("a segment").len() as u64
}

/// Else a direct write of one block is refused, or the last block of a segment is half a one.
#[test]
fn a_plan_has_blocks_that_the_disk_takes_and_whole_ones_only() {
    let disk = SimDisk::new(1);
    disk.set_direct_align_bytes(Some(4096));
    let of = |options: LogOptions| SegmentPlan::of(&options, id(), disk.handle().as_ref());
    let odd = options().segment_bytes(BYTES + 1).block_bytes(512);
    let direct = of(odd.clone());
    assert_eq!((direct.block_bytes, direct.segment_bytes, direct.direct), (4096, BYTES + 4096, true));
    let cached = of(odd.write_mode(WriteMode::Unsynced));
    assert_eq!((cached.block_bytes, cached.segment_bytes, cached.direct), (512, BYTES + 512, false));
}

#[test]
fn a_segment_is_as_planned_only_if_all_of_it_is() {
    let disk = SimDisk::new(1);
    let of = |options: LogOptions| SegmentPlan::of(&options, id(), disk.handle().as_ref());
    let header = finish(&mut preparation(&disk, &options())).expect("a segment").header;
    assert!(of(options()).made(&header));
    for other in [
        options().segment_bytes(2 * BYTES),
        options().block_bytes(header.block_bytes * 2),
        options().fill(SegmentFill::Allocated),
    ] {
        assert!(!of(other.clone()).made(&header), "{other:?}");
    }
}

/// Each byte once and the header: where blocks cannot be reserved, only the zeros give the file its length.
#[test]
fn zeros_are_written_all_over_and_paced_as_they_are() {
    for effect in [None, Some(Effect::Error(95))] {
        let disk = SimDisk::new(1);
        if let Some(effect) = effect {
            disk.inject(Fault::next(FaultOp::Allocate, effect));
        }
        let mut preparation = preparation(&disk, &options());
        let mut permille = Vec::new();
        while preparation.step().expect("a step").is_none() {
            permille.push(preparation.permille());
        }
        assert_eq!(permille, [0, 400, 800, 1000]);
        assert_eq!(preparation.piece_bytes(), PIECE as u64);
        assert_eq!(disk.counters().bytes_written, BYTES + limits::SEGMENT_HEADER_BYTES);
        assert_eq!(length(&disk), BYTES);
        assert_eq!(disk.counters().set_lens, 0);
    }
}

/// They cost no time that commits would miss.
#[test]
fn what_is_not_zeroed_is_not_paced() {
    for (fill, bytes) in
        [(SegmentFill::Allocated, BYTES), (SegmentFill::Growing, limits::SEGMENT_HEADER_BYTES)]
    {
        let disk = SimDisk::new(1);
        let mut preparation = preparation(&disk, &options().fill(fill));
        finish(&mut preparation).expect("a segment");
        assert_eq!((preparation.piece_bytes(), length(&disk)), (0, bytes), "{fill:?}");
        assert_eq!(disk.counters().bytes_written, limits::SEGMENT_HEADER_BYTES, "{fill:?}");
    }
}

/// A header that another segment could have had would take that one's groups for its own.
#[test]
fn a_segment_has_a_salt_and_a_time_and_is_written_as_it_was_asked_for() {
    for (mode, direct) in [(WriteMode::DirectDsync, true), (WriteMode::Unsynced, false)] {
        let disk = SimDisk::new(1);
        let mut preparation = preparation(&disk, &options().write_mode(mode));
        preparation.step().expect("a file");
        let refuses = |file: &dyn File| file.write_all_at(BYTES - 1, &[0]).is_err();
        assert_eq!(refuses(preparation.file.as_deref().expect("a file")), direct);
        let segment = finish(&mut preparation).expect("a segment");
        assert_eq!(refuses(segment.file.as_ref()), direct);
        assert_eq!(segment.header.created_ms, 7);
        assert_eq!(segment.header.salt, Random::from_seed(2).next_u64());
    }
}

#[test]
fn hz_06_where_there_is_no_room_a_segment_grows_and_has_nothing_of_the_attempt() {
    for (op, nth) in [(FaultOp::Create, 1), (FaultOp::Allocate, 1), (FaultOp::Write, 3), (FaultOp::Sync, 1)] {
        let disk = SimDisk::new(1);
        disk.inject(Fault::next(op, NO_SPACE).nth(nth));
        let mut preparation = preparation(&disk, &options());
        let segment = finish(&mut preparation).expect("a segment");
        assert_eq!(disk.fault_hits(), 1, "{op:?}");
        assert_eq!((segment.header.fill, segment.header.capacity), (SegmentFill::Growing, BYTES), "{op:?}");
        assert_eq!(length(&disk), limits::SEGMENT_HEADER_BYTES, "{op:?}");
        assert_eq!(disk.names(), [segment_name(1)], "{op:?}");
    }
}

#[test]
fn a_preparation_that_fails_leaves_nothing_behind_and_says_whether_its_name_is_unsure() {
    let ops = [FaultOp::Create, FaultOp::Allocate, FaultOp::Write, FaultOp::Sync, FaultOp::Rename];
    let eio = ops.map(|op| (op, Effect::EIO, ErrorKind::Io));
    // Not even a segment that grows has room.
    let full = [FaultOp::Create, FaultOp::Write].map(|op| (op, NO_SPACE, ErrorKind::NoSpace));
    for (op, effect, kind) in eio.into_iter().chain(full) {
        let disk = SimDisk::new(1);
        disk.inject(Fault::next(op, effect).times(u64::MAX));
        let mut preparation = preparation(&disk, &options());
        assert_eq!(finish(&mut preparation).expect_err("a fault").kind(), kind, "{op:?}");
        assert!(!preparation.is_name_unsure(), "{op:?}");
        assert!(disk.names().is_empty(), "{op:?}");
    }
    for effect in [Effect::EIO, NO_SPACE] {
        let disk = SimDisk::new(1);
        disk.inject(Fault::next(FaultOp::SyncDir, effect));
        let mut preparation = preparation(&disk, &options());
        finish(&mut preparation).expect_err("who knows what the directory holds");
        assert!(preparation.is_name_unsure());
    }
}

/// What cannot be read may be somebody's.
#[test]
fn sg_07_a_name_that_cannot_be_looked_at_is_not_free() {
    let disk = SimDisk::new(1);
    disk.write_file(&segment_name(1), b"not to be read");
    disk.inject(Fault::next(FaultOp::Open, Effect::EIO).on(NamePattern::Exact(segment_name(1))));
    let error = finish(&mut preparation(&disk, &options())).expect_err("it cannot be opened");
    assert_eq!((error.kind(), disk.fault_hits()), (ErrorKind::Io, 1));
    assert_eq!(disk.names(), [segment_name(1)]);
    assert_eq!(disk.read_file(&segment_name(1)).as_deref(), Some(&b"not to be read"[..]));
}
