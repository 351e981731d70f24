//! The undo record against the obvious model: two plain copies of the file.

use super::*;
use crate::base::Random;
use crate::io::sim::crash::index;

#[derive(Default)]
struct TwoCopies {
    cached: Vec<u8>,
    durable: Vec<u8>,
    cut: Option<usize>,
}

impl TwoCopies {
    fn write(&mut self, offset: usize, bytes: &[u8], durable: bool) {
        let end = offset + bytes.len();
        overlay(&mut self.cached, offset, bytes);
        if durable {
            if let Some(cut) = self.cut.filter(|cut| end > *cut) {
                self.durable.truncate(cut);
                self.cut = None;
            }
            overlay(&mut self.durable, offset, bytes);
        }
    }

    fn set_len(&mut self, len: usize) {
        self.cached.resize(len, 0);
        if len < self.durable.len() {
            self.cut = Some(self.cut.map_or(len, |cut| cut.min(len)));
        }
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.cached);
        self.cut = None;
    }
}

fn overlay(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    file.resize(file.len().max(end), 0);
    file[offset..end].copy_from_slice(bytes);
}

/// Few places, at and beside sectors' boundaries, so that calls meet one another's edges.
fn place(random: &mut Random) -> usize {
    index(random, 18) * 256 + index(random, 3)
}

/// Goal: whatever the order of writes, durable writes, cuts and syncs, cache and medium are what two copies
/// would be, and a drawn image has no byte that neither side ever had. Method: random calls on a file of a
/// few sectors, compared after each.
#[test]
fn cache_and_medium_are_what_two_copies_would_be() {
    for seed in 0..300 {
        let mut random = Random::from_seed(seed);
        let (disk, handle) = disk();
        disk.write_file("f", b"");
        let file = handle.open("f", WRITE).unwrap();
        let mut model = TwoCopies::default();
        for step in 1..60 {
            let offset = place(&mut random);
            let len = place(&mut random).saturating_sub(offset).clamp(1, 1500);
            let bytes = vec![step; len];
            match random.below(8) {
                0 => {
                    file.sync().unwrap();
                    model.sync();
                }
                1 | 2 => {
                    file.set_len(offset as u64).unwrap();
                    model.set_len(offset);
                }
                kind => {
                    let durable = kind >= 5;
                    let durability = if durable { Durability::Dsync } else { Durability::None };
                    put(&handle, &file, offset as u64, &bytes, durability);
                    model.write(offset, &bytes, durable);
                }
            }
            let told = format!("seed {seed}, step {step}");
            assert!(disk.read_file("f").unwrap() == model.cached, "cache, {told}");
            assert!(after(&disk, CrashImage::KeepAll).unwrap() == model.cached, "all kept, {told}");
            assert!(after(&disk, CrashImage::DropUnsynced).unwrap() == model.durable, "medium, {told}");

            let drawn = after(&disk, CrashImage::Random(random.next_u64())).unwrap();
            assert!(drawn.len() <= model.cached.len().max(model.durable.len()), "length, {told}");
            for (at, byte) in drawn.iter().enumerate() {
                let known = [model.cached.get(at), model.durable.get(at), Some(&0)];
                assert!(known.contains(&Some(byte)), "byte {at} of a drawn image, {told}");
            }
        }
    }
}
