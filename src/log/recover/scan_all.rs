use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::Result;
use crate::format::{Manifest, segment_name};
use crate::io::{Backend, Disk};
use crate::log::directory::open_segment;
use crate::log::read::{SegmentScan, scan_segment};

/// Scans all segments, on all cores where there are several. Files are open only while they are scanned.
pub(super) fn scan_all(
    disk: &Arc<dyn Disk>,
    manifest: &Manifest,
    found: &[(u64, u64)],
) -> Result<BTreeMap<u64, SegmentScan>> {
    let scan_one = |seq: u64| -> Result<SegmentScan> {
        let file = open_segment(disk.as_ref(), &segment_name(seq))?;
        let limit = manifest.cut_of(seq).map(|c| c.last_zxid);
        scan_segment(file.as_ref(), seq, manifest.database_id, limit)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // The simulator needs the same order of calls each time.
    let workers = if disk.info().backend == Backend::Simulated { 1 } else { cores.min(found.len()).min(8) };
    if workers <= 1 {
        return found.iter().map(|(seq, _)| Ok((*seq, scan_one(*seq)?))).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((seq, _)) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let scan = scan_one(*seq);
                    let mut done = done.lock();
                    match (scan, done.as_mut()) {
                        (Ok(scan), Ok(map)) => drop(map.insert(*seq, scan)),
                        (Err(error), Ok(_)) => *done = Err(error),
                        (_, Err(_)) => return, // the first failure is the one to tell
                    }
                }
            });
        }
    });
    done.into_inner()
}
