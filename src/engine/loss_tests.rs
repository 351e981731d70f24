//! Faults that other systems had with what is lost or goes back: segments, epochs, and what a client has seen; the ids
//! are those of `docs/TESTING.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::home::Room;
use super::pipeline::Unobserved;
use super::sim_home::{Cut, SimHome, image_of};
use super::*;
use crate::base::{Epoch, ErrorKind, Result, Zxid};
use crate::format::snapshot::snapshot_name;
use crate::format::{Acl, DatabaseId, ENGINE_MANIFEST_NAME, segment_name};
use crate::log::LogOptions;
use crate::sim::{Effect, Fault, FaultOp, NamePattern};
use crate::tree::{CreateRequest, Request, SetWatches, WatchTable};

fn options() -> EngineOptions {
    let log = LogOptions::new().segment_bytes(64 << 10).idle_mark(None);
    EngineOptions::new().log(log).snap_count(0).snapshots_kept(3)
}

fn create(engine: &Engine, path: &str) -> Result<Zxid> {
    let acl = [Acl::open()];
    let request = Request::Create(CreateRequest::new(path, &[7; 300], &acl));
    Ok(engine.submit_at(&request, &Caller::default(), 1)?.wait()?.zxid)
}

fn grow(engine: &Engine, name: &str, count: u32) -> Zxid {
    for n in 0..count {
        create(engine, &format!("/{name}-{n}")).unwrap();
    }
    engine.applied_zxid()
}

fn snapshot(engine: &Engine) -> Zxid {
    engine.snapshot().unwrap().join().unwrap().end
}

/// The numbers of a log's segments.
fn segments(log: &Path) -> Vec<u64> {
    (1..100).filter(|seq| log.join(segment_name(*seq)).exists()).collect()
}

fn files(dir: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Three snapshots, none of which lets anything be purged, and a log of several segments that was closed.
fn built(dir: &Path) -> (u64, Zxid) {
    let (engine, _) = options().snapshots_kept(4).open(dir).unwrap();
    for name in ["a", "b", "c"] {
        grow(&engine, name, 70);
        snapshot(&engine);
    }
    let last = grow(&engine, "d", 70);
    let digest = engine.tree().digest();
    engine.close().unwrap();
    (digest, last)
}

#[test]
fn sg_01_a_missing_segment_is_refused_whatever_the_snapshots_cover() {
    let dir = tempfile::tempdir().unwrap();
    let (digest, last) = built(dir.path());
    let log = dir.path().join("log-1");
    let all = segments(&log);
    assert!(all.len() >= 6, "{all:?}");
    for seq in &all {
        let path = log.join(segment_name(*seq));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let before = files(&log);
        let opened = options().open(dir.path());
        let blank = *seq == *all.last().unwrap() && opened.is_ok();
        // One that was only prepared holds nothing.
        if !blank {
            let error = opened.map(|_| ()).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "segment_missing"), "{seq}");
            assert_eq!(error.at().file.as_deref(), Some(segment_name(*seq).as_str()));
            assert_eq!(files(&log), before, "{seq}: nothing is touched");
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.last_zxid, report.digest), (last, digest), "put back, it is whole");
    // One snapshot is kept, and the log is purged up to it: what went then is missed by nobody.
    engine.close().unwrap();
    let (engine, _) = options().snapshots_kept(1).open(dir.path()).unwrap();
    let end = snapshot(&engine);
    engine.close().unwrap();
    assert!(segments(&log).len() < all.len());
    let (_engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.last_zxid, report.digest), (end, digest));
}

#[test]
fn sg_01_a_restore_does_without_the_oldest_segments_if_a_snapshot_covers_them() {
    let dir = tempfile::tempdir().unwrap();
    let (digest, last) = built(dir.path());
    let log = dir.path().join("log-1");
    let all = segments(&log);
    let (mut made, mut refused) = (0, 0);
    for seq in all.iter().take(all.len() - 1) {
        std::fs::remove_file(log.join(segment_name(*seq))).unwrap();
        let before = files(&log);
        assert!(options().open(dir.path()).is_err());
        let dest = tempfile::tempdir().unwrap();
        match restore(dir.path(), dest.path(), &options(), &RestoreOptions::new()) {
            Ok(report) => {
                assert_eq!((report.digest, report.last_zxid), (digest, last), "{seq}");
                let end = report.snapshot.expect("without one there is nothing before the gap").end;
                assert!(report.log_begins_after.is_some_and(|floor| floor > Zxid::ZERO && floor <= end));
                made += 1;
            }
            // No snapshot is behind the gap.
            Err(error) => {
                assert!(matches!(error.code(), "not_in_log" | "segment_missing"), "{seq}: {error}");
                refused += 1;
            }
        }
        assert_eq!(files(&log), before, "the source is as it was");
    }
    assert!(made >= 3 && refused >= 1, "{made} {refused}");
    // One in the middle is another matter: what came before it is there, and what comes behind does not follow.
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    std::fs::remove_file(dir.path().join("log-1").join(segment_name(all[2]))).unwrap();
    let dest = tempfile::tempdir().unwrap();
    let error = restore(dir.path(), dest.path(), &options(), &RestoreOptions::new()).unwrap_err();
    assert_eq!(error.code(), "segment_missing");
    assert_eq!(dest.path().read_dir().unwrap().count(), 0);
    // In place, too, with what was there kept.
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    std::fs::remove_file(dir.path().join("log-1").join(segment_name(all[0]))).unwrap();
    let report = restore_in_place(dir.path(), &options(), &RestoreOptions::new()).unwrap();
    assert_eq!((report.digest, report.kept_generation), (digest, Some(1)));
    let (_engine, opened) = options().open(dir.path()).unwrap();
    assert_eq!((opened.digest, opened.last_zxid), (digest, last));
}

