//! `docs/FORMAT.md` a second time, as far as checksums go: so that changed fields get past them, and so that the
//! page itself is put to the test.

use std::fmt::Write as _;

/// The bytes of a segment before its groups.
pub(super) const PAGE: usize = 4096;
const GROUP_HEADER: usize = 96;
const RECORD_HEADER: usize = 32;
const GROUP_MAGIC: &[u8] = b"AGRP";

/// Which checksums to make right.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of an input, each on its own")]
pub(super) struct Sign {
    pub(super) page: bool,
    pub(super) groups: bool,
    pub(super) records: bool,
    /// Also makes each group stand where it says, after the one before it.
    pub(super) places: bool,
}

impl Sign {
    pub(super) fn of(flags: u8) -> Sign {
        Sign { page: flags & 1 != 0, groups: flags & 2 != 0, records: flags & 4 != 0, places: flags & 8 != 0 }
    }
}

pub(super) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The manifest of a log that consists of one segment, with its checksum. `ahead` is how far it claims more
/// durable than what came before the segment.
pub(super) fn manifest_of(database_id: &[u8], seq: u64, floor: u64, ahead: u64, clean: bool) -> Vec<u8> {
    let durable = floor.saturating_add(ahead);
    let mut id = String::new();
    for byte in database_id {
        write!(id, "{byte:02x}").expect("a string takes every write");
    }
    let clean = if clean { "yes" } else { "no" };
    let body = format!(
        "arborlog manifest 1\ndatabase_id {id}\nversion 1\nnumbering index\nepoch 0\ndurable_zxid 0x{durable:x}\n\
         clean {clean}\nfirst_seq {seq}\nfloor_zxid 0x{floor:x}\n"
    );
    sign_manifest(body.as_bytes())
}

/// Adds the last line, in place of the one that is there.
pub(super) fn sign_manifest(text: &[u8]) -> Vec<u8> {
    let last = text.windows(7).rposition(|window| window == b"\ncrc32 ").map_or(text.len(), |at| at + 1);
    let mut signed = text[..last].to_vec();
    let line = format!("crc32 {:08x}\n", crc(0, &signed));
    signed.extend(line.bytes());
    signed
}

/// A header page in front of which nothing was written yet.
pub(super) fn page(database_id: &[u8], seq: u64, salt: u64, block: u32, capacity: u64) -> Vec<u8> {
    const GROWING: u32 = 3;
    let mut page = vec![0; PAGE];
    put(&mut page, 0, b"ARBORSEG");
    put(&mut page, 12, &1_u32.to_le_bytes());
    put(&mut page, 20, &GROWING.to_le_bytes());
    put(&mut page, 24, &block.to_le_bytes());
    put(&mut page, 32, database_id);
    put(&mut page, 48, &seq.to_le_bytes());
    put(&mut page, 56, &salt.to_le_bytes());
    put(&mut page, 64, &capacity.to_le_bytes());
    sign_page(&mut page);
    page
}

fn sign_page(page: &mut [u8]) {
    let sum = crc(0, &page[12..PAGE]);
    put(page, 8, &sum.to_le_bytes());
}

/// The offsets of what looks like groups.
pub(super) fn groups(segment: &[u8]) -> Vec<usize> {
    let block = if segment.len() < PAGE { 0 } else { u32_at(segment, 24) };
    let block = if block.is_power_of_two() && block >= 512 { block as usize } else { 512 };
    let starts = (PAGE.next_multiple_of(block)..segment.len()).step_by(block);
    starts
        .filter(|&at| segment.len() - at >= GROUP_HEADER && segment[at..].starts_with(GROUP_MAGIC))
        .collect()
}

/// Makes the checksums of a segment right.
pub(super) fn sign_segment(segment: &mut [u8], sign: Sign) {
    if segment.len() < PAGE {
        return;
    }
    if sign.page {
        sign_page(&mut segment[..PAGE]);
    }
    let database_seed = crc(0, &segment[32..48]);
    let segment_seed = crc(database_seed, &segment[56..64]);
    let seq = u64_at(segment, 48);
    let mut last: Option<(u64, u64)> = None;
    for at in groups(segment) {
        let group = &mut segment[at..];
        if sign.places {
            put(group, 24, &(at as u64).to_le_bytes());
            put(group, 32, &seq.to_le_bytes());
            if let Some((zxid, epoch)) = last {
                put(group, 56, &zxid.to_le_bytes());
                let epoch = epoch.max(u64_at(group, 72));
                put(group, 72, &epoch.to_le_bytes());
            }
            last = Some((u64_at(group, 48), u64_at(group, 72)));
        }
        if sign.records {
            sign_body(group, segment_seed, database_seed);
        }
        if sign.groups {
            let sum = crc(segment_seed, &group[8..GROUP_HEADER]);
            put(group, 4, &sum.to_le_bytes());
        }
    }
}

/// Makes right what the header says of the body, and the records' own checksums.
fn sign_body(group: &mut [u8], segment_seed: u32, database_seed: u32) {
    const RECORDS: u8 = 1;
    const SEAL: u8 = 2;
    let kind = group[8];
    let body = usize::try_from(u64_at(group, 16)).unwrap_or(usize::MAX);
    let Some(end) = GROUP_HEADER.checked_add(body).filter(|&end| end <= group.len()) else { return };
    if kind == SEAL {
        let sum = u64::from(crc(segment_seed, &group[GROUP_HEADER..end]));
        put(group, 88, &sum.to_le_bytes());
    }
    if kind != RECORDS {
        return;
    }
    let (mut at, mut fold) = (GROUP_HEADER, 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..u32_at(group, 12) {
        if at + RECORD_HEADER > end {
            return;
        }
        let length = u32_at(group, at + 8) as usize;
        let payload = at + RECORD_HEADER..(at + RECORD_HEADER).saturating_add(length);
        if payload.end > end {
            return;
        }
        let next = payload.end.next_multiple_of(8);
        let sum = crc(0, &group[payload]);
        put(group, at + 4, &sum.to_le_bytes());
        let sum = crc(database_seed, &group[at + 4..at + RECORD_HEADER]);
        put(group, at, &sum.to_le_bytes());
        fold = (fold.rotate_left(23) ^ u64::from(sum)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        at = next;
    }
    put(group, 88, &fold.to_le_bytes());
}
