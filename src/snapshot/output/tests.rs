use std::io;
use std::os::fd::RawFd;
use std::sync::Mutex;

use super::*;
use crate::base::{ErrorKind, Zxid};
use crate::format::snapshot::{
    NodeEncoder, NodeEntry, NodeRow, SNAPSHOT_HEADER_BYTES, SnapshotBlock, SnapshotBlockKind, body_check,
};
use crate::format::{AclList, DatabaseId, Numbering};

/// A file in memory with a fault.
#[derive(Debug)]
struct Faulty {
    align: u64,
    fault: Fault,
    bytes: Mutex<Vec<u8>>,
    /// What it was when it was synced last.
    synced: Mutex<Vec<u8>>,
    calls: Mutex<Vec<Call>>,
}

/// A call with its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Write(u64),
    Read(u64),
    Pace(u64),
}

impl Faulty {
    fn new(align: u64, fault: Fault) -> Faulty {
        let (bytes, synced, calls) = (Mutex::default(), Mutex::default(), Mutex::default());
        Faulty { align, fault, bytes, synced, calls }
    }

    fn called(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// The byte there is not what was written.
    Flips(usize),
    /// A write that reaches it fails.
    IsFullAt(u64),
    /// What is made durable cannot be.
    CannotSync,
}

impl File for Faulty {
    fn name(&self) -> &'static str {
        "snap.test"
    }

