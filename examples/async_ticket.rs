//! A ticket awaited without a runtime: it is a plain `Future`, so any executor does, even these ten lines.
//!
//! `cargo run --release --example async_ticket`

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use arborlog::{Epoch, Log, LogOptions, Result, Zxid};

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is: poll, sleep until woken, poll again.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Appends two records and awaits both: their group is written by a thread of the log meanwhile.
async fn commit(log: &Log) -> Result<(Zxid, Zxid)> {
    let first = log.append_next(Epoch::new(1), 1_700_000_000_000, b"create /a")?;
    let second = log.append_next(Epoch::new(1), 1_700_000_000_001, b"create /b")?;
    Ok((first.await?, second.await?))
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("make a directory");
    let (log, _report) = LogOptions::new().open(dir.path())?;
    log.advance_epoch(Epoch::new(1))?;
    let (first, second) = block_on(commit(&log))?;
    println!("durable: {first} and {second}");
    log.close()
}
