use super::handle::Log;
use super::segments::Segment;
use crate::base::{Result, Zxid};
use crate::format::IndexEntry;

impl Log {
    /// The last durable record at or before `zxid`, or the floor if there is none, and the first one after it.
    ///
    /// # Errors
    /// As [`Log::reader`]; [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for damage on the way.
    pub(crate) fn neighbours(&self, zxid: Zxid) -> Result<(Zxid, Option<Zxid>)> {
        let floor = self.floor_zxid();
        let near = self.with_index(|index| {
            let at = index.partition_point(|entry| entry.first_zxid <= zxid);
            at.checked_sub(1).map(|at| index[at].first_zxid)
        });
        let near = near.into_iter().flatten().max();
        let start = near.map_or(floor, |first| Zxid::new(first.get() - 1));
        let mut reader = self.reader(start.max(floor))?;
        let mut before = start.max(floor);
        while let Some(record) = reader.next_record()? {
            if record.zxid > zxid {
                return Ok((before, Some(record.zxid)));
            }
            before = record.zxid;
        }
        Ok((before, None))
    }

    /// The salt of the segment that holds a durable record; none if it is not there. No two segments have the same:
    /// as long as the record is in the same segment, it is the same record.
    pub(crate) fn segment_of(&self, zxid: Zxid) -> Option<u64> {
        let durable = self.durable_zxid();
        let segments = self.shared.segments.read();
        let holds = |segment: &&Segment| {
            let last = segment.ended.as_ref().map_or(durable, |ended| ended.last_zxid.min(durable));
            segment.floor_zxid < zxid && zxid <= last
        };
        segments.iter().find(holds).map(|segment| segment.header.salt)
    }

    /// About how many bytes of log stand behind `zxid`: from the first group on that begins behind it and that the index
    /// names.
    pub(crate) fn bytes_after(&self, zxid: Zxid) -> u64 {
        let behind = |index: &[IndexEntry], end: u64| {
            let at = index.partition_point(|entry| entry.first_zxid <= zxid);
            index.get(at).map_or(0, |entry| end - entry.offset)
        };
        // Together: a segment that ends in between would count twice.
        let inner = self.shared.inner();
        let in_use = behind(&inner.core.active().index, inner.core.active().offset);
        let segments = self.shared.segments.read();
        let ended = segments.iter().filter_map(|s| s.ended.as_ref());
        in_use + ended.map(|ended| behind(&ended.index, ended.end_offset)).sum::<u64>()
    }

    /// Looks into the index of each segment.
    fn with_index<T>(&self, look: impl Fn(&[IndexEntry]) -> T) -> Vec<T> {
        let in_use = look(&self.shared.inner().core.active().index);
        let segments = self.shared.segments.read();
        let mut seen: Vec<T> =
            segments.iter().filter_map(|s| s.ended.as_ref()).map(|ended| look(&ended.index)).collect();
        seen.push(in_use);
        seen
    }
}