#[test]
fn ep_03_every_damage_of_the_engines_manifest_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    engine.accept_epoch(Epoch::new(3)).unwrap();
    engine.close().unwrap();
    let path = dir.path().join(ENGINE_MANIFEST_NAME);
    let good = std::fs::read(&path).unwrap();
    let text = String::from_utf8(good.clone()).unwrap();
    // With a checksum that fits.
    let signed = |text: &str| {
        let head = &text[..text.rfind("crc32").unwrap()];
        format!("{head}crc32 {:08x}\n", crate::base::checksum::crc32(0, head.as_bytes()))
    };
    assert_eq!(signed(&text), text);
    let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        bad.push(flipped);
    }
    for text in [
        format!("{text}\n"),
        format!("{text} "),
        text.replace('\n', "\r\n"),
        text.replace("epoch 3", "epoch 4"),
        signed(&text.replace("epoch 3", "epoch -3")),
        signed(&text.replace("epoch 3", "epoch 03")),
        signed(&text.replace("epoch 3", "epoch 3\r")),
        signed(&text.replace("established", "Established")),
        "3".into(),
        format!("{text}{text}"),
    ] {
        bad.push(text.into_bytes());
    }
    bad.extend([vec![0; 200], vec![0xff; 5000], vec![0; 1 << 20]]);
    for (n, bytes) in bad.into_iter().enumerate() {
        std::fs::write(&path, &bytes).unwrap();
        let error = options().open(dir.path()).map(|_| ()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{n}: {error}");
        assert_eq!(error.at().file.as_deref(), Some(ENGINE_MANIFEST_NAME), "{n}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{n}: nothing is touched");
    }
    // What an interrupted change left beside it is nobody's promise.
    std::fs::write(&path, &good).unwrap();
    for left in [&b""[..], b"half", text.replace("epoch 3", "epoch 9").as_bytes()] {
        std::fs::write(dir.path().join("engine.manifest.tmp"), left).unwrap();
        let (engine, _) = options().open(dir.path()).unwrap();
        assert_eq!(engine.accepted_epoch(), Epoch::new(3));
        engine.accept_epoch(Epoch::new(3)).unwrap();
        engine.close().unwrap();
    }
}

/// What a leader does with a follower when an epoch begins, beside snapshots, with the power cut at each operation of
/// each disk: an open shows the old promise or the new one, never an epoch that is entered and not accepted.
#[test]
fn ep_03_a_crash_in_an_epoch_change_of_the_engine_leaves_the_old_or_the_new_one() {
    let base = Arc::new(SimHome::new(5));
    let (engine, _) = options().open_home(base.clone(), Box::new(Unobserved)).unwrap();
    engine.enter_epoch(Epoch::new(1)).unwrap();
    grow(&engine, "a", 20);
    snapshot(&engine);
    let last = grow(&engine, "b", 20);
    engine.close().unwrap();
    let (mut points, mut seen) = (0, [0; 3]);
    for disk in 0..3 {
        for operations in 1..400 {
            let image = image_of(operations);
            let home = Arc::new(base.fork());
            let (engine, _) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
            home.cut_at(Cut::Disk(disk), operations, image);
            // The leader asks first, or the server is the leader and enters at once.
            let accepted = operations % 2 == 0 && engine.accept_epoch(Epoch::new(2)).is_ok();
            let entered = (accepted || operations % 2 == 1) && engine.enter_epoch(Epoch::new(2)).is_ok();
            assert!(!entered || engine.accepted_epoch() == Epoch::new(2), "{disk} {operations}");
            let made = entered && engine.snapshot().unwrap().join().is_ok();
            let logged = made && create(&engine, "/new").is_ok();
            drop(engine);
            home.cut_all(image);
            let (engine, report) = options().open_home(home, Box::new(Unobserved)).unwrap();
            let (promised, current) = (engine.accepted_epoch().get(), engine.current_epoch().get());
            let case = format!("{disk} {operations} {image:?}: {promised} {current}");
            assert!(current <= promised && (1..=2).contains(&current) && promised <= 2, "{case}");
            assert!(!(accepted && promised < 2 || entered && current < 2), "{case}: forgotten");
            assert!(report.last_zxid.epoch().get() <= current, "{case}: {}", report.last_zxid);
            assert!(report.last_zxid >= last && (!logged || engine.tree().get("/new").is_some()), "{case}");
            assert_eq!(engine.accept_epoch(Epoch::new(promised - 1)).unwrap_err().kind(), ErrorKind::Fenced);
            seen[usize::try_from(promised + current - 2).unwrap()] += 1;
            engine.enter_epoch(Epoch::new(2)).unwrap();
            create(&engine, "/behind").unwrap();
            points += 1;
            if logged {
                break;
            }
        }
    }
    assert!(points > 20 && seen.iter().all(|count| *count > 0), "{points} {seen:?}");
}

