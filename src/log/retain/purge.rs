use super::Retention;
use crate::base::{Error, Result, Zxid};
use crate::format::segment_name;
use crate::log::directory::{open_segment, sync_dir};
use crate::log::engine::Shared;

/// What a purge removed, and what it could not.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PurgeReport {
    /// Files that are gone.
    pub removed: Vec<String>,
    /// The last record that was purged: what the log starts after.
    pub floor_zxid: Zxid,
    /// Files that are no part of the log any more but could not be removed, and why. The next open tries
    /// again.
    pub left: Vec<(String, Error)>,
    /// Whether a pin kept segments that would otherwise have gone.
    pub held_by_pin: bool,
}

/// Removes segments from the front that hold nothing after `through`. The manifest comes first: once it says
/// that the log starts later, what is left of the files does not matter.
pub(crate) fn purge(shared: &Shared, through: Zxid, retention: &Retention) -> Result<PurgeReport> {
    if let Some(failure) = shared.failure() {
        return Err(failure.clone());
    }
    let _one_by_one = shared.rare.lock();
    let (going, first_seq, floor_zxid, held_by_pin) = {
        let segments = shared.segments.read();
        let durable = shared.durable();
        let wanted = through.min(durable);
        let mut pins = shared.pins.lock();
        let pinned = pins.oldest();
        let unneeded = pinned.map_or(wanted, |p| p.min(wanted));
        let now = shared.clock.wall_ms();
        let count = retention.plan(&segments, unneeded, now);
        let going: Vec<u64> = segments.iter().take(count).map(|s| s.header.seq).collect();
        let first = segments.iter().nth(count).expect("the one in use stays");
        pins.leave(first.floor_zxid);
        (going, first.header.seq, first.floor_zxid, count < retention.plan(&segments, wanted, now))
    };
    let mut report = PurgeReport { floor_zxid, held_by_pin, ..PurgeReport::default() };
    if going.is_empty() {
        return Ok(report);
    }
    if crate::planted("purge_before_manifest") {
        remove_files(shared, &going, &mut report)?;
    }
    let committed = shared.directory.commit(|m| {
        m.first_seq = first_seq;
        if !crate::planted("purge_keeps_floor") {
            m.floor_zxid = floor_zxid;
        }
        m.cuts.retain(|c| c.seq >= first_seq);
    });
    if let Err(error) = committed {
        let floor = shared.segments.read().first().map_or(Zxid::ZERO, |s| s.floor_zxid);
        shared.pins.lock().leave(floor);
        // On disk the old or the new manifest stands, and memory does not know which.
        if error.kind() != crate::ErrorKind::NoSpace {
            shared.fail(error.clone());
        }
        return Err(error);
    }
    shared.segments.write().drop_before(first_seq);
    remove_files(shared, &going, &mut report)?;
    Ok(report)
}

