//! Segments that several threads read and verify are found to be what one thread finds them to be.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::ahead::Ahead;
use super::piece::{PIECE, Piece};
use super::{Helpers, Replay, Window, scan_through};
use crate::base::checksum::{Fold, crc32};
use crate::base::{Clock, Epoch, Random, Zxid};
use crate::format::{
    DatabaseId, GROUP_HEADER_BYTES, GroupHeader, GroupKind, RecordHeader, SegmentFill, SegmentHeader,
    frame_bytes,
};
use crate::io::{File, OpenMode};
use crate::sim::SimDisk;

const BLOCK: u64 = 4096;
const DATABASE: DatabaseId = DatabaseId::from_bytes([7; 16]);

/// A segment under construction.
struct Segment {
    header: SegmentHeader,
    bytes: Vec<u8>,
    last: u64,
}

impl Segment {
    fn new() -> Segment {
        let header = SegmentHeader {
            database_id: DATABASE,
            seq: 1,
            salt: 9,
            capacity: 16 << 20,
            block_bytes: BLOCK,
            fill: SegmentFill::Zeroed,
            created_ms: 0,
        };
        Segment { bytes: header.encode(), header, last: 0 }
    }

    /// The bytes of a group of these records that stands at `offset`, behind record `prev`.
    fn group(&self, offset: usize, prev: u64, payloads: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut fold, mut zxid) = (Vec::new(), Fold::new(), prev);
        for payload in payloads {
            zxid += 1;
            let bytes = u32::try_from(payload.len()).unwrap();
            let (head, crc) =
                RecordHeader::encode(DATABASE.seed(), Zxid::new(zxid), 100, bytes, crc32(0, payload));
            fold.add(crc);
            let end = body.len() + frame_bytes(payload.len());
            body.extend(head);
            body.extend(*payload);
            body.resize(end, 0);
        }
        let header = GroupHeader {
            kind: GroupKind::Records,
            record_count: u32::try_from(payloads.len()).unwrap(),
            body_bytes: body.len() as u64,
            offset: offset as u64,
            seq: 1,
            first_zxid: Zxid::new(prev + 1),
            last_zxid: Zxid::new(zxid),
            prev_zxid: Zxid::new(prev),
            durable_zxid: Zxid::ZERO,
            epoch: Epoch::new(2),
            time_max_before_ms: if prev == 0 { i64::MIN } else { 100 },
            body_check: fold.value(),
        };
        let mut bytes = header.encode(self.header.seed()).to_vec();
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes
    }

    fn push(&mut self, payloads: &[&[u8]]) {
        let group = self.group(self.bytes.len(), self.last, payloads);
        self.bytes.extend(group);
        self.last += payloads.len() as u64;
    }

    fn finish(mut self) -> Vec<u8> {
        let len = usize::try_from(self.header.capacity).unwrap();
        assert!(self.bytes.len() <= len);
        self.bytes.resize(len, 0);
        self.bytes
    }
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

/// Groups of all sizes: of a block, of several, longer than a piece, longer than what is read behind one.
fn segment() -> Vec<u8> {
    let (mut segment, mut random) = (Segment::new(), Random::from_seed(5));
    let payload: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let longest = [700_000, 2_000_000, 1_500_000, 30, 1_000_000];
    for round in 0..longest.len() {
        segment.push(&[&payload[..longest[round]], &payload[..7]]);
        for _ in 0..20 {
            let count = 1 + below(&mut random, 4);
            let sizes: Vec<usize> = (0..count).map(|_| below(&mut random, 40_000)).collect();
            let payloads: Vec<&[u8]> = sizes.iter().map(|size| &payload[*size..2 * size]).collect();
            segment.push(&payloads);
        }
    }
    segment.finish()
}

fn found(file: &dyn File, helpers: Option<usize>) -> (String, Vec<(u64, u32)>) {
    found_with(file, helpers.map(Helpers::new).as_ref())
}

