//! Group commit by a leader: whoever finds the log idle writes everybody's records.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use super::aligned::AlignedBuffer;
use super::file::GroupFile;
use super::frames;
use super::watermark::Watermark;
use crate::logs::DurableLog;

/// Room of a group's buffer at the start.
const GROUP_BYTES: usize = 1 << 20;

/// A mutex, a watermark and a file.
#[derive(Debug)]
pub struct PlainLog {
    state: Mutex<State>,
    watermark: Watermark,
}

#[derive(Debug)]
struct State {
    /// The group that takes records now.
    gathering: AlignedBuffer,
    /// Its number; groups are numbered from 1.
    group: u64,
    /// The next record's number.
    sequence: u64,
    /// What a leader needs to write; taken out while it does, so `None` means busy.
    idle: Option<Idle>,
}

#[derive(Debug)]
struct Idle {
    file: GroupFile,
    spare: AlignedBuffer,
}

impl PlainLog {
    /// One direct dsync write per group, padded to blocks, into a zeroed file.
    pub fn direct(dir: &Path, zeroed_bytes: u64) -> PlainLog {
        PlainLog::new(GroupFile::direct(dir, zeroed_bytes))
    }

    /// One buffered write and one fdatasync per group, into a growing file.
    pub fn buffered(dir: &Path) -> PlainLog {
        PlainLog::new(GroupFile::buffered(dir))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no writer panicked")
    }

    /// Writes the group that gathers, without the lock, and tells everyone in it.
    fn lead(&self, mut state: MutexGuard<'_, State>, mut idle: Idle) {
        std::mem::swap(&mut state.gathering, &mut idle.spare);
        let led = state.group;
        state.group += 1;
        drop(state);
        idle.file.write_durably(&mut idle.spare);
        idle.spare.clear();
        let mut state = self.lock();
        state.idle = Some(idle);
        self.watermark.advance(led);
        drop(state);
        self.watermark.call(led);
    }

    fn new(file: GroupFile) -> PlainLog {
        let buffer = || AlignedBuffer::with_capacity(GROUP_BYTES);
        let idle = Some(Idle { file, spare: buffer() });
        let state = State { gathering: buffer(), group: 1, sequence: 1, idle };
        PlainLog { state: Mutex::new(state), watermark: Watermark::default() }
    }
}

impl DurableLog for PlainLog {
    fn commit(&self, writer: usize, record: &[u8]) {
        self.commit_batch(writer, &[record]);
    }

    fn commit_batch(&self, _writer: usize, records: &[&[u8]]) {
        let mut state = self.lock();
        for record in records {
            let sequence = state.sequence;
            frames::encode(&mut state.gathering, sequence, record);
            state.sequence += 1;
        }
        let mine = state.group;
        while !self.watermark.covers(mine) {
            if let Some(idle) = state.idle.take() {
                // The log is idle: lead. My records are in the group that gathers, since no earlier
                // one is being written.
                self.lead(state, idle);
                return;
            }
            let ticket = self.watermark.ticket(mine);
            drop(state);
            self.watermark.sleep(mine, ticket);
            if self.watermark.covers(mine) {
                return;
            }
            state = self.lock();
        }
    }
}
