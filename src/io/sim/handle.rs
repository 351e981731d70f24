//! One simulated process's view of the directory.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::content::PAGE;
use super::file::SimFile;
use super::queue::SimQueue;
use super::state::Shared;
use crate::io::{Backend, BackendInfo, DirEntry, Disk, File, Lock, OpenMode, Queue};

/// The disk as one process holds it; a power cut makes every call fail.
pub(super) struct Handle {
    shared: Shared,
    process: u64,
    info: BackendInfo,
}

impl Handle {
    pub(super) fn new(shared: Shared) -> Handle {
        let (process, align) = {
            let mut state = shared.lock();
            (state.start_process(), state.settings.direct_align)
        };
        let info = BackendInfo {
            backend: Backend::Simulated,
            refused: None,
            direct: align.is_some(),
            direct_align_bytes: align.unwrap_or(1) as u64,
            physical_block_bytes: PAGE as u64,
        };
        Handle { shared, process, info }
    }
}

impl Disk for Handle {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn list(&self) -> io::Result<Vec<DirEntry>> {
        self.shared.lock().list(self.process)
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inode = self.shared.lock().open(self.process, name, mode)?;
        let (direct, writable) = match mode {
            OpenMode::Read => (false, false),
            OpenMode::Write { direct } | OpenMode::CreateNew { direct } => (direct, true),
        };
        let align = if direct { self.info.direct_align_bytes } else { 1 };
        Ok(Arc::new(SimFile {
            shared: self.shared.clone(),
            process: self.process,
            inode,
            name: name.into(),
            align,
            writable,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.shared.lock().rename(self.process, from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.shared.lock().remove(self.process, name)
    }

    fn hard_link(&self, name: &str, to: &dyn Disk, to_name: &str) -> io::Result<()> {
        let to: &dyn Any = to;
        // Each simulated disk has one directory, and is a file system of its own.
        match to.downcast_ref::<Handle>() {
            Some(to) if Arc::ptr_eq(&to.shared, &self.shared) => {
                self.shared.lock().hard_link(self.process, name, to_name)
            }
            _ => Err(io::ErrorKind::CrossesDevices.into()),
        }
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.shared.lock().sync_dir(self.process)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        self.shared.lock().lock(self.process, name)?;
        Ok(Box::new(SimLock { shared: self.shared.clone(), process: self.process, name: name.into() }))
    }

    fn queue(&self) -> io::Result<Box<dyn Queue>> {
        let random = {
            let mut state = self.shared.lock();
            state.alive(self.process)?;
            state.queue_random()
        };
        Ok(Box::new(SimQueue::new(self.shared.clone(), self.process, random)))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("process", &self.process).finish_non_exhaustive()
    }
}

/// A held lock. A power cut has let go of it already.
struct SimLock {
    shared: Shared,
    process: u64,
    name: Arc<str>,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.shared.lock().unlock(self.process, &self.name);
    }
}

impl fmt::Debug for SimLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimLock").field("name", &self.name).finish_non_exhaustive()
    }
}
