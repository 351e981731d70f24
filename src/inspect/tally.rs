use super::DamagedBytes;
use crate::base::{Epoch, Zxid};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind};
use crate::log::read::Records;

/// Damages that are kept of one file; the others are only counted.
const DAMAGES_MAX: usize = 1000;

/// Sums over the groups of one segment.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) first_zxid: Option<Zxid>,
    pub(super) last_zxid: Option<Zxid>,
    pub(super) records: u64,
    /// Groups that hold records.
    pub(super) groups: u64,
    pub(super) payload_bytes: u64,
    /// Whole groups of every kind.
    pub(super) group_bytes: u64,
    pub(super) padding_bytes: u64,
    pub(super) time_ms: Option<(i64, i64)>,
    pub(super) epoch: Option<(Epoch, Epoch)>,
    pub(super) damages: Vec<DamagedBytes>,
    pub(super) damages_count: u64,
}

impl Tally {
    /// Counts a group of `bytes`, up to the record `until`.
    pub(super) fn group(&mut self, group: &GroupHeader, mut records: Records, bytes: &[u8], until: Zxid) {
        self.group_bytes += bytes.len() as u64;
        self.padding_bytes += bytes.len() as u64 - GROUP_HEADER_BYTES as u64 - group.body_bytes;
        if group.kind != GroupKind::Records {
            return;
        }
        self.groups += 1;
        while let Some(record) = records.next(bytes).filter(|r| r.zxid <= until) {
            self.first_zxid.get_or_insert(record.zxid);
            self.last_zxid = Some(record.zxid);
            self.records += 1;
            self.payload_bytes += record.payload.len() as u64;
            let (time, epoch) = (record.time_ms, record.epoch);
            self.time_ms = Some(self.time_ms.map_or((time, time), |(a, b)| (a.min(time), b.max(time))));
            self.epoch = Some(self.epoch.map_or((epoch, epoch), |(a, b)| (a.min(epoch), b.max(epoch))));
        }
    }

    pub(super) fn damage(&mut self, damage: DamagedBytes) {
        self.damages_count += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(damage);
        }
    }
}
