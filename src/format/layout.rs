//! Little-endian fields at fixed offsets. The caller has sliced the right length, so a miss is a bug here.

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(super) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(array(bytes, at))
}

pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Whether all bytes are zero, eight at a time.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (head, words, tail) = (bytes.len() % 8, bytes.chunks_exact(8), bytes);
    words.fold(0u64, |acc, w| acc | u64::from_le_bytes(array(w, 0))) == 0
        && tail[bytes.len() - head..].iter().all(|b| *b == 0)
}
