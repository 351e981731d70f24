use std::time::Duration;

use super::options::EngineOptions;
use super::pace::Pace;
use super::progress::{Activity, Progress};
use super::shared::EngineShared;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::snapshot::SnapshotInfo;
use crate::tree::Walk;

/// Places of the tree that are visited under one lock: some 50 microseconds, so that writers hardly wait.
const PLACES_AT_ONCE: u32 = 64;

/// Writes a snapshot of the tree while it changes, removes what is no longer needed of older ones, and purges the log.
pub(super) fn take_snapshot(shared: &EngineShared) -> Result<SnapshotInfo> {
    let _writing = shared.writing.lock();
    let (start, sessions) = {
        let tree = shared.pipeline.tree.read();
        (tree.last_zxid(), tree.sessions())
    };
    if shared.store.snapshots().first() == Some(&start) {
        // Nothing has happened since. If it is not well, it is written anew.
        match shared.store.verify(start) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            outcome => return outcome,
        }
    }
    let since_ns = shared.pipeline.counters.now_ns();
    let outcome = write_snapshot(shared, start, sessions);
    if !shared.requests.is_stopping() || outcome.is_ok() {
        shared.pipeline.counters.snapshot_ended(since_ns, &outcome);
    }
    let info = outcome?;
    // The snapshot stands, whatever becomes of the old ones.
    let cleaned = clean_up(shared);
    if cleaned.is_err() {
        shared.pipeline.counters.clean_up_failed();
    }
    shared.requests.cleaned_up(cleaned);
    Ok(info)
}

fn write_snapshot(shared: &EngineShared, start: Zxid, sessions: Vec<(i64, i32)>) -> Result<SnapshotInfo> {
    // The txns of the walk's time must be there when it ends.
    let _pin = shared.log.pin(start)?;
    let mut writer = shared.store.begin_paced(start, shared.clock.wall_ms(), pace(shared))?;
    let (mut walk, total) = (Walk::new(), shared.pipeline.tree.read().len());
    let mut told_bytes = 0;
    while writer.walk(&shared.pipeline.tree, &mut walk, PLACES_AT_ONCE)? {
        let (done_bytes, done) = writer.progress();
        if done_bytes > told_bytes {
            told_bytes = done_bytes;
            let activity = Activity::WriteSnapshot;
            let total = Some(total.max(done));
            shared.options.progress.tell(&Progress { activity, done_bytes, total_bytes: None, done, total });
        }
        if shared.requests.is_stopping() {
            return Err(Error::new(ErrorKind::Closed, "closed", "the engine is closing".into()));
        }
    }
    for (id, timeout_ms) in sessions {
        writer.session(id, timeout_ms)?;
    }
    let (end, digest) = {
        let tree = shared.pipeline.tree.read();
        (tree.last_zxid(), tree.digest())
    };
    // What a quorum has may be applied before it is durable here; it is no part of a snapshot before it is.
    if shared.log.durable_zxid() < end {
        shared.log.flush()?;
    }
    let mut reader = shared.log.reader(start)?;
    let mut last = start;
    while last < end {
        let Some(record) = reader.next_record()? else {
            let why = format!("the log ends at {last}, before {end}, which is applied");
            return Err(Error::corrupt("log_behind_tree", why));
        };
        last = record.zxid;
        writer.txn(record.zxid, record.time_ms, record.payload)?;
    }
    let (_, done) = writer.progress();
    let mut sealed = writer.seal(end, digest)?;
    sealed.verify()?;
    // Before it is published: a callback that panics fails the snapshot, and must not fail one that stands.
    let done_bytes = sealed.file_bytes();
    shared.options.progress.tell(&Progress {
        activity: Activity::WriteSnapshot,
        done_bytes,
        total_bytes: Some(done_bytes),
        done,
        total: Some(done),
    });
    sealed.publish()
}

/// What sleeps after so many bytes were written, as the options say.
fn pace(shared: &EngineShared) -> impl FnMut(u64) + Send + 'static {
    let (clock, requests, pipeline) =
        (shared.clock.clone(), shared.requests.clone(), shared.pipeline.clone());
    let EngineOptions { snapshot_bytes_per_second: bound, snapshot_bytes_beside_writers: beside, .. } =
        shared.options;
    let mut pace = Pace::new(bound, beside, clock.nanos());
    let mut logged = pipeline.last_logged();
    move |bytes| {
        let last = std::mem::replace(&mut logged, pipeline.last_logged());
        let wait_ns = pace.wait_ns(bytes, clock.nanos(), logged > last);
        if wait_ns > 0 {
            requests.pause(Duration::from_nanos(wait_ns));
        }
    }
}

/// Old snapshots go, then the log that only they needed. What cannot be removed is tried again the next time.
fn clean_up(shared: &EngineShared) -> Result<()> {
    let kept = shared.store.retain(shared.options.snapshots_kept)?;
    let well = shared.store.snapshots().len().saturating_sub(kept.troubled.len());
    // As long as there are fewer than are to be kept, the log is what stands in for them.
    if let Some(oldest) = kept.oldest_kept.filter(|_| well >= shared.options.snapshots_kept) {
        shared.log.purge(oldest, &shared.options.log_retention)?;
    }
    Ok(())
}
