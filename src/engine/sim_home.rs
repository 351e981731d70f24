//! The directories of an engine on simulated disks.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::home::{Home, Room};
use crate::base::Result;
use crate::io::Disk;
use crate::sim::{CrashImage, SimDisk};

/// Three disks or more: one at the top, and two of each generation.
#[derive(Debug)]
pub(super) struct SimHome {
    seed: u64,
    root: SimDisk,
    rooms: Mutex<HashMap<(Room, u64), SimDisk>>,
    /// After how many operations the power is cut of the next disk that is made, and what is left then.
    next_cut: Mutex<Option<(Room, u64, CrashImage)>>,
}

/// Where the power is cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// Of the disks in their order: the one at the top, then of each generation the snapshots' and the log's.
    Disk(usize),
    Next(Room),
}

/// What a power cut at so many operations leaves, so that a test which tries them all sees each sort of it.
#[cfg(test)]
pub(super) fn image_of(operations: u64) -> CrashImage {
    match operations % 3 {
        0 => CrashImage::DropUnsynced,
        1 => CrashImage::KeepAll,
        _ => CrashImage::Random(operations),
    }
}

impl SimHome {
    pub(super) fn new(seed: u64) -> SimHome {
        let (rooms, next_cut) = (Mutex::default(), Mutex::default());
        SimHome { seed, root: SimDisk::new(seed), rooms, next_cut }
    }

    pub(super) fn disks(&self) -> Vec<SimDisk> {
        let mut rooms: Vec<_> = self.rooms.lock().iter().map(|(room, disk)| (*room, disk.clone())).collect();
        rooms.sort_by_key(|((room, generation), _)| (*generation, *room == Room::Log));
        std::iter::once(self.root.clone()).chain(rooms.into_iter().map(|(_, disk)| disk)).collect()
    }

    /// Cuts the power after so many more operations: of a disk that is there, or of the next one that is made for a
    /// room.
    pub(super) fn cut_at(&self, where_to: Cut, operations: u64, image: CrashImage) {
        match where_to {
            Cut::Disk(at) => {
                let disk = &self.disks()[at];
                disk.crash_at(disk.operations() + operations, image);
            }
            Cut::Next(room) => *self.next_cut.lock() = Some((room, operations, image)),
        }
    }

    /// No disk that is made loses its power.
    pub(super) fn cut_no_next(&self) {
        *self.next_cut.lock() = None;
    }
}

#[cfg(test)]
impl SimHome {
    /// The same disks as they are now, for another life.
    pub(super) fn fork(&self) -> SimHome {
        let rooms = self.rooms.lock();
        let rooms = rooms.iter().map(|(room, disk)| (*room, disk.fork(CrashImage::KeepAll))).collect();
        let root = self.root.fork(CrashImage::KeepAll);
        SimHome { seed: self.seed, root, rooms: Mutex::new(rooms), next_cut: Mutex::default() }
    }

    /// Cuts the power of them all now.
    pub(super) fn cut_all(&self, image: CrashImage) {
        for disk in self.disks() {
            disk.crash(image);
        }
        self.cut_no_next();
    }

    /// The disk of a generation's log or snapshots, which was made before.
    pub(super) fn disk(&self, room: Room, generation: u64) -> SimDisk {
        self.rooms.lock()[&(room, generation)].clone()
    }
}

impl Home for SimHome {
    fn root(&self) -> Arc<dyn Disk> {
        self.root.handle()
    }

    fn room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>> {
        let seed = self.seed ^ generation << 8 ^ u64::from(room == Room::Log) << 4;
        let mut rooms = self.rooms.lock();
        let make = || {
            let disk = SimDisk::new(seed);
            let mut cut = self.next_cut.lock();
            if let Some((_, operation, image)) = cut.take_if(|(where_to, ..)| *where_to == room) {
                disk.crash_at(operation, image);
            }
            disk
        };
        Ok(rooms.entry((room, generation)).or_insert_with(make).handle())
    }

    fn existing_room(&self, room: Room, generation: u64) -> Result<Arc<dyn Disk>> {
        let rooms = self.rooms.lock();
        let disk = rooms.get(&(room, generation)).ok_or_else(|| super::home::missing(room, generation))?;
        Ok(disk.handle())
    }

    fn room_if_there(&self, room: Room, generation: u64) -> Result<Option<Arc<dyn Disk>>> {
        Ok(self.rooms.lock().get(&(room, generation)).map(SimDisk::handle))
    }

    fn generations(&self) -> Result<Vec<u64>> {
        let mut found: Vec<u64> = self.rooms.lock().keys().map(|(_, generation)| *generation).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn remove(&self, generation: u64) -> Result<()> {
        self.rooms.lock().retain(|(_, other), _| *other != generation);
        Ok(())
    }
}
