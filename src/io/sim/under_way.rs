//! A write that was handed in and has not ended.

use std::sync::Arc;

use super::content::{SECTOR, pieces};
use super::crash::Dice;
use super::fault::Effect;
use super::inode::Inode;
use super::names::InodeId;
use crate::io::Durability;

/// What the write will do when it ends; a fault that hit it is worked in already.
#[derive(Clone)]
pub(super) struct UnderWay {
    pub(super) inode: InodeId,
    pub(super) name: Arc<str>,
    pub(super) offset: usize,
    pub(super) bytes: Arc<[u8]>,
    pub(super) durability: Durability,
    /// The answer: an error after `bytes` have landed.
    pub(super) errno: Option<i32>,
    /// The kernel takes it in shreds; the backend finishes it.
    pub(super) interrupted: bool,
    /// Does not end until it is released.
    pub(super) stalled: bool,
}

impl UnderWay {
    /// Works a fault into the write.
    pub(super) fn bend(&mut self, effect: Effect) {
        match effect {
            Effect::Error(errno) => {
                self.bytes = Arc::default();
                self.errno = Some(errno);
            }
            Effect::ShortThenError { bytes, errno } => {
                let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.bytes.len());
                self.bytes = self.bytes[..count].into();
                self.errno = Some(errno);
            }
            Effect::FlipBit { offset } => effect_flip(Arc::make_mut(&mut self.bytes), offset),
            Effect::LostWrite => self.bytes = Arc::default(),
            Effect::MisdirectedWrite { to_offset } => {
                self.offset = usize::try_from(to_offset).expect("an offset that memory can hold");
            }
            Effect::Interrupted => self.interrupted = true,
            Effect::Stall => self.stalled = true,
            Effect::StaleRead | Effect::SyncFailsAndDropsPages => {
                unreachable!("refused when the fault was installed")
            }
        }
    }

    /// Power goes while the write is under way: any of its sectors may have landed. `inode` has lost power
    /// before; nothing lands behind a truncation that was undone.
    pub(super) fn land(&self, inode: &mut Inode, undone: Option<usize>, dice: &mut Dice, torn_garbage: bool) {
        let end = self.offset + self.bytes.len();
        let top = match undone {
            Some(cut) => end.min(cut),
            None if self.bytes.is_empty() || end <= inode.len() => end,
            None => dice.between(inode.len(), end),
        };
        for (_, _, range) in pieces(self.offset, self.bytes.len(), SECTOR) {
            let stop = range.end.min(top.saturating_sub(self.offset));
            if range.start >= stop || !dice.keep() {
                continue;
            }
            let mut piece = [0; SECTOR];
            let piece = &mut piece[..stop - range.start];
            piece.copy_from_slice(&self.bytes[range.start..stop]);
            if torn_garbage {
                dice.spoil(piece);
            }
            inode.write_durable(self.offset + range.start, piece);
        }
        if undone.is_none() && !self.bytes.is_empty() {
            inode.extend_durable(top);
        }
    }
}

/// Flips one bit of a transfer: of the byte at `offset`, counted round if the transfer is shorter.
pub(super) fn effect_flip(bytes: &mut [u8], offset: u64) {
    if let Ok(len @ 1..) = u64::try_from(bytes.len()) {
        let at = usize::try_from(offset % len).expect("below a usize");
        bytes[at] ^= 0x10;
    }
}
