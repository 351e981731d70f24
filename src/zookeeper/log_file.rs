use std::fmt;
use std::ops::Range;

use adler2::Adler32;

use super::bytes::{Bytes, Window};
use super::jute::Flaw;
use super::jute::too_long;
use super::read_txn::{ReadTxn, zxid_of};
use super::search::find_entry;
use super::torn_data::data_ranges;
use crate::base::{Error, Result, Zxid};

/// Magic, version, database: of these, only the magic is looked at.
pub(super) const HEADER_BYTES: u64 = 16;
pub(super) const MAGIC: &[u8; 4] = b"ZKLG";
/// Checksum and length, before the payload.
pub(super) const ENTRY_HEAD_BYTES: u64 = 12;
/// What ends an entry.
pub(super) const ENTRY_END: u8 = b'B';
/// The header of a txn, the least that a payload has.
pub(super) const TXN_HEADER_BYTES: u32 = 32;

/// How the entries of a log end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LogEnd {
    /// With the file.
    EndOfFile,
    /// With the zeros that a server writes ahead.
    Padding,
    /// With an entry that was not written whole: why it is taken for that.
    Torn(&'static str),
}

impl fmt::Display for LogEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogEnd::EndOfFile => "the end of the file",
            LogEnd::Padding => "zeros",
            LogEnd::Torn(why) => why,
        })
    }
}

/// An entry of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogEntry {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its txn.
    pub txn: ReadTxn,
}

/// Reads a log of ZooKeeper's, entry by entry, in memory that is bounded by the largest entry.
///
/// Where ZooKeeper takes anything odd for the end of the file, or refuses to start, by which byte it is, this asks
/// whether a whole entry follows: if one does, the log is damaged; if none does, its end was torn.
#[derive(Debug)]
pub struct LogFile<B> {
    window: Window<B>,
    name: String,
    limit: u32,
    offset: u64,
    last: Option<Zxid>,
    end: Option<LogEnd>,
}

impl<B: Bytes> LogFile<B> {
    /// Begins to read. `limit` is the longest payload, string or buffer in bytes.
    ///
    /// # Errors
    /// - [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): it is no log.
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn new(bytes: B, name: &str, limit: u32) -> Result<LogFile<B>> {
        let window = Window::new(bytes).map_err(|e| e.in_file(name))?;
        let mut log =
            LogFile { window, name: name.to_owned(), limit, offset: HEADER_BYTES, last: None, end: None };
        log.header().map_err(|e| e.in_file(name))?;
        Ok(log)
    }

    fn header(&mut self) -> Result<()> {
        let header = self.window.get(0, HEADER_BYTES.try_into().unwrap_or(16))?;
        if header.starts_with(MAGIC) && header.len() as u64 == HEADER_BYTES {
            return Ok(());
        }
        if header.iter().any(|byte| *byte != 0) && !MAGIC.starts_with(&header[..header.len().min(4)]) {
            return Err(Error::corrupt("zk_header", "it does not begin like a log of ZooKeeper's"));
        }
        // The server died before the header was on disk: nothing may be behind it.
        self.offset = 0;
        self.bad("the header was not written")
    }

