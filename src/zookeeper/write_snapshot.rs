//! A tree as ZooKeeper's snapshot.

use std::io::{self, Write};

use adler2::Adler32;
use hashbrown::HashMap;

use super::format::ZkFormat;
use super::jute::{put_buffer, put_len, put_text, text_len};
use super::read_txn::DIGEST_VERSION;
use super::report::told_path;
use super::snapshot_file::{MAGIC, OPEN_ACL};
use super::write_txn::put_acl;
use crate::base::{Error, ErrorKind, Result};
use crate::tree::{DataTree, NodeRef, Owner};

/// Version, and the database, which is none.
const HEADER_REST: &[u8; 12] = b"\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
const CONFIG: &str = "/zookeeper/config";
/// So much is gathered before it is written.
const PIECE_BYTES: usize = 256 * 1024;

/// Writes a tree that stands still. The tree's text of quota totals stands where ZooKeeper has it. `tell` gets the number
/// of nodes from time to time.
pub(super) fn write_snapshot(
    tree: &DataTree,
    format: ZkFormat,
    out: &mut dyn Write,
    tell: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut sealed = Sealed { out, adler: Adler32::new(), piece: Vec::with_capacity(PIECE_BYTES) };
    sealed.piece.extend_from_slice(MAGIC);
    sealed.piece.extend_from_slice(HEADER_REST);
    let sessions = tree.sessions();
    put_len(&mut sealed.piece, sessions.len());
    for (id, timeout_ms) in sessions {
        sealed.piece.extend_from_slice(&id.to_be_bytes());
        sealed.piece.extend_from_slice(&timeout_ms.to_be_bytes());
        sealed.pass_on(PIECE_BYTES)?;
    }
    let ids = put_acl_table(tree, format, &mut sealed)?;
    let root = tree.get("/");
    for (count, node) in (1..).zip(root.into_iter().chain(tree.descendants("/", None))) {
        put_node(&mut sealed.piece, &node, &ids, format)?;
        if sealed.pass_on(PIECE_BYTES)? {
            tell(count);
        }
    }
    put_text(&mut sealed.piece, "/");
    sealed.seal()?;
    let zxid = tree.last_zxid().get().to_be_bytes();
    if format.has_digests() {
        sealed.piece.extend_from_slice(&zxid);
        sealed.piece.extend_from_slice(&DIGEST_VERSION.to_be_bytes());
        sealed.piece.extend_from_slice(&tree.digest().to_be_bytes());
        sealed.seal()?;
    }
    if format.has_last_zxid() {
        sealed.piece.extend_from_slice(&zxid);
        sealed.seal()?;
    }
    Ok(())
}

/// The table of all lists but the one that is none; the numbers by the lists' bytes.
fn put_acl_table(
    tree: &DataTree,
    format: ZkFormat,
    sealed: &mut Sealed<'_>,
) -> Result<HashMap<Vec<u8>, i64>> {
    let mut ids: HashMap<Vec<u8>, i64> = HashMap::new();
    let (mut table, mut next) = (Vec::new(), 0_i64);
    let root = tree.get("/");
    for node in root.into_iter().chain(tree.descendants("/", None)) {
        let list = node.acl();
        if !list.is_empty() && !ids.contains_key(list.as_bytes()) {
            let longest = list.iter().map(|entry| text_len(entry.scheme).max(text_len(entry.id))).max();
            check_length(longest.unwrap_or(0), format, || format!("an ACL of {}", told_path(&node.path())))?;
            next += 1;
            let id = next;
            ids.insert(list.as_bytes().to_vec(), id);
            table.extend_from_slice(&id.to_be_bytes());
            put_acl(&mut table, list);
        }
    }
    put_len(&mut sealed.piece, ids.len());
    sealed.piece.extend_from_slice(&table);
    sealed.pass_on(PIECE_BYTES)?;
    Ok(ids)
}

fn put_node(
    out: &mut Vec<u8>,
    node: &NodeRef<'_>,
    ids: &HashMap<Vec<u8>, i64>,
    format: ZkFormat,
) -> Result<()> {
    let (path, data, stat) = (node.path(), node.data(), node.stored());
    if path == CONFIG && !format.has_extended_nodes() && stat.mzxid.get() == 0 {
        return Ok(());
    }
    check_length(text_len(&path).max(data.map_or(0, <[u8]>::len)), format, || told_path(&path))?;
    if matches!(stat.owner, Owner::Container | Owner::Ttl { .. }) && !format.has_extended_nodes() {
        return Err(format.refuses(&format!("{} is a container or has a time to live", told_path(&path))));
    }
    put_text(out, if path == "/" { "" } else { &path });
    put_buffer(out, data);
    let acl = node.acl();
    let id = if acl.is_empty() { OPEN_ACL } else { ids.get(acl.as_bytes()).copied().unwrap_or(OPEN_ACL) };
    for long in [id, raw(stat.czxid)?, raw(stat.mzxid)?, stat.ctime_ms, stat.mtime_ms] {
        out.extend_from_slice(&long.to_be_bytes());
    }
    for int in [stat.version, stat.cversion, stat.aversion] {
        out.extend_from_slice(&int.to_be_bytes());
    }
    for long in [stat.owner.to_raw(), raw(stat.pzxid)?] {
        out.extend_from_slice(&long.to_be_bytes());
    }
    Ok(())
}

/// Whether the node of the ensemble's servers is not written: servers of that time do not keep it.
pub(super) fn leaves_out_config(tree: &DataTree, format: ZkFormat) -> bool {
    !format.has_extended_nodes() && tree.get(CONFIG).is_some_and(|node| node.stored().mzxid.get() == 0)
}

fn check_length(len: usize, format: ZkFormat, of: impl FnOnce() -> String) -> Result<()> {
    if len <= format.length_limit() {
        return Ok(());
    }
    let what = format!("{} is longer than a server of {format} reads: {len} bytes", of());
    Err(Error::new(ErrorKind::TooLarge, "zk_length", what))
}

/// ZooKeeper's zxids have a sign.
pub(super) fn raw(zxid: crate::base::Zxid) -> Result<i64> {
    i64::try_from(zxid.get())
        .map_err(|_| Error::new(ErrorKind::Invalid, "zk_format", format!("{zxid} is no zxid of ZooKeeper's")))
}

/// Bytes on their way out, and the checksum of all of them.
struct Sealed<'a> {
    out: &'a mut dyn Write,
    adler: Adler32,
    piece: Vec<u8>,
}

impl Sealed<'_> {
    /// Passes on what was gathered, if it is so much; whether it was.
    fn pass_on(&mut self, least: usize) -> Result<bool> {
        if self.piece.len() < least {
            return Ok(false);
        }
        self.adler.write_slice(&self.piece);
        self.out.write_all(&self.piece).map_err(failed)?;
        self.piece.clear();
        Ok(true)
    }

    fn seal(&mut self) -> Result<()> {
        self.pass_on(0)?;
        self.piece.extend_from_slice(&u64::from(self.adler.checksum()).to_be_bytes());
        put_text(&mut self.piece, "/");
        self.pass_on(0).map(drop)
    }
}

fn failed(error: io::Error) -> Error {
    Error::io("write a snapshot", error)
}
