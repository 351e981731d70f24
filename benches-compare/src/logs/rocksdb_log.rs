//! `RocksDB` used as a log: a put per record with `sync = true`, keys in rising order per writer.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{DB, IteratorMode, Options, WriteBatch, WriteOptions};

use super::{DurableLog, Recovered};

/// Large enough that no memtable is flushed during a run: only the write-ahead log is compared.
const MEMTABLE_BYTES: usize = 2 << 30;

/// The database and the next key.
pub struct RocksdbLog {
    database: DB,
    synced: WriteOptions,
    next_key: AtomicU64,
}

impl RocksdbLog {
    /// An empty database in `dir`, with its own defaults except for the memtable's size.
    pub fn open(dir: &Path) -> RocksdbLog {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        let database = DB::open(&options(), dir).expect("open RocksDB");
        RocksdbLog { database, synced, next_key: AtomicU64::new(0) }
    }

    fn next_key(&self) -> [u8; 8] {
        self.next_key.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

impl DurableLog for RocksdbLog {
    fn commit(&self, _writer: usize, record: &[u8]) {
        self.database.put_opt(self.next_key(), record, &self.synced).expect("put and sync");
    }

    fn commit_batch(&self, _writer: usize, records: &[&[u8]]) {
        let mut batch = WriteBatch::default();
        records.iter().for_each(|record| batch.put(self.next_key(), record));
        self.database.write_opt(batch, &self.synced).expect("write and sync");
    }
}

/// Reopens the database, which replays its log, and reads every record. The first open after a crash:
/// it also flushes what it replayed, as it would in earnest.
pub fn recover(dir: &Path) -> Recovered {
    let database = DB::open(&options(), dir).expect("reopen RocksDB");
    let mut recovered = Recovered::default();
    for item in database.iterator(IteratorMode::Start) {
        let (_key, value) = item.expect("read a record");
        recovered.records += 1;
        recovered.bytes += value.len() as u64;
    }
    std::mem::forget(database);
    recovered
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options
}
