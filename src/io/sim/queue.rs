//! A committer's queue on the simulated disk: a write takes effect in `wait`, in an order drawn by lot.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::crash::index;
use super::file::SimFile;
use super::state::Shared;
use crate::base::Random;
use crate::io::{Completion, QUEUE_DEPTH, Queue, WriteOp};

pub(super) struct SimQueue {
    shared: Shared,
    process: u64,
    random: Random,
    slots: Vec<Slot>,
}

/// A write under way: its number on the disk, or why it was refused.
struct Slot {
    op: WriteOp,
    number: io::Result<u64>,
}

impl SimQueue {
    pub(super) fn new(shared: Shared, process: u64, random: Random) -> SimQueue {
        SimQueue { shared, process, random, slots: Vec::with_capacity(QUEUE_DEPTH) }
    }

    fn start(&self, op: &WriteOp) -> io::Result<u64> {
        let file: &dyn Any = &*op.file;
        let file = file
            .downcast_ref::<SimFile>()
            .filter(|file| Arc::ptr_eq(&file.shared, &self.shared) && file.process == self.process)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file of another disk"))?;
        file.check_write(op.offset, op.buffer.as_slice())?;
        self.shared.lock().operation(self.process, |state| {
            let bytes = op.buffer.as_slice();
            let write = state.plan_write(&file.name, file.inode, op.offset, bytes, op.durability)?;
            let number = state.medium.next_number();
            state.medium.under_way.insert(number, write);
            Ok(number)
        })
    }

    fn finish(&self, number: u64) -> io::Result<()> {
        let mut state = self.shared.lock();
        let released = state.released.clone();
        while state.medium.under_way.get(&number).is_some_and(|write| write.stalled) {
            released.wait(&mut state);
        }
        state.operation(self.process, |state| {
            let write = state.medium.under_way.remove(&number).expect("under way until it ends, once");
            state.finish_write(&write)
        })
    }
}

impl Queue for SimQueue {
    fn submit(&mut self, op: WriteOp) {
        assert!(self.slots.len() < QUEUE_DEPTH, "more than {QUEUE_DEPTH} writes under way");
        let number = self.start(&op);
        self.slots.push(Slot { op, number });
    }

    fn wait(&mut self) -> Completion {
        assert!(!self.slots.is_empty(), "no write is under way");
        let chosen = index(&mut self.random, self.slots.len());
        let Slot { op, number } = self.slots.remove(chosen);
        let result = number.and_then(|number| self.finish(number));
        Completion { tag: op.tag, buffer: op.buffer, result }
    }

    fn under_way(&self) -> usize {
        self.slots.len()
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        while !self.slots.is_empty() {
            self.wait();
        }
    }
}

impl fmt::Debug for SimQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimQueue").field("under_way", &self.slots.len()).finish_non_exhaustive()
    }
}
