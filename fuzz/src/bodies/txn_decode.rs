use arborlog::{Ops, Paths, Txn, TxnBody, Zxid};

use super::directory::Outcome;
use crate::allocations::peak_bytes;

/// Memory that a refusal may take: the error and its message.
const REFUSAL_BYTES: u64 = 1024;

/// The payload of a record, taken for a txn.
///
/// # Panics
/// If reading takes memory, or reads what would be written in other bytes.
pub fn txn_decode(input: &[u8]) -> Outcome {
    let (decoded, peak) = peak_bytes(|| Txn::decode(Zxid::new(1), 7, input));
    let txn = match decoded {
        Ok(txn) => txn,
        Err(error) => {
            assert!(peak <= REFUSAL_BYTES, "refusing took {peak} bytes: {error}");
            return Outcome::Refused;
        }
    };
    let again = || Txn::decode(Zxid::new(1), 7, input).expect("it was decoded once");
    let (same, walking) = peak_bytes(|| again() == txn);
    assert!(same, "it differs from itself: {txn:?}");
    assert_eq!((peak, walking), (0, 0), "reading took memory");
    let mut encoded = Vec::new();
    txn.encode(&mut encoded);
    assert_eq!(encoded, input, "two encodings of {txn:?}");
    rebuild(&txn, input);
    Outcome::Opened
}

/// The same txn, made of slices: it is equal, and encoded to the same bytes.
fn rebuild(txn: &Txn<'_>, input: &[u8]) {
    let mut lists: Vec<Vec<String>> = Vec::new();
    let ops: Vec<TxnBody<'_>> = match txn.body {
        TxnBody::Multi(ops) => ops.iter().collect(),
        body => vec![body],
    };
    for op in &ops {
        let paths = match *op {
            TxnBody::DeleteAll { paths } | TxnBody::CloseSession { paths: Some(paths) } => paths,
            _ => Paths::from_slice(&[]),
        };
        lists.push(paths.iter().map(str::to_owned).collect());
        assert_eq!(lists.last().map(Vec::len), Some(paths.len()), "a list counts other paths");
    }
    let rebuilt: Vec<TxnBody<'_>> = ops
        .iter()
        .zip(&lists)
        .map(|(op, list)| match *op {
            TxnBody::DeleteAll { .. } => TxnBody::DeleteAll { paths: Paths::from_slice(list) },
            TxnBody::CloseSession { paths: Some(_) } => {
                TxnBody::CloseSession { paths: Some(Paths::from_slice(list)) }
            }
            op => op,
        })
        .collect();
    let body = match txn.body {
        TxnBody::Multi(ops) => {
            assert_eq!(ops.len(), rebuilt.len(), "a multi counts other operations");
            TxnBody::Multi(Ops::from_slice(&rebuilt))
        }
        _ => rebuilt[0],
    };
    let rebuilt = Txn { body, ..*txn };
    assert!(rebuilt == *txn, "{txn:?} differs from {rebuilt:?}");
    let buffer = rebuilt.to_buf();
    assert_eq!(buffer.as_bytes(), input, "{rebuilt:?} is encoded in other bytes");
    assert_eq!(buffer.as_txn(), *txn, "it is another one when it is kept");
}
