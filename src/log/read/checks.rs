use std::io;

use super::group::verify_group;
use super::piece::{PIECE, Piece};
use crate::base::limits;
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader};
use crate::io::File;

/// So much is read behind a piece at most, to have the rest of its last group with it.
const REST_MAX: u64 = limits::GROUP_BYTES_DEFAULT;

/// What it takes to verify groups of a segment wherever they stand, before it is known which ones follow each other.
#[derive(Debug)]
pub(super) struct Checks {
    seed: u32,
    database_seed: u32,
    seq: u64,
    block: u64,
    first: u64,
}

impl Checks {
    /// As the segment's header has it; none if there is no such header.
    pub(super) fn of(file: &dyn File) -> Option<Checks> {
        let mut page = vec![0; usize::try_from(limits::SEGMENT_HEADER_BYTES).ok()?];
        // Whoever reads the segment in order meets the same error, and tells it.
        let read = file.read_at(0, &mut page).ok()?;
        let header = SegmentHeader::decode(page.get(..read)?).ok()?;
        Some(Checks {
            seed: header.seed(),
            database_seed: header.database_id.seed(),
            seq: header.seq,
            block: header.block_bytes,
            first: header.first_group_offset(),
        })
    }

    /// Verifies the groups that begin in a piece, up to the first that is not right, and reads the rest of the last
    /// one. `left` bytes of the file begin with the piece.
    pub(super) fn verify(&self, file: &dyn File, piece: &mut Piece, left: u64) -> io::Result<()> {
        let Some(mut offset) = self.first_group(piece) else { return Ok(()) };
        while let Some(header) = self.header(piece, offset) {
            let total = header.total_bytes(self.block);
            let end = (offset - piece.offset).saturating_add(total);
            if end > left || end > PIECE + REST_MAX {
                break;
            }
            if end > piece.len as u64 {
                piece.read(file, end)?;
            }
            let bytes = usize::try_from(total).map_err(io::Error::other)?;
            let Some(group) = piece.from(offset).and_then(|b| b.get(..bytes)) else { break };
            let Ok(totals) = verify_group(&header, group, self.seed, self.database_seed) else { break };
            piece.verified.push((offset, totals));
            offset += total;
        }
        Ok(())
    }

    /// Where the first group begins that begins in a piece. It may be bytes of a record that look like one, with a
    /// checksum that starts from the segment's salt: nobody asks for what was found there then.
    fn first_group(&self, piece: &Piece) -> Option<u64> {
        let mut offset = piece.offset.next_multiple_of(self.block).max(self.first);
        while offset < piece.end() {
            if self.header(piece, offset).is_some() {
                return Some(offset);
            }
            offset += self.block;
        }
        None
    }

    fn header(&self, piece: &Piece, offset: u64) -> Option<GroupHeader> {
        let head = piece.from(offset)?.get(..GROUP_HEADER_BYTES)?;
        GroupHeader::decode(head, self.seed, self.seq, offset)
    }
}
