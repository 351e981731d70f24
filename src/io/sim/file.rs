//! An open file of the simulated disk.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::names::InodeId;
use super::state::{Shared, State};
use crate::io::{Durability, File};

pub(super) struct SimFile {
    pub(super) shared: Shared,
    pub(super) process: u64,
    pub(super) inode: InodeId,
    pub(super) name: Arc<str>,
    pub(super) align: u64,
    pub(super) writable: bool,
}

impl SimFile {
    /// What a kernel would refuse before it asked the disk.
    pub(super) fn check_write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        let address = bytes.as_ptr().addr() as u64;
        if [offset, bytes.len() as u64, address].iter().all(|value| value.is_multiple_of(self.align)) {
            Ok(())
        } else {
            Err(Errno::INVAL.into())
        }
    }

    fn change(&self, run: impl FnOnce(&mut State) -> io::Result<()>) -> io::Result<()> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        self.shared.lock().operation(self.process, run)
    }
}

impl File for SimFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn align_bytes(&self) -> u64 {
        self.align
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.shared.lock();
        state.alive(self.process)?;
        Ok(state.medium.inode(self.inode).len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        state.alive(self.process)?;
        state.read(&self.name, self.inode, offset, buf)
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.check_write(offset, buf)?;
        self.change(|state| {
            let write = state.plan_write(&self.name, self.inode, offset, buf, Durability::None)?;
            state.finish_write(&write)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|state| state.set_len(&self.name, self.inode, len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(|state| state.allocate(&self.name, self.inode, len))
    }

    fn sync(&self) -> io::Result<()> {
        // A file that is open for reading can be synced too.
        self.shared.lock().operation(self.process, |state| state.sync(&self.name, self.inode))
    }

    fn will_read(&self) {}

    fn raw_fd(&self) -> Option<RawFd> {
        None
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !state.is_dead(self.process) {
            state.note_closed(self.inode);
        }
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("name", &self.name).finish_non_exhaustive()
    }
}