/// All that is found in a file: of the segment, and of the records that were handed out.
fn found_with(file: &dyn File, helpers: Option<&Helpers>) -> (String, Vec<(u64, u32)>) {
    let mut records = Vec::new();
    let mut visit = |record: crate::Record<'_>| {
        records.push((record.zxid.get(), crc32(0, record.payload)));
    };
    let mut replay = Replay::new(Zxid::ZERO, &mut visit);
    replay.start(1, Zxid::ZERO);
    assert!(replay.enter(1));
    let len = file.len().unwrap();
    let mut scan = |mut window: Window| scan_through(&mut window, file, 1, DATABASE, None, Some(&mut replay));
    let scan = match helpers {
        None => scan(Window::new(len)),
        Some(helpers) => std::thread::scope(|scope| scan(Window::reading_ahead(scope, file, len, helpers))),
    };
    let scan = scan
        .map_or_else(|e| format!("{:?} {:?} {:?}", e.kind(), e.at().file, e.code()), |s| format!("{s:?}"));
    (scan, records)
}

fn file_of(disk: &SimDisk, bytes: &[u8]) -> std::sync::Arc<dyn File> {
    disk.write_file("segment", bytes);
    disk.handle().open("segment", OpenMode::Read).unwrap()
}

#[test]
fn several_threads_find_what_one_finds() {
    let disk = SimDisk::new(1);
    let file = file_of(&disk, &segment());
    let alone = found(file.as_ref(), None);
    assert!(alone.0.contains("kind: Zeros") && alone.1.len() > 150, "{}", alone.0);
    for helpers in [0, 1, 2, 5] {
        assert_eq!(found(file.as_ref(), Some(helpers)), alone, "{helpers}");
    }
}

#[test]
fn several_threads_find_the_damage_that_one_finds() {
    let (disk, bytes, mut random) = (SimDisk::new(1), segment(), Random::from_seed(6));
    for round in 0..150 {
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = below(&mut random, bytes.len());
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => {
                    let end = bytes.len().min(at + 5000);
                    bytes[at..end].fill(0);
                }
                _ => bytes.truncate(at.max(4096)),
            }
        }
        let file = file_of(&disk, &bytes);
        let helpers = 1 + below(&mut random, 3);
        assert_eq!(found(file.as_ref(), Some(helpers)), found(file.as_ref(), None), "{round}");
    }
}

/// What a record holds is the client's: it may even be a group that would be right where it stands, if the client has
/// read the segment's header.
#[test]
fn hz_07_a_group_inside_of_a_record_is_no_group() {
    let (disk, piece) = (SimDisk::new(1), usize::try_from(PIECE).unwrap());
    // Of one that is read in one piece, and of one that is put together of several. The forged one ends in its piece, or
    // has the next piece begin in it.
    for (bytes, at, forged_bytes) in
        [(2 * piece, piece, 6), (5 * piece, piece, 6), (5 * piece, 2 * piece - 8192, 300_000)]
    {
        let mut segment = Segment::new();
        segment.push(&[b"first"]);
        let start = segment.bytes.len() + GROUP_HEADER_BYTES + crate::format::RECORD_HEADER_BYTES;
        let mut payload = vec![7; bytes];
        let forged = segment.group(at, 2, &[&payload[..forged_bytes]]);
        payload[at - start..at - start + forged.len()].copy_from_slice(&forged);
        segment.push(&[&payload]);
        segment.push(&[b"third"]);
        let file = file_of(&disk, &segment.finish());
        let alone = found(file.as_ref(), None);
        assert_eq!(alone.1.iter().map(|(zxid, _)| *zxid).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(alone.1[2].1, crc32(0, b"third"));
        assert_eq!(found(file.as_ref(), Some(1)), alone, "{at}");
    }
}

/// A file that asks before each read how many of its bytes may be given.
struct Told<F> {
    bytes: Vec<u8>,
    before: F,
}

impl<F> std::fmt::Debug for Told<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Told")
    }
}

impl<F: Fn(u64) -> std::io::Result<usize> + Send + Sync + 'static> File for Told<F> {
    fn name(&self) -> &'static str {
        "told"
    }

    fn align_bytes(&self) -> u64 {
        1
    }

    fn len(&self) -> std::io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let allowed = (self.before)(offset)?;
        let rest = &self.bytes[usize::try_from(offset).unwrap()..];
        let count = buf.len().min(rest.len()).min(allowed);
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

