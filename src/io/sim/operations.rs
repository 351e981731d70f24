//! The calls of the contract, on the state.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::content::PAGE;
use super::crash::index;
use super::fault::{Effect, FaultOp};
use super::names::{Entry, InodeId};
use super::state::State;
use super::under_way::{UnderWay, effect_flip};
use crate::io::{DirEntry, Durability, EntryKind, OpenMode};

/// Beyond this no file grows: a length that large in a test is a mistake, and the content is in memory.
const FILE_BYTES_MAX: usize = 1 << 32;

/// How a sync ended.
enum Synced {
    Done,
    /// Reported as done.
    Lied,
    Failed(i32),
    DroppedPages,
}

impl State {
    pub(super) fn list(&mut self, process: u64) -> io::Result<Vec<DirEntry>> {
        self.alive(process)?;
        self.counters.lists += 1;
        self.strike(FaultOp::List, &[""])?;
        let entry = |(name, entry): (&Arc<str>, Entry)| {
            let (kind, len) = match entry {
                Entry::File(inode) => (EntryKind::File, self.medium.inode(inode).len() as u64),
                Entry::Other => (EntryKind::Other, 0),
            };
            DirEntry { name: name.to_string(), kind, len }
        };
        Ok(self.medium.names.iter().map(entry).collect())
    }

    pub(super) fn open(&mut self, process: u64, name: &str, mode: OpenMode) -> io::Result<InodeId> {
        check_name(name)?;
        let inode = match mode {
            OpenMode::CreateNew { .. } => self.operation(process, |state| {
                state.counters.creates += 1;
                state.strike(FaultOp::Create, &[name])?;
                match state.medium.names.entry(name) {
                    Some(_) => Err(Errno::EXIST.into()),
                    None => Ok(state.medium.create(name.into())),
                }
            })?,
            OpenMode::Read | OpenMode::Write { .. } => {
                self.alive(process)?;
                self.counters.opens += 1;
                self.strike(FaultOp::Open, &[name])?;
                self.file(name)?
            }
        };
        self.note_open(inode);
        Ok(inode)
    }

    pub(super) fn rename(&mut self, process: u64, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.operation(process, |state| {
            state.counters.renames += 1;
            let effect = state.strike(FaultOp::Rename, &[from, to])?;
            if state.medium.names.entry(from).is_none() {
                return Err(Errno::NOENT.into());
            }
            if state.medium.names.entry(to) == Some(Entry::Other) {
                return Err(not_a_file(to));
            }
            if effect.is_none() && from != to {
                state.medium.names.rename(from, to);
            }
            Ok(())
        })
    }

    pub(super) fn remove(&mut self, process: u64, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.operation(process, |state| {
            state.counters.removes += 1;
            let effect = state.strike(FaultOp::Remove, &[name])?;
            state.file(name)?;
            if effect.is_none() {
                state.medium.names.unlink(name);
            }
            Ok(())
        })
    }

    pub(super) fn hard_link(&mut self, process: u64, name: &str, to: &str) -> io::Result<()> {
        check_name(name)?;
        check_name(to)?;
        self.operation(process, |state| {
            state.counters.links += 1;
            let effect = state.strike(FaultOp::Link, &[name, to])?;
            let inode = state.file(name)?;
            if state.medium.names.entry(to).is_some() {
                return Err(Errno::EXIST.into());
            }
            if effect.is_none() {
                state.medium.names.link(to.into(), Entry::File(inode));
            }
            Ok(())
        })
    }

    pub(super) fn sync_dir(&mut self, process: u64) -> io::Result<()> {
        self.operation(process, |state| {
            state.counters.sync_dirs += 1;
            match state.strike(FaultOp::SyncDir, &[""])? {
                None => {
                    state.medium.names.sync();
                    state.collect();
                    state.pass_time();
                    Ok(())
                }
                Some(Effect::SyncFailsAndDropsPages) => {
                    state.medium.names.lose_unsynced();
                    Err(Errno::IO.into())
                }
                Some(_) => Ok(()),
            }
        })
    }

