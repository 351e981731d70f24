use std::sync::Arc;

use crate::base::{Clock, Error, ErrorKind, Random, Result, Zxid, limits};
use crate::format::{DatabaseId, SegmentFill, SegmentHeader, segment_name, segment_temp_name};
use crate::io::{Buffer, Disk, File, OpenMode};
use crate::log::commit::ActiveSegment;
use crate::log::directory::{open_segment, remove_if_there, sync_dir};
use crate::log::options::LogOptions;
use crate::log::read::is_blank_file;

/// Zeros are written in pieces of this size: large enough to be cheap, small enough to let commits pass.
const PIECE: usize = 64 * 1024;

/// The same while the log is being opened, when there are no commits to let pass: fewer calls.
const PIECE_ALONE: usize = 1 << 20;

/// What every segment of one log shares.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPlan {
    pub(crate) database_id: DatabaseId,
    pub(crate) segment_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) fill: SegmentFill,
    pub(crate) direct: bool,
}

impl SegmentPlan {
    pub(crate) fn of(options: &LogOptions, database_id: DatabaseId, disk: &dyn Disk) -> SegmentPlan {
        let info = disk.info();
        let block = options.block_bytes.unwrap_or(info.physical_block_bytes);
        let align = if options.write_mode.direct() { info.direct_align_bytes } else { 1 };
        let block_bytes = block.max(align).clamp(limits::BLOCK_BYTES_MIN, limits::BLOCK_BYTES_MAX);
        SegmentPlan {
            database_id,
            segment_bytes: options.segment_bytes.next_multiple_of(block_bytes),
            block_bytes,
            fill: options.fill,
            direct: options.write_mode.direct(),
        }
    }

    /// Whether a segment is as this plan would make it.
    pub(crate) fn made(&self, header: &SegmentHeader) -> bool {
        header.capacity == self.segment_bytes
            && header.block_bytes == self.block_bytes
            && header.fill == self.fill
    }
}

/// A segment on its way into being: created under a temporary name, filled, given its header, synced, and
/// only then named. So a segment that has its name has its header and its full length on disk.
#[derive(Debug)]
pub(crate) struct Preparation {
    disk: Arc<dyn Disk>,
    header: SegmentHeader,
    direct: bool,
    file: Option<Arc<dyn File>>,
    zeros: Buffer,
    filled: u64,
    renamed: bool,
    /// Whether a segment that grows is better than none.
    may_grow: bool,
}

impl Preparation {
    pub(crate) fn new(
        disk: &Arc<dyn Disk>,
        plan: &SegmentPlan,
        seq: u64,
        clock: &Clock,
        random: &mut Random,
    ) -> Preparation {
        Preparation::in_pieces(PIECE, disk, plan, seq, (clock, random))
    }

    fn in_pieces(
        piece: usize,
        disk: &Arc<dyn Disk>,
        plan: &SegmentPlan,
        seq: u64,
        (clock, random): (&Clock, &mut Random),
    ) -> Preparation {
        let header = SegmentHeader {
            database_id: plan.database_id,
            seq,
            salt: random.next_u64(),
            capacity: plan.segment_bytes,
            block_bytes: plan.block_bytes,
            fill: plan.fill,
            created_ms: clock.wall_ms(),
        };
        let piece = piece.min(usize::try_from(header.capacity).unwrap_or(piece));
        let mut zeros = Buffer::with_capacity(piece);
        zeros.resize_zeroed(piece);
        Preparation {
            disk: disk.clone(),
            header,
            direct: plan.direct,
            file: None,
            zeros,
            filled: 0,
            renamed: false,
            may_grow: true,
        }
    }

    /// Has a full disk be an error from now on: there is time, and there may be room again before the segment is needed.
    pub(crate) fn do_not_grow(&mut self) {
        self.may_grow = false;
    }

    /// Whether it was made because the segment is needed, and not only because there was time.
    pub(crate) fn is_needed(&self) -> bool {
        self.may_grow
    }

    /// Does the next piece of work. Returns the segment once it is ready. A full disk turns the rest into a
    /// segment that grows, unless it is [not to](Preparation::do_not_grow); other errors leave nothing behind and are
    /// final for this preparation.
    pub(crate) fn step(&mut self) -> Result<Option<ActiveSegment>> {
        let done = self.try_step();
        match done {
            Err(e)
                if e.kind() == ErrorKind::NoSpace
                    && self.header.fill != SegmentFill::Growing
                    && self.may_grow
                    && !self.renamed =>
            {
                self.discard()?;
                self.header.fill = SegmentFill::Growing;
                Ok(None)
            }
            Err(e) => {
                self.discard()?;
                Err(e)
            }
            done => done,
        }
    }

