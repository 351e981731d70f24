//! A follower of the tail: one thread appends, another reads each record as soon as it is durable, as a
//! server does that streams its log to a learner.
//!
//! `cargo run --release --example follow`

use std::time::Duration;

use arborlog::{Epoch, Log, LogOptions, Result, Zxid};

const RECORDS: u64 = 10_000;

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("make a directory");
    let (log, _report) = LogOptions::new().open(dir.path())?;
    log.advance_epoch(Epoch::new(1))?;
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&log));
        lead(&log)?;
        follower.join().expect("the follower does not panic")
    })?;
    println!("followed {RECORDS} records up to {followed}");
    log.close()
}

/// Appends without waiting for each record; only the last ticket matters, since order is kept.
fn lead(log: &Log) -> Result<()> {
    let mut last = None;
    for number in 0..RECORDS {
        last = Some(log.append_next(Epoch::new(1), 1_700_000_000_000, &number.to_le_bytes())?);
    }
    last.map_or(Ok(()), |ticket| ticket.wait().map(drop))
}

/// Reads what is there and waits for more. A reader shows durable records only: what a learner is sent, a
/// power cut cannot take back.
fn follow(log: &Log) -> Result<Zxid> {
    let mut reader = log.reader(Zxid::ZERO)?;
    let mut expected = 0_u64;
    while expected < RECORDS {
        while let Some(record) = reader.next_record()? {
            assert_eq!(record.payload, expected.to_le_bytes(), "records come in order and without a gap");
            expected += 1;
        }
        // Returns at once when there is more; the time is only the longest pause between two looks.
        reader.wait(Duration::from_millis(100))?;
    }
    Ok(reader.position())
}
