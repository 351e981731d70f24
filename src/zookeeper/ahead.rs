//! Entries of logs, some at once: they are read and checked in a thread of their own, while the caller's applies what came
//! before.

use std::ops::Range;

use super::bytes::OnDisk;
use super::log_file::LogFile;
use crate::base::{Error, Result};

/// A batch is handed over once it has so much.
pub(super) const BATCH_BYTES: usize = 256 * 1024;
/// The same for small entries.
pub(super) const BATCH_COUNT: usize = 1024;

/// Entries of a log, away from their file.
#[derive(Debug, Default)]
pub(super) struct EntryBatch {
    bytes: Vec<u8>,
    entries: Vec<(u64, Range<usize>)>,
}

impl EntryBatch {
    /// Where each entry begins, and its payload.
    pub(super) fn payloads(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().map(|(offset, range)| (*offset, &self.bytes[range.clone()]))
    }
}

/// Reads entries, some at once.
#[derive(Debug)]
pub(super) struct EntryBatches<'a> {
    log: &'a mut LogFile<OnDisk>,
    failed: Option<Error>,
}

impl<'a> EntryBatches<'a> {
    pub(super) fn new(log: &'a mut LogFile<OnDisk>) -> EntryBatches<'a> {
        EntryBatches { log, failed: None }
    }

    /// The next entries; none at the log's end. An error comes behind all entries before it.
    pub(super) fn read(&mut self) -> Result<Option<EntryBatch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut batch = EntryBatch::default();
        while batch.entries.len() < BATCH_COUNT && batch.bytes.len() <= BATCH_BYTES {
            match self.log.next_payload() {
                Ok(Some((offset, payload))) => {
                    let at = batch.bytes.len();
                    batch.bytes.extend_from_slice(payload);
                    batch.entries.push((offset, at..batch.bytes.len()));
                }
                Ok(None) => break,
                Err(error) if batch.entries.is_empty() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok((!batch.entries.is_empty()).then_some(batch))
    }
}
