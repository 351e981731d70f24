//! The floor that the log is measured against: the simplest honest group commit. Whoever finds the file idle
//! writes everybody's records with one direct dsync write into zeroed space and wakes the others. No recovery,
//! no segments, no errors: what it lacks in commits per second against the log, or the log against it, is
//! what the rest costs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustix::thread::futex;

use super::aligned::{AlignedBuffer, BLOCK_BYTES};

/// Room of a group; the writers of a bench never fill it.
const GROUP_BYTES: usize = 4 << 20;
/// Zeroed before the clock starts; groups go round in it.
const FILE_BYTES: u64 = 64 << 20;
/// Length, checksum, sequence, time.
const HEADER_BYTES: usize = 24;

/// A mutex, a watermark and a file.
#[derive(Debug)]
pub(crate) struct PlainLog {
    state: Mutex<State>,
    durable_group: AtomicU64,
    /// Groups with even numbers sleep on the first word, odd ones on the second.
    words: [AtomicU32; 2],
}

#[derive(Debug)]
struct State {
    gathering: AlignedBuffer,
    group: u64,
    sequence: u64,
    groups: u64,
    bytes: u64,
    /// What a leader needs to write; taken out while it does, so `None` means busy.
    idle: Option<Idle>,
}

#[derive(Debug)]
struct Idle {
    file: File,
    offset: u64,
    spare: AlignedBuffer,
}

impl PlainLog {
    /// A log in a zeroed file of its own.
    pub(crate) fn create(path: &Path) -> std::io::Result<PlainLog> {
        let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC;
        let flags = i32::try_from(flags.bits()).expect("open flags are an int in C");
        let file =
            OpenOptions::new().create(true).truncate(true).write(true).custom_flags(flags).open(path)?;
        super::aligned::zero(&file, FILE_BYTES)?;
        let idle = Some(Idle { file, offset: 0, spare: AlignedBuffer::with_capacity(GROUP_BYTES) });
        let gathering = AlignedBuffer::with_capacity(GROUP_BYTES);
        let state = State { gathering, group: 1, sequence: 1, groups: 0, bytes: 0, idle };
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        Ok(PlainLog { state: Mutex::new(state), durable_group: AtomicU64::new(0), words })
    }

    /// Groups written so far, each with one sync, and their bytes.
    pub(crate) fn written(&self) -> (u64, u64) {
        let state = self.lock();
        (state.groups, state.bytes)
    }

    /// Appends a record and returns when it is durable.
    pub(crate) fn commit(&self, record: &[u8]) {
        let mut state = self.lock();
        let sequence = state.sequence;
        state.sequence += 1;
        encode(&mut state.gathering, sequence, record);
        let mine = state.group;
        while !self.covers(mine) {
            if let Some(idle) = state.idle.take() {
                // My records are in the group that gathers, since no earlier one is being written.
                self.lead(state, idle);
                return;
            }
            let seen = self.word(mine).load(Ordering::Acquire);
            drop(state);
            // An error means that the word has changed already, or a signal: both look again.
            let _again = futex::wait(self.word(mine), futex::Flags::PRIVATE, seen, None);
            if self.covers(mine) {
                return;
            }
            state = self.lock();
        }
    }

    /// Writes the group that gathers, without the lock, and tells everyone in it.
    fn lead(&self, mut state: MutexGuard<'_, State>, mut idle: Idle) {
        std::mem::swap(&mut state.gathering, &mut idle.spare);
        let led = state.group;
        state.group += 1;
        drop(state);
        idle.spare.pad_to_block();
        let bytes = idle.spare.as_slice().len() as u64;
        if idle.offset + bytes > FILE_BYTES {
            idle.offset = 0;
        }
        idle.file.write_all_at(idle.spare.as_slice(), idle.offset).expect("write a group");
        idle.offset += bytes;
        idle.spare.clear();
        let mut state = self.lock();
        state.idle = Some(idle);
        state.groups += 1;
        state.bytes += bytes;
        self.durable_group.store(led, Ordering::Release);
        self.word(led).fetch_add(1, Ordering::Release);
        self.word(led + 1).fetch_add(1, Ordering::Release);
        drop(state);
        // All of this group, and one of the next to lead it. Waking nobody is no error.
        for (group, count) in [(led, u32::MAX >> 1), (led + 1, 1)] {
            futex::wake(self.word(group), futex::Flags::PRIVATE, count).expect("wake the waiters");
        }
    }

    fn covers(&self, group: u64) -> bool {
        self.durable_group.load(Ordering::Acquire) >= group
    }

    fn word(&self, group: u64) -> &AtomicU32 {
        &self.words[(group % 2) as usize]
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no writer panicked")
    }
}

/// A frame as every log has one: header with a checksum, payload, zeros up to 8 bytes.
fn encode(group: &mut AlignedBuffer, sequence: u64, record: &[u8]) {
    let mut header = [0; HEADER_BYTES];
    header[0..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&sequence.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[8..]);
    hasher.update(record);
    header[4..8].copy_from_slice(&hasher.finalize().to_le_bytes());
    group.extend(&header);
    group.extend(record);
    group.extend(&[0; 8][..record.len().next_multiple_of(8) - record.len()]);
    assert!(group.as_slice().len() <= GROUP_BYTES - BLOCK_BYTES, "more writers than a group has room for");
}
