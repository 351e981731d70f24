//! The judge: what must hold of every log that was opened after something had happened to it.

use std::collections::BTreeMap;

use super::model::{Model, Recovered};
use super::process::{Process, Setup};
use crate::base::{Random, Zxid};
use crate::format::{LOCK_NAME, MANIFEST_NAME, Name};
use crate::sim::{CrashImage, SimDisk};

/// The bytes of a directory.
pub(super) type Bytes = BTreeMap<String, Vec<u8>>;

impl Model {
    /// A log that came back must hold a prefix of what was appended, at least up to `required`, byte for byte.
    pub(super) fn check(&self, got: &Recovered, required: Zxid) {
        let Recovered { floor, epoch, last, .. } = *got;
        assert!(epoch >= self.epoch, "the epoch fell from {} to {epoch}", self.epoch);
        assert!(epoch <= self.epoch_max, "epoch {epoch} came from nowhere");
        assert!(
            floor >= self.floor && floor <= self.floor_max,
            "the log starts after {floor}, not {}",
            self.floor
        );
        let expected: Vec<_> = self.records.iter().filter(|k| k.record.zxid > floor).collect();
        for (at, record) in got.records.iter().enumerate() {
            let Some(kept) = expected.get(at) else {
                panic!("{record:?} was never appended, or was cut away")
            };
            assert!(
                kept.record == *record,
                "the record at {at} is {record:?}, and {:?} was appended",
                kept.record
            );
        }
        let end = got.records.last().map_or(floor, |r| r.zxid);
        assert!(end == last, "the log reports {last} as its last record and ends with {end}");
        let cut = self.truncating.map(|to| self.end_of_truncation(to));
        if cut == Some(last) {
            return;
        }
        assert!(last >= required, "the log ends with {last}, and {required} was acknowledged");
        let whole = got.records.len().checked_sub(1).is_none_or(|at| expected[at].ends_batch);
        assert!(whole, "the log ends with {last}, inside a batch");
    }
}

/// Opens what a power cut left, and holds everything against it that must be true of it. Returns how often it
/// was opened.
pub(super) fn check_image(disk: &SimDisk, setup: &Setup, model: &Model, random: &mut Random) -> u64 {
    let mut model = model.clone();
    let before = disk.snapshot_bytes();
    let first = Process::open(disk, setup).unwrap_or_else(|e| {
        let manifest = before.get(MANIFEST_NAME).map(|b| String::from_utf8_lossy(b));
        let names: Vec<_> = before.keys().collect();
        panic!("a crash made the log unreadable: {e}\n{names:?}\n{}", manifest.unwrap_or_default())
    });
    let got = first.read_back();
    model.check(&got, model.acked);
    check_kept(&before, &disk.snapshot_bytes(), first.first_seq());
    model.adopt(&got);
    drop(first);
    expect_same(&got, &reopen(disk, setup, "after a kill"), "a second recovery");
    disk.crash(CrashImage::DropUnsynced);
    let mut third = Process::open(disk, setup).unwrap_or_else(|e| panic!("recovery was not durable: {e}"));
    expect_same(&got, &third.read_back(), "a recovery and a power cut");
    third.append_some(&mut model, random);
    drop(third);
    disk.crash(CrashImage::DropUnsynced);
    let last = reopen(disk, setup, "after appends");
    model.check(&last, model.acked);
    4
}

fn reopen(disk: &SimDisk, setup: &Setup, when: &str) -> Recovered {
    Process::open(disk, setup).unwrap_or_else(|e| panic!("the log does not open {when}: {e}")).read_back()
}

/// Recovery changes nothing about a log that it has recovered.
pub(super) fn expect_same(one: &Recovered, two: &Recovered, what: &str) {
    let same = one.records == two.records
        && one.last == two.last
        && one.epoch == two.epoch
        && one.floor == two.floor;
    assert!(same, "{what} changed the log: from {} {} to {} {}", one.floor, one.last, two.floor, two.last);
}

/// Whatever a segment held is still on disk, in place or aside, unless it was purged or held nothing.
pub(super) fn check_kept(before: &Bytes, after: &Bytes, first_seq: u64) {
    for (name, bytes) in before {
        let Name::Segment(seq) = Name::parse(name) else { continue };
        // Zeros at the end are nothing to keep: a cut segment may be shortened to what it holds.
        let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        if seq < first_seq || used <= 4096 {
            continue;
        }
        let aside = format!("{name}.cut-");
        let kept =
            after.iter().any(|(n, b)| (n == name || n.starts_with(&aside)) && b.starts_with(&bytes[..used]));
        assert!(kept, "the bytes of {name} are gone");
    }
}

/// A log that was refused is as it was.
pub(super) fn check_untouched(before: &Bytes, after: &Bytes) {
    let names = |b: &Bytes| b.keys().filter(|n| *n != LOCK_NAME).cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after), "a refused log has other files now");
    for (name, bytes) in before.iter().filter(|(n, _)| *n != LOCK_NAME) {
        assert!(after.get(name) == Some(bytes), "{name} was changed although the log was refused");
    }
}
