use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use super::file::{COPIED_AT_ONCE, SnapshotFile};
use super::store::StoreShared;
use super::writer::Temp;
use crate::base::{Error, Result, Zxid};
use crate::format::snapshot::{SNAPSHOT_HEADER_BYTES, SnapshotHeader, snapshot_temp_name};
use crate::io::OpenMode;

/// A snapshot of whatever database whose bytes came from elsewhere, under a temporary name: header, trailer and index
/// hold. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) file: SnapshotFile,
    _temp: Temp,
}

impl Received {
    pub(super) fn new(store: Arc<StoreShared>, source: &mut dyn Read) -> Result<Received> {
        store.begin_writing()?;
        // No walk begins there, so nobody else has the name.
        let name = snapshot_temp_name(Zxid::MAX);
        let temp = Temp { store, name: Some(name.clone()) };
        let store = &temp.store;
        let wrap = |e| Error::io("receive a snapshot", e).in_file(&name);
        match store.disk.remove(&name) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(wrap(e)),
            _ => {}
        }
        let file = store.disk.open(&name, OpenMode::CreateNew { direct: false }).map_err(wrap)?;
        let (mut bytes, mut offset) = (vec![0; COPIED_AT_ONCE], 0);
        let mut count = fill(source, &mut bytes).map_err(wrap)?;
        // Whatever sends no snapshot may send for ever.
        SnapshotHeader::decode(&bytes[..count.min(SNAPSHOT_HEADER_BYTES)])?;
        while count > 0 {
            file.write_all_at(offset, &bytes[..count]).map_err(wrap)?;
            offset += count as u64;
            count = fill(source, &mut bytes).map_err(wrap)?;
        }
        drop(file);
        let file = store.disk.open(&name, OpenMode::Read).map_err(wrap)?;
        let mut file = SnapshotFile::open_any(file)?;
        file.reads_ahead = store.has_threads();
        Ok(Received { file, _temp: temp })
    }
}

/// Reads until `bytes` are full or nothing more comes.
fn fill(source: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match source.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(count)
}
