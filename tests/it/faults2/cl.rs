//! Clocks: times that jump, and delays that end.

use std::time::Duration;

use arborlog::sim::{CrashImage, SimDisk};
use arborlog::{AppendTicket, BackendChoice, GroupPolicy, Log, LogOptions, Record, Retention, Zxid};

use super::children::Process;
use super::support::{append, in_epoch_1, now, t, tens};

/// The reader of a time begins where a scan of the running maximum says, for all times.
#[track_caller]
fn check(log: &Log, times: &[i64], first: usize, what: &str) {
    let mut asked: Vec<i64> =
        times.iter().flat_map(|x| [*x, x.saturating_add(1), x.saturating_sub(1)]).collect();
    asked.extend([i64::MIN, i64::MAX, 0]);
    for time in asked {
        let mut running = i64::MIN;
        let expected = times.iter().enumerate().position(|(at, x)| {
            running = running.max(*x);
            at >= first && running >= time
        });
        let is = log.reader_at_time(time).unwrap().next_record().unwrap().map(|r| r.zxid);
        let expected = expected.map(|at| t(u32::try_from(at).unwrap() + 1));
        assert_eq!(is, expected, "{what}: time {time}");
    }
}

fn fill(log: &Log, times: &[i64], from: usize) {
    let mut last = None;
    for (at, time) in times.iter().enumerate().skip(from) {
        let zxid = t(u32::try_from(at).unwrap() + 1);
        let ticket = log.append(&Record::new(zxid, *time, &[7; 1100])).unwrap();
        if at % 7 == 0 {
            ticket.wait().unwrap();
        } else {
            last = Some(ticket);
        }
    }
    last.map(AppendTicket::wait).transpose().unwrap();
}

#[test]
fn cl_01_a_reader_of_a_time_begins_where_a_scan_does() {
    let jumps = vec![100, 200, 50, 300, 0, i64::MAX, -5];
    let mut state = 7_u64;
    let random: Vec<i64> = (0..300)
        .map(|n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Rises on the whole, and jumps back now and then.
            n * 10 + i64::try_from(state >> 33).unwrap() % 700 - 350
        })
        .collect();
    let falling: Vec<i64> = (0..60).map(|n| 1000 - n).collect();
    for times in [jumps, random, falling] {
        for segment_bytes in [20_480, 1 << 20] {
            let options = || tens().segment_bytes(segment_bytes);
            let disk = SimDisk::new(1);
            let log = in_epoch_1(options().open_sim(&disk).unwrap().0);
            fill(&log, &times, 0);
            check(&log, &times, 0, "as written");
            disk.crash(CrashImage::DropUnsynced);
            drop(log);
            let (log, _) = options().open_sim(&disk).unwrap();
            check(&log, &times, 0, "recovered");
            let half = times.len() / 2;
            let (log, _) = log.truncate(t(u32::try_from(half).unwrap())).unwrap();
            check(&log, &times[..half], 0, "truncated");
            fill(&log, &times, half);
            check(&log, &times, 0, "written again");
            log.purge(t(u32::try_from(half).unwrap()), &Retention::new()).unwrap();
            let first = log.floor_zxid().counter() as usize;
            check(&log, &times, first, "purged");
            log.close().unwrap();
            let (log, _) = options().open_sim(&disk).unwrap();
            check(&log, &times, first, "purged and opened again");
        }
    }
}

