//! A test's hands on the disk, past every process: to look, to damage, to arrange.
//!
//! What they do is durable at once, counts as no operation, and meets no fault. Those that change names make
//! all visible names durable; they are meant for a disk at rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::disk::SimDisk;
use super::inode::Inode;
use super::names::{Entry, InodeId};
use super::state::State;

impl SimDisk {
    /// A file's bytes as reads show them; `None` if there is no such file.
    pub fn read_file(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.shared().lock();
        state.file(name).ok().map(|inode| bytes(state.medium.inode(inode)))
    }

    /// Makes a file of these bytes, in place of what the name stood for.
    pub fn write_file(&self, name: &str, bytes: &[u8]) {
        let mut state = self.shared().lock();
        let inode = state.medium.create(name.into());
        state.medium.inode_mut(inode).write_durable(0, bytes);
        settle(&mut state);
    }

    /// Makes an entry that is no regular file.
    pub fn put_other(&self, name: &str) {
        let mut state = self.shared().lock();
        state.medium.names.link(name.into(), Entry::Other);
        settle(&mut state);
    }

    /// Removes an entry, if there is one.
    pub fn remove_file(&self, name: &str) {
        let mut state = self.shared().lock();
        state.medium.names.unlink(name);
        settle(&mut state);
    }

    /// Renames a file, over another if there is one.
    ///
    /// # Panics
    /// If there is no file `from`.
    pub fn rename_file(&self, from: &str, to: &str) {
        let mut state = self.shared().lock();
        existing(&state, from);
        if from != to {
            state.medium.names.rename(from, to);
        }
        settle(&mut state);
    }

    /// Makes `to` a file of the bytes of `from`.
    ///
    /// # Panics
    /// If there is no file `from`.
    pub fn copy_file(&self, from: &str, to: &str) {
        let bytes = self.read_file(from).unwrap_or_else(|| panic!("no file {from} to copy"));
        self.write_file(to, &bytes);
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<String> {
        self.shared().lock().medium.names.iter().map(|(name, _)| name.to_string()).collect()
    }

    /// All files with their bytes as reads show them: to assert that not one has changed.
    pub fn snapshot_bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.shared().lock();
        let file = |(name, entry): (&Arc<str>, Entry)| match entry {
            Entry::File(inode) => Some((name.to_string(), bytes(state.medium.inode(inode)))),
            Entry::Other => None,
        };
        state.medium.names.iter().filter_map(file).collect()
    }

    /// Flips the bits of `mask` in the byte at `offset`.
    ///
    /// # Panics
    /// If there is no such file or byte.
    pub fn flip(&self, name: &str, offset: u64, mask: u8) {
        self.damage(name, offset, 1, |byte| byte ^ mask);
    }

    /// Zeroes bytes.
    ///
    /// # Panics
    /// If there is no such file or some of the bytes are behind its end.
    pub fn zero(&self, name: &str, offset: u64, len: u64) {
        self.damage(name, offset, len, |_| 0);
    }

    /// Cuts a file, or lengthens it by zeros, to `len` bytes. Syncs it.
    ///
    /// # Panics
    /// If there is no such file, or `len` is beyond memory.
    pub fn chop(&self, name: &str, len: u64) {
        let mut state = self.shared().lock();
        let inode = existing(&state, name);
        let inode = state.medium.inode_mut(inode);
        inode.set_len(usize::try_from(len).expect("a length within memory"));
        inode.sync();
    }

    fn damage(&self, name: &str, offset: u64, len: u64, change: impl Fn(u8) -> u8) {
        let mut state = self.shared().lock();
        let inode = existing(&state, name);
        let inode = state.medium.inode_mut(inode);
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let (offset, len) = range
            .filter(|(offset, len)| offset.checked_add(*len).is_some_and(|end| end <= inode.len()))
            .unwrap_or_else(|| panic!("{name} has no {len} bytes at {offset} to damage"));
        let mut bytes = vec![0; len];
        inode.read(offset, &mut bytes);
        for byte in &mut bytes {
            *byte = change(*byte);
        }
        inode.write_durable(offset, &bytes);
    }
}

fn existing(state: &State, name: &str) -> InodeId {
    state.file(name).unwrap_or_else(|error| panic!("no file {name}: {error}"))
}

fn bytes(inode: &Inode) -> Vec<u8> {
    let mut bytes = vec![0; inode.len()];
    inode.read(0, &mut bytes);
    bytes
}

fn settle(state: &mut State) {
    state.medium.names.settle_as_visible();
    state.collect();
}
