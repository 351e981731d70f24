use arborlog::zookeeper::{Compression, LogFile, SnapshotFile};
use arborlog::{AclList, DataTree, Owner, StoredStat, TxnBuf, WalkedNode, Zxid};

use super::directory::Outcome;
use super::layout::put;
use crate::allocations::peak_bytes;

/// Memory for each byte of a file that is not compressed: a list of paths has a string of 24 bytes for each 4.
const MEMORY_PER_BYTE: u64 = 64;
/// What windows, buffers, decoders and errors take.
const MEMORY_ALWAYS: u64 = 1 << 20;
/// The longest string, buffer or payload.
const LENGTH_LIMIT: u32 = 1 << 20;

/// A log or a snapshot of ZooKeeper's. Of the first byte, bit 0 says that it is a snapshot, bit 1 makes checksums right,
/// bits 2 and 3 tell how a snapshot is compressed.
///
/// # Panics
/// If reading takes memory out of proportion, or what is read is no txn of ours.
pub fn zookeeper_files(input: &[u8]) -> Outcome {
    let Some((flags, bytes)) = input.split_first() else { return Outcome::Skipped };
    let mut bytes = bytes.to_vec();
    let compression = match flags >> 2 & 3 {
        1 => Compression::Gz,
        2 => Compression::Snappy,
        _ => Compression::None,
    };
    let is_snapshot = flags & 1 != 0;
    if flags & 2 != 0 && !is_snapshot {
        sign_log(&mut bytes);
    }
    if flags & 2 != 0 && is_snapshot && compression == Compression::None {
        sign_snapshot(&mut bytes);
    }
    let (whole, peak) =
        peak_bytes(|| if is_snapshot { read_snapshot(&bytes, compression) } else { read_log(&bytes) });
    let most = MEMORY_ALWAYS + MEMORY_PER_BYTE * bytes.len() as u64;
    // What is compressed may be long.
    let is_bounded = compression == Compression::None || !is_snapshot;
    assert!(!is_bounded || peak <= most, "{peak} bytes of memory for {} bytes", bytes.len());
    if whole { Outcome::Opened } else { Outcome::Refused }
}

/// Whether there are entries, up to the log's end.
fn read_log(bytes: &[u8]) -> bool {
    let Ok(mut log) = LogFile::new(bytes, "log.1", LENGTH_LIMIT) else { return false };
    let mut next = log.offset();
    loop {
        match log.next_entry() {
            Ok(Some(entry)) => {
                assert_eq!(entry.offset, next);
                next = log.offset();
                assert!(next > entry.offset && next <= bytes.len() as u64);
                let (copy, zxid) = entry.txn.with(|txn| (txn.to_buf(), txn.zxid));
                let again = TxnBuf::from_bytes(zxid, copy.time_ms(), copy.as_bytes()).expect("it is a txn");
                entry.txn.with(|txn| assert_eq!(again.as_txn(), *txn));
            }
            Ok(None) => {
                assert!(log.end().is_some() && log.next_entry().is_ok_and(|entry| entry.is_none()));
                return next > 16;
            }
            Err(_) => return false,
        }
    }
}

/// Whether all of a snapshot can be read. Whatever its nodes are, a tree takes them or leaves them out.
fn read_snapshot(bytes: &[u8], compression: Compression) -> bool {
    let Ok(mut snapshot) = SnapshotFile::new(bytes, "snapshot.1", compression, LENGTH_LIMIT) else {
        return false;
    };
    let mut loader = DataTree::loader();
    loop {
        match snapshot.next_node() {
            Ok(Some(node)) => {
                let zxid = |at: usize| Zxid::new(node.zxids[at].cast_unsigned());
                let stat = StoredStat {
                    czxid: zxid(0),
                    mzxid: zxid(1),
                    pzxid: zxid(2),
                    ctime_ms: node.times_ms[0],
                    mtime_ms: node.times_ms[1],
                    version: node.versions[0],
                    cversion: node.versions[1],
                    aversion: node.versions[2],
                    owner: Owner::from_raw(node.ephemeral_owner, true),
                };
                let acl = node.acl.unwrap_or(AclList::EMPTY);
                loader.node(&WalkedNode { path: node.path, data: node.data, acl, stat });
            }
            Ok(None) => {
                assert!(snapshot.trailer().is_some());
                let done = loader.finish(Zxid::ZERO);
                assert!(!done.tree.is_empty());
                return true;
            }
            Err(_) => return false,
        }
    }
}

/// Makes the checksum and the end of each entry right.
fn sign_log(bytes: &mut [u8]) {
    let mut at = 16;
    while at + 12 < bytes.len() {
        let length = u32::from_be_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        let end = at + 12 + length;
        if length == 0 || end >= bytes.len() {
            return;
        }
        let sum = u64::from(adler2::adler32_slice(&bytes[at + 12..end]));
        put(bytes, at, &sum.to_be_bytes());
        put(bytes, end, b"B");
        at = end + 1;
    }
}

/// Makes the checksums before the last slashes right, where a trailer may have them.
fn sign_snapshot(bytes: &mut [u8]) {
    for behind in [67, 46, 34, 13] {
        if let Some(at) = bytes.len().checked_sub(behind)
            && bytes[at + 8..].starts_with(b"\0\0\0\x01/")
        {
            let sum = u64::from(adler2::adler32_slice(&bytes[..at]));
            put(bytes, at, &sum.to_be_bytes());
        }
    }
}