/// One writer that appends and waits: no acknowledgement waits for the next append, with any delay and bound.
#[test]
fn cl_04_no_write_waits_for_the_next_one() {
    std::thread::scope(|scope| {
        for delay_ms in [0, 1, 10] {
            for records_max in [1, 2, 1000] {
                scope.spawn(move || {
                    let disk = SimDisk::new(4);
                    let policy =
                        GroupPolicy::new().delay(Duration::from_millis(delay_ms)).records_max(records_max);
                    let options = tens().segment_bytes(4 << 20).group(policy);
                    let log = in_epoch_1(options.open_sim(&disk).unwrap().0);
                    let mut took: Vec<Duration> = (1..=1000)
                        .map(|n| {
                            let start = now();
                            append(&log, t(n)).and_then(AppendTicket::wait).unwrap();
                            start.elapsed()
                        })
                        .collect();
                    took.sort();
                    let what = format!(
                        "delay {delay_ms} ms, at most {records_max}: {:?}, {:?}",
                        took[500], took[999]
                    );
                    let delay = Duration::from_millis(delay_ms);
                    // The usual case is bounded closely; the slack is for a machine that does much else.
                    assert!(took[500] < delay + Duration::from_millis(4), "{what}");
                    assert!(took[999] < delay + Duration::from_millis(1500), "{what}");
                    if records_max == 1000 {
                        assert!(took[0] >= delay, "the delay is kept: {what}");
                    }
                });
            }
        }
    });
}

/// Nobody waits for the ticket, polls it or lets go of it: the record is written all the same.
#[test]
fn cl_04_a_ticket_that_is_only_kept_is_written() {
    let disk = SimDisk::new(5);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    for n in 1..=20 {
        let ticket = append(&log, t(n)).unwrap();
        super::support::eventually("a record that nobody waits for", || log.durable_zxid() == t(n));
        drop(ticket);
        if n % 5 == 0 {
            super::support::pause(Duration::from_millis(130)); // the log falls asleep
        }
    }
}

/// A dropped ticket has nobody who will look at it later: its record is written within about a millisecond.
#[test]
fn cl_04_a_ticket_that_is_dropped_is_written_soon() {
    let disk = SimDisk::new(6);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    let mut took = Vec::new();
    for n in 1..=21 {
        super::support::pause(Duration::from_millis(30)); // the log falls asleep
        let start = super::support::now();
        drop(append(&log, t(n)).unwrap());
        super::support::eventually("a record whose ticket is gone", || log.durable_zxid() == t(n));
        took.push(start.elapsed());
    }
    took.sort();
    // A kept ticket takes ten milliseconds. The usual case is bounded closely.
    assert!(took[10] < Duration::from_millis(6), "{took:?}");
}

/// An idle log uses less than a thousandth of a processor; so does one that has failed for good, and one on a
/// disk where no segment can be made.
#[test]
fn cl_04_pf_08_a_log_at_rest_rests() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start("rests", dir.path(), BackendChoice::Threads, false);
    for (what, bound) in [("idle", 1), ("failed", 1), ("without", 5)] {
        let outcome = process.next("outcome").unwrap();
        let (is, permille) = outcome.split_once(' ').unwrap();
        assert_eq!(is, what);
        assert!(permille.parse::<u64>().unwrap() <= bound, "{outcome} thousandths of a processor");
    }
    assert!(process.succeeded());
}

/// Times at the edges of 64 bits are kept as they are.
#[test]
fn cl_03_times_at_the_edges_are_kept() {
    let edges = [
        i64::MIN,
        -1,
        0,
        1,
        i64::from(i32::MAX) - 5,
        i64::from(i32::MAX) + 5,
        i64::from(u32::MAX) + 5,
        i64::MAX,
    ];
    let disk = SimDisk::new(3);
    let (log, _) = LogOptions::new().segment_bytes(64 * 1024).open_sim(&disk).unwrap();
    let log = in_epoch_1(log);
    for (n, time) in (1..).zip(edges) {
        log.append(&Record::new(t(n), time, b"x")).and_then(AppendTicket::wait).unwrap();
    }
    drop(log);
    let (log, _) = LogOptions::new().open_sim(&disk).unwrap();
    let mut reader = log.reader(Zxid::ZERO).unwrap();
    for time in edges {
        assert_eq!(reader.next_record().unwrap().unwrap().time_ms, time);
    }
}