    /// The next entry; none at the end, which [`end`](Self::end) tells of.
    ///
    /// # Errors
    /// - [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): the log is damaged here; it is not read on.
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let limit = self.limit;
        let Some((offset, payload)) = self.next_payload()? else { return Ok(None) };
        match ReadTxn::decode(payload, limit) {
            Ok(txn) => Ok(Some(LogEntry { offset, txn })),
            Err(flaw) => {
                let error = flawed(flaw, payload);
                // It is not read on.
                self.offset = offset;
                Err(error.in_file(&self.name).at_offset(offset))
            }
        }
    }

    /// The payload of the next entry, which is whole, and where the entry begins.
    pub(super) fn next_payload(&mut self) -> Result<Option<(u64, &[u8])>> {
        let offset = self.offset;
        match self.read_entry() {
            Ok(None) => Ok(None),
            Ok(Some(len)) => {
                let entry = self.window.get(offset + ENTRY_HEAD_BYTES, len as usize + 1)?;
                Ok(Some((offset, &entry[..len as usize])))
            }
            Err(e) => Err(e.in_file(&self.name).at_offset(offset)),
        }
    }

    /// The length of the next entry's payload.
    fn read_entry(&mut self) -> Result<Option<u32>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset = self.offset;
        let head = self.window.get(offset, 12)?;
        let Some((checksum, length)) = split_head(head) else {
            let is_blank = head.iter().all(|byte| *byte == 0);
            self.end =
                Some(if is_blank { LogEnd::EndOfFile } else { LogEnd::Torn("the file ends inside it") });
            return Ok(None);
        };
        if length == 0 {
            self.bad(if checksum == 0 { "" } else { "its length was not written" })?;
            return Ok(None);
        }
        let len = u32::try_from(length).unwrap_or(u32::MAX);
        if length < 0 || offset + ENTRY_HEAD_BYTES + u64::from(len) >= self.window.file_len() {
            self.bad("it would be longer than the file")?;
            return Ok(None);
        }
        if len > self.limit {
            // Written whole, it is refused; torn, its length is nothing to go by.
            if self.checksum_of(offset + ENTRY_HEAD_BYTES, len.into())? == checksum {
                return Err(too_long(length));
            }
            self.bad("its checksum does not hold")?;
            return Ok(None);
        }
        let entry = self.window.get(offset + ENTRY_HEAD_BYTES, len as usize + 1)?;
        let Some((&ENTRY_END, payload)) = entry.split_last() else {
            self.bad("its end was not written")?;
            return Ok(None);
        };
        if u64::from(adler2::adler32_slice(payload)) != checksum {
            self.bad("its checksum does not hold")?;
            return Ok(None);
        }
        self.last = zxid_of(payload);
        self.offset = offset + ENTRY_HEAD_BYTES + u64::from(len) + 1;
        Ok(Some(len))
    }

    fn checksum_of(&mut self, mut offset: u64, mut left: u64) -> Result<u64> {
        let mut adler = Adler32::new();
        while left > 0 {
            let piece = self.window.get(offset, usize::try_from(left.min(64 * 1024)).unwrap_or(1))?;
            if piece.is_empty() {
                break;
            }
            adler.write_slice(piece);
            offset += piece.len() as u64;
            left -= piece.len() as u64;
        }
        Ok(adler.checksum().into())
    }

    /// No whole entry stands at the offset: the log ends here, unless one follows. An empty `why` is padding.
    fn bad(&mut self, why: &'static str) -> Result<()> {
        // What a client has stored proves nothing.
        let stored = self.data_of_torn()?;
        let found = find_entry(&mut self.window, self.offset + 1, &stored, self.last, self.limit)?;
        match found {
            None => {
                self.end = Some(if why.is_empty() { LogEnd::Padding } else { LogEnd::Torn(why) });
                Ok(())
            }
            Some((at, zxid)) => {
                let what = if why.is_empty() { "zeros" } else { why };
                let why = format!("{what}, and a whole entry with zxid {zxid} follows at byte {at}");
                Err(Error::corrupt("zk_log_damage", why))
            }
        }
    }

    /// Where the entry that is not whole has clients' data, in order; none if its length cannot be.
    fn data_of_torn(&mut self) -> Result<Vec<Range<u64>>> {
        let head = self.window.get(self.offset, 12)?;
        let len = split_head(head).and_then(|(_, length)| u32::try_from(length).ok());
        let Some(len) = len.filter(|len| (TXN_HEADER_BYTES..=self.limit).contains(len)) else {
            return Ok(Vec::new());
        };
        let start = self.offset + ENTRY_HEAD_BYTES;
        let there = self.window.get(start, len as usize)?;
        let ranges = data_ranges(there, len as usize);
        Ok(ranges.into_iter().map(|range| start + range.start as u64..start + range.end as u64).collect())
    }

    /// How the entries end, once there is none left.
    pub fn end(&self) -> Option<LogEnd> {
        self.end
    }

    /// Where the next entry would begin.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file's length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.window.file_len()
    }
}

/// The error of an entry whose payload is whole and no txn.
pub(super) fn flawed(flaw: Flaw, payload: &[u8]) -> Error {
    let error = flaw.of_txn();
    match zxid_of(payload) {
        Some(zxid) => error.with_zxids(zxid, zxid),
        None => error,
    }
}

/// Checksum and length.
pub(super) fn split_head(head: &[u8]) -> Option<(u64, i32)> {
    let (checksum, rest) = head.split_first_chunk::<8>()?;
    let length = rest.first_chunk::<4>()?;
    Some((u64::from_be_bytes(*checksum), i32::from_be_bytes(*length)))
}
