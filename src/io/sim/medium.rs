//! Everything that outlives a process: files, names, and the writes that a power cut would catch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::crash::{CrashImage, Dice};
use super::inode::Inode;
use super::names::{Entry, InodeId, Names};
use super::under_way::UnderWay;

/// The disk without its users. A clone shares all content until one side writes.
#[derive(Clone, Default)]
pub(super) struct Medium {
    pub(super) names: Names,
    inodes: BTreeMap<InodeId, Arc<Inode>>,
    /// By number, in the order of their submission.
    pub(super) under_way: BTreeMap<u64, UnderWay>,
    last_number: u64,
}

impl Medium {
    /// A number never used before, for a file or a write.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Makes an empty file under `name`, in the cache.
    pub(super) fn create(&mut self, name: Arc<str>) -> InodeId {
        let id = self.next_number();
        self.inodes.insert(id, Arc::default());
        self.names.link(name, Entry::File(id));
        id
    }

    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes.get(&id).expect("a named or open file is kept")
    }

    pub(super) fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        Arc::make_mut(self.inodes.get_mut(&id).expect("a named or open file is kept"))
    }

    /// Bytes of blocks that the files `counted` take.
    pub(super) fn space_bytes(&self, counted: impl Fn(InodeId) -> bool) -> usize {
        self.inodes.iter().filter(|(id, _)| counted(**id)).map(|(_, inode)| inode.space_bytes()).sum()
    }

    /// Forgets files that nothing can name any more, unless they are `open`.
    pub(super) fn collect(&mut self, open: impl Fn(InodeId) -> bool) {
        let named = self.names.inodes();
        self.inodes.retain(|id, _| named.contains(id) || open(*id));
    }

    /// What a power cut leaves.
    pub(super) fn crashed(&self, image: CrashImage, torn_garbage: bool) -> Medium {
        let mut dice = Dice::new(image);
        let mut names = self.names.clone();
        names.crash(&mut dice);

        let mut inodes = BTreeMap::new();
        let mut undone = BTreeMap::new();
        for id in names.inodes() {
            let mut inode = self.inodes.get(&id).expect("a file that may get a name is kept").clone();
            if !inode.is_settled() {
                undone.insert(id, Arc::make_mut(&mut inode).crash(&mut dice));
            }
            inodes.insert(id, inode);
        }
        for write in self.under_way.values() {
            if let Some(inode) = inodes.get_mut(&write.inode) {
                let undone = undone.get(&write.inode).copied().flatten();
                write.land(Arc::make_mut(inode), undone, &mut dice, torn_garbage);
            }
        }
        Medium { names, inodes, under_way: BTreeMap::new(), last_number: self.last_number }
    }
}
