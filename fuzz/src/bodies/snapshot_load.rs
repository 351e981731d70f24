use arborlog::inspect::load_snapshot;
use arborlog::{DataTree, Error, Walk};

use super::directory::Outcome;
use super::layout::{crc, put, u32_at, u64_at};
use crate::allocations::peak_bytes;

const HEADER: usize = 512;
const BLOCK_HEADER: usize = 64;
const TRAILER: usize = 128;
/// Memory for each byte of the file: a node needs at least 13 bytes, of which a record of the tree or of what waits
/// for its parent is made.
const MEMORY_PER_BYTE: u64 = 64;
/// What an empty tree, an error and a few tables take.
const MEMORY_ALWAYS: u64 = 1 << 20;

/// A whole snapshot. Of the first byte, bit 0 makes the header's checksum right, bit 1 those of the blocks and the
/// trailer, bit 2 the places of blocks, their index and their count, bit 3 the tree's digest.
///
/// # Panics
/// If loading takes memory out of proportion, or the tree that is loaded is none.
pub fn snapshot_load(input: &[u8]) -> Outcome {
    let Some((flags, bytes)) = input.split_first() else { return Outcome::Skipped };
    let mut bytes = bytes.to_vec();
    sign(&mut bytes, *flags);
    let (mut loaded, mut peak) = peak_bytes(|| load_snapshot(&bytes));
    if let Some(digest) = loaded.as_ref().err().and_then(digest_found).filter(|_| flags & 8 != 0) {
        let end = bytes.len() - TRAILER;
        put(&mut bytes, end + 72, &digest.to_le_bytes());
        sign(&mut bytes, 2);
        (loaded, peak) = peak_bytes(|| load_snapshot(&bytes));
        assert!(loaded.is_ok(), "{loaded:?}");
    }
    let most = MEMORY_ALWAYS + MEMORY_PER_BYTE * bytes.len() as u64;
    assert!(peak <= most, "{peak} bytes of memory for {} bytes", bytes.len());
    let Ok((tree, info)) = loaded else { return Outcome::Refused };
    assert_eq!((tree.digest(), tree.last_zxid()), (info.digest, info.end));
    let (mut copy, mut walk) = (DataTree::loader(), Walk::new());
    while tree.walk(&mut walk, 64, &mut |node| copy.node(&node)) {}
    let again = copy.finish(info.end);
    assert_eq!((again.orphans, again.tree.len(), again.tree.digest()), (0, tree.len(), info.digest));
    Outcome::Opened
}

/// The digest of the tree that the blocks make, if it is the only thing that is wrong.
fn digest_found(error: &Error) -> Option<u64> {
    let text = error.to_string();
    let digits = text.split_once("digest is 0x")?.1.split_once(',')?.0;
    (error.code() == "snapshot_digest").then(|| u64::from_str_radix(digits, 16).expect("a number"))
}

/// Makes right what the flags say, as far as the bytes are a snapshot.
fn sign(bytes: &mut Vec<u8>, flags: u8) {
    if bytes.len() < HEADER + TRAILER {
        return;
    }
    if flags & 1 != 0 {
        let sum = crc(0, &bytes[12..HEADER]);
        put(bytes, 8, &sum.to_le_bytes());
    }
    let seed = crc(crc(0, &bytes[32..48]), &bytes[48..56]);
    if flags & 4 != 0 {
        place(bytes);
    }
    if flags & 2 == 0 {
        return;
    }
    let end = bytes.len() - TRAILER;
    let (mut at, mut number) = (HEADER, 0_u64);
    while at + BLOCK_HEADER <= end {
        let body = at + BLOCK_HEADER..(at + BLOCK_HEADER).saturating_add(u32_at(bytes, at + 36) as usize);
        if body.end > end {
            break;
        }
        let seed = crc(seed, &number.to_le_bytes());
        let sum = crc(seed, &bytes[body.clone()]);
        put(bytes, at + 40, &sum.to_le_bytes());
        let sum = crc(seed, &bytes[at + 8..at + BLOCK_HEADER]);
        put(bytes, at + 4, &sum.to_le_bytes());
        (at, number) = (body.end, number + 1);
    }
    let sum = crc(seed, &bytes[end + 12..]);
    put(bytes, end + 8, &sum.to_le_bytes());
}