/// A client that has seen what is no part of the history any more can be told from one that is merely slow, by each way
/// to serve it.
#[test]
fn wa_06_nobody_who_has_seen_more_is_served_the_past_unawares() {
    let home = Arc::new(SimHome::new(7));
    let (engine, _) = options().open_home(home, Box::new(Unobserved)).unwrap();
    engine.enter_epoch(Epoch::new(1)).unwrap();
    grow(&engine, "a", 90);
    let kept = engine.applied_zxid();
    let mut sent = Vec::new();
    engine.send_snapshot(&mut sent).unwrap();
    let seen = grow(&engine, "b", 10);
    // One that has met what is going to be cut, one that has all of it before it, and one that is not so far.
    let mut live = [kept, kept, Zxid::new(kept.get() - 2)].map(|after| engine.changes(after, "").unwrap());
    assert_eq!(live[0].next_txn(|txn| txn.zxid).unwrap(), Some(Zxid::new(kept.get() + 1)));
    assert!(engine.changes(seen, "").is_ok(), "all of it");
    let ahead = Zxid::new(seen.get() + 1);
    assert_eq!(engine.changes(ahead, "").unwrap_err().kind(), ErrorKind::NotInLog);

    let check = |engine: &Engine| {
        assert_eq!((engine.applied_zxid(), engine.logged_zxid()), (kept, kept));
        let tree = engine.tree();
        assert_eq!(tree.last_zxid(), kept, "whoever has seen more is to be refused by this");
        let newest = tree.descendants("/", None).map(|node| node.stored().mzxid).max().unwrap();
        assert!(newest <= tree.last_zxid());
        // A feed must not wait for what other txns have the zxids of.
        for after in [Zxid::new(kept.get() + 1), seen, ahead] {
            let error = engine.changes(after, "").unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::NotInLog, "not_in_log"), "{after}");
        }
        // What a client of the time before has a watch on is told of by what it is now.
        let (mut table, mut told) = (WatchTable::new(), Vec::new());
        let wanted = SetWatches {
            seen: Zxid::new(kept.get() - 1),
            data: &["/a-89", "/b-3", "/a-1"],
            ..SetWatches::default()
        };
        table.set_watches(1, &tree, &wanted, &mut |event| told.push(event.path.to_owned())).unwrap();
        assert_eq!(told, ["/a-89", "/b-3"]);
    };
    let (engine, ..) = engine.truncate(Epoch::new(1), kept).unwrap();
    for n in 1..=2 {
        let zxid = Zxid::new(kept.get() - 2 + n);
        assert_eq!(live[2].next_txn(|txn| txn.zxid).unwrap(), Some(zxid), "that stands");
    }
    for mut feed in live {
        for _ in 0..3 {
            assert_eq!(feed.next_txn(|_| ()).unwrap_err().kind(), ErrorKind::NotInLog, "that is cut");
        }
    }
    check(&engine);
    grow(&engine, "c", 20);
    let mut live = engine.changes(kept, "").unwrap();
    let (engine, _) = engine.install(Epoch::new(1), &mut &sent[..]).unwrap();
    assert_eq!(live.next_txn(|_| ()).unwrap_err().kind(), ErrorKind::NotInLog, "another history");
    check(&engine);
    // In the new epoch, what comes is later than all that anybody has seen.
    engine.enter_epoch(Epoch::new(2)).unwrap();
    assert!(create(&engine, "/d").unwrap() > ahead);
    let mut feed = engine.changes(kept, "").unwrap();
    assert_eq!(feed.next_txn(|txn| txn.zxid).unwrap(), Some(Zxid::from_parts(2, 1)));
}

