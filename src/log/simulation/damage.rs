//! Damage at rest: the log is refused, and not one byte of it changes; or it is whole.

use super::evidence::{Hit, hit_groups};
use super::oracle::check_untouched;
use super::process::Process;
use super::world::{World, crate_index};
use crate::base::ErrorKind;
use crate::sim::SimDisk;

/// Opens a damaged log and judges what came of it.
pub(super) fn check_damaged(world: &mut World, disk: &SimDisk, hits: &[Hit]) {
    world.tally.damages += 1;
    let before = disk.snapshot_bytes();
    let required = world.model.required_after(hits);
    match Process::open(disk, &world.setup) {
        Ok(process) => world.model.check(&process.read_back(), required),
        Err(error) => {
            let told =
                matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::WrongOwner | ErrorKind::Unsupported);
            assert!(told, "damage was taken for something else: {error}");
            assert!(error.at().file.is_some(), "the refusal names no file: {error}");
            check_untouched(&before, &disk.snapshot_bytes());
            world.tally.refusals += 1;
        }
    }
}

impl World {
    pub(super) fn run_damaged(&mut self) {
        self.open();
        for _ in 0..30 + self.random.below(80) {
            self.step();
        }
        if self.one_in(2) {
            self.flush();
            self.mark();
            self.finish_all();
        }
        let older = self.disk.fork(crate::sim::CrashImage::KeepAll);
        if self.one_in(3) {
            self.close();
        } else {
            for _ in 0..self.random.below(12) {
                self.append();
                self.flush();
            }
        }
        for _ in 0..8 {
            let image = self.random_image();
            let fork = self.disk.fork(image);
            let before = fork.snapshot_bytes();
            if self.damage(&fork, &older) {
                let hits = hit_groups(&before, &fork.snapshot_bytes());
                check_damaged(self, &fork, &hits);
            }
        }
    }

    /// Damages something. False if that changed nothing.
    fn damage(&mut self, disk: &SimDisk, older: &SimDisk) -> bool {
        let before = disk.snapshot_bytes();
        let segments: Vec<&String> = before.keys().filter(|n| n.ends_with(".seg")).collect();
        let name = segments[crate_index(&mut self.random, segments.len())].clone();
        let other = segments[crate_index(&mut self.random, segments.len())].clone();
        let used = before[&name].iter().rposition(|b| *b != 0).unwrap_or(0) as u64;
        let offset = self.random.below(used + 1);
        match self.random.below(12) {
            0..4 => disk.flip(&name, offset, 1 << self.random.below(8)),
            4..6 => {
                let sector = offset / 512 * 512;
                disk.zero(&name, sector, 512.min(before[&name].len() as u64 - sector));
            }
            6 => disk.chop(&name, offset),
            7 => disk.remove_file(&name),
            8 => disk.copy_file(&name, &other),
            9 => {
                disk.write_file(&name, &before[&other]);
                disk.write_file(&other, &before[&name]);
            }
            10 => {
                if let Some(bytes) = older.read_file(&name) {
                    disk.write_file(&name, &bytes);
                }
            }
            _ => {
                let len = before["log.manifest"].len() as u64;
                match self.random.below(3) {
                    0 => disk.flip("log.manifest", self.random.below(len), 1 << self.random.below(8)),
                    1 => disk.chop("log.manifest", self.random.below(len)),
                    _ => disk.remove_file("log.manifest"),
                }
            }
        }
        disk.snapshot_bytes() != before
    }
}
