use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::base::{Error, Result, Zxid};
use crate::format::{Manifest, segment_name};
use crate::io::{Backend, Disk};
use crate::log::directory::open_segment;
use crate::log::read::{
    Helpers, Replay, SegmentScan, StopKind, Window, peek_floor, scan_segment, scan_through,
};

/// Scans all segments, on all cores where there are several. Files are open only while they are scanned.
/// With a `replay`, those that it wants records of are scanned in order instead, by the caller's thread.
pub(super) fn scan_all(
    disk: &Arc<dyn Disk>,
    manifest: &Manifest,
    found: &[(u64, u64)],
    replay: Option<&mut Replay<'_>>,
) -> Result<BTreeMap<u64, SegmentScan>> {
    // The simulator needs the same order of calls each time.
    let simulated = disk.info().backend == Backend::Simulated;
    let cores = if simulated { 1 } else { thread::available_parallelism().map_or(1, usize::from).min(8) };
    let helpers = (cores > 1).then(|| Helpers::new(cores - 1));
    let scans = Scans { disk: disk.as_ref(), manifest, helpers };
    // What was purged cannot be handed out; whether the log is damaged is still the first question.
    let Some(replay) = replay.filter(|replay| replay.after() >= manifest.floor_zxid) else {
        return scans.parallel(found, cores);
    };
    let (older, wanted) = found.split_at(scans.first_wanted(found, replay.after())?);
    let mut done = scans.parallel(older, cores)?;
    replay.start(manifest.first_seq, manifest.floor_zxid);
    for (seq, scan) in done.iter().filter(|(seq, _)| !scans.is_apart(**seq)) {
        if replay.enter(*seq) {
            replay.pass(scan.floor_zxid, scan.last_zxid);
            scans.leave(*seq, scan, replay);
        }
    }
    for (seq, _) in wanted {
        done.insert(*seq, scans.replaying(*seq, replay)?);
    }
    Ok(done)
}

/// Scans a segment as the manifest has it.
pub(crate) fn scan_one(disk: &dyn Disk, manifest: &Manifest, seq: u64) -> Result<SegmentScan> {
    let file = open_segment(disk, &segment_name(seq))?;
    scan_segment(file.as_ref(), seq, manifest.database_id, manifest.cut_of(seq).map(|c| c.last_zxid))
}

struct Scans<'s> {
    disk: &'s dyn Disk,
    manifest: &'s Manifest,
    /// Of a scan that goes on alone, where there are several cores.
    helpers: Option<Helpers>,
}

impl Scans<'_> {
    fn one(&self, seq: u64) -> Result<SegmentScan> {
        scan_one(self.disk, self.manifest, seq)
    }

    /// Scans a segment with the help of the other cores.
    fn helped(&self, seq: u64, replay: Option<&mut Replay<'_>>) -> Result<SegmentScan> {
        let file = open_segment(self.disk, &segment_name(seq))?;
        let wrap = |e| Error::io("take the length of a segment", e).in_file(file.name());
        let (file, len) = (file.as_ref(), file.len().map_err(wrap)?);
        let (database_id, limit) =
            (self.manifest.database_id, self.manifest.cut_of(seq).map(|c| c.last_zxid));
        // The window is dropped with the scan, which ends the threads that read ahead of it.
        let scan = |mut window: Window| scan_through(&mut window, file, seq, database_id, limit, replay);
        match &self.helpers {
            Some(helpers) => thread::scope(|scope| scan(Window::reading_ahead(scope, file, len, helpers))),
            None => scan(Window::new(len)),
        }
    }

    fn replaying(&self, seq: u64, replay: &mut Replay<'_>) -> Result<SegmentScan> {
        if self.is_apart(seq) || !replay.enter(seq) {
            return self.helped(seq, None);
        }
        let scan = self.helped(seq, Some(replay))?;
        self.leave(seq, &scan, replay);
        Ok(scan)
    }

    /// Goes on behind a segment where the judge would: one without a group may end at what came before it.
    fn leave(&self, seq: u64, scan: &SegmentScan, replay: &mut Replay<'_>) {
        let cut = self.manifest.cut_of(seq);
        let whole = match scan.stop.kind {
            StopKind::Sealed | StopKind::Limit => true,
            StopKind::Zeros | StopKind::Garbage => cut.is_some_and(|c| c.last_zxid == replay.last()),
            StopKind::Header | StopKind::Misfit => false,
        };
        let whole = whole || crate::planted("replay_past_the_end");
        replay.leave(cut.map_or(seq + 1, |c| c.next_seq), whole);
    }

    /// Whether a segment is there but no part of the log.
    fn is_apart(&self, seq: u64) -> bool {
        seq < self.manifest.first_seq || self.manifest.is_cut_away(seq)
    }

    /// The place of the segment that holds the first record after `after`: the last one that begins before it.
    fn first_wanted(&self, found: &[(u64, u64)], after: Zxid) -> Result<usize> {
        let mut wanted = 0;
        for (at, (seq, _)) in found.iter().enumerate().filter(|(_, (seq, _))| !self.is_apart(*seq)) {
            let file = open_segment(self.disk, &segment_name(*seq))?;
            match peek_floor(file.as_ref(), *seq, self.manifest.database_id)? {
                Some(floor) if floor <= after => wanted = at,
                _ => break,
            }
        }
        Ok(wanted)
    }

    fn parallel(&self, found: &[(u64, u64)], cores: usize) -> Result<BTreeMap<u64, SegmentScan>> {
        let workers = cores.min(found.len());
        if workers <= 1 {
            return found.iter().map(|(seq, _)| Ok((*seq, self.helped(*seq, None)?))).collect();
        }
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Ok(BTreeMap::new()));
        let work = || {
            while let Some((seq, _)) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                let scan = self.one(*seq);
                let mut done = done.lock();
                match (scan, done.as_mut()) {
                    (Ok(scan), Ok(map)) => drop(map.insert(*seq, scan)),
                    (Err(error), Ok(_)) => *done = Err(error),
                    (_, Err(_)) => return, // the first failure is the one to tell
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..workers {
                let thread = thread::Builder::new().name("arborlog-reader".into());
                if thread.spawn_scoped(scope, work).is_err() {
                    break; // no more threads for this process: those that there are do the work
                }
            }
            work();
        });
        done.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Epoch, ErrorKind};
    use crate::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};
    use crate::{LogOptions, Record};

    /// Else the segment would count as missing, and the log as damaged.
    #[test]
    fn tt_05_a_segment_that_cannot_be_read_is_told_by_whichever_thread() {
        let disk = SimDisk::new(1);
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let (log, _) = options.open_sim(&disk).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        for n in 1..=80 {
            log.append(&Record::new(Zxid::from_parts(1, n), 0, b"record")).unwrap().wait().unwrap();
        }
        let manifest = log.shared.directory.manifest();
        log.close().unwrap();
        let (found, handle) = ([(1, 0), (2, 0), (3, 0), (4, 0)], disk.handle());
        for workers in [1, 2, 4] {
            let helpers = (workers == 1).then(|| Helpers::new(1));
            let scans = Scans { disk: handle.as_ref(), manifest: &manifest, helpers };
            assert_eq!(scans.parallel(&found, workers).unwrap().len(), 4);
            let fault = Fault::next(FaultOp::Read, Effect::EIO).on(NamePattern::Exact(segment_name(2)));
            disk.inject(fault.times(u64::MAX));
            assert_eq!(scans.parallel(&found, workers).unwrap_err().kind(), ErrorKind::Io, "{workers}");
            disk.clear_faults();
        }
    }
}
