//! A growing byte buffer at a block-aligned address, as direct writes need it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::BLOCK_BYTES;

/// Bytes at an address that is a multiple of the block size.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: the buffer owns its memory alone, like a Vec<u8>.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// An empty buffer with room for `capacity` bytes, a multiple of the block size.
    pub fn with_capacity(capacity: usize) -> AlignedBuffer {
        assert!(capacity > 0 && capacity.is_multiple_of(BLOCK_BYTES), "whole blocks only");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(Self::layout(capacity)) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(Self::layout(capacity)) };
        AlignedBuffer { start, capacity, len: 0 }
    }

    /// Appends bytes, growing to twice the room when they do not fit.
    pub fn extend(&mut self, bytes: &[u8]) {
        while self.capacity - self.len < bytes.len() {
            let mut larger = AlignedBuffer::with_capacity(self.capacity * 2);
            larger.extend(self.as_slice());
            *self = larger;
        }
        // SAFETY: the room was just made, and a borrowed slice cannot overlap an owned buffer.
        unsafe {
            self.start.as_ptr().add(self.len).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
    }

    /// Fills with zeros up to the next block boundary.
    pub fn pad_to_block(&mut self) {
        const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
        let missing = self.len.next_multiple_of(BLOCK_BYTES) - self.len;
        self.extend(&ZEROS[..missing]);
    }

    /// Forgets the content, keeps the room.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The content.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes were written, and all of them were zeroed at the start.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, BLOCK_BYTES).expect("a block is a power of two")
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, and never handed out.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) }
    }
}
