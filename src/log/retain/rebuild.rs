use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{Cut, DatabaseId, Manifest, Numbering, aside_number, segment_name};
use crate::io::{DirEntry, Disk};
use crate::log::directory::open_segment;
use crate::log::read::{SegmentScan, StopKind, scan_segment};
use crate::log::segment_file::segment_header;

/// A manifest made from what the segments say of themselves.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    pub(crate) manifest: Manifest,
    pub(crate) scans: BTreeMap<u64, SegmentScan>,
    /// Segments that a later one proves cut away.
    pub(crate) superseded: Vec<u64>,
    /// Whether the numbering is known, and not only the default.
    pub(crate) numbering_known: bool,
}

/// Rebuilds the manifest of a log that has lost it. `found` are its segments with their lengths.
///
/// What a manifest alone knows is lost: an epoch that was promised but not used, and a cut after which
/// nothing was written. The floors of the segments give all other cuts back.
pub(crate) fn rebuild(
    disk: &Arc<dyn Disk>,
    entries: &[DirEntry],
    found: &[(u64, u64)],
    numbering: Option<Numbering>,
) -> Result<Rebuilt> {
    let database_id = common_database(disk.as_ref(), found)?;
    let mut scans = BTreeMap::new();
    for (seq, _) in found {
        let file = open_segment(disk.as_ref(), &segment_name(*seq))?;
        scans.insert(*seq, scan_segment(file.as_ref(), *seq, database_id, None)?);
    }
    let (chain, superseded) = link(&scans);
    let first_seq = chain.first().map(|l| l.seq).or(found.first().map(|(seq, _)| *seq)).unwrap_or(1);
    let inferred = infer_numbering(&scans);
    let mut manifest = Manifest {
        database_id,
        // Names of asides carry the version that made them: none must ever be given twice.
        version: entries.iter().filter_map(|e| aside_number(&e.name)).max().unwrap_or(0),
        numbering: numbering.or(inferred).unwrap_or_default(),
        epoch: scans.values().map(|s| s.epoch).max().unwrap_or(Epoch::ZERO),
        durable_zxid: chain.iter().map(|l| scans[&l.seq].claims_anywhere()).max().unwrap_or(Zxid::ZERO),
        clean: false,
        first_seq,
        floor_zxid: chain.first().map_or(Zxid::ZERO, |l| l.floor),
        cuts: Vec::new(),
    };
    for pair in chain.windows(2) {
        let (link, next) = (&pair[0], &pair[1]);
        let whole = scans[&link.seq].stop.kind == StopKind::Sealed && !link.shortened;
        if link.last == next.floor && !(whole && next.seq == link.seq + 1) {
            let cut = Cut { seq: link.seq, last_zxid: link.last, next_seq: next.seq };
            manifest.cuts.push(cut);
            let file = open_segment(disk.as_ref(), &segment_name(link.seq))?;
            let scan = scan_segment(file.as_ref(), link.seq, database_id, Some(link.last))?;
            scans.insert(link.seq, scan);
        }
    }
    let numbering_known = numbering.or(inferred).is_some();
    Ok(Rebuilt { manifest, scans, superseded, numbering_known })
}

/// The database that all readable headers name.
fn common_database(disk: &dyn Disk, found: &[(u64, u64)]) -> Result<DatabaseId> {
    let mut common = None;
    for (seq, _) in found {
        let name = segment_name(*seq);
        let file = open_segment(disk, &name)?;
        let read = segment_header(file.as_ref());
        let header = match read.map_err(|e| Error::io("read a segment's header", e).in_file(&name))? {
            Ok(header) if header.seq == *seq => header,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error.in_file(&name)),
            // Damaged or misnamed: it has no say.
            _ => continue,
        };
        match common {
            None => common = Some(header.database_id),
            Some(id) if id == header.database_id => {}
            Some(id) => {
                let why = format!("segments of two databases, {id} and {}, stand here", header.database_id);
                return Err(Error::corrupt("salvage_ambiguous", why).in_file(&name));
            }
        }
    }
    common.ok_or_else(|| {
        Error::corrupt("salvage_nothing", "neither the manifest nor any segment's header can be read")
    })
}

/// A segment of the chain: what came before it, and its last record that counts.
struct Link {
    seq: u64,
    floor: Zxid,
    last: Zxid,
    shortened: bool,
}

/// Chains the segments by what each says came before it. A later one that begins before the end of the ones
/// before it was made after a cut, and tells where that was.
fn link(scans: &BTreeMap<u64, SegmentScan>) -> (Vec<Link>, Vec<u64>) {
    let (mut chain, mut superseded): (Vec<Link>, Vec<u64>) = (Vec::new(), Vec::new());
    for (seq, scan) in scans {
        let Some(floor) = scan.floor_zxid.filter(|_| scan.header.is_ok()) else { continue };
        while let Some(top) = chain.last_mut().filter(|top| floor < top.last) {
            if floor > top.floor {
                (top.last, top.shortened) = (floor, true);
            } else {
                superseded.push(top.seq);
                chain.pop();
            }
        }
        let last = scan.last_zxid.unwrap_or(floor);
        chain.push(Link { seq: *seq, floor, last, shortened: false });
    }
    (chain, superseded)
}

/// An epoch in the high half of a zxid is ZooKeeper's numbering. Small numbers beside an epoch may be either.
fn infer_numbering(scans: &BTreeMap<u64, SegmentScan>) -> Option<Numbering> {
    let last = scans.values().filter_map(|s| s.last_zxid).max()?;
    let epoch = scans.values().map(|s| s.epoch).max()?;
    (last.epoch() > Epoch::ZERO && last.epoch() <= epoch).then_some(Numbering::Zxid)
}
