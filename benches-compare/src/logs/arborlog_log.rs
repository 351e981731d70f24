//! The project's own log.

use std::path::Path;

use arborlog::{Epoch, Log, LogOptions, Zxid};

use super::{DurableLog, Recovered};
use crate::writer::WriterLoop;

/// The log with its own defaults.
pub struct ArborlogLog {
    log: Log,
}

impl ArborlogLog {
    /// An empty log in `dir`.
    pub fn open(dir: &Path) -> ArborlogLog {
        let (log, _report) = LogOptions::new().open(dir).expect("open arborlog");
        ArborlogLog { log }
    }
}

impl ArborlogLog {
    /// Appends, and returns what a task awaits.
    pub fn submit(&self, record: &[u8]) -> impl Future<Output = ()> + Send + use<> {
        let ticket = self.log.append_next(Epoch::ZERO, TIME_MS, record).expect("append");
        async move {
            ticket.await.expect("wait until durable");
        }
    }
}

impl DurableLog for ArborlogLog {
    fn commit(&self, _writer: usize, record: &[u8]) {
        self.log.commit_next(Epoch::ZERO, TIME_MS, record).expect("commit");
    }

    fn commit_batch(&self, _writer: usize, records: &[&[u8]]) {
        let append = |record: &&[u8]| self.log.append_next(Epoch::ZERO, TIME_MS, record).expect("append");
        // Acknowledged in order: the last ticket covers all before it.
        if let Some(last) = records.iter().map(append).last() {
            last.wait().expect("wait until durable");
        }
    }

    fn pipeline(&self, writer: &mut WriterLoop<'_>, depth: usize) {
        writer.run_pipelined(
            depth,
            |record| self.log.append_next(Epoch::ZERO, TIME_MS, record).expect("append"),
            |ticket| {
                ticket.wait().expect("wait until durable");
            },
        );
    }
}

/// Stands in for the leader's clock, which costs every log the same and is left out for all of them.
const TIME_MS: i64 = 1_700_000_000_000;

/// Reopens the log and takes every record, as a server does that rebuilds its state.
pub fn recover(dir: &Path) -> Recovered {
    let mut recovered = Recovered::default();
    let (log, _report) = LogOptions::new()
        .open_replaying(dir, Zxid::ZERO, |record| {
            recovered.records += 1;
            recovered.bytes += record.payload.len() as u64;
        })
        .expect("reopen arborlog");
    // As for every log here: letting go of it is no part of reading.
    std::mem::forget(log);
    recovered
}
