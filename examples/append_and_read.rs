//! The smallest useful program: open a log, append, wait until it is durable, read it back.
//!
//! `cargo run --release --example append_and_read -- DIR` leaves the log in DIR, to look at with the tool; without
//! DIR it goes with the program.

use std::path::{Path, PathBuf};

use arborlog::{Epoch, LogOptions, Result, Zxid};

fn main() -> Result<()> {
    let temporary = tempfile::tempdir().expect("make a directory");
    let dir = std::env::args_os().nth(1).map_or(temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&dir).expect("make the directory");
    make(&dir)
}

pub(crate) fn make(dir: &Path) -> Result<()> {
    let (log, report) = LogOptions::new().open(dir)?;
    println!("{report}");

    // A leader's epoch is durable before its first append; every older leader is locked out by it for ever.
    let epoch = Epoch::new(1);
    log.advance_epoch(epoch)?;

    // Ordered when `append_next` returns, durable when the ticket says so. All three share one write.
    let time_ms = 1_700_000_000_000; // the leader's clock, whatever it is
    let mut tickets = Vec::new();
    for payload in ["create /app", "create /app/config", "setData /app/config"] {
        tickets.push(log.append_next(epoch, time_ms, payload.as_bytes())?);
    }
    for ticket in tickets {
        println!("durable: {}", ticket.wait()?);
    }

    let mut reader = log.reader(Zxid::ZERO)?;
    while let Some(record) = reader.next_record()? {
        println!("{} {}", record.zxid, String::from_utf8_lossy(record.payload));
    }

    // The mark of a clean close spares the next open its questions. Leaving it out loses nothing.
    log.close()
}
