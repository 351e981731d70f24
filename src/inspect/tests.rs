use super::*;
use crate::sim::{CrashImage, SimDisk};
use crate::{Epoch, LogOptions, Record, WriteMode, Zxid};

fn sample() -> SimDisk {
    let disk = SimDisk::new(3);
    let options = LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None);
    let (log, _) = options.write_mode(WriteMode::BufferedThenSync).open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    for counter in 1..=60 {
        let record = Record::new(Zxid::from_parts(1, counter), i64::from(counter), b"payload");
        log.append(&record).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    disk.fork(CrashImage::KeepAll)
}

fn first_segment(disk: &SimDisk) -> Vec<u8> {
    disk.read_file("0000000000000001.seg").unwrap()
}

/// Counters of the records, and the damages.
fn read(segment: &mut SegmentBytes) -> (Vec<u32>, Vec<DamagedBytes>) {
    let (mut counters, mut damages) = (Vec::new(), Vec::new());
    while let Some(item) = segment.next_item().unwrap() {
        match item {
            Item::Record(record) => counters.push(record.zxid.counter()),
            Item::Damage(damage) => damages.push(damage),
        }
    }
    (counters, damages)
}

#[test]
fn a_segment_in_memory_reads_like_its_file() {
    let bytes = first_segment(&sample());
    let mut segment = segment_from_bytes(&bytes).unwrap();
    let scanned = segment.scan(None).unwrap();
    let (counters, damages) = read(&mut segment);
    assert_eq!((counters.len() as u64, damages.len()), (scanned.records, 0));
    assert_eq!(scanned.last_zxid.unwrap().counter(), *counters.last().unwrap());
    let limited = segment.scan(Some(Zxid::from_parts(1, 3))).unwrap();
    assert_eq!((limited.records, limited.end_offset), (3, 4096 + 3 * 512));
}

#[test]
fn one_flipped_byte_takes_one_group_wherever_it_is() {
    let bytes = first_segment(&sample());
    let (all, _) = read(&mut segment_from_bytes(&bytes).unwrap());
    let end = usize::try_from(segment_from_bytes(&bytes).unwrap().scan(None).unwrap().end_offset).unwrap();
    for at in (4096..end).step_by(37) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x20;
        let (counters, damages) = read(&mut segment_from_bytes(&bad).unwrap());
        let group = (at - 4096) / 512;
        let lost: Vec<u32> = all.iter().copied().filter(|counter| !counters.contains(counter)).collect();
        let expected: Vec<u32> = all.get(group).copied().into_iter().collect();
        assert_eq!(lost, expected, "byte {at}");
        assert_eq!(damages.len(), 1, "byte {at}: {damages:?}");
        assert_eq!(damages[0].offset, 4096 + group as u64 * 512, "byte {at}");
        let named = damages[0].first_zxid.zip(damages[0].last_zxid).map(|(a, b)| (a.counter(), b.counter()));
        // The first group tells itself what came before it, so its loss is known by the next one only.
        if group > 0 && group < all.len() {
            assert_eq!(named, Some((lost[0], lost[0])), "byte {at}");
        }
    }
}

#[test]
fn groups_decode_alone_and_only_at_their_place() {
    let bytes = first_segment(&sample());
    let segment = segment_from_bytes(&bytes).unwrap();
    let (mut offset, mut counters) = (4096, Vec::new());
    loop {
        let rest = &bytes[usize::try_from(offset).unwrap()..];
        let length =
            decode_group(rest, &segment.place(offset), &mut |r| counters.push(r.zxid.counter())).unwrap();
        if length == 0 {
            break;
        }
        offset += length;
    }
    assert_eq!(counters, read(&mut segment_from_bytes(&bytes).unwrap()).0);
    let elsewhere = segment.place(4096 + 512);
    assert_eq!(decode_group(&bytes[4096..], &elsewhere, &mut |_| panic!("no record")), Ok(0));
    let short = decode_group(&bytes[4096..4096 + 100], &segment.place(4096), &mut |_| panic!("no record"));
    assert_eq!(short.unwrap_err().code, "group_short");
}

