use std::sync::Arc;

use super::damage::{Damage, segment_damage};
use crate::base::{Result, Zxid};
use crate::format::segment_name;
use crate::log::directory::open_segment;
use crate::log::engine::Shared;
use crate::log::retain::Pin;

/// Reads everything that is durable now and lists what has changed. Appends go on meanwhile: what is durable
/// is never written again, so there is nothing to wait for.
pub(crate) fn verify(shared: &Arc<Shared>) -> Result<Vec<Damage>> {
    let floor = shared.segments.read().first().map_or(Zxid::ZERO, |s| s.floor_zxid);
    // Holds the segments while they are read; what was purged in between is no loss.
    let _pin = Pin::new(shared, floor)?;
    let durable = shared.durable();
    let segments: Vec<_> = shared.segments.read().iter().cloned().collect();
    let mut found = Vec::new();
    for segment in segments.iter().filter(|s| s.floor_zxid < durable) {
        let name = segment_name(segment.header.seq);
        let (end_offset, last) = match &segment.ended {
            // The seal is written beside the first group of the next segment, so it is there with that.
            Some(ended) if ended.last_zxid < durable => (Some(ended.end_offset), ended.last_zxid),
            Some(ended) => (None, ended.last_zxid.min(durable)),
            None => (None, durable),
        };
        match open_segment(shared.directory.disk().as_ref(), &name) {
            Ok(file) => {
                let floor = segment.floor_zxid;
                found.extend(segment_damage(file.as_ref(), &segment.header, end_offset, floor, last)?);
            }
            Err(error) if error.kind() == crate::ErrorKind::Corrupt => {
                let first = Zxid::new(segment.floor_zxid.get() + 1).min(last);
                found.push(Damage { file: name, offset: 0, first, last, code: error.code() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
