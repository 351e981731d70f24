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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Epoch;
    use crate::log::{LogOptions, Record, Retention};
    use crate::sim::SimDisk;

    fn zxid(counter: u32) -> Zxid {
        Zxid::from_parts(1, counter)
    }

    fn append(log: &Log, counter: u32) {
        log.append(&Record::new(zxid(counter), 0, b"record")).unwrap().wait().unwrap();
    }

    /// Every second number up to 160, each record in a group of 512 bytes. A segment takes 23: the first ends with 46.
    fn even_numbers() -> Log {
        let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
        let (log, _) = options.open_sim(&SimDisk::new(1)).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        (1..=80).for_each(|n| append(&log, 2 * n));
        log
    }

    #[test]
    fn the_neighbours_of_a_zxid_are_the_records_around_it() {
        let log = even_numbers();
        assert_eq!(log.neighbours(zxid(1)).unwrap(), (Zxid::ZERO, Some(zxid(2))));
        for n in 2..160 {
            let even = n / 2 * 2;
            assert_eq!(log.neighbours(zxid(n)).unwrap(), (zxid(even), Some(zxid(even + 2))), "{n}");
        }
        for n in [160, 161, u32::MAX] {
            assert_eq!(log.neighbours(zxid(n)).unwrap(), (zxid(160), None), "{n}");
        }
        assert_eq!(log.purge(zxid(60), &Retention::new()).unwrap().floor_zxid, zxid(46));
        for n in [1, 45, 46, 47] {
            assert_eq!(log.neighbours(zxid(n)).unwrap(), (zxid(46), Some(zxid(48))), "{n}");
        }
    }

    /// From the first group on that begins behind it and that the index names, which is here the first of a segment.
    #[test]
    fn the_bytes_behind_a_zxid_are_those_of_later_segments_and_of_the_one_in_use() {
        let log = even_numbers();
        let (sealed, in_use) = (24 * 512, (80 - 3 * 23) * 512);
        for (n, bytes) in [
            (1, 3 * sealed + in_use),
            (2, 2 * sealed + in_use),
            (47, 2 * sealed + in_use),
            (48, sealed + in_use),
            (94, in_use),
            (139, in_use),
            (140, 0),
        ] {
            assert_eq!(log.bytes_after(zxid(n)), bytes, "{n}");
        }
        append(&log, 162);
        assert_eq!(log.bytes_after(zxid(139)), in_use + 512);
    }
}
