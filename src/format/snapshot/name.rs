use crate::base::Zxid;

/// What a file's name says it is, in a directory of snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SnapshotName {
    /// A snapshot, by the zxid at which it is consistent.
    Snapshot(Zxid),
    /// One that is being written or received: of no use once its writer is gone.
    Temporary,
    /// Not ours.
    Foreign,
}

impl SnapshotName {
    /// Strict, as the names of segments are: another spelling is another name.
    pub(crate) fn parse(name: &str) -> SnapshotName {
        let Some((digits, rest)) = name.split_at_checked(16) else { return SnapshotName::Foreign };
        if !digits.bytes().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return SnapshotName::Foreign;
        }
        let Ok(zxid) = u64::from_str_radix(digits, 16) else { return SnapshotName::Foreign };
        match rest {
            ".snap" => SnapshotName::Snapshot(Zxid::new(zxid)),
            ".snap.tmp" => SnapshotName::Temporary,
            _ => SnapshotName::Foreign,
        }
    }
}

/// The name of the snapshot that is consistent at `end`.
pub(crate) fn snapshot_name(end: Zxid) -> String {
    format!("{:016x}.snap", end.get())
}

/// The name of one that is being written; its walk began at `start`.
pub(crate) fn snapshot_temp_name(start: Zxid) -> String {
    format!("{:016x}.snap.tmp", start.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_loose_ones_are_foreign() {
        for zxid in [0, 1, 0xa_0000_0001, u64::MAX].map(Zxid::new) {
            assert_eq!(SnapshotName::parse(&snapshot_name(zxid)), SnapshotName::Snapshot(zxid));
            assert_eq!(SnapshotName::parse(&snapshot_temp_name(zxid)), SnapshotName::Temporary);
        }
        for name in [
            "",
            "snapshot.5",
            "1.snap",
            "000000000000000A.snap",
            "0000000000000001.snap.bak",
            "0000000000000001.SNAP",
            "+000000000000001.snap",
            "0000000000000001.snap.tmp.tmp",
            "foo.tmp",
            "0000000000000001.seg",
            "ééééééééééé.snap",
        ] {
            assert_eq!(SnapshotName::parse(name), SnapshotName::Foreign, "{name}");
        }
    }
}
