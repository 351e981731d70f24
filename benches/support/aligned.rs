//! Memory and files as direct writes need them: whole blocks at block-aligned addresses.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Direct writes start at multiples of this, in memory and on disk.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// Bytes whose address is a multiple of the block size. Never grows.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// An empty buffer with room for so many bytes.
    pub(crate) fn with_capacity(capacity: usize) -> AlignedBuffer {
        let mut bytes: Vec<u8> = Vec::with_capacity(capacity + BLOCK_BYTES);
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES);
        bytes.resize(start, 0);
        AlignedBuffer { bytes, start }
    }

    /// So many zeros.
    pub(crate) fn zeroed(len: usize) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::with_capacity(len);
        buffer.bytes.resize(buffer.start + len, 0);
        buffer
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        assert!(self.bytes.capacity() - self.bytes.len() >= bytes.len(), "growing would lose the alignment");
        self.bytes.extend_from_slice(bytes);
    }

    /// Fills with zeros up to the next block boundary.
    pub(crate) fn pad_to_block(&mut self) {
        let len = self.as_slice().len();
        self.extend(&[0; BLOCK_BYTES][..len.next_multiple_of(BLOCK_BYTES) - len]);
    }

    /// Forgets the content, keeps the room.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(self.start);
    }

    /// The content.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Writes the first `len` bytes of a file through with zeros, so that later writes change no metadata.
pub(crate) fn zero(file: &File, len: u64) -> std::io::Result<()> {
    const CHUNK_BYTES: usize = 1 << 20;
    let zeros = AlignedBuffer::zeroed(CHUNK_BYTES);
    for offset in (0..len).step_by(CHUNK_BYTES) {
        file.write_all_at(zeros.as_slice(), offset)?;
    }
    file.sync_all()
}
