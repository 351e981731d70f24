use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::{DamagedRange, SnapshotFile, SnapshotInfo};
use super::read::verify;
use super::receive::Received;
use super::writer::SnapshotWriter;
use crate::base::{Error, ErrorKind, Random, Result, Zxid};
use crate::format::snapshot::{SnapshotHeader, SnapshotName, snapshot_name};
use crate::format::{DatabaseId, Name, Numbering};
use crate::io::{Backend, Disk, Duplicated, EntryKind, OpenMode, duplicate};

/// The snapshots of one database, in one directory. Clones are the same store.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotStore {
    shared: Arc<StoreShared>,
}

/// What opening found beside snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct StoreReport {
    /// Temporary files of dead writers, removed.
    pub(crate) cleaned: Vec<String>,
    /// Names that are nobody's we know; left alone.
    pub(crate) foreign: Vec<String>,
}

/// What a clean-up did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retained {
    pub(crate) removed: Vec<Zxid>,
    /// Those that do not count, or could not be removed, and why.
    pub(crate) troubled: Vec<(Zxid, Error)>,
    /// The oldest verified snapshot that is kept: the log is needed from there on. None: nothing may be purged.
    pub(crate) oldest_kept: Option<Zxid>,
}

#[derive(Debug)]
pub(super) struct StoreShared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) database_id: DatabaseId,
    pub(super) numbering: Numbering,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Each with whether it was verified since it was written or the store opened.
    snapshots: BTreeMap<Zxid, bool>,
    writing: bool,
    random: Random,
}

impl SnapshotStore {
    /// Opens a directory of snapshots: lists them, and removes what dead writers left.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        database_id: DatabaseId,
        numbering: Numbering,
        random: Random,
    ) -> Result<(SnapshotStore, StoreReport)> {
        let mut report = StoreReport::default();
        let mut snapshots = BTreeMap::new();
        for entry in disk.list().map_err(|e| Error::io("list the snapshots' directory", e))? {
            match SnapshotName::parse(&entry.name) {
                SnapshotName::Snapshot(end) if entry.kind == EntryKind::File => {
                    snapshots.insert(end, false);
                }
                SnapshotName::Temporary if entry.kind == EntryKind::File => {
                    disk.remove(&entry.name)
                        .map_err(|e| Error::io("remove a file", e).in_file(&entry.name))?;
                    report.cleaned.push(entry.name);
                }
                // The log may share the directory.
                _ if Name::parse(&entry.name) == Name::Foreign => report.foreign.push(entry.name),
                _ => {}
            }
        }
        report.cleaned.sort();
        report.foreign.sort();
        let state = Mutex::new(State { snapshots, writing: false, random });
        let shared = Arc::new(StoreShared { disk, database_id, numbering, state });
        Ok((SnapshotStore { shared }, report))
    }

    /// The zxids of all snapshots, newest first, whether their files are well or not.
    pub(crate) fn snapshots(&self) -> Vec<Zxid> {
        self.shared.state.lock().snapshots.keys().rev().copied().collect()
    }

    /// Begins a snapshot of a walk that begins after `start`. One at a time.
    pub(crate) fn begin(&self, start: Zxid, created_ms: i64) -> Result<SnapshotWriter> {
        self.begin_paced(start, created_ms, |_| ())
    }

    /// The same; `pace` is called after each write, with how many bytes it had, and may sleep.
    pub(crate) fn begin_paced(
        &self,
        start: Zxid,
        created_ms: i64,
        pace: impl FnMut(u64) + Send + 'static,
    ) -> Result<SnapshotWriter> {
        let salt = self.shared.begin_writing()?;
        let StoreShared { database_id, numbering, .. } = *self.shared;
        let header = SnapshotHeader { database_id, numbering, salt, start, created_ms };
        SnapshotWriter::begin(self.shared.clone(), header, Box::new(pace))
    }

    /// Takes in the bytes of a snapshot of whatever database, under a temporary name.
    pub(crate) fn receive(&self, source: &mut dyn std::io::Read) -> Result<Received> {
        Received::new(self.shared.clone(), source)
    }

    /// Opens the newest snapshot that is read and found well; none if there is none. It can be read to its end even
    /// if it is removed meanwhile.
    pub(crate) fn open_newest(&self) -> Result<Option<SnapshotFile>> {
        for end in self.snapshots() {
            match self.check(end).and_then(|()| self.open_file(end)) {
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                opened => return opened.map(Some),
            }
        }
        Ok(None)
    }

    /// Opens a snapshot to be read.
    pub(crate) fn open_file(&self, end: Zxid) -> Result<SnapshotFile> {
        self.shared.open_file(end)
    }

    /// Reads and checks all blocks, counts and the order; the digest is checked by loading.
    pub(crate) fn verify(&self, end: Zxid) -> Result<SnapshotInfo> {
        let file = self.shared.open_file(end)?;
        verify(&file)?;
        self.shared.was_read(end, true);
        Ok(file.info)
    }

    /// Reads it again, and lists all of its bytes that are damaged.
    pub(crate) fn examine(&self, end: Zxid) -> (Result<SnapshotInfo>, Vec<DamagedRange>) {
        let outcome = self.verify(end);
        let Some(error) = outcome.as_ref().err().filter(|error| error.kind() == ErrorKind::Corrupt) else {
            return (outcome, Vec::new());
        };
        let mut damaged = self.shared.open_file(end).map_or(Vec::new(), |file| file.damaged_blocks());
        if damaged.is_empty() {
            // Not in one block alone: from where it shows to the end of the file.
            let len = self.shared.disk.open(&snapshot_name(end), OpenMode::Read).and_then(|file| file.len());
            if let (Ok(end_offset), code) = (len, error.code()) {
                damaged.push(DamagedRange { offset: error.at().offset.unwrap_or(0), end_offset, code });
            }
        }
        // It counts no longer.
        self.shared.was_read(end, false);
        (outcome, damaged)
    }

    /// The same, unless it is known to be well.
    fn check(&self, end: Zxid) -> Result<()> {
        let known = self.shared.state.lock().snapshots.get(&end) == Some(&true);
        if known { Ok(()) } else { self.verify(end).map(drop) }
    }

    /// Removes the oldest snapshots beyond `count` verified ones. One that is not known to be well is read; damaged
    /// ones do not count, and stay. A file that cannot be removed is tried again by the next call.
    pub(crate) fn retain(&self, count: usize) -> Result<Retained> {
        let mut report = Retained::default();
        let mut kept = 0;
        for end in self.snapshots() {
            if kept < count {
                match self.check(end) {
                    Ok(()) => (kept, report.oldest_kept) = (kept + 1, Some(end)),
                    Err(error) => report.troubled.push((end, error)),
                }
                continue;
            }
            // What is not known to be ours is not removed.
            match self.shared.open_file(end).map(drop).and_then(|()| self.shared.remove(end)) {
                Ok(()) => report.removed.push(end),
                Err(error) => report.troubled.push((end, error)),
            }
        }
        if !report.removed.is_empty() {
            self.shared.sync_dir()?;
        }
        Ok(report)
    }

    /// Brings all snapshots into the empty directory `to`, by links where there are any: a published file is never
    /// written again, only replaced. The names there are durable when this returns. How many files were linked, and how
    /// many bytes copied of each of the others.
    pub(crate) fn duplicate_to(&self, to: &dyn Disk) -> Result<(u64, Vec<u64>)> {
        let (mut linked, mut copied) = (0, Vec::new());
        for end in self.snapshots() {
            let name = snapshot_name(end);
            let wrap = |e| Error::io("link a snapshot", e).in_file(&name);
            match duplicate(self.shared.disk.as_ref(), &name, to).map_err(wrap)? {
                Duplicated::Linked => linked += 1,
                Duplicated::Copied(bytes) => copied.push(bytes),
            }
        }
        if !crate::planted("checkpoint_unsynced") {
            to.sync_dir().map_err(|e| Error::io("sync a directory of snapshots", e))?;
        }
        Ok((linked, copied))
    }

    /// Removes all snapshots that hold txns after `zxid`, newest first: before the log is truncated to it.
    pub(crate) fn remove_newer_than(&self, zxid: Zxid) -> Result<Vec<Zxid>> {
        if self.shared.state.lock().writing {
            let what = "a snapshot is being written".to_owned();
            return Err(Error::new(ErrorKind::Busy, "snapshot_busy", what));
        }
        let newer: Vec<Zxid> = self.snapshots().into_iter().take_while(|end| *end > zxid).collect();
        newer.iter().try_for_each(|end| self.shared.remove(*end))?;
        self.shared.sync_dir()?;
        Ok(newer)
    }
}

