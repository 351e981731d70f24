use std::borrow::Cow;
use std::io::Read;

use hashbrown::HashMap;

use super::bytes::{Bytes, InOrder};
use super::compression::{Compression, Plain};
use super::jute::{text, text_lossy};
use super::summed::Summed;
use crate::base::{Error, Result, Zxid};
use crate::format::{AclBuf, AclEntry, AclList, Perms};

pub(super) const MAGIC: &[u8; 4] = b"ZKSN";
/// No ACL list: everybody may do everything.
pub(super) const OPEN_ACL: i64 = -1;
/// What a node has behind its data.
const FIXED_BYTES: usize = 68;

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
    input: Summed<Plain<InOrder<B>>>,
    name: String,
    sessions: Vec<(i64, i32)>,
    /// ACL lists by their numbers.
    acls: HashMap<i64, AclBuf>,
    /// The path of a node that does not stand in the file as we have it.
    path: String,
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
            input: Summed::new(plain, limit),
            name: name.to_owned(),
            sessions: Vec::new(),
            acls: HashMap::new(),
            path: String::new(),
            trailer: None,
        };
        snapshot.head().map_err(|e| snapshot.placed(e))?;
        Ok(snapshot)
    }

    fn placed(&self, error: Error) -> Error {
        error.in_file(&self.name).at_offset(self.input.offset())
    }

    fn head(&mut self) -> Result<()> {
        let magic: [u8; 16] = self.input.array()?;
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
        let null = || Error::corrupt("zk_snapshot", "a word of an ACL entry is null");
        for _ in 0..count.max(0) {
            let perms = Perms::new(self.input.i32()?);
            let scheme = self.input.buffer()?.ok_or_else(null)?;
            let id = self.input.buffer()?.ok_or_else(null)?;
            let (scheme, id) = (text_lossy(&scheme), text_lossy(&id));
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

    /// How many bytes of the file were read, as it stands on disk.
    pub fn read_bytes(&self) -> u64 {
        self.input.inner().inner().offset()
    }

    /// The next node; none behind the last one, once the checksums behind it were found to hold.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn next_node(&mut self) -> Result<Option<SnapshotNode<'_>>> {
        if self.trailer.is_some() {
            return Ok(None);
        }
        let start = self.input.offset();
        let measured = measure(&mut self.input).and_then(|measured| {
            if measured.is_none() {
                self.trailer = Some(read_trailer(&mut self.input)?);
            }
            Ok(measured)
        });
        let measured = measured.map_err(|e| e.in_file(&self.name).at_offset(start))?;
        let Some((path_len, data_len)) = measured else { return Ok(None) };
        let total = 4 + path_len + 4 + data_len.unwrap_or(0) + FIXED_BYTES;
        self.input.take(total);
        let (path, rest) = self.input.taken(total)[4..].split_at(path_len);
        let (data, fixed) = rest[4..].split_at(data_len.unwrap_or(0));
        let path = match text(path) {
            Some(Cow::Borrowed("")) => "/",
            Some(Cow::Borrowed(path)) => path,
            Some(Cow::Owned(path)) => {
                self.path = path;
                &self.path
            }
            None => {
                let error = Error::corrupt("zk_snapshot", "a path is no text");
                return Err(error.in_file(&self.name).at_offset(start));
            }
        };
        let mut node = fixed_fields(fixed);
        node.path = path;
        node.data = data_len.map(|_| data);
        node.acl = match node.acl_id {
            OPEN_ACL => Some(AclList::EMPTY),
            id => self.acls.get(&id).map(AclBuf::as_list),
        };
        Ok(Some(node))
    }

    /// What stands behind the nodes, once all were read.
    pub fn trailer(&self) -> Option<SnapshotTrailer> {
        self.trailer
    }
}

/// The lengths of the next node's path and data, all of which is held; none at the slash behind the nodes, which is
/// taken.
fn measure(input: &mut Summed<impl Read>) -> Result<Option<(usize, Option<usize>)>> {
    let null = || Error::corrupt("zk_snapshot", "a path is null");
    let path_len = input.buffer_ahead(0)?.ok_or_else(null)?;
    if input.held()[4..4 + path_len] == *b"/" {
        input.take(4 + path_len);
        return Ok(None);
    }
    let data_len = input.buffer_ahead(4 + path_len)?;
    input.hold(4 + path_len + 4 + data_len.unwrap_or(0) + FIXED_BYTES)?;
    Ok(Some((path_len, data_len)))
}

/// What stands behind a node's data.
fn fixed_fields<'a>(bytes: &[u8]) -> SnapshotNode<'a> {
    let array = |at: usize| bytes[at..].first_chunk::<8>().expect("all of them are held");
    let long = |at: usize| i64::from_be_bytes(*array(at));
    let int = |at: usize| i32::from_be_bytes(*array(at).first_chunk().expect("four of eight"));
    SnapshotNode {
        path: "",
        data: None,
        acl: None,
        acl_id: long(0),
        zxids: [long(8), long(16), long(60)],
        times_ms: [long(24), long(32)],
        versions: [int(40), int(44), int(48)],
        ephemeral_owner: long(52),
    }
}

/// Which parts there are is told by how much is left, not by the settings of a server.
fn read_trailer(input: &mut Summed<impl Read>) -> Result<SnapshotTrailer> {
    const SEAL_BYTES: usize = 13;
    const LONGEST: usize = 20 + SEAL_BYTES + 8 + SEAL_BYTES;
    seal(input)?;
    let mut trailer = SnapshotTrailer::default();
    let (has_digest, has_zxid) = match input.reach(LONGEST + 1)? {
        0 => (false, false),
        33 => (true, false),
        21 => (false, true),
        LONGEST => (true, true),
        len => {
            let why = format!("{len} bytes or more behind the nodes' checksum are no known trailer");
            return Err(Error::corrupt("zk_snapshot", why));
        }
    };
    if has_digest {
        let zxid = input.i64()?;
        let version = input.i32()?;
        let digest = input.i64()?.cast_unsigned();
        // Zero says that there is none.
        trailer.digest =
            Some((Zxid::new(zxid.cast_unsigned()), digest)).filter(|_| zxid != 0 && version == 2);
        seal(input)?;
    }
    if has_zxid {
        trailer.last_zxid = Some(Zxid::new(input.i64()?.cast_unsigned()));
        seal(input)?;
    }
    Ok(trailer)
}

/// The checksum of all that came before, and a slash.
fn seal(input: &mut Summed<impl Read>) -> Result<()> {
    let sum = i64::from(input.checksum());
    if input.i64()? != sum {
        return Err(Error::corrupt("zk_snapshot", "the checksum does not hold"));
    }
    if input.array()? != *b"\0\0\0\x01/" {
        return Err(Error::corrupt("zk_snapshot", "the checksum is not followed by a slash"));
    }
    Ok(())
}