/// Makes the blocks stand where they say, and index and trailer tell of them.
fn place(bytes: &mut Vec<u8>) {
    let end = bytes.len() - TRAILER;
    let mut trailer = bytes[end..].to_vec();
    let (mut at, mut places, mut counts) = (HEADER, Vec::new(), [0_u64; 3]);
    while at + BLOCK_HEADER <= end {
        let kind = bytes[at + 8];
        let rest = end - at - BLOCK_HEADER;
        if kind > 3 {
            break;
        }
        let body = (u32_at(bytes, at + 36) as usize).min(rest);
        let body_bytes = u32::try_from(body).expect("an input is small");
        put(bytes, at + 16, &(places.len() as u64).to_le_bytes());
        put(bytes, at + 24, &(at as u64).to_le_bytes());
        put(bytes, at + 32, &body_bytes.to_le_bytes());
        put(bytes, at + 36, &body_bytes.to_le_bytes());
        if let Some(count) = counts.get_mut(usize::from(kind).wrapping_sub(1)) {
            *count += u64::from(u32_at(bytes, at + 12));
        }
        places.push((at as u64, u64::from(body_bytes)));
        at += BLOCK_HEADER + body;
    }
    bytes.truncate(at);
    let index: Vec<u8> = places.iter().flat_map(|(at, len)| [*at, *len]).flat_map(u64::to_le_bytes).collect();
    bytes.extend(block(4, places.len() as u64, at as u64, places.len(), &index));
    put(&mut trailer, 16, &(places.len() as u64).to_le_bytes());
    put(&mut trailer, 24, &(at as u64).to_le_bytes());
    for (count, at) in counts.iter().zip([32, 40, 48]) {
        put(&mut trailer, at, &count.to_le_bytes());
    }
    let start = u64_at(bytes, 56);
    put(&mut trailer, 56, &start.to_le_bytes());
    let total = (bytes.len() + TRAILER) as u64;
    put(&mut trailer, 80, &total.to_le_bytes());
    bytes.extend(trailer);
}

/// A block without its checksums.
fn block(kind: u8, number: u64, at: u64, count: usize, body: &[u8]) -> Vec<u8> {
    let mut block = vec![0; BLOCK_HEADER];
    put(&mut block, 0, b"ASNB");
    put(&mut block, 8, &[kind]);
    put(&mut block, 12, &u32::try_from(count).expect("an input is small").to_le_bytes());
    put(&mut block, 16, &number.to_le_bytes());
    put(&mut block, 24, &at.to_le_bytes());
    let len = u32::try_from(body.len()).expect("an input is small").to_le_bytes();
    put(&mut block, 32, &len);
    put(&mut block, 36, &len);
    block.extend(body);
    block
}

/// The shortest entry of a node: under `parent`, or under that of the entry before it.
pub fn node_entry(parent: Option<&str>, name: &str) -> Vec<u8> {
    let text = |out: &mut Vec<u8>, text: &str| {
        // A length below 128 is one byte.
        out.push(u8::try_from(text.len()).expect("a short text") & 0x7f);
        out.extend(text.as_bytes());
    };
    let mut out = vec![4 | u8::from(parent.is_none()), 0];
    if let Some(parent) = parent {
        text(&mut out, parent);
    }
    text(&mut out, name);
    out.extend([0; 9]);
    out
}

/// A signed snapshot of one block of nodes; its digest is that of no tree with nodes.
pub fn snapshot_of_nodes(entries: &[u8], count: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    put(&mut bytes, 0, b"ARBORSNP");
    put(&mut bytes, 12, &[1]);
    put(&mut bytes, 20, &[1]);
    bytes.extend(block(1, 0, HEADER as u64, count, entries));
    let mut trailer = vec![0; TRAILER];
    put(&mut trailer, 0, b"ARBOREND");
    bytes.extend(trailer);
    sign(&mut bytes, 7);
    bytes
}