#[test]
fn tt_05_a_piece_that_cannot_be_read_is_told_after_what_stands_before_it() {
    let bytes = segment();
    let (disk, whole) = (SimDisk::new(1), bytes.len() as u64);
    let all = found(file_of(&disk, &bytes).as_ref(), None).1;
    for bad in [0, PIECE, 3 * PIECE, whole - 1 - whole % PIECE] {
        let before = move |offset| {
            if offset / PIECE == bad / PIECE {
                Err(std::io::Error::other("bad block"))
            } else {
                Ok(usize::MAX)
            }
        };
        let (scan, records) = found(&Told { bytes: bytes.clone(), before }, Some(2));
        assert_eq!(scan, r#"Io Some("told") "io""#, "{bad}");
        assert_eq!(records, all[..records.len()], "{bad}");
    }
}

/// Whoever is the slowest, the others go on without it for as long as there is room, and nobody waits for who has ended.
#[test]
fn who_uses_the_pieces_reads_those_that_nobody_else_does() {
    let (main, read) = (std::thread::current().id(), std::sync::Arc::new(AtomicU64::new(0)));
    let far = read.clone();
    let before = move |offset| {
        if std::thread::current().id() == main {
            far.fetch_max(offset, Ordering::SeqCst);
        } else {
            let (clock, begin) = (Clock::real(), Clock::real().nanos());
            while far.load(Ordering::SeqCst) < PIECE && clock.nanos() - begin < 20_000_000_000 {
                std::thread::yield_now();
            }
            assert!(far.load(Ordering::SeqCst) >= PIECE, "the others wait for this one");
        }
        Ok(usize::MAX)
    };
    let file = Told { bytes: segment(), before };
    let alone = found(&file, None);
    read.store(0, Ordering::SeqCst);
    assert_eq!(found(&file, Some(1)), alone);
}

#[test]
fn a_thread_that_panics_leaves_nobody_waiting() {
    let main = std::thread::current().id();
    let before = move |_| {
        assert!(std::thread::current().id() == main, "on purpose");
        Ok(usize::MAX)
    };
    let file = Told { bytes: segment(), before };
    let ended = catch_unwind(AssertUnwindSafe(|| found(&file, Some(2))));
    assert!(ended.is_err(), "the scope tells of it");
}

/// Else a thread would verify them that has other things to do.
#[test]
fn all_groups_that_are_not_too_long_are_verified_ahead() {
    let disk = SimDisk::new(1);
    let file = file_of(&disk, &segment());
    let seed = Segment::new().header.seed();
    for helpers in [0, 1, 3] {
        let (mut ahead, mut alone, mut offset) = (0, Vec::new(), BLOCK);
        std::thread::scope(|scope| {
            let mut window = Window::reading_ahead(scope, file.as_ref(), 16 << 20, &Helpers::new(helpers));
            loop {
                let head = window.get(file.as_ref(), offset, GROUP_HEADER_BYTES).unwrap().unwrap();
                let Some(header) = GroupHeader::decode(head, seed, 1, offset) else { break };
                let bytes = header.total_bytes(BLOCK);
                window.get(file.as_ref(), offset, usize::try_from(bytes).unwrap()).unwrap().unwrap();
                match window.verified(offset) {
                    Some(totals) => ahead += i32::from(totals.time_max_ms == 100),
                    None => alone.push(bytes),
                }
                offset += bytes;
            }
        });
        assert!(ahead >= 100 && alone.iter().all(|bytes| *bytes > 1_000_000), "{helpers}: {ahead} {alone:?}");
        // It would have to be in memory whole.
        assert!(alone.iter().any(|bytes| *bytes > 2_000_000), "{helpers}: {alone:?}");
    }
}

/// Pieces are used again for other files.
#[test]
fn a_piece_that_begins_anew_knows_of_no_groups() {
    let file = file_of(&SimDisk::new(1), &segment());
    let (helpers, mut piece) = (Helpers::new(1), Piece::default());
    std::thread::scope(|scope| {
        let ahead = Ahead::start(scope, file.as_ref(), 16 << 20, &helpers);
        piece = ahead.next(file.as_ref()).unwrap().unwrap();
    });
    assert!(piece.len > 0 && !piece.verified.is_empty());
    piece.start(PIECE);
    assert!((piece.offset, piece.len, piece.verified.len()) == (PIECE, 0, 0));
}

#[test]
fn no_more_is_read_ahead_than_there_is_room_for() {
    let read = std::sync::Arc::new(AtomicU64::new(0));
    let counted = read.clone();
    let before = move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(usize::MAX)
    };
    // No header: there is nothing to verify, and each piece is read at once.
    let file = Told { bytes: vec![0; usize::try_from(64 * PIECE).unwrap()], before };
    std::thread::scope(|scope| {
        let mut window = Window::reading_ahead(scope, &file, 64 * PIECE, &Helpers::new(2));
        let (clock, mut last, mut since) = (Clock::real(), 0, Clock::real().nanos());
        while clock.nanos() - since < 100_000_000 {
            std::thread::yield_now();
            let now = read.load(Ordering::SeqCst);
            if now != last {
                (last, since) = (now, clock.nanos());
            }
        }
        assert_eq!(last, 1 + 6, "the header, and two pieces for each thread");
        assert!(window.get(&file, 0, 1).unwrap().is_some());
    });
    assert!(read.load(Ordering::SeqCst) < 12, "and no more once nobody uses them");
}

