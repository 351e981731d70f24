//! Reads choices out of an input. At its end every choice is zero.

/// The rest of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'i> {
    rest: &'i [u8],
}

impl<'i> Source<'i> {
    pub(super) fn new(input: &'i [u8]) -> Source<'i> {
        Source { rest: input }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Up to so many bytes.
    pub(super) fn bytes(&mut self, len: usize) -> &'i [u8] {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    pub(super) fn number(&mut self) -> u64 {
        let mut raw = [0; 8];
        let bytes = self.bytes(8);
        raw[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(raw)
    }

    /// A place in something of this length; 0 if it is empty.
    pub(super) fn place(&mut self, len: usize) -> usize {
        let mut raw = [0; 4];
        let bytes = self.bytes(3);
        raw[..bytes.len()].copy_from_slice(bytes);
        (u32::from_le_bytes(raw) as usize).checked_rem(len).unwrap_or(0)
    }
}
