//! Record frames: 24 bytes of header (length, checksum, sequence, time), the payload, zeros up to 8.

use super::aligned::AlignedBuffer;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 24;
/// Frames start at multiples of this, so a length never straddles a block.
const ALIGN_BYTES: usize = 8;

/// Appends one frame to a group's buffer.
pub fn encode(buffer: &mut AlignedBuffer, sequence: u64, payload: &[u8]) {
    let mut header = [0; HEADER_BYTES];
    let len = u32::try_from(payload.len()).expect("a record is smaller than 4 GB");
    header[0..4].copy_from_slice(&len.to_le_bytes());
    header[8..16].copy_from_slice(&sequence.to_le_bytes());
    header[16..24].copy_from_slice(&(sequence * 1_000).to_le_bytes());
    let checksum = checksum(&header, payload);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
    buffer.extend(&header);
    buffer.extend(payload);
    buffer.extend(&[0; ALIGN_BYTES][..padding(payload.len())]);
}

/// The payload length of the frame at the start of `bytes`, at least 8 bytes; `None` if it is zero.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(bytes[0..4].try_into().expect("four bytes")) as usize;
    (len > 0).then_some(len)
}

/// What a frame with `len` bytes of payload takes.
pub fn whole_len(len: usize) -> usize {
    HEADER_BYTES + len + padding(len)
}

/// The payload of the whole frame at the start of `bytes`, its checksum compared.
pub fn checked_payload(bytes: &[u8], len: usize) -> &[u8] {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().expect("a whole header");
    let payload = &bytes[HEADER_BYTES..HEADER_BYTES + len];
    let stored = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
    assert_eq!(stored, checksum(header, payload), "a damaged record");
    payload
}

fn padding(len: usize) -> usize {
    len.next_multiple_of(ALIGN_BYTES) - len
}

/// Covers the header without the checksum's own place, and the payload.
fn checksum(header: &[u8; HEADER_BYTES], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[0..4]);
    hasher.update(&header[8..]);
    hasher.update(payload);
    hasher.finalize()
}
