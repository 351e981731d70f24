use std::fmt;

/// Bytes that begin at a page boundary, for direct writes; grows only when told to.
///
/// A safe over-allocation: the page boundary inside the vector's own memory. Moving a `Buffer` moves no
/// bytes, so the address given to the kernel stays good while the buffer is owned by a queue.
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// The alignment of the first byte: a page, which every direct-I/O alignment divides.
const ALIGN: usize = 4096;

impl Buffer {
    /// The alignment of the first byte, for those who check memory before a direct write.
    pub(super) const ALIGN: usize = ALIGN;

    /// Room for `capacity` bytes, rounded up to whole pages.
    pub(crate) fn with_capacity(capacity: usize) -> Buffer {
        let capacity = capacity.next_multiple_of(ALIGN);
        let memory = vec![0u8; capacity + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN);
        assert!(start < ALIGN, "a byte pointer can always be aligned");
        Buffer { memory, start, len: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.memory.len() - ALIGN
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Adds bytes.
    ///
    /// # Panics
    /// If they do not fit: the caller has checked, and a wrong size must not become a wrong write.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        assert!(end <= self.capacity(), "{end} bytes into a buffer of {}", self.capacity());
        self.memory[self.start + self.len..self.start + end].copy_from_slice(bytes);
        self.len = end;
    }

    /// Sets the length; what it adds is zeroed.
    ///
    /// # Panics
    /// If it is more than the capacity.
    pub(crate) fn resize_zeroed(&mut self, len: usize) {
        assert!(len <= self.capacity(), "{len} bytes in a buffer of {}", self.capacity());
        if len > self.len {
            self.memory[self.start + self.len..self.start + len].fill(0);
        }
        self.len = len;
    }

    /// Makes room for `capacity` bytes in all, keeping the content.
    pub(crate) fn reserve_total(&mut self, capacity: usize) {
        if capacity > self.capacity() {
            let mut larger = Buffer::with_capacity(capacity);
            larger.extend(self.as_slice());
            *self = larger;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len)
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_at_a_page_and_keeps_its_content_when_it_grows() {
        let mut buffer = Buffer::with_capacity(100);
        assert_eq!(buffer.capacity(), 4096);
        assert_eq!(buffer.as_slice().as_ptr() as usize % ALIGN, 0);
        buffer.extend(b"abc");
        buffer.reserve_total(5000);
        assert_eq!((buffer.as_slice(), buffer.capacity()), (&b"abc"[..], 8192));
        assert_eq!(buffer.as_slice().as_ptr() as usize % ALIGN, 0);
        buffer.resize_zeroed(2);
        buffer.resize_zeroed(4);
        assert_eq!(buffer.as_slice(), b"ab\0\0");
    }

    #[test]
    #[should_panic(expected = "into a buffer of")]
    fn refuses_more_than_it_holds() {
        Buffer::with_capacity(4096).extend(&[0; 4097]);
    }
}
