use std::io;
use std::sync::Arc;

use crate::io::File;

/// A file as it would be with some of its bytes written anew. It cannot be written itself.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) file: Arc<dyn File>,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl File for Overlay {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn align_bytes(&self) -> u64 {
        self.file.align_bytes()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(offset, buf)?;
        let (start, end) = (self.offset.max(offset), self.offset + self.bytes.len() as u64);
        let end = end.min(offset + read as u64);
        if start < end {
            let index = |at: u64, base: u64| usize::try_from(at - base).expect("inside a slice");
            let (from, to) = (index(start, self.offset), index(end, self.offset));
            buf[index(start, offset)..index(end, offset)].copy_from_slice(&self.bytes[from..to]);
        }
        Ok(read)
    }

    fn will_read(&self) {
        self.file.will_read();
    }
}
