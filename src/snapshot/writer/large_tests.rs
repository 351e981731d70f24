//! A snapshot beyond 4 GiB: an offset that is cut to 32 bits shows here and nowhere else.

use super::*;
use crate::base::Random;
use crate::format::{AclList, DatabaseId, Numbering};
use crate::io::{BackendChoice, open_dir};
use crate::snapshot::SnapshotStore;
use crate::tree::StoredStat;
use std::os::unix::fs::FileExt;

const NODES: u64 = 4200;
const FOUR_GIB: u64 = 1 << 32;

/// Counts what it is given.
struct Counted(u64);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// 4,200 nodes of 1 MiB. No tree holds them: the writer is given one after the other.
#[test]
#[ignore = "writes 4.1 GiB"]
fn lg_04_a_snapshot_beyond_4_gib_is_written_read_sent_and_its_damage_named() {
    let dir = tempfile::tempdir().unwrap();
    let id = DatabaseId::from_bytes([7; 16]);
    let disk = open_dir(dir.path(), BackendChoice::Threads).unwrap();
    let (store, _) = SnapshotStore::open(disk, id, Numbering::Index, Random::from_seed(1)).unwrap();
    let end = Zxid::new(9);
    let mut writer = store.begin(end, 1).unwrap();
    writer.enter(SnapshotBlockKind::Nodes).unwrap();
    let mut data = vec![0; 1 << 20];
    for n in 0..NODES {
        data[..8].copy_from_slice(&n.to_le_bytes());
        let (path, stat) = (format!("/{n}"), StoredStat::default());
        writer.add_node(&WalkedNode { path: &path, data: Some(&data), acl: AclList::EMPTY, stat });
        writer.close_if_full().unwrap();
    }
    assert!(writer.progress().0 > FOUR_GIB);
    let mut sealed = writer.seal(end, 5).unwrap();
    sealed.verify().unwrap();
    let info = sealed.publish().unwrap();
    assert!(info.file_bytes > FOUR_GIB && info.nodes == NODES);
    let file = store.open_file(end).unwrap();
    // Any one of them, by its place.
    let behind = file.blocks.iter().position(|place| place.offset > FOUR_GIB).unwrap();
    for number in [0, behind - 1, behind, file.blocks.len() - 1] {
        let (block, body) = file.block(number).unwrap();
        assert_eq!((block.index, block.offset), (number as u64, file.blocks[number].offset));
        let mut nodes = crate::format::snapshot::NodeDecoder::new(&body);
        let node = nodes.next().unwrap();
        assert_eq!(node.data.unwrap()[..8], node.name.parse::<u64>().unwrap().to_le_bytes());
    }
    let mut sent = Counted(0);
    file.copy_to(&mut sent).unwrap();
    assert_eq!(sent.0, info.file_bytes);
    let place = file.blocks[behind];
    drop(file);
    // One bit behind 4 GiB: the same place less 4 GiB is left alone.
    let raw = std::fs::OpenOptions::new().read(true).write(true).open(dir.path().join(&info.file)).unwrap();
    let mut byte = [0];
    raw.read_exact_at(&mut byte, place.offset + 500).unwrap();
    raw.write_all_at(&[byte[0] ^ 1], place.offset + 500).unwrap();
    let (outcome, damaged) = store.examine(end);
    assert_eq!(outcome.unwrap_err().at().offset, Some(place.offset));
    let [range] = &damaged[..] else { panic!("{damaged:?}") };
    assert_eq!((range.offset, range.end_offset), (place.offset, place.end()));
}