impl StoreShared {
    pub(super) fn open_file(&self, end: Zxid) -> Result<SnapshotFile> {
        let name = snapshot_name(end);
        let file = self.disk.open(&name, OpenMode::Read).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt("snapshot_missing", "the snapshot is missing").in_file(&name)
            }
            std::io::ErrorKind::InvalidInput => {
                Error::corrupt("not_a_file", "the snapshot is no regular file").in_file(&name)
            }
            _ => Error::io("open a snapshot", e).in_file(&name),
        })?;
        let mut file = SnapshotFile::open_named(file, end, self.database_id, self.numbering)?;
        file.reads_ahead = self.has_threads();
        Ok(file)
    }

    pub(super) fn has(&self, end: Zxid) -> bool {
        self.state.lock().snapshots.contains_key(&end)
    }

    pub(super) fn published(&self, end: Zxid, verified: bool) {
        self.state.lock().snapshots.insert(end, verified);
    }

    /// Takes note of what reading a snapshot has found. One that was removed meanwhile stays away: it is read to its end
    /// by whoever has it open.
    fn was_read(&self, end: Zxid, verified: bool) {
        if let Some(known) = self.state.lock().snapshots.get_mut(&end) {
            *known = verified;
        }
    }

    /// Whether threads may be started: not on a simulated disk.
    pub(super) fn has_threads(&self) -> bool {
        self.disk.info().backend != Backend::Simulated
    }

    /// Takes the right to write, and a number that nobody had.
    pub(super) fn begin_writing(&self) -> Result<u64> {
        let mut state = self.state.lock();
        if state.writing {
            let what = "another snapshot is being written".to_owned();
            return Err(Error::new(ErrorKind::Busy, "snapshot_busy", what));
        }
        state.writing = true;
        Ok(state.random.next_u64())
    }

    pub(super) fn finish_writing(&self) {
        self.state.lock().writing = false;
    }

    /// Removes a snapshot; that it is gone already is as good.
    fn remove(&self, end: Zxid) -> Result<()> {
        let name = snapshot_name(end);
        match self.disk.remove(&name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove a snapshot", e).in_file(&name));
            }
            _ => {}
        }
        self.state.lock().snapshots.remove(&end);
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        self.disk.sync_dir().map_err(|e| Error::io("sync the snapshots' directory", e))
    }
}
