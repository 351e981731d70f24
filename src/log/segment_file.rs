use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::base::limits;
use crate::format::SegmentHeader;
use crate::io::File;

/// A segment's file without the hole that somebody made it end in. No group begins behind the capacity, and
/// what is behind it and no data holds nothing: a file of a few groups that was stretched to a hundred gigabytes
/// must not cost a hundred gigabytes of reading.
#[derive(Debug)]
struct WithoutHole {
    file: Arc<dyn File>,
    /// The length that the segment was made with: as much is there at any rate.
    capacity: u64,
}

/// Leaves the hole out that a file ends in, if it begins behind the capacity.
pub(crate) fn without_hole(file: Arc<dyn File>) -> io::Result<Arc<dyn File>> {
    let len = file.len()?;
    if len <= limits::SEGMENT_HEADER_BYTES || file.data_end()? >= len {
        return Ok(file);
    }
    let mut page = vec![0; usize::try_from(limits::SEGMENT_HEADER_BYTES).expect("a page")];
    let read = file.read_at(0, &mut page)?;
    // Nothing is read behind a header that is none, but to see whether something is there.
    let capacity =
        SegmentHeader::decode(&page[..read]).map_or(limits::SEGMENT_HEADER_BYTES, |header| header.capacity);
    Ok(if capacity < len { Arc::new(WithoutHole { file, capacity }) } else { file })
}

impl File for WithoutHole {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn align_bytes(&self) -> u64 {
        self.file.align_bytes()
    }

    fn len(&self) -> io::Result<u64> {
        // Asked each time: the log may be in use, and its last group may end above the capacity.
        Ok(self.file.data_end()?.max(self.capacity).min(self.file.len()?))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buf.len().min(left);
        self.file.read_at(offset, &mut buf[..wanted])
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, buf)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn will_read(&self) {
        // The kernel would read the hole as well.
    }

    fn raw_fd(&self) -> Option<RawFd> {
        self.file.raw_fd()
    }
}