    fn align_bytes(&self) -> u64 {
        self.align
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.called(Call::Read(buf.len() as u64));
        let bytes = self.bytes.lock().unwrap();
        let from = usize::try_from(offset).unwrap().min(bytes.len());
        let count = buf.len().min(bytes.len() - from);
        buf[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        assert!(offset.is_multiple_of(self.align) && (buf.len() as u64).is_multiple_of(self.align));
        self.called(Call::Write(buf.len() as u64));
        let end = offset + buf.len() as u64;
        if matches!(self.fault, Fault::IsFullAt(at) if end > at) {
            return Err(io::Error::from_raw_os_error(28));
        }
        let mut bytes = self.bytes.lock().unwrap();
        assert_eq!(offset, bytes.len() as u64, "from the beginning to the end, without a hole");
        bytes.extend_from_slice(buf);
        if let Fault::Flips(at) = self.fault
            && (offset..end).contains(&(at as u64))
        {
            bytes[at] ^= 0x10;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if matches!(self.fault, Fault::CannotSync) {
            return Err(io::Error::other("EIO"));
        }
        self.synced.lock().unwrap().clone_from(&self.bytes.lock().unwrap());
        Ok(())
    }

    fn will_read(&self) {}

    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}

fn header() -> SnapshotHeader {
    SnapshotHeader {
        database_id: DatabaseId::from_bytes([7; 16]),
        numbering: Numbering::Zxid,
        salt: 5,
        start: Zxid::new(9),
        created_ms: 1,
    }
}

/// The bytes of a block of one node with so much data, and its place.
fn block(number: u64, offset: u64, data: usize) -> (Vec<u8>, BlockPlace) {
    let mut body = Vec::new();
    let data = vec![u8::try_from(number % 251).unwrap(); data];
    let node =
        NodeEntry { parent: "", name: "a", data: Some(&data), acl: AclList::EMPTY, row: NodeRow::default() };
    NodeEncoder::default().encode(&mut body, &node);
    let seed = header().seed();
    let body_bytes = u32::try_from(body.len()).unwrap();
    let body_crc = body_check(seed, number, &body);
    let kind = SnapshotBlockKind::Nodes;
    let block = SnapshotBlock { kind, count: 1, index: number, offset, body_bytes, body_crc };
    let mut bytes = block.encode(seed).to_vec();
    bytes.extend(body);
    (bytes, BlockPlace { offset, body_bytes })
}

/// A file, what was expected in it, and what became of it.
type Written = (Arc<Faulty>, Vec<u8>, Result<Option<Reading>>);

/// Writes blocks of many sizes to such a file.
fn written(align: u64, fault: Fault, in_thread: bool) -> Written {
    let sizes = [3, PIECE_BYTES, 4 * PIECE_BYTES + 1, 0, 70_000, 70_000, 1];
    written_of(align, fault, in_thread, &sizes, b"the trailer")
}

/// The same with blocks of such sizes, and such an end.
fn written_of(align: u64, fault: Fault, in_thread: bool, sizes: &[usize], trailer: &[u8]) -> Written {
    let file = Arc::new(Faulty::new(align, fault));
    let mut expected = header().encode().to_vec();
    assert_eq!(expected.len(), SNAPSHOT_HEADER_BYTES);
    let paced = file.clone();
    let rest = Box::new(move |bytes| paced.called(Call::Pace(bytes)));
    let outcome = Output::begin(file.clone(), &header(), rest, in_thread).and_then(|mut output| {
        for (number, data) in sizes.iter().enumerate() {
            let (bytes, place) = block(number as u64, expected.len() as u64, *data);
            expected.extend_from_slice(&bytes);
            output.push(&bytes)?;
            output.block_ended(place);
        }
        output.push(trailer)?;
        expected.extend_from_slice(trailer);
        output.finish()
    });
    (file, expected, outcome)
}

/// An alignment, whether a thread writes, and whether it reads again. 64 KiB is what some arrays of disks have, and more than
/// a piece of the simulator's.
const CASES: [(u64, bool, bool); 6] = [
    (1, false, false),
    (512, false, false),
    (1, true, false),
    (512, true, true),
    (4096, true, true),
    (64 * 1024, true, true),
];

#[test]
fn the_file_is_what_was_pushed_whoever_writes_it() {
    for (align, in_thread, is_read_again) in CASES {
        let (file, expected, outcome) = written(align, Fault::None, in_thread);
        assert_eq!(outcome.unwrap().is_some(), is_read_again, "{align} {in_thread}");
        assert!(*file.bytes.lock().unwrap() == expected, "{align} {in_thread}");
        // Its length is durable, too: a sync before it is cut to it would leave zeros behind the trailer.
        assert!(*file.synced.lock().unwrap() == expected, "{align} {in_thread}: {}", expected.len());
    }
}

/// The last piece is empty then, but not what ended in the one before it.
#[test]
fn a_file_may_end_with_a_piece() {
    // How long a block is beside its data.
    let size = |data| block(0, SNAPSHOT_HEADER_BYTES as u64, data).0.len();
    for pieces in 1..=3 {
        let bytes = pieces * PIECE_BYTES - SNAPSHOT_HEADER_BYTES;
        let data = bytes - (size(bytes / 2) - bytes / 2);
        assert_eq!(size(data), bytes);
        for (align, in_thread, is_read_again) in CASES {
            let (file, expected, outcome) = written_of(align, Fault::None, in_thread, &[data], b"");
            assert_eq!(expected.len() % PIECE_BYTES, 0);
            let reading = outcome.unwrap();
            assert_eq!(reading.is_some(), is_read_again, "{pieces} {align} {in_thread}");
            assert!(*file.synced.lock().unwrap() == expected, "{pieces} {align} {in_thread}");
            if is_read_again {
                let flipped = Fault::Flips(expected.len() - 1);
                let (.., outcome) = written_of(align, flipped, in_thread, &[data], b"");
                assert_eq!(outcome.expect_err("a flipped byte").kind(), ErrorKind::Corrupt, "{pieces}");
            }
        }
    }
}

#[test]
fn a_block_that_the_disk_holds_otherwise_is_found_while_it_is_written() {
    let (_, expected, _) = written(512, Fault::None, true);
    let trailer = expected.len() - b"the trailer".len();
    // Of the trailer itself nothing is said here: it is read when the file is opened.
    for at in (SNAPSHOT_HEADER_BYTES..trailer).step_by(9973).chain([SNAPSHOT_HEADER_BYTES, trailer - 1]) {
        let (.., outcome) = written(512, Fault::Flips(at), true);
        let error = outcome.expect_err("a flipped byte");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}: {error}");
        assert_eq!(error.at().file.as_deref(), Some("snap.test"), "{at}: {error}");
        assert!(error.at().offset.is_some_and(|offset| offset <= at as u64), "{at}: {error}");
    }
}

/// The log has the device between a write and the read of the same bytes, too; what is told is what was written.
#[test]
fn each_piece_is_rested_for_and_read_again_in_one_request() {
    for (align, in_thread, is_read_again) in CASES {
        let (file, ..) = written(align, Fault::None, in_thread);
        let calls = file.calls.lock().unwrap();
        for piece in calls.chunks(if is_read_again { 4 } else { 2 }) {
            let Call::Write(bytes) = piece[0] else { panic!("{piece:?}") };
            let half = Call::Pace(bytes / 2);
            if is_read_again {
                assert_eq!(piece[1..], [half, Call::Read(bytes), half], "{align}: {bytes}");
                assert!(bytes <= PIECE_BYTES as u64, "{align}: {bytes}");
            } else {
                assert_eq!(piece[1..], [Call::Pace(bytes)], "{align} {in_thread}: {bytes}");
            }
        }
    }
}

#[test]
fn a_failed_write_or_sync_is_told() {
    let (_, expected, _) = written(512, Fault::None, true);
    for in_thread in [false, true] {
        for at in [0, 1, PIECE_BYTES as u64, expected.len() as u64 - 1] {
            let (.., outcome) = written(512, Fault::IsFullAt(at), in_thread);
            let error = outcome.expect_err("a full disk");
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{at} {in_thread}: {error}");
        }
        let (.., outcome) = written(512, Fault::CannotSync, in_thread);
        assert_eq!(outcome.expect_err("a failed sync").kind(), ErrorKind::Io, "{in_thread}");
    }
}

#[test]
fn a_panic_of_the_pace_is_an_error() {
    let file = Arc::new(Faulty::new(512, Fault::None));
    let mut output = Output::begin(file, &header(), Box::new(|_| panic!("as asked for")), true).unwrap();
    let outcome = (0..9).try_for_each(|_| output.push(&vec![0; PIECE_BYTES]));
    let error = outcome.and_then(|()| output.finish().map(drop)).expect_err("a panic");
    assert_eq!(error.code(), "snapshot_writer_panicked");
}
