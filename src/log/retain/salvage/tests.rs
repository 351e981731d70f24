use std::collections::BTreeMap;

use super::*;
use crate::sim::{CrashImage, SimDisk};
use crate::{LogOptions, Record, WriteMode};

fn options() -> LogOptions {
    let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
    options.write_mode(WriteMode::BufferedThenSync)
}

fn zxid(counter: u32) -> Zxid {
    Zxid::from_parts(1, counter)
}

/// 60 records over several segments, closed cleanly.
fn sample() -> SimDisk {
    let disk = SimDisk::new(3);
    let (log, _) = options().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    for counter in 1..=60 {
        log.append(&Record::new(zxid(counter), 5, b"payload")).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    disk.fork(CrashImage::KeepAll)
}

fn records(disk: &SimDisk) -> Vec<u32> {
    let (log, _) = options().open_sim(disk).unwrap();
    let mut reader = log.reader(Zxid::ZERO).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        found.push(record.zxid.counter());
    }
    found
}

fn real() -> SalvageOptions {
    SalvageOptions::new().execution(Execution::Real).numbering(Numbering::Zxid)
}

/// The damages that a salvage has to deal with, each with what must remain.
fn damaged() -> Vec<(&'static str, SimDisk, Vec<u32>)> {
    let probe = sample();
    let second = survey(&probe.handle()).unwrap().segments[&2].first_zxid.unwrap();
    let before_second: Vec<u32> = (1..second.counter()).collect();
    let name = segment_name;
    let mut cases = Vec::new();
    let mut case = |what, damage: &dyn Fn(&SimDisk), remains: Vec<u32>| {
        let disk = sample();
        damage(&disk);
        cases.push((what, disk, remains));
    };
    case("first group of the second segment", &|d| d.flip(&name(2), 4096 + 100, 1), before_second.clone());
    case("header of the second segment", &|d| d.flip(&name(2), 70, 1), before_second.clone());
    case("second segment gone", &|d| d.remove_file(&name(2)), before_second.clone());
    case("second segment chopped", &|d| d.chop(&name(2), 6000), {
        // Groups of one block each: those that end below byte 6,000 stay.
        let whole = (6000 - 4096) / 512;
        (1..second.counter() + whole).collect()
    });
    case("header of the first segment", &|d| d.flip(&name(1), 70, 1), Vec::new());
    case("first segment gone", &|d| d.remove_file(&name(1)), Vec::new());
    case("manifest damaged", &|d| d.flip(MANIFEST_NAME, 50, 1), (1..=60).collect());
    case("manifest gone", &|d| d.remove_file(MANIFEST_NAME), (1..=60).collect());
    case(
        "manifest and the second segment damaged",
        &|d| {
            d.flip(MANIFEST_NAME, 50, 1);
            d.flip(&name(2), 4096 + 100, 1);
        },
        before_second,
    );
    cases
}

/// Every segment that held something is still there, under whatever name: also after the log was opened.
#[track_caller]
fn assert_kept(what: &str, before: &BTreeMap<String, Vec<u8>>, disk: &SimDisk) {
    let after = disk.snapshot_bytes();
    for (name, bytes) in before.iter().filter(|(name, _)| name.contains(".seg")) {
        let used = bytes.len() > 4096 && bytes[4096..].iter().any(|b| *b != 0);
        assert!(!used || after.values().any(|other| other == bytes), "{what}: {name} was deleted");
    }
}

#[test]
fn every_damage_opens_again_with_what_stood_before_it() {
    for (what, disk, remains) in damaged() {
        assert!(options().open_sim(&disk).is_err(), "{what}: opening refuses it");
        let before = disk.snapshot_bytes();
        let told = SalvageOptions::new().numbering(Numbering::Zxid).salvage_sim(&disk).unwrap();
        assert!(disk.snapshot_bytes() == before, "{what}: a dry run changes nothing");
        let done = real().salvage_sim(&disk).unwrap();
        assert_eq!(told.to_string(), done.to_string(), "{what}");
        assert!(done.is_needed(), "{what}");
        assert_eq!(records(&disk), remains, "{what}");
        assert_kept(what, &before, &disk);
        assert!(!real().salvage_sim(&disk).unwrap().is_needed(), "{what}: once is enough");
    }
}

/// Power is cut at every operation of a salvage, with the two extreme images and a random one; then the
/// salvage is run again, or the log opens by itself.
#[test]
fn a_power_cut_at_any_point_of_a_salvage_loses_nothing_more() {
    let mut cuts = 0;
    for (what, disk, remains) in damaged() {
        let before = disk.snapshot_bytes();
        let moments = {
            let again = disk.fork(CrashImage::KeepAll);
            again.capture_moments(|_, _| true);
            real().salvage_sim(&again).unwrap();
            again.take_moments()
        };
        for moment in moments {
            for image in [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(7)] {
                let cut = moment.image(image);
                if let Err(error) = real().salvage_sim(&cut) {
                    panic!("{what}: {error}; {:?}", cut.names());
                }
                assert_eq!(records(&cut), remains, "{what}");
                assert_kept(what, &before, &cut);
                cuts += 1;
                // Nobody calls it again: the log is refused still, or opens to the same.
                let opened = moment.image(image);
                if options().open_sim(&opened).is_ok() {
                    assert_eq!(records(&opened), remains, "{what}");
                }
                assert_kept(what, &before, &opened);
            }
        }
    }
    assert!(cuts > 100, "{cuts}");
}

#[test]
fn a_sound_log_is_left_alone() {
    let disk = sample();
    let before = disk.snapshot_bytes();
    assert!(!real().salvage_sim(&disk).unwrap().is_needed());
    let mut after = disk.snapshot_bytes();
    after.remove("LOCK");
    assert!(before.iter().filter(|(name, _)| *name != "LOCK").eq(after.iter()));
}
