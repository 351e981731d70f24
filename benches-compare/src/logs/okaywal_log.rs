//! okaywal: one entry per commit; a batch is one entry of many chunks.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use okaywal::{Configuration, Entry, EntryId, LogManager, ReadChunkResult, SegmentReader, WriteAheadLog};

use super::{DurableLog, Recovered};

/// A batch larger than this means that everything must still be there afterwards.
const KEEP_EVERYTHING_BYTES: u64 = 1 << 40;

/// The log with its own defaults: 1 MB segments that are recycled after a checkpoint.
pub struct OkaywalLog {
    log: WriteAheadLog,
}

impl OkaywalLog {
    /// An empty log in `dir` whose checkpoints drop what was written, so that its files are recycled.
    /// That is the state it is fastest in.
    pub fn open(dir: &Path) -> OkaywalLog {
        let log = Configuration::default_for(dir).open(Counter::default()).expect("open okaywal");
        OkaywalLog { log }
    }

    /// An empty log in `dir` that never checkpoints, so that all of it can be read back.
    pub fn open_to_keep(dir: &Path) -> OkaywalLog {
        OkaywalLog { log: keeping(dir).open(Counter::default()).expect("open okaywal") }
    }
}

impl DurableLog for OkaywalLog {
    fn commit(&self, writer: usize, record: &[u8]) {
        self.commit_batch(writer, &[record]);
    }

    fn commit_batch(&self, _writer: usize, records: &[&[u8]]) {
        let mut entry = self.log.begin_entry().expect("begin an entry");
        for record in records {
            entry.write_chunk(record).expect("write a chunk");
        }
        entry.commit().expect("commit an entry");
    }
}

/// Reopens the log, which hands over every entry, and reads every chunk with its checksum.
pub fn recover(dir: &Path) -> Recovered {
    let counter = Counter::default();
    let recovered = Arc::clone(&counter.recovered);
    let log = keeping(dir).open(counter).expect("reopen okaywal");
    let result = *recovered.lock().expect("no holder panicked");
    // Closing would checkpoint, which is no part of reading.
    std::mem::forget(log);
    result
}

fn keeping(dir: &Path) -> Configuration {
    Configuration::default_for(dir).checkpoint_after_bytes(KEEP_EVERYTHING_BYTES)
}

/// Counts what is recovered.
#[derive(Debug, Default)]
struct Counter {
    recovered: Arc<Mutex<Recovered>>,
    buffer: Vec<u8>,
}

impl LogManager for Counter {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        let mut recovered = self.recovered.lock().expect("no holder panicked");
        while let ReadChunkResult::Chunk(mut chunk) = entry.read_chunk()? {
            self.buffer.clear();
            chunk.read_to_end(&mut self.buffer)?;
            assert!(chunk.check_crc()?, "a damaged chunk");
            recovered.records += 1;
            recovered.bytes += self.buffer.len() as u64;
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: EntryId,
        _entries: &mut SegmentReader,
        _log: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}
