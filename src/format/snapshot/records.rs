//! The entries of blocks of sessions and of txns.

use super::varint::{Cursor, put_i64, put_u64};
use crate::base::Zxid;
use crate::format::layout::{array, i64_at};

/// The length of a session's entry.
pub(crate) const SESSION_BYTES: usize = 12;

pub(crate) fn encode_session(out: &mut Vec<u8>, id: i64, timeout_ms: i32) {
    out.extend(id.to_le_bytes());
    out.extend(timeout_ms.to_le_bytes());
}

/// Reads a session of [`SESSION_BYTES`].
pub(crate) fn decode_session(bytes: &[u8]) -> (i64, i32) {
    (i64_at(bytes, 0), i32::from_le_bytes(array(bytes, 8)))
}

/// A txn of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotTxn<'a> {
    pub(crate) zxid: Zxid,
    pub(crate) time_ms: i64,
    pub(crate) payload: &'a [u8],
}

pub(crate) fn encode_txn(out: &mut Vec<u8>, txn: &SnapshotTxn<'_>) {
    put_u64(out, txn.zxid.get());
    put_i64(out, txn.time_ms);
    put_u64(out, txn.payload.len() as u64);
    out.extend(txn.payload);
}

/// Splits a txn off the front; `None` if there is none.
pub(crate) fn split_txn(bytes: &[u8]) -> Option<(SnapshotTxn<'_>, &[u8])> {
    let mut cursor = Cursor::new(bytes, 0);
    let (zxid, time_ms) = (Zxid::new(cursor.u64()?), cursor.i64()?);
    let (from, to) = cursor.range()?;
    let payload = &bytes[from as usize..to as usize];
    Some((SnapshotTxn { zxid, time_ms, payload }, &bytes[to as usize..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip() {
        let mut out = Vec::new();
        encode_session(&mut out, -9, i32::MIN);
        assert_eq!((out.len(), decode_session(&out)), (SESSION_BYTES, (-9, i32::MIN)));
        let mut out = Vec::new();
        let txn = |zxid, payload| SnapshotTxn { zxid: Zxid::new(zxid), time_ms: -1, payload };
        encode_txn(&mut out, &txn(u64::MAX, b"one"));
        encode_txn(&mut out, &txn(1, b""));
        let (first, rest) = split_txn(&out).unwrap();
        assert_eq!((first, split_txn(rest)), (txn(u64::MAX, b"one"), Some((txn(1, b""), &[][..]))));
        assert_eq!(split_txn(&out[..13]), None);
        assert_eq!(split_txn(&[]), None);
    }
}
