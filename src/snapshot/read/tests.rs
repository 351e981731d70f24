use super::*;
use crate::base::ErrorKind;
use crate::format::snapshot::{NodeEncoder, NodeRow, encode_session, encode_txn};
use crate::format::{AclList, TxnBody};

/// A block's kind, what it says to have, and what it has.
type Entries = (SnapshotBlockKind, u32, Vec<u8>);

/// A block of that kind, which says that it has so many entries.
fn block(kind: SnapshotBlockKind, count: u32, body: &[u8]) -> SnapshotBlock {
    let body_bytes = u32::try_from(body.len()).expect("small");
    SnapshotBlock { kind, count, index: 0, offset: 0, body_bytes, body_crc: 0 }
}

fn nodes(count: usize) -> Vec<u8> {
    let (mut body, mut encoder) = (Vec::new(), NodeEncoder::default());
    for name in ["a", "b", "c"].into_iter().take(count) {
        let node = NodeEntry { parent: "", name, data: None, acl: AclList::EMPTY, row: NodeRow::default() };
        encoder.encode(&mut body, &node);
    }
    body
}

fn sessions(count: usize) -> Vec<u8> {
    let mut body = Vec::new();
    (0..count).for_each(|id| encode_session(&mut body, i64::try_from(id).expect("small"), 1000));
    body
}

fn txns(zxids: &[u64]) -> Vec<u8> {
    let mut body = Vec::new();
    for zxid in zxids {
        let code = crate::base::Code::OK;
        let txn = Txn {
            zxid: Zxid::new(*zxid),
            time_ms: 1,
            session_id: 0,
            cxid: 0,
            body: TxnBody::Error { code },
            digest: None,
        };
        let payload = txn.to_buf();
        encode_txn(&mut body, &SnapshotTxn { zxid: txn.zxid, time_ms: 1, payload: payload.as_bytes() });
    }
    body
}

/// What becomes of these blocks, one after the other, in a snapshot whose walk began at 5.
fn read_blocks(blocks: &[Entries]) -> Result<Reading> {
    let mut reading = Reading::new(Zxid::new(5));
    for (kind, count, body) in blocks {
        reading.block(&block(*kind, *count, body), body, &mut Checking)?;
    }
    Ok(reading)
}

fn info(nodes: u64, sessions: u64, txns: u64, end: u64) -> SnapshotInfo {
    let (start, end) = (Zxid::new(5), Zxid::new(end));
    let file = "snap".to_owned();
    SnapshotInfo { file, start, end, digest: 0, nodes, sessions, txns, file_bytes: 0, created_ms: 0 }
}

#[test]
fn blocks_have_what_they_say_and_come_in_order() {
    use SnapshotBlockKind::{Index, Nodes, Sessions, Txns};
    let whole =
        [(Nodes, 2, nodes(2)), (Nodes, 1, nodes(1)), (Sessions, 2, sessions(2)), (Txns, 2, txns(&[6, 9]))];
    let reading = read_blocks(&whole).expect("all is in order");
    assert!(reading.finish(&info(3, 2, 2, 9)).is_ok());
    for wrong in [info(2, 2, 2, 9), info(3, 1, 2, 9), info(3, 2, 3, 9), info(3, 2, 2, 8), info(3, 2, 2, 10)] {
        assert_eq!(
            reading.finish(&wrong).expect_err("another trailer").code(),
            "snapshot_counts",
            "{wrong:?}"
        );
    }
    assert!(read_blocks(&[]).expect("nothing").finish(&info(0, 0, 0, 5)).is_ok());
    let refused: [(&str, Vec<Entries>); 13] = [
        ("snapshot_entry", vec![(Nodes, 1, nodes(2))]),
        ("snapshot_entry", vec![(Nodes, 3, nodes(2))]),
        ("snapshot_entry", vec![(Sessions, 1, sessions(2))]),
        ("snapshot_entry", vec![(Sessions, 3, sessions(2))]),
        ("snapshot_entry", vec![(Sessions, u32::MAX, sessions(2))]),
        ("snapshot_entry", vec![(Txns, 1, txns(&[6, 7]))]),
        ("snapshot_entry", vec![(Txns, 3, txns(&[6, 7]))]),
        ("snapshot_order", vec![(Txns, 1, txns(&[5]))]),
        ("snapshot_order", vec![(Txns, 2, txns(&[7, 7]))]),
        ("snapshot_order", vec![(Txns, 1, txns(&[8])), (Txns, 1, txns(&[7]))]),
        ("snapshot_order", vec![(Sessions, 1, sessions(1)), (Nodes, 1, nodes(1))]),
        ("snapshot_order", vec![(Txns, 1, txns(&[6])), (Sessions, 1, sessions(1))]),
        ("snapshot_order", vec![(Index, 0, Vec::new())]),
    ];
    for (code, blocks) in refused {
        let error = read_blocks(&blocks).expect_err(code);
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, code), "{blocks:?}");
    }
}
