use std::path::Path;
use std::sync::Arc;

use super::generation::Generation;
use super::home::{Directories, Home, Room};
use super::manifest_file::ManifestFile;
use super::mark::{MARK_NAME, Mark, place_of};
use super::open::take_lock;
use super::options::EngineOptions;
use super::restore::is_not_there;
use crate::base::{Clock, Epoch, Error, ErrorKind, Random, Result};
use crate::format::{DatabaseId, ENGINE_MANIFEST_NAME, ENGINE_MANIFEST_TEMP_NAME, EngineManifest, LOCK_NAME};
use crate::io::Disk;
use crate::tree::DataTree;

/// The one generation that is made.
const NUMBER: u64 = 1;

/// An engine that is made from a state, in a directory of its own: all of it, or none.
#[derive(Debug)]
pub(crate) struct Foundation {
    home: Arc<dyn Home>,
    options: EngineOptions,
    clock: Clock,
}

impl Foundation {
    /// Takes the directory, in which there must be nothing but what an attempt has left that was cut off.
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): something else is there, or an option is out of bounds.
    /// - [`ErrorKind::Locked`](crate::ErrorKind::Locked), [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub(crate) fn begin(dest: &Path, options: &EngineOptions) -> Result<Foundation> {
        options.check()?;
        let home = Directories::open(dest, options.log_dir.as_deref(), options.log.backend_choice())?;
        Foundation::begin_in(Arc::new(home), options)
    }

    fn begin_in(home: Arc<dyn Home>, options: &EngineOptions) -> Result<Foundation> {
        check_vacant(home.as_ref(), &place_of(options))?;
        Ok(Foundation { home, options: options.clone(), clock: Clock::real() })
    }

    /// Tells what [`begin`](Foundation::begin) would, without changing one byte. A directory that is not there would do.
    ///
    /// # Errors
    /// As [`begin`](Foundation::begin).
    pub(crate) fn check(dest: &Path, options: &EngineOptions) -> Result<()> {
        options.check()?;
        match Directories::open_to_read(dest, options.log_dir.as_deref()) {
            Ok(home) => check_vacant(&home, &place_of(options)),
            Err(error) if is_not_there(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes the engine; when this returns, it is durable.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace): there is none then.
    pub(crate) fn finish(self, tree: DataTree, accepted: Epoch) -> Result<DatabaseId> {
        let root = self.home.root();
        // Before this, nothing was written: what is refused leaves nothing behind.
        let _lock = take_lock(root.as_ref())?;
        let place = place_of(&self.options);
        check_vacant(self.home.as_ref(), &place)?;
        let wrap = |e| Error::io("mark the directory", e).in_file(MARK_NAME);
        let left = Mark::read(root.as_ref())?;
        // That of the attempt before, so that what is half of it is known again.
        let begun = self.options.log.expected_database_id.or(left.as_ref().and_then(|mark| mark.database_id));
        let database_id = begun.unwrap_or_else(|| DatabaseId::random(&mut Random::from_system()));
        let mark = Mark { database_id: Some(database_id), place };
        if left.is_some_and(|left| left != mark) {
            // What that attempt has left here goes first; there is nothing of it where this one has its log.
            self.home.remove(NUMBER)?;
            root.remove(MARK_NAME).map_err(wrap)?;
        }
        mark.write(root.as_ref()).map_err(wrap)?;
        self.home.remove(NUMBER)?;
        let epoch = tree.last_zxid().epoch();
        let first = Generation {
            home: &self.home,
            number: NUMBER,
            database_id,
            options: &self.options,
            clock: &self.clock,
        };
        first.write(&first.store()?, tree, epoch)?;
        ManifestFile::create(&root, EngineManifest::of_whole(database_id, accepted.max(epoch), NUMBER))?;
        // From here on it is an engine, with the mark or without.
        root.remove(MARK_NAME).map_err(|e| Error::io("remove the mark", e).in_file(MARK_NAME))?;
        root.sync_dir().map_err(|e| Error::io("sync a directory", e))?;
        Ok(database_id)
    }
}

/// What there is to say of a directory without a manifest, if an engine was begun in it and not finished.
pub(crate) fn unfinished(root: &dyn Disk) -> Result<Option<Error>> {
    let Some(mark) = Mark::read(root)? else { return Ok(None) };
    let its_log = if mark.place.is_empty() {
        String::new()
    } else {
        format!(", with its log in {}", mark.dir().display())
    };
    let why = format!("an import or a restore into this directory was cut off{its_log}: begin it anew");
    Ok(Some(Error::corrupt("founding_unfinished", why).in_file(MARK_NAME)))
}

fn check_vacant(home: &dyn Home, place: &[u8]) -> Result<()> {
    let root = home.root();
    let entries = root.list().map_err(|e| Error::io("list a directory", e))?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let marked = if has(ENGINE_MANIFEST_NAME) { None } else { Mark::read(root.as_ref())? };
    let is_marked = marked.is_some();
    let rooms = [Room::Log, Room::Snapshots].map(|room| room.name(NUMBER));
    let is_left = |name: &str| {
        name == LOCK_NAME
            || is_marked
                && (name == MARK_NAME
                    || name == ENGINE_MANIFEST_TEMP_NAME
                    || rooms.iter().any(|room| room == name))
    };
    let strange = entries.iter().any(|entry| !is_left(&entry.name));
    let generations = home.generations()?;
    let more = generations.iter().any(|number| !is_marked || *number != NUMBER);
    let is_elsewhere = marked.as_ref().is_some_and(|mark| mark.place != place);
    let log_is_others = is_elsewhere && home.room_if_there(Room::Log, NUMBER)?.is_some();
    if strange || more || log_is_others {
        let why = "the directory in which the engine is to be made is not empty".to_owned();
        return Err(Error::new(ErrorKind::Invalid, "restore_not_empty", why));
    }
    match marked {
        Some(mark) if is_elsewhere => mark.check_left_log(NUMBER, has(&Room::Log.name(NUMBER))),
        Some(mark) => mark.check_own_log(home, NUMBER),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pipeline::Unobserved;
    use crate::engine::sim_home::{Cut, SimHome, image_of};
    use crate::log::LogOptions;
    use crate::tree::random_txns;

    /// A tree after so many txns.
    fn grown(txns: usize) -> DataTree {
        let mut tree = DataTree::new();
        for txn in random_txns(5, txns) {
            tree.apply(&txn.as_txn(), &mut ());
        }
        tree
    }

    /// The power is cut at each operation: what is there then is the engine, whole, or nothing that opens, and it is
    /// made again in the same place.
    #[test]
    fn a_foundation_that_is_cut_off_anywhere_is_begun_anew() {
        let options = EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10)).snap_count(0);
        let tree = || grown(40);
        let (digest, accepted) = (tree().digest(), Epoch::new(9));
        let (mut points, mut anew) = (0, 0);
        for cut in [Cut::Disk(0), Cut::Next(Room::Log), Cut::Next(Room::Snapshots)] {
            for operations in 1..300 {
                let image = image_of(operations);
                let home = Arc::new(SimHome::new(operations));
                let begin = || Foundation::begin_in(home.clone(), &options);
                let foundation = begin().unwrap();
                home.cut_at(cut, operations, image);
                let is_done = foundation.finish(tree(), accepted).is_ok();
                home.cut_all(image);
                let open = || options.open_home(home.clone(), Box::new(Unobserved));
                let case = format!("{cut:?} {operations} {image:?}");
                if let Ok(begun) = begin() {
                    assert!(!is_done, "{case}: it is nobody's");
                    begun.finish(tree(), accepted).unwrap_or_else(|e| panic!("{case}: {e}"));
                    anew += 1;
                }
                let (engine, report) = open().unwrap_or_else(|e| panic!("{case}: {e}"));
                assert_eq!((report.digest, engine.accepted_epoch()), (digest, accepted), "{case}");
                assert!(begin().is_err(), "{case}: it is in use");
                points += 1;
                if is_done {
                    break;
                }
            }
        }
        assert!(points > 20 && anew > 15, "{points} {anew}");
    }

    /// What an attempt has left is no part of the next one, which may be of another state.
    #[test]
    fn nothing_of_an_attempt_that_was_cut_off_is_in_the_next_one() {
        let options = EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10)).snap_count(0);
        let mut points = 0;
        for cut in [Cut::Disk(0), Cut::Next(Room::Log), Cut::Next(Room::Snapshots)] {
            for operations in 1..300 {
                let image = image_of(operations);
                let home = Arc::new(SimHome::new(operations));
                let begin = || Foundation::begin_in(home.clone(), &options);
                let foundation = begin().unwrap();
                home.cut_at(cut, operations, image);
                let is_done = foundation.finish(grown(40), Epoch::new(9)).is_ok();
                home.cut_all(image);
                let Ok(again) = begin() else { break };
                assert!(!is_done);
                again.finish(grown(25), Epoch::new(9)).unwrap();
                let (_engine, report) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
                assert_eq!(report.digest, grown(25).digest(), "{cut:?} {operations} {image:?}");
                points += 1;
            }
        }
        assert!(points > 15, "{points}");
    }

    /// An attempt at another database in the place of one that was cut off, and cut off itself: neither is left so that
    /// nobody knows whose it is.
    #[test]
    fn an_attempt_may_be_cut_off_while_it_clears_away_another_one() {
        let options = EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10)).snap_count(0);
        let other = options.log.clone().expected_database_id(DatabaseId::from_bytes([9; 16]));
        let other = options.clone().log(other);
        for operations in 1.. {
            let image = image_of(operations);
            let home = Arc::new(SimHome::new(operations));
            let begin = |options| Foundation::begin_in(home.clone(), options).unwrap();
            home.cut_at(Cut::Next(Room::Log), 8, image);
            assert!(begin(&options).finish(DataTree::new(), Epoch::ZERO).is_err());
            home.cut_all(image);
            let again = begin(&other);
            home.cut_at(Cut::Disk(0), operations, image);
            let is_done = again.finish(DataTree::new(), Epoch::ZERO).is_ok();
            home.cut_all(image);
            if is_done {
                assert!(operations > 5, "{operations}");
                return;
            }
            if home.root().list().unwrap().iter().all(|entry| entry.name != ENGINE_MANIFEST_NAME) {
                begin(&other).finish(DataTree::new(), Epoch::ZERO).unwrap();
            }
            options.open_home(home, Box::new(Unobserved)).unwrap();
        }
    }

    /// Between the look and the writing, which may be hours, somebody else may have come.
    #[test]
    fn what_has_come_since_the_begin_is_no_place_for_an_engine() {
        let (dir, options) = (tempfile::tempdir().unwrap(), EngineOptions::new());
        let begun = || Foundation::begin(dir.path(), &options).unwrap();
        let finish = |foundation: Foundation| foundation.finish(DataTree::new(), Epoch::ZERO).unwrap_err();
        let foundation = begun();
        let lock = take_lock(foundation.home.root().as_ref()).unwrap();
        assert_eq!(finish(foundation).kind(), ErrorKind::Locked);
        drop(lock);
        let foundation = begun();
        std::fs::write(dir.path().join("mine"), b"").unwrap();
        assert_eq!(finish(foundation).code(), "restore_not_empty");
        assert!(!dir.path().join(MARK_NAME).exists());
    }

    #[test]
    fn what_was_cut_off_is_made_again_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions::new();
        let begin = || Foundation::begin(dir.path(), &options);
        drop(begin().unwrap());
        // A log whose manifest is lost is no half of an attempt.
        std::fs::create_dir(dir.path().join("log-1")).unwrap();
        assert_eq!(begin().unwrap_err().kind(), ErrorKind::Invalid);
        std::fs::write(dir.path().join(MARK_NAME), b"").unwrap();
        std::fs::write(dir.path().join("mine"), b"").unwrap();
        assert_eq!(begin().unwrap_err().kind(), ErrorKind::Invalid);
        std::fs::remove_file(dir.path().join("mine")).unwrap();
        // A mark that tells of no log elsewhere is no leave to remove one there.
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::create_dir(elsewhere.path().join("log-1")).unwrap();
        let other = EngineOptions::new().log_dir(elsewhere.path());
        assert_eq!(Foundation::begin(dir.path(), &other).unwrap_err().kind(), ErrorKind::Invalid);
        std::fs::remove_dir(elsewhere.path().join("log-1")).unwrap();
        // What an attempt has left is not forgotten where nobody looks for it.
        let left = |options: &EngineOptions, log: &Path| {
            let error = Foundation::begin(dir.path(), options).unwrap_err();
            assert_eq!(error.code(), "restore_not_empty");
            assert!(error.message().contains(log.join("log-1").to_str().unwrap()), "{error}");
        };
        left(&other, Path::new(""));
        std::fs::remove_dir(dir.path().join("log-1")).unwrap();
        Foundation::begin(dir.path(), &other).unwrap();
        let id = DatabaseId::from_bytes([7; 16]);
        let mark = Mark { database_id: Some(id), place: place_of(&other) };
        std::fs::write(dir.path().join(MARK_NAME), mark.bytes()).unwrap();
        std::fs::create_dir(elsewhere.path().join("log-1")).unwrap();
        Foundation::begin(dir.path(), &other).unwrap();
        // Another engine has its log there by now.
        let third = tempfile::tempdir().unwrap();
        std::fs::remove_dir(elsewhere.path().join("log-1")).unwrap();
        Foundation::begin(third.path(), &other).unwrap().finish(DataTree::new(), Epoch::ZERO).unwrap();
        left(&other, elsewhere.path());
        // The attempt's own is no other engine's, whoever begins it anew.
        std::fs::remove_dir_all(elsewhere.path().join("log-1")).unwrap();
        let own = other.clone().log(LogOptions::new().expected_database_id(id));
        Foundation::begin(tempfile::tempdir().unwrap().path(), &own)
            .unwrap()
            .finish(DataTree::new(), Epoch::ZERO)
            .unwrap();
        Foundation::begin(dir.path(), &other).unwrap();
        left(&options, elsewhere.path());
        let error = options.open(dir.path()).unwrap_err();
        assert_eq!(error.code(), "founding_unfinished", "{error}");
        std::fs::write(dir.path().join(MARK_NAME), b"").unwrap();
        begin().unwrap().finish(DataTree::new(), Epoch::new(7)).unwrap();
        assert!(!dir.path().join(MARK_NAME).exists());
        let (engine, report) = options.open(dir.path()).unwrap();
        assert_eq!((engine.accepted_epoch(), report.last_zxid), (Epoch::new(7), crate::Zxid::ZERO));
        engine.close().unwrap();
        assert_eq!(begin().unwrap_err().kind(), ErrorKind::Invalid);
    }
}