    /// How much of the work is done, in thousandths.
    pub(crate) fn permille(&self) -> u64 {
        self.filled * 1000 / self.header.capacity
    }

    /// The bytes that the last step wrote, for pacing.
    pub(crate) fn piece_bytes(&self) -> u64 {
        if self.header.fill == SegmentFill::Zeroed { self.zeros.len() as u64 } else { 0 }
    }

    /// Whether it has failed after the segment got its name: a failed directory sync says nothing of what the
    /// directory holds, and trying again under the same name would prove nothing.
    pub(crate) fn is_name_unsure(&self) -> bool {
        self.renamed
    }

    fn try_step(&mut self) -> Result<Option<ActiveSegment>> {
        let temp = segment_temp_name(self.header.seq);
        let wrap = |e| Error::io("prepare a segment", e).in_file(&temp);
        let Some(file) = self.file.clone() else {
            remove_if_there(self.disk.as_ref(), &temp)?;
            let file = self.disk.open(&temp, OpenMode::CreateNew { direct: self.direct }).map_err(wrap)?;
            self.file = Some(file.clone());
            return self.reserve(file.as_ref()).map(|()| None);
        };
        if self.header.fill == SegmentFill::Zeroed && self.filled < self.header.capacity {
            let left = self.header.capacity - self.filled;
            let piece = self.zeros.as_slice().len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all_at(self.filled, &self.zeros.as_slice()[..piece]).map_err(wrap)?;
            self.filled += piece as u64;
            return Ok(None);
        }
        self.name_it(file.as_ref()).map(Some)
    }

    fn reserve(&self, file: &dyn File) -> Result<()> {
        if self.header.fill == SegmentFill::Growing {
            return Ok(());
        }
        match file.allocate(self.header.capacity) {
            Ok(()) => Ok(()),
            // Not every file system can reserve; written-through segments do not need it, and for the others
            // the length is what counts.
            Err(e) if is_unsupported(&e) && self.header.fill == SegmentFill::Zeroed => Ok(()),
            Err(e) if is_unsupported(&e) => file
                .set_len(self.header.capacity)
                .map_err(|e| Error::io("prepare a segment", e).in_file(file.name())),
            Err(e) => Err(Error::io("prepare a segment", e).in_file(file.name())),
        }
    }

    fn name_it(&mut self, file: &dyn File) -> Result<ActiveSegment> {
        let (temp, name) = (segment_temp_name(self.header.seq), segment_name(self.header.seq));
        let wrap = |e| Error::io("prepare a segment", e).in_file(&temp);
        let page = self.header.encode();
        let mut buffer = Buffer::with_capacity(page.len());
        buffer.extend(&page);
        file.write_all_at(0, buffer.as_slice()).map_err(wrap)?;
        if !crate::planted("segment_named_unsynced") {
            file.sync().map_err(wrap)?;
        }
        self.check_name_is_free(&name)?;
        self.disk.rename(&temp, &name).map_err(wrap)?;
        self.renamed = true;
        sync_dir(self.disk.as_ref())?;
        let file = self
            .disk
            .open(&name, OpenMode::Write { direct: self.direct })
            .map_err(|e| Error::io("open a segment", e).in_file(&name))?;
        Ok(ActiveSegment::fresh(self.header, file, Zxid::ZERO))
    }

    /// A rename replaces what has the name. A blank segment may go, such as one whose directory could not be
    /// synced; anything else is somebody's.
    fn check_name_is_free(&self, name: &str) -> Result<()> {
        match open_segment(self.disk.as_ref(), name) {
            Ok(file) if is_blank_file(file.as_ref())? => Ok(()),
            Ok(_) => Err(Error::corrupt("segment_exists", "there is a file where the next segment belongs")
                .in_file(name)),
            Err(error) if error.code() == "segment_missing" => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives up a segment that is not ready, and its file.
    pub(crate) fn abandon(&mut self) {
        // What cannot be removed now is by the next open.
        self.discard().ok();
    }

    fn discard(&mut self) -> Result<()> {
        self.file = None;
        self.filled = 0;
        remove_if_there(self.disk.as_ref(), &segment_temp_name(self.header.seq))
    }
}

/// Prepares a segment in one go.
pub(crate) fn prepare_now(
    disk: &Arc<dyn Disk>,
    plan: &SegmentPlan,
    seq: u64,
    clock: &Clock,
    random: &mut Random,
) -> Result<ActiveSegment> {
    let mut preparation = Preparation::in_pieces(PIECE_ALONE, disk, plan, seq, (clock, random));
    loop {
        if let Some(segment) = preparation.step()? {
            return Ok(segment);
        }
    }
}

fn is_unsupported(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(error.kind(), Kind::Unsupported | Kind::InvalidInput)
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