#[test]
fn any_bytes_are_an_answer() {
    let good = first_segment(&sample());
    let mut random = crate::base::Random::from_seed(1);
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(20) {
            let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
            bytes[at] = random.next_u64().to_le_bytes()[0];
        }
        bytes.truncate(usize::try_from(random.below(good.len() as u64 + 1)).unwrap());
        // Whether the header held or not, this comes to an end.
        if let Ok(mut segment) = segment_from_bytes(&bytes) {
            segment.scan(Some(Zxid::from_parts(1, 9))).unwrap();
            read(&mut segment);
        }
    }
}

#[test]
fn looking_asks_the_disk_for_no_change() {
    let disk = sample();
    let operations = disk.operations();
    let directory = Directory::open_sim(&disk);
    let mut last = None;
    let examination = directory.examine(&mut |progress| last = Some(progress)).unwrap();
    assert!(examination.is_sound());
    assert_eq!(examination.log().map(|s| s.records).sum::<u64>(), 60);
    let last = last.unwrap();
    assert_eq!((last.done_bytes, last.total_bytes > 0), (last.total_bytes, true));
    let mut stream = directory.records(&Selection::all()).unwrap();
    while stream.next_item().unwrap().is_some() {}
    assert_eq!(disk.operations(), operations);
}

/// The damages that a stream of the whole log tells, and the counters of its records.
fn stream(disk: &SimDisk) -> (Vec<u32>, Vec<DamagedBytes>) {
    let mut stream = Directory::open_sim(disk).records(&Selection::all()).unwrap();
    let (mut counters, mut damages) = (Vec::new(), Vec::new());
    while let Some(item) = stream.next_item().unwrap() {
        match item {
            Item::Record(record) => counters.push(record.zxid.counter()),
            Item::Damage(damage) => damages.push(damage),
        }
    }
    (counters, damages)
}

/// The end of a segment was told twice if it was damaged: by itself, and again by what the next segment, or the
/// manifest, proves to be missing.
#[test]
fn what_is_damaged_is_told_once_wherever_it_is() {
    let good = sample();
    let names: Vec<String> =
        (1..20).map(|seq| format!("{seq:016x}.seg")).filter(|name| good.read_file(name).is_some()).collect();
    assert!(names.len() >= 3, "{names:?}");
    let mut cases = 0;
    for name in &names {
        let bytes = good.read_file(name).unwrap();
        let end = segment_from_bytes(&bytes).unwrap().scan(None).unwrap().end_offset;
        let blocks = usize::try_from((end - 4096) / 512).unwrap();
        // One group, and all from one to the end of the file.
        for (from, to) in (0..blocks).flat_map(|block| [(block, block + 1), (block, blocks)]) {
            let mut bad = bytes.clone();
            (from..to).for_each(|block| bad[4096 + block * 512 + 9] ^= 0x40);
            let disk = good.fork(CrashImage::KeepAll);
            disk.write_file(name, &bad);
            let (counters, damages) = stream(&disk);
            cases += 1;
            let what = format!("{name} {from}..{to} of {blocks}: {damages:?}");
            assert_eq!(damages.len(), 1, "{what}");
            let lost: Vec<u32> = (1..=60).filter(|counter| !counters.contains(counter)).collect();
            let told = damages[0].first_zxid.zip(damages[0].last_zxid);
            let told = told.map(|(first, last)| (first.counter(), last.counter()));
            let expected = lost.first().copied().zip(lost.last().copied());
            assert_eq!(told, expected, "{what}");
        }
    }
    assert!(cases > 100, "{cases}");
}

#[test]
fn no_log_has_no_records() {
    let disk = SimDisk::new(3);
    let directory = Directory::open_sim(&disk);
    assert_eq!(directory.records(&Selection::all()).unwrap_err().code(), "no_log");
    assert!(!directory.holds_log().unwrap());
    disk.write_file("LOCK", b"");
    disk.write_file("engine.manifest", b"");
    assert_eq!(directory.records(&Selection::all()).unwrap_err().code(), "no_log");
    assert!(!directory.holds_log().unwrap() && Directory::open_sim(&sample()).holds_log().unwrap());
}