fn remove_files(shared: &Shared, going: &[u64], report: &mut PurgeReport) -> Result<()> {
    let disk = shared.directory.disk().as_ref();
    for seq in going {
        let name = segment_name(*seq);
        // Only what can still be opened as a file of ours is removed; anything else is left to a person.
        match open_segment(disk, &name)
            .map(drop)
            .and_then(|()| disk.remove(&name).map_err(|e| Error::io("remove a segment", e).in_file(&name)))
        {
            Ok(()) => report.removed.push(name),
            Err(error) if error.code() == "segment_missing" => {} // gone already is as good
            Err(error) => report.left.push((name, error)),
        }
    }
    sync_dir(disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Clock, Epoch, ErrorKind};
    use crate::log::{Health, Log};
    use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
    use crate::{LogOptions, Record, WriteMode};

    /// A log of 80 records in four segments; the first three end with the 23rd, the 46th and the 69th.
    fn log_on(disk: &SimDisk) -> Log {
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let (log, _) = options.write_mode(WriteMode::BufferedThenSync).open_sim(disk).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        for n in 1..=80 {
            log.append(&Record::new(zxid(n), 0, b"record")).unwrap().wait().unwrap();
        }
        log
    }

    fn zxid(counter: u32) -> Zxid {
        Zxid::from_parts(1, counter)
    }

    fn names(disk: &SimDisk) -> Vec<String> {
        disk.handle().list().unwrap().into_iter().map(|entry| entry.name).collect()
    }

    /// On a full disk nothing has gone, so all of it can be kept, and the log goes on.
    #[test]
    fn pu_06_a_purge_for_which_there_is_no_room_leaves_the_log_as_it_was() {
        let disk = SimDisk::new(1);
        let log = log_on(&disk);
        let fault = Fault::next(FaultOp::Write, Effect::ENOSPC).on(NamePattern::Suffix(".tmp".into()));
        disk.inject(fault.times(u64::MAX));
        assert_eq!(log.purge(zxid(70), &Retention::new()).unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(matches!(log.health(), Health::Fine), "{:?}", log.health());
        drop(log.pin(Zxid::ZERO).unwrap());
        disk.clear_faults();
        log.append(&Record::new(zxid(81), 0, b"record")).unwrap().wait().unwrap();
        assert_eq!(log.purge(zxid(70), &Retention::new()).unwrap().floor_zxid, zxid(69));
    }

    #[test]
    fn pu_06_what_is_told_to_be_removed_is_so_for_good() {
        let disk = SimDisk::new(1);
        let log = log_on(&disk);
        // One that somebody has taken away is as good as removed, and no error.
        disk.handle().remove(&segment_name(2)).unwrap();
        let report = log.purge(zxid(70), &Retention::new()).unwrap();
        assert_eq!((report.removed, report.left.len()), (vec![segment_name(1), segment_name(3)], 0));
        let names = names(&disk.fork(CrashImage::DropUnsynced));
        assert!(!names.contains(&segment_name(1)) && names.contains(&segment_name(4)), "{names:?}");
    }

    #[test]
    fn pu_07_the_oldest_pin_counts_and_what_was_purged_can_be_pinned_by_nobody() {
        let disk = SimDisk::new(1);
        let log = log_on(&disk);
        let pins = [50, 10, 70].map(|n| log.pin(zxid(n)).unwrap());
        assert_eq!(log.purge(zxid(75), &Retention::new()).unwrap().floor_zxid, Zxid::ZERO);
        drop(pins);
        assert_eq!(log.purge(zxid(75), &Retention::new()).unwrap().floor_zxid, zxid(69));
        let check = |log: &Log| {
            assert_eq!(log.pin(zxid(68)).unwrap_err().kind(), ErrorKind::NotInLog);
            drop(log.pin(zxid(69)).unwrap());
        };
        check(&log);
        log.close().unwrap();
        check(&LogOptions::new().open_sim(&disk).unwrap().0);
    }

    /// Between a purge's look at the pins and its new manifest, nobody gets a pin on what is going.
    #[test]
    fn pu_07_what_a_purge_is_about_to_remove_cannot_be_pinned() {
        let log = log_on(&SimDisk::new(1));
        let (shared, through) = (&log.shared, Zxid::from_parts(1, 70));
        let report = std::thread::scope(|scope| {
            let held = shared.directory.hold();
            let purge = scope.spawn(|| log.purge(through, &Retention::new()).unwrap());
            let (clock, begin) = (Clock::real(), Clock::real().nanos());
            // Not by trying to pin it: a purge that sees the pin keeps everything, and ends.
            while !log.is_leaving(Zxid::ZERO) {
                assert!(clock.nanos() - begin < 10_000_000_000 && !purge.is_finished(), "it can be pinned");
                std::thread::yield_now();
            }
            for after in [Zxid::ZERO, Zxid::from_parts(1, 1)] {
                assert_eq!(log.pin(after).unwrap_err().kind(), ErrorKind::NotInLog);
            }
            drop(held);
            purge.join().unwrap()
        });
        assert!(report.floor_zxid > Zxid::from_parts(1, 1) && !report.held_by_pin, "{report:?}");
        log.pin(report.floor_zxid).unwrap();
    }
}
