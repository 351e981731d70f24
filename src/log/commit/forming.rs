use crate::base::Zxid;
use crate::base::checksum::Fold;
use crate::format::{GROUP_HEADER_BYTES, RECORD_HEADER_BYTES, RecordHeader, frame_bytes};
use crate::io::Buffer;

/// The group that records are being gathered for. Its buffer already has the layout of the disk, with the
/// place of the header left free.
#[derive(Debug)]
pub(super) struct Forming {
    pub(super) buffer: Buffer,
    pub(super) count: u32,
    /// How many of them have a thread each that appended them to wait for them at once.
    pub(super) attended: u32,
    pub(super) first_zxid: Zxid,
    pub(super) fold: Fold,
    /// The running maximum of the times, these records included.
    pub(super) time_max_ms: i64,
    /// When its first record came.
    pub(super) opened_ns: u64,
}

impl Forming {
    pub(super) fn new(mut buffer: Buffer, time_max_ms: i64) -> Forming {
        buffer.clear();
        buffer.resize_zeroed(GROUP_HEADER_BYTES);
        Forming {
            buffer,
            count: 0,
            attended: 0,
            first_zxid: Zxid::ZERO,
            fold: Fold::new(),
            time_max_ms,
            opened_ns: 0,
        }
    }

    /// Bytes behind the header.
    pub(super) fn body_bytes(&self) -> usize {
        self.buffer.len() - GROUP_HEADER_BYTES
    }

    /// Adds one record. The caller has made sure of the room.
    pub(super) fn add(&mut self, seed: u32, zxid: Zxid, time_ms: i64, payload: &[u8], payload_crc: u32) {
        let bytes = u32::try_from(payload.len()).expect("a record is bounded by 1 GiB");
        let (header, header_crc) = RecordHeader::encode(seed, zxid, time_ms, bytes, payload_crc);
        let end = self.buffer.len() + frame_bytes(payload.len());
        self.buffer.extend(&header);
        self.buffer.extend(payload);
        self.buffer.resize_zeroed(end);
        self.fold.add(header_crc);
        if self.count == 0 {
            self.first_zxid = zxid;
        }
        self.count += 1;
        self.time_max_ms = self.time_max_ms.max(time_ms);
    }
}

const _: () = assert!(RECORD_HEADER_BYTES.is_multiple_of(8));
