use std::sync::Arc;

use super::Pin;
use crate::base::{Error, Result, Zxid};
use crate::format::{Cut, Manifest, segment_name};
use crate::io::{Disk, Duplicated, copy, duplicate};
use crate::log::Log;
use crate::log::directory::write_manifest;
use crate::log::engine::Shared;

/// What a copy of a log has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LogCopy {
    /// Its last record.
    pub(crate) last_zxid: Zxid,
    pub(crate) linked: u64,
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
}

/// The files of a copy, as they were at one moment.
struct Plan {
    manifest: Manifest,
    sealed: Vec<u64>,
    /// With how many bytes of each may count.
    open: Vec<(u64, u64)>,
    last_zxid: Zxid,
    _pin: Pin,
}

impl Log {
    /// Makes the log's double in the empty directory `to`: it ends with what is durable now. Sealed segments are
    /// linked. One that was cut or is in use is written again or shortened by somebody, so it is copied; and the
    /// copy ends by a cut, as after a truncation, so that what was under way behind its end does not count.
    pub(crate) fn checkpoint(&self, to: &Arc<dyn Disk>) -> Result<LogCopy> {
        let plan = plan(&self.shared)?;
        let from = self.shared.directory.disk().as_ref();
        let mut made = LogCopy { last_zxid: plan.last_zxid, ..LogCopy::default() };
        let copied = |made: &mut LogCopy, bytes| {
            made.copied += 1;
            made.copied_bytes += bytes;
        };
        for seq in &plan.sealed {
            let name = segment_name(*seq);
            let how = duplicate(from, &name, to.as_ref())
                .map_err(|e| Error::io("link a segment", e).in_file(&name))?;
            match how {
                Duplicated::Linked => made.linked += 1,
                Duplicated::Copied(bytes) => copied(&mut made, bytes),
            }
        }
        for (seq, bytes) in &plan.open {
            let name = segment_name(*seq);
            let bytes = copy(from, &name, to.as_ref(), *bytes)
                .map_err(|e| Error::io("copy a segment", e).in_file(&name))?;
            copied(&mut made, bytes);
        }
        // Syncs the names of the segments, too.
        write_manifest(to, &plan.manifest)?;
        Ok(made)
    }
}

fn plan(shared: &Arc<Shared>) -> Result<Plan> {
    if let Some(failure) = shared.failure() {
        return Err(failure.clone());
    }
    // Neither the epoch nor the floor changes meanwhile.
    let _one_by_one = shared.rare.lock();
    let mut manifest = shared.directory.manifest();
    let pin = Pin::new(shared, manifest.floor_zxid)?;
    let inner = shared.inner();
    let (last_zxid, in_use, end) =
        (inner.core.durable_zxid(), inner.core.active().header.seq, inner.core.active().offset);
    let segments = shared.segments.read();
    let mut plan =
        Plan { manifest: manifest.clone(), sealed: Vec::new(), open: Vec::new(), last_zxid, _pin: pin };
    let mut ends_in = None;
    for segment in segments.iter() {
        let seq = segment.header.seq;
        let is_first = segments.first().is_some_and(|first| first.header.seq == seq);
        if segment.floor_zxid >= last_zxid && !is_first {
            // Nothing in it counts, nor behind it.
            break;
        }
        ends_in = Some(seq);
        match &segment.ended {
            // The seal came with the first group behind it, which is durable.
            Some(ended) if ended.last_zxid < last_zxid && manifest.cut_of(seq).is_none() => {
                plan.sealed.push(seq);
            }
            Some(ended) => plan.open.push((seq, ended.end_offset)),
            None => plan.open.push((seq, if seq == in_use { end } else { u64::MAX })),
        }
    }
    manifest.cuts.retain(|cut| Some(cut.seq) < ends_in);
    if let Some(seq) = ends_in {
        manifest.cuts.push(Cut { seq, last_zxid, next_seq: in_use + 1 });
    }
    (manifest.durable_zxid, manifest.clean) = (last_zxid, true);
    plan.manifest = manifest;
    Ok(plan)
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