/// Each node is changed again and again, some deleted and made anew, while a snapshot is written: it is the state at its
/// end.
#[test]
fn pf_04_a_snapshot_beside_changes_to_every_node_is_the_state_at_its_end() {
    let home = Arc::new(SimHome::new(9));
    let rounds = Arc::new(AtomicUsize::new(0));
    let (all, done) = (rounds.clone(), Arc::new(AtomicBool::new(false)));
    let is_over = done.clone();
    // Behind each block that is written, all nodes are changed once at least before the walk goes on.
    let wait = move |told: &Progress| {
        let before = all.load(Ordering::Acquire);
        while told.activity == Activity::WriteSnapshot
            && all.load(Ordering::Acquire) < before + 2
            && !is_over.load(Ordering::Acquire)
        {
            std::thread::yield_now();
        }
    };
    let options = options().commit(Commit::ByServer).recent(0, 0).on_progress(wait);
    let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    let acl = [Acl::open()];
    let ask = |request: &Request<'_>| engine.submit_at(request, &Caller::default(), 1).unwrap().zxid();
    let paths: Vec<String> = (0..1000).map(|n| format!("/{n}")).collect();
    let mut last = Zxid::ZERO;
    for path in &paths {
        last = ask(&Request::Create(CreateRequest::new(path, &[1; 1000], &acl)));
    }
    engine.apply(last).unwrap();
    let task = engine.snapshot().unwrap();
    while !task.is_done() {
        let round = rounds.load(Ordering::Acquire);
        for (n, path) in paths.iter().enumerate() {
            if n % 7 == round % 7 {
                ask(&Request::Delete { path, version: -1 });
                last = ask(&Request::Create(CreateRequest::new(path, &[2; 1000], &acl)));
            } else {
                let data = [u8::try_from(round % 250).unwrap(); 1000];
                last = ask(&Request::SetData { path, data: Some(&data), version: -1 });
            }
            if n % 16 == 0 {
                engine.apply(last).unwrap();
            }
        }
        rounds.fetch_add(1, Ordering::Release);
    }
    done.store(true, Ordering::Release);
    engine.apply(last).unwrap();
    let info = task.join().unwrap();
    assert!(info.txns >= 2000, "each node was changed twice at least beside it, but for {info:?}");
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let snapshots = home.disk(Room::Snapshots, 1);
    assert_eq!(snapshots.names().len(), 1);
    let (engine, report) = options.open_home(home, Box::new(Unobserved)).unwrap();
    assert_eq!((report.snapshot.unwrap().end, report.digest), (info.end, digest));
    assert_eq!(report.skipped.len(), 0);
    drop(engine);
}

/// What a truncation can begin with, when the log does not reach back to the beginning: a snapshot at the target is as
/// good as an older one, and one that ends before the log begins is none.
#[test]
fn tr_05_the_base_of_a_truncation_reaches_the_log_and_not_beyond_the_target() {
    let options = options().snapshots_kept(1);
    let home = Arc::new(SimHome::new(11));
    let open = || options.open_home(home.clone(), Box::new(Unobserved)).unwrap().0;
    let (engine, leader) = (open(), Epoch::new(1));
    engine.enter_epoch(leader).unwrap();
    grow(&engine, "a", 10);
    let old = snapshot(&engine);
    let disk = home.disk(Room::Snapshots, 1);
    let stays = NamePattern::Exact(snapshot_name(old));
    disk.inject(Fault::next(FaultOp::Remove, Effect::EIO).on(stays).times(u64::MAX));
    grow(&engine, "b", 400);
    let end = snapshot(&engine);
    disk.clear_faults();
    let floor = engine.shared().log.floor_zxid();
    assert!(old < floor && floor < end && engine.snapshots() == [end, old], "{old} {floor} {end}");
    let digest = engine.tree().digest();
    grow(&engine, "c", 3);

    let before = Zxid::new(end.get() - 1);
    let error = engine.truncate(leader, before).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInLog, "{error}");
    let engine = open();
    assert_eq!(engine.snapshots(), [end, old], "nothing was removed");
    let (engine, report, _) = engine.truncate(leader, end).unwrap();
    assert_eq!((report.last_zxid, engine.applied_zxid(), engine.tree().digest()), (end, end, digest));
}

/// The id that is asked for is the manifest's, not only the log's: the log is asked for the manifest's.
#[test]
fn another_database_than_the_one_asked_for_is_refused() {
    let home = Arc::new(SimHome::new(11));
    let open = |id| {
        let options = options();
        let log = options.log.clone().expected_database_id(DatabaseId::from_bytes([id; 16]));
        options.log(log).open_home(home.clone(), Box::new(Unobserved)).map(drop)
    };
    open(7).unwrap();
    assert_eq!(open(8).unwrap_err().kind(), ErrorKind::WrongOwner);
    open(7).unwrap();
}
