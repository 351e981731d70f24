use std::io::{self, BufReader, Read};

use adler2::Adler32;
use hashbrown::HashMap;

use super::bytes::{Bytes, InOrder};
use super::compression::{Compression, Plain};
use super::jute::{text, text_lossy, too_long};
use crate::base::{Error, Result, Zxid};
use crate::format::{AclBuf, AclEntry, AclList, Perms};

pub(super) const MAGIC: &[u8; 4] = b"ZKSN";
/// No ACL list: everybody may do everything.
pub(super) const OPEN_ACL: i64 = -1;

/// A node of a snapshot as it stands in the file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SnapshotNode<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its data, or null.
    pub data: Option<&'a [u8]>,
    /// Its ACL; `None` if the file's table does not have it.
    pub acl: Option<AclList<'a>>,
    /// The number of its ACL in the file's table, -1 for none.
    pub acl_id: i64,
    /// czxid, mzxid, pzxid.
    pub zxids: [i64; 3],
    /// ctime, mtime.
    pub times_ms: [i64; 2],
    /// version, cversion as it is stored, aversion.
    pub versions: [i32; 3],
    /// The owner as it is stored.
    pub ephemeral_owner: i64,
}

/// What stands behind the nodes, of 3.6 and later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SnapshotTrailer {
    /// The txn at which the tree had the digest: when all nodes had been written. And the digest.
    pub digest: Option<(Zxid, u64)>,
    /// The last txn that was applied when the snapshot was begun.
    pub last_zxid: Option<Zxid>,
}

/// Reads a snapshot of ZooKeeper's, node by node. Memory is bounded by the sessions, the ACL table and the largest
/// node. Offsets are those of the bytes before compression.
#[derive(Debug)]
pub struct SnapshotFile<B: Bytes> {
    input: Summed<BufReader<Plain<InOrder<B>>>>,
    name: String,
    limit: u32,
    sessions: Vec<(i64, i32)>,
    acls: HashMap<i64, AclBuf>,
    path: Vec<u8>,
    data: Vec<u8>,
    trailer: Option<SnapshotTrailer>,
}

impl<B: Bytes> SnapshotFile<B> {
    /// Reads as far as the first node. `limit` is the longest string or buffer in bytes.
    ///
    /// # Errors
    /// - [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): it is no snapshot, or damaged.
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn new(bytes: B, name: &str, compression: Compression, limit: u32) -> Result<SnapshotFile<B>> {
        let plain = Plain::new(InOrder::new(bytes), compression);
        let mut snapshot = SnapshotFile {
            input: Summed::new(BufReader::with_capacity(64 * 1024, plain)),
            name: name.to_owned(),
            limit,
            sessions: Vec::new(),
            acls: HashMap::new(),
            path: Vec::new(),
            data: Vec::new(),
            trailer: None,
        };
        snapshot.head().map_err(|e| snapshot.placed(e))?;
        Ok(snapshot)
    }

    fn placed(&self, error: Error) -> Error {
        error.in_file(&self.name).at_offset(self.input.offset)
    }

    fn head(&mut self) -> Result<()> {
        let mut magic = [0; 16];
        self.input.exact(&mut magic)?;
        if !magic.starts_with(MAGIC) {
            return Err(Error::corrupt("zk_header", "it does not begin like a snapshot of ZooKeeper's"));
        }
        for _ in 0..self.input.i32()?.max(0) {
            let session = (self.input.i64()?, self.input.i32()?);
            self.sessions.push(session);
        }
        for _ in 0..self.input.i32()?.max(0) {
            let id = self.input.i64()?;
            let list = self.acl_list()?;
            self.acls.insert(id, list);
        }
        Ok(())
    }

    fn acl_list(&mut self) -> Result<AclBuf> {
        let count = self.input.i32()?;
        if count == -1 {
            return Err(Error::corrupt("zk_snapshot", "an ACL list of the table is null"));
        }
        let mut list = AclBuf::new();
        for _ in 0..count.max(0) {
            let perms = Perms::new(self.input.i32()?);
            let mut words = [Vec::new(), Vec::new()];
            for word in &mut words {
                if !self.input.buffer(word, self.limit)? {
                    return Err(Error::corrupt("zk_snapshot", "a word of an ACL entry is null"));
                }
            }
            let (scheme, id) = (text_lossy(&words[0]), text_lossy(&words[1]));
            if u16::try_from(scheme.len()).is_err() {
                return Err(Error::corrupt("zk_snapshot", "an ACL scheme is too long"));
            }
            list.push(AclEntry { perms, scheme: &scheme, id: &id });
        }
        Ok(list)
    }

    /// The sessions, with their timeouts in milliseconds.
    pub fn sessions(&self) -> &[(i64, i32)] {
        &self.sessions
    }

    /// The number of lists in the ACL table.
    pub fn acl_count(&self) -> usize {
        self.acls.len()
    }