    /// Takes the lock, and makes its file if there is none, as a lock on a real file would.
    pub(super) fn lock(&mut self, process: u64, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.alive(process)?;
        self.strike(FaultOp::Lock, &[name])?;
        match self.medium.names.entry(name) {
            Some(Entry::Other) => return Err(not_a_file(name)),
            Some(Entry::File(_)) => {}
            None => self.operation(process, |state| {
                state.medium.create(name.into());
                Ok(())
            })?,
        }
        if let Some(owner) = self.locks.get(name) {
            let text = format!("{name} is held by the simulated process {owner}");
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        self.locks.insert(name.into(), process);
        Ok(())
    }

    pub(super) fn unlock(&mut self, process: u64, name: &str) {
        if self.locks.get(name) == Some(&process) {
            self.locks.remove(name);
        }
    }

    pub(super) fn read(
        &mut self,
        name: &str,
        inode: InodeId,
        offset: u64,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        self.counters.reads += 1;
        let effect = self.strike(FaultOp::Read, &[name])?;
        let Ok(offset) = usize::try_from(offset) else { return Ok(0) };
        let inode = self.medium.inode(inode);
        let count = match effect {
            Some(Effect::StaleRead) => inode.read_stale(offset, buf),
            Some(Effect::Interrupted) => {
                let mut done = 0;
                loop {
                    let step = (1 + index(&mut self.random, 7)).min(buf.len() - done);
                    match inode.read(offset + done, &mut buf[done..done + step]) {
                        0 => break done,
                        count => done += count,
                    }
                }
            }
            _ => inode.read(offset, buf),
        };
        if let Some(Effect::FlipBit { offset }) = effect {
            effect_flip(&mut buf[..count], offset);
        }
        self.counters.bytes_read += count as u64;
        Ok(count)
    }

    /// A write as it will go, with the fault that hits it.
    pub(super) fn plan_write(
        &mut self,
        name: &Arc<str>,
        inode: InodeId,
        offset: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<UnderWay> {
        let offset = within_bounds(offset, bytes.len())?;
        let (name, bytes) = (name.clone(), bytes.into());
        let mut write = UnderWay {
            inode,
            name,
            offset,
            bytes,
            durability,
            errno: None,
            interrupted: false,
            stalled: false,
        };
        if let Some(effect) = self.faults.strike(FaultOp::Write, &[&write.name]) {
            write.bend(effect);
        }
        Ok(write)
    }

    /// Ends a write.
    pub(super) fn finish_write(&mut self, write: &UnderWay) -> io::Result<()> {
        let UnderWay { inode, offset, .. } = *write;
        let room = match self.settings.space_bytes {
            Some(_) => self.medium.inode(inode).fitting(offset, write.bytes.len(), self.free_bytes()),
            None => write.bytes.len(),
        };
        let bytes = &write.bytes[..room];
        let full = (room < write.bytes.len()).then_some(Errno::NOSPC.raw_os_error());
        let failed = full.or(write.errno);
        // What landed of a failed write is not synced, even if the whole would have been.
        let synced = match (failed, write.durability) {
            (Some(errno), _) => Synced::Failed(errno),
            (None, Durability::None) => Synced::Lied,
            (None, Durability::Dsync) => Synced::Done,
            (None, Durability::ThenSync) => self.strike_sync(&write.name),
        };
        self.counters.writes += 1;
        self.counters.bytes_written += bytes.len() as u64;
        self.put(inode, offset, bytes, write.interrupted, matches!(synced, Synced::Done));
        match synced {
            Synced::Done => {
                self.counters.durable_writes += 1;
                self.pass_time();
                Ok(())
            }
            Synced::Lied => Ok(()),
            Synced::Failed(errno) => Err(io::Error::from_raw_os_error(errno)),
            Synced::DroppedPages => {
                self.medium.inode_mut(inode).lose_unsynced();
                Err(Errno::IO.into())
            }
        }
    }

    pub(super) fn sync(&mut self, name: &str, inode: InodeId) -> io::Result<()> {
        match self.strike_sync(name) {
            Synced::Done => {
                self.medium.inode_mut(inode).sync();
                self.pass_time();
                Ok(())
            }
            Synced::Lied => Ok(()),
            Synced::Failed(errno) => Err(io::Error::from_raw_os_error(errno)),
            Synced::DroppedPages => {
                self.medium.inode_mut(inode).lose_unsynced();
                Err(Errno::IO.into())
            }
        }
    }

    pub(super) fn set_len(&mut self, name: &str, inode: InodeId, len: u64) -> io::Result<()> {
        self.counters.set_lens += 1;
        let effect = self.strike(FaultOp::SetLen, &[name])?;
        let len = within_bounds(len, 0)?;
        if effect.is_none() {
            self.medium.inode_mut(inode).set_len(len);
        }
        Ok(())
    }

    /// Reserves all or nothing, as file systems that know their free space do.
    pub(super) fn allocate(&mut self, name: &str, inode: InodeId, len: u64) -> io::Result<()> {
        self.counters.allocates += 1;
        let effect = self.strike(FaultOp::Allocate, &[name])?;
        let len = within_bounds(len, 0)?;
        let free = self.free_bytes();
        let inode = self.medium.inode_mut(inode);
        if inode.reserve_bytes(len) > free {
            return Err(Errno::NOSPC.into());
        }
        if effect.is_none() {
            inode.reserve(len);
        }
        Ok(())
    }

    /// The regular file under `name`.
    pub(super) fn file(&self, name: &str) -> io::Result<InodeId> {
        match self.medium.names.entry(name) {
            Some(Entry::File(inode)) => Ok(inode),
            Some(Entry::Other) => Err(not_a_file(name)),
            None => Err(Errno::NOENT.into()),
        }
    }

    fn strike_sync(&mut self, name: &str) -> Synced {
        self.counters.syncs += 1;
        match self.faults.strike(FaultOp::Sync, &[name]) {
            None => Synced::Done,
            Some(Effect::Error(errno)) => Synced::Failed(errno),
            Some(Effect::SyncFailsAndDropsPages) => Synced::DroppedPages,
            Some(_) => Synced::Lied,
        }
    }

    /// Puts bytes into a file, in shreds if the write was interrupted.
    fn put(&mut self, inode: InodeId, offset: usize, bytes: &[u8], interrupted: bool, durable: bool) {
        let inode = self.medium.inode_mut(inode);
        inode.remember(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let shred = if interrupted { 1 + index(&mut self.random, 7) } else { usize::MAX };
            let stop = done + shred.min(bytes.len() - done);
            if durable {
                inode.write_durable(offset + done, &bytes[done..stop]);
            } else {
                inode.write(offset + done, &bytes[done..stop]);
            }
            done = stop;
        }
    }
}

fn within_bounds(offset: u64, len: usize) -> io::Result<usize> {
    const { assert!(FILE_BYTES_MAX.is_multiple_of(PAGE), "pages never reach beyond the bound") };
    usize::try_from(offset)
        .ok()
        .filter(|offset| offset.checked_add(len).is_some_and(|end| end <= FILE_BYTES_MAX))
        .ok_or_else(|| Errno::FBIG.into())
}

fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        let text = format!("{name:?} is no name in a directory");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

fn not_a_file(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no regular file"))
}