/// It was cut meanwhile, or the disk gave less than there is: what is missing is asked for once more.
#[test]
fn a_piece_that_comes_short_leaves_no_hole() {
    let bytes = segment();
    let alone = found(file_of(&SimDisk::new(1), &bytes).as_ref(), None);
    for (short, given) in [(PIECE, 0), (2 * PIECE, 70_000), (5 * PIECE, 4096)] {
        let is_first = std::sync::atomic::AtomicBool::new(true);
        let before = move |offset| {
            let is_short = offset == short && is_first.swap(false, Ordering::SeqCst);
            Ok(if is_short { given } else { usize::MAX })
        };
        let (helpers, mut short_file) = (Helpers::new(1), Told { bytes: bytes.clone(), before });
        assert_eq!(found_with(&short_file, Some(&helpers)), alone, "{short}");
        // What an earlier read has left in the memory is nothing that was read.
        short_file.bytes.truncate(usize::try_from(short + given as u64).unwrap());
        let cut = found(file_of(&SimDisk::new(1), &short_file.bytes).as_ref(), None);
        assert_eq!(found_with(&short_file, Some(&helpers)), cut, "{short}");
    }
}

/// A file whose first read at `at` is wrong in one byte.
#[derive(Debug)]
struct Fickle {
    bytes: Vec<u8>,
    at: u64,
    was_read: std::sync::atomic::AtomicBool,
}

impl File for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }

    fn align_bytes(&self) -> u64 {
        1
    }

    fn len(&self) -> std::io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.bytes[usize::try_from(offset).unwrap()..];
        let count = buf.len().min(rest.len());
        buf[..count].copy_from_slice(&rest[..count]);
        if offset == self.at && !self.was_read.swap(true, Ordering::SeqCst) {
            buf[9000] ^= 1;
        }
        Ok(count)
    }
}

/// Where a record makes a piece look longer than it is, the same bytes come with two pieces. The one that counts is not the
/// one that was verified.
#[test]
fn hz_07_bytes_that_were_read_twice_are_verified_where_they_are_used() {
    let (piece, framing) =
        (usize::try_from(PIECE).unwrap(), GROUP_HEADER_BYTES + crate::format::RECORD_HEADER_BYTES);
    let mut segment = Segment::new();
    let start = segment.bytes.len() + framing;
    // It ends a little behind the start of a piece; and in the one before that, a group seems to begin and to go on.
    let (mut payload, at) = (vec![7; 4 * piece + 8192 - start], 4 * piece - 4096);
    let forged = segment.group(at, 1, &[&payload[..300_000]]);
    payload[at - start..4 * piece - start].copy_from_slice(&forged[..4096]);
    segment.push(&[&payload]);
    assert_eq!(segment.bytes.len(), 4 * piece + 8192);
    segment.push(&[&payload[..10_000]]);
    let (bytes, x) = (segment.finish(), 4 * PIECE + 8192);
    let file = Fickle { bytes, at: PIECE * 4, was_read: false.into() };
    std::thread::scope(|scope| {
        let mut window = Window::reading_ahead(scope, &file, 16 << 20, &Helpers::new(0));
        // More than has come with the piece that seemed longer.
        let held = window.get(&file, BLOCK, 4 * piece + 350_000).unwrap().unwrap();
        assert_eq!(held[4 * piece + 9000 - 4096], 6, "misread");
        assert!(window.verified(x).is_none());
    });
}
