use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::base::limits;
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader};
use crate::io::File;

/// A segment's file without the hole that somebody made it end in. No group begins behind the capacity, and
/// what is behind it, no part of a group and no data holds nothing: a file of a few groups that was stretched to a
/// hundred gigabytes must not cost a hundred gigabytes of reading.
#[derive(Debug)]
struct WithoutHole {
    file: Arc<dyn File>,
    /// As much is there at any rate: the length that the segment was made with, or more if a group ends above it.
    least: u64,
}

/// Leaves the hole out that a file ends in, as far as it is behind the capacity and behind every group.
pub(crate) fn without_hole(file: Arc<dyn File>) -> io::Result<Arc<dyn File>> {
    let len = file.len()?;
    if len <= limits::SEGMENT_HEADER_BYTES {
        return Ok(file);
    }
    let data_end = file.data_end()?;
    if data_end >= len {
        return Ok(file);
    }
    let least = match segment_header(file.as_ref())? {
        Ok(header) if header.capacity < len => {
            header.capacity.max(reach(file.as_ref(), &header, data_end.min(header.capacity))?)
        }
        Ok(_) => return Ok(file),
        // Nothing is read behind a header that is none, but to see whether something is there.
        Err(_) => limits::SEGMENT_HEADER_BYTES,
    };
    Ok(if least < len { Arc::new(WithoutHole { file, least }) } else { file })
}

/// Reads a segment's header page; within, what it says, or why it says nothing.
pub(crate) fn segment_header(file: &dyn File) -> io::Result<crate::base::Result<SegmentHeader>> {
    let mut page = vec![0; usize::try_from(limits::SEGMENT_HEADER_BYTES).expect("a page")];
    let read = file.read_at(0, &mut page)?;
    Ok(SegmentHeader::decode(&page[..read]))
}

/// Where the groups end that begin before `end`, and those that follow them at once as a seal does, by their
/// headers: a copy may have made a hole of the zeros in the last one, which are bytes of the log all the same.
fn reach(file: &dyn File, header: &SegmentHeader, end: u64) -> io::Result<u64> {
    let (mut offset, mut reach) = (header.first_group_offset(), 0);
    let mut head = [0; GROUP_HEADER_BYTES];
    while offset < end || offset == reach {
        let read = file.read_at(offset, &mut head)?;
        let group = GroupHeader::decode(&head[..read], header.seed(), header.seq, offset);
        offset =
            offset.saturating_add(group.map_or(header.block_bytes, |g| g.total_bytes(header.block_bytes)));
        if group.is_some() {
            reach = offset;
        }
    }
    Ok(reach)
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
        Ok(self.file.data_end()?.max(self.least).min(self.file.len()?))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buf.len().min(left);
        self.file.read_at(offset, &mut buf[..wanted])
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, buf)
    }

    fn next_data(&self, from: u64) -> io::Result<u64> {
        Ok(self.file.next_data(from)?.min(self.len()?.max(from)))
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