    /// The next node; none behind the last one, once the checksums behind it were found to hold.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn next_node(&mut self) -> Result<Option<SnapshotNode<'_>>> {
        if self.trailer.is_some() {
            return Ok(None);
        }
        let start = self.input.offset;
        let placed = |e: Error, name: &str| e.in_file(name).at_offset(start);
        match self.input.buffer(&mut self.path, self.limit) {
            Ok(true) => {}
            Ok(false) => return Err(placed(Error::corrupt("zk_snapshot", "a path is null"), &self.name)),
            Err(e) => return Err(placed(e, &self.name)),
        }
        if self.path == b"/" {
            let trailer = read_trailer(&mut self.input).map_err(|e| placed(e, &self.name))?;
            self.trailer = Some(trailer);
            return Ok(None);
        }
        if self.path.is_empty() {
            self.path.push(b'/');
        }
        let Some(path) = text(&self.path) else {
            return Err(placed(Error::corrupt("zk_snapshot", "a path is no text"), &self.name));
        };
        if let std::borrow::Cow::Owned(text) = path {
            self.path = text.into_bytes();
        }
        let (has_data, acl_id, fields) =
            read_node(&mut self.input, &mut self.data, self.limit).map_err(|e| placed(e, &self.name))?;
        let acl = match acl_id {
            OPEN_ACL => Some(AclList::EMPTY),
            id => self.acls.get(&id).map(AclBuf::as_list),
        };
        Ok(Some(SnapshotNode {
            path: std::str::from_utf8(&self.path).expect("it was found to be text"),
            data: has_data.then_some(&self.data),
            acl,
            acl_id,
            ..fields
        }))
    }

    /// What stands behind the nodes, once all were read.
    pub fn trailer(&self) -> Option<SnapshotTrailer> {
        self.trailer
    }
}

/// All of a node behind its path; whether it has data, and its ACL's number.
fn read_node(
    input: &mut Summed<impl Read>,
    data: &mut Vec<u8>,
    limit: u32,
) -> Result<(bool, i64, SnapshotNode<'static>)> {
    let has_data = input.buffer(data, limit)?;
    let acl_id = input.i64()?;
    let (czxid, mzxid) = (input.i64()?, input.i64()?);
    let times_ms = [input.i64()?, input.i64()?];
    let versions = [input.i32()?, input.i32()?, input.i32()?];
    let ephemeral_owner = input.i64()?;
    let zxids = [czxid, mzxid, input.i64()?];
    let node =
        SnapshotNode { path: "", data: None, acl: None, acl_id, zxids, times_ms, versions, ephemeral_owner };
    Ok((has_data, acl_id, node))
}

/// Which parts there are is told by how much is left, not by the settings of a server.
fn read_trailer(input: &mut Summed<impl Read>) -> Result<SnapshotTrailer> {
    const SEAL_BYTES: usize = 13;
    const LONGEST: usize = 20 + SEAL_BYTES + 8 + SEAL_BYTES;
    seal(input)?;
    let mut rest = [0; LONGEST + 1];
    let len = input.peeked(&mut rest)?;
    let mut trailer = SnapshotTrailer::default();
    let (has_digest, has_zxid) = match len {
        0 => (false, false),
        33 => (true, false),
        21 => (false, true),
        LONGEST => (true, true),
        _ => {
            let why = format!("{len} bytes or more behind the nodes' checksum are no known trailer");
            return Err(Error::corrupt("zk_snapshot", why));
        }
    };
    let mut parts = Summed { inner: &rest[..len], adler: input.adler, offset: input.offset };
    if has_digest {
        let zxid = parts.i64()?;
        let version = parts.i32()?;
        let digest = parts.i64()?.cast_unsigned();
        // Zero says that there is none.
        trailer.digest =
            Some((Zxid::new(zxid.cast_unsigned()), digest)).filter(|_| zxid != 0 && version == 2);
        seal(&mut parts)?;
    }
    if has_zxid {
        trailer.last_zxid = Some(Zxid::new(parts.i64()?.cast_unsigned()));
        seal(&mut parts)?;
    }
    Ok(trailer)
}

/// The checksum of all that came before, and a slash.
fn seal(input: &mut Summed<impl Read>) -> Result<()> {
    let sum = i64::from(input.adler.checksum());
    if input.i64()? != sum {
        return Err(Error::corrupt("zk_snapshot", "the checksum does not hold"));
    }
    let mut slash = [0; 5];
    input.exact(&mut slash)?;
    if slash != *b"\0\0\0\x01/" {
        return Err(Error::corrupt("zk_snapshot", "the checksum is not followed by a slash"));
    }
    Ok(())
}

/// Bytes, with the checksum of all that were read.
struct Summed<R> {
    inner: R,
    adler: Adler32,
    offset: u64,
}

impl<R> std::fmt::Debug for Summed<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summed").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl<R: Read> Summed<R> {
    fn new(inner: R) -> Summed<R> {
        Summed { inner, adler: Adler32::new(), offset: 0 }
    }

    fn exact(&mut self, buf: &mut [u8]) -> Result<()> {
        self.inner.read_exact(buf).map_err(failed)?;
        self.adler.write_slice(buf);
        self.offset += buf.len() as u64;
        Ok(())
    }

    /// What is left, as far as it has room; it does not count.
    fn peeked(&mut self, buf: &mut [u8]) -> Result<usize> {
        let mut len = 0;
        while len < buf.len() {
            match self.inner.read(&mut buf[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(len)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        self.exact(&mut array)?;
        Ok(array)
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Reads a buffer into `out`; false for null. Memory grows with what is there, not with what the length says.
    fn buffer(&mut self, out: &mut Vec<u8>, limit: u32) -> Result<bool> {
        out.clear();
        let length = self.i32()?;
        if length == -1 {
            return Ok(false);
        }
        let Some(len) = u32::try_from(length).ok().filter(|len| *len <= limit) else {
            return Err(too_long(length));
        };
        let mut left = len as usize;
        while left > 0 {
            let (at, piece) = (out.len(), left.min(64 * 1024));
            out.resize(at + piece, 0);
            self.exact(&mut out[at..])?;
            left -= piece;
        }
        Ok(true)
    }
}

/// A file that ends early, or does not decompress, is damaged; other failures are the system's.
fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::corrupt("zk_snapshot", "the snapshot ends too early"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            Error::corrupt("zk_snapshot", format!("it does not decompress: {error}"))
        }
        _ => Error::io("read a snapshot", error),
    }
}
