//! raft-engine (`TiKV`'s log): one raft group per writer, since a group takes one writer at a time.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize};

use super::{DurableLog, Recovered};

/// Writers with a group of their own.
const WRITERS_MAX: usize = 1024;
/// Bytes of a record that carry its index instead: an entry must know its own.
const INDEX_BYTES: usize = 8;
/// Entries fetched at once while reading back.
const FETCH_ENTRIES: u64 = 10_000;

/// The engine and the last index of each group.
pub struct RaftEngineLog {
    engine: Engine,
    last_indexes: Vec<AtomicU64>,
}

/// Entries are plain bytes that start with their index.
struct Record;

impl MessageExt for Record {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        u64::from_le_bytes(entry.value[..INDEX_BYTES].try_into().expect("eight bytes"))
    }
}

impl RaftEngineLog {
    /// An empty engine in `dir`, with its own defaults except for compression, which is off.
    pub fn open(dir: &Path) -> RaftEngineLog {
        let engine = Engine::open(config(dir)).expect("open raft-engine");
        RaftEngineLog { engine, last_indexes: (0..WRITERS_MAX).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl DurableLog for RaftEngineLog {
    fn commit(&self, writer: usize, record: &[u8]) {
        self.commit_batch(writer, &[record]);
    }

    fn commit_batch(&self, writer: usize, records: &[&[u8]]) {
        // Only this writer uses this group, so the indexes cannot be taken in another order.
        let last = self.last_indexes[writer].fetch_add(records.len() as u64, Ordering::Relaxed);
        let entries: Vec<BytesValue> =
            (last + 1..).zip(records).map(|(index, record)| entry(index, record)).collect();
        let mut batch = LogBatch::with_capacity(records.len());
        batch.add_entries::<Record>(writer as u64 + 1, &entries).expect("add entries");
        self.engine.write(&mut batch, true).expect("write and sync raft-engine");
    }
}

/// Reopens the engine and fetches every entry of every group.
pub fn recover(dir: &Path) -> Recovered {
    let engine = Engine::open(config(dir)).expect("reopen raft-engine");
    let mut recovered = Recovered::default();
    let mut entries = Vec::new();
    for group in engine.raft_groups() {
        let (Some(first), Some(last)) = (engine.first_index(group), engine.last_index(group)) else {
            continue;
        };
        let mut from = first;
        while from <= last {
            let to = (from + FETCH_ENTRIES).min(last + 1);
            entries.clear();
            engine.fetch_entries_to::<Record>(group, from, to, None, &mut entries).expect("fetch entries");
            recovered.records += entries.len() as u64;
            recovered.bytes += entries.iter().map(|entry| entry.value.len() as u64).sum::<u64>();
            from = to;
        }
    }
    std::mem::forget(engine);
    recovered
}

fn config(dir: &Path) -> Config {
    Config {
        dir: dir.to_str().expect("the data directory is UTF-8").to_string(),
        batch_compression_threshold: ReadableSize(0),
        ..Config::default()
    }
}

fn entry(index: u64, record: &[u8]) -> BytesValue {
    assert!(record.len() >= INDEX_BYTES, "raft-engine's adapter needs records of 8 bytes or more");
    let mut value = record.to_vec();
    value[..INDEX_BYTES].copy_from_slice(&index.to_le_bytes());
    let mut entry = BytesValue::new();
    entry.set_value(value);
    entry
}
