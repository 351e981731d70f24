//! Each behaviour of the model, by a test that fails if the model lacks it.

mod against_two_copies;
mod crashes;
mod faults;
mod names;
mod queues;
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{CrashImage, SimDisk};
use crate::io::{Buffer, Disk, Durability, File, OpenMode, Queue, WriteOp};

const NEW: OpenMode = OpenMode::CreateNew { direct: false };
const WRITE: OpenMode = OpenMode::Write { direct: false };

/// A disk and its first process.
fn disk() -> (SimDisk, Arc<dyn Disk>) {
    let disk = SimDisk::new(1);
    let handle = disk.handle();
    (disk, handle)
}

/// A disk with one file of durable bytes, open for writes.
fn disk_with(bytes: &[u8]) -> (SimDisk, Arc<dyn File>) {
    let (disk, handle) = disk();
    disk.write_file("f", bytes);
    (disk.clone(), handle.open("f", WRITE).unwrap())
}

fn write_op(tag: u64, file: &Arc<dyn File>, offset: u64, bytes: &[u8], durability: Durability) -> WriteOp {
    let mut buffer = Buffer::with_capacity(bytes.len());
    buffer.extend(bytes);
    WriteOp { tag, file: file.clone(), offset, buffer, durability }
}

/// Writes through a queue and waits.
fn put(handle: &Arc<dyn Disk>, file: &Arc<dyn File>, offset: u64, bytes: &[u8], durability: Durability) {
    let mut queue: Box<dyn Queue> = handle.queue().unwrap();
    queue.submit(write_op(0, file, offset, bytes, durability));
    queue.wait().result.unwrap();
}

/// What is in "f" after a power cut now.
fn after(disk: &SimDisk, image: CrashImage) -> Option<Vec<u8>> {
    disk.fork(image).read_file("f")
}

/// What `see` finds in the images of many power cuts now.
fn outcomes<T: Ord>(disk: &SimDisk, see: impl Fn(&SimDisk) -> T) -> BTreeSet<T> {
    let moment = disk.moment();
    (0..2000).map(|seed| see(&moment.image(CrashImage::Random(seed)))).collect()
}
