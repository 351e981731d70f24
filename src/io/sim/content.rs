//! The bytes of one file, in pages that forks share until one of them writes.

use std::ops::Range;
use std::sync::Arc;

/// The unit that a power cut keeps or drops.
pub(super) const SECTOR: usize = 512;
/// The unit of sharing and of allocation.
pub(super) const PAGE: usize = 4096;
const _: () = assert!(PAGE.is_multiple_of(SECTOR), "no sector lies in two pages");

/// Bytes without a length: what was never written reads as zeros and takes no memory, so that a
/// preallocated segment costs only what was written of it.
#[derive(Clone, Default)]
pub(super) struct Content {
    pages: Vec<Option<Arc<[u8; PAGE]>>>,
}

impl Content {
    pub(super) fn read(&self, offset: usize, buf: &mut [u8]) {
        for (page, at, range) in pieces(offset, buf.len(), PAGE) {
            match self.pages.get(page) {
                Some(Some(bytes)) => {
                    let count = range.len();
                    buf[range].copy_from_slice(&bytes[at..at + count]);
                }
                _ => buf[range].fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let pages = (offset + bytes.len()).div_ceil(PAGE);
        if pages > self.pages.len() {
            self.pages.resize(pages, None);
        }
        for (page, at, range) in pieces(offset, bytes.len(), PAGE) {
            let page = self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[at..at + range.len()].copy_from_slice(&bytes[range]);
        }
    }

    /// Everything from `offset` on reads as zeros again.
    pub(super) fn zero_from(&mut self, offset: usize) {
        self.pages.truncate(offset.div_ceil(PAGE));
        if let (at @ 1.., Some(Some(page))) = (offset % PAGE, self.pages.get_mut(offset / PAGE))
            && page[at..].iter().any(|&byte| byte != 0)
        {
            Arc::make_mut(page)[at..].fill(0);
        }
    }

    /// The bytes of sector number `sector`; `None` if all are zero.
    pub(super) fn sector(&self, sector: usize) -> Option<[u8; SECTOR]> {
        let mut bytes = [0; SECTOR];
        self.read(sector * SECTOR, &mut bytes);
        (bytes != [0; SECTOR]).then_some(bytes)
    }

    /// Whether page number `page` takes space.
    pub(super) fn holds_page(&self, page: usize) -> bool {
        self.pages.get(page).is_some_and(Option::is_some)
    }

    /// Bytes that the pages after the first `skip` take.
    pub(super) fn page_bytes_after(&self, skip: usize) -> usize {
        self.pages.iter().skip(skip).flatten().count() * PAGE
    }
}

/// Cuts `len` bytes from `offset` at the boundaries of `unit`: the unit's number, where in the unit the piece
/// begins, and which of the `len` bytes it is.
pub(super) fn pieces(
    offset: usize,
    len: usize,
    unit: usize,
) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let at = (offset + done) % unit;
            let count = (unit - at).min(len - done);
            let piece = ((offset + done) / unit, at, done..done + count);
            done += count;
            piece
        })
    })
}
