use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::handle::Engine;
use super::home::{Directories, Home};
use super::manifest_file::ManifestFile;
use super::open::{Given, Warm, open_at, take_lock};
use super::options::EngineOptions;
use super::pipeline::Unobserved;
use super::report::OpenReport;
use super::restore::replay;
use super::view::{Place, several_looks};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::tree::{DataTree, Observer};

/// Opens the directories to write in them.
type Writing = Box<dyn Fn() -> Result<Arc<dyn Home>> + Send + Sync>;

/// A second one beside the live owner of an engine's directory: it reads what the owner has logged, and takes its place
/// when it is gone. Nothing of the directory is locked or changed before [`promote`](Standby::promote).
///
/// What it shows is what is whole on disk: the newest txns of it may not have been acknowledged by the owner yet. If
/// they vanish, as they may when the owner crashes or truncates, the next [`catch_up`](Standby::catch_up) shows the
/// state without them.
///
/// A standby on *another* machine is an engine of its own, which is fed with [`Engine::append`] and
/// [`Engine::apply`] and becomes the leader by [`Engine::enter_epoch`].
///
/// ```
/// use arborlog::{EngineOptions, Epoch, ErrorKind};
///
/// # fn main() -> arborlog::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("arborlog-standby-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let options = EngineOptions::new().log(arborlog::LogOptions::new().segment_bytes(1 << 20));
/// let (engine, _) = options.open(&dir)?;
/// let mut standby = options.open_standby(&dir)?;
/// standby.catch_up()?;
/// assert_eq!(standby.promote(Epoch::new(1)).unwrap_err().kind(), ErrorKind::Locked);
///
/// engine.close()?;
/// let (engine, _) = standby.promote(Epoch::new(1))?;
/// assert_eq!(engine.current_epoch(), Epoch::new(1));
/// # drop(engine);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Standby {
    options: EngineOptions,
    reading: Arc<dyn Home>,
    writing: Writing,
    tree: DataTree,
    /// Zero: nothing was read yet, or what was is given away.
    generation: u64,
    /// Where the log holds the tree's last txn.
    segment: Option<u64>,
    accepted: Epoch,
    current: Epoch,
}

/// What a standby has caught up with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct CaughtUp {
    /// How many txns of the log were applied.
    pub txns: u64,
    /// Whether the state was read anew, from a snapshot on: at first, or because the owner has installed or truncated
    /// something, or purged what had not been read yet.
    pub reloaded: bool,
    /// The last txn of the tree now.
    pub last_zxid: Zxid,
}

impl EngineOptions {
    /// Reads the engine in `dir`, which another process may have open, in order to follow it and to take its place.
    ///
    /// # Errors
    /// As [`open_read_only`](EngineOptions::open_read_only).
    pub fn open_standby(&self, dir: impl AsRef<Path>) -> Result<Standby> {
        let dir = dir.as_ref().to_owned();
        let reading = Arc::new(Directories::open_to_read(&dir, self.log_dir.as_deref())?);
        let (log_dir, backend) = (self.log_dir.clone(), self.log.backend_choice());
        let writing = move || -> Result<Arc<dyn Home>> {
            Ok(Arc::new(Directories::open(&dir, log_dir.as_deref(), backend)?))
        };
        Standby::open(self, reading, Box::new(writing))
    }
}

impl Standby {
    pub(super) fn open(options: &EngineOptions, reading: Arc<dyn Home>, writing: Writing) -> Result<Standby> {
        options.check()?;
        let mut standby = Standby {
            options: options.clone(),
            reading,
            writing,
            tree: DataTree::new(),
            generation: 0,
            segment: None,
            accepted: Epoch::ZERO,
            current: Epoch::ZERO,
        };
        standby.catch_up()?;
        Ok(standby)
    }

    /// Applies what has been logged since. It verifies the whole log that the owner keeps, about as fast as it can be
    /// read: call it some times a second at most. While a state is read anew the old one stays in memory too.
    ///
    /// # Errors
    /// As [`open_read_only`](EngineOptions::open_read_only). The tree then is one of the past, and the next call goes
    /// on from there.
    pub fn catch_up(&mut self) -> Result<CaughtUp> {
        several_looks(|| self.look_again())
    }

    fn look_again(&mut self) -> Result<CaughtUp> {
        let reading = self.reading.clone();
        let options = self.options.clone();
        let place = Place { options: &options, home: reading.as_ref() };
        if let Some(txns) = self.follow(&place)? {
            return Ok(CaughtUp { txns, reloaded: false, last_zxid: self.last_zxid() });
        }
        let (seen, log) = place.look()?;
        (self.accepted, self.current) = (seen.accepted_epoch, seen.current_epoch);
        (self.tree, self.generation) = (seen.tree, seen.generation);
        self.segment = log.segment_of(self.last_zxid());
        Ok(CaughtUp { txns: seen.replayed, reloaded: true, last_zxid: self.last_zxid() })
    }

    /// Applies what the log has behind the tree; none if the log does not go on from there.
    fn follow(&mut self, place: &Place<'_>) -> Result<Option<u64>> {
        let manifest = place.manifest()?;
        if manifest.generation != self.generation {
            return Ok(None);
        }
        let (log, _) = place.log(&manifest)?;
        let last = self.last_zxid();
        let is_there = log.floor_zxid() <= last && last <= log.last_zxid();
        if !is_there || log.segment_of(last) != self.segment {
            return Ok(None);
        }
        let replayed = replay(&log, &mut self.tree, Zxid::MAX);
        // Also of what was applied before a failure.
        self.segment = log.segment_of(self.last_zxid());
        self.current = log.epoch();
        self.accepted = manifest.accepted.max(self.current);
        Ok(Some(replayed?.txns))
    }

    /// The tree as it was when it was caught up with.
    pub fn tree(&self) -> &DataTree {
        &self.tree
    }

    /// The last txn of the tree.
    pub fn last_zxid(&self) -> Zxid {
        self.tree.last_zxid()
    }

    /// The newest epoch that the owner had accepted.
    pub fn accepted_epoch(&self) -> Epoch {
        self.accepted
    }

    /// The epoch of the leader whose history this is.
    pub fn current_epoch(&self) -> Epoch {
        self.current
    }

    /// Takes the owner's place: takes the directory, makes the epoch durable, so that whoever leads an older one is
    /// refused for ever, and only then opens the engine, with the tree that is here already if the log goes on from it,
    /// and takes part in the epoch. The epoch that was accepted last may be given again: a promotion that failed is
    /// repeated so.
    ///
    /// Of this standby nothing is left but what it needs to [catch up](Standby::catch_up) again, from a snapshot on.
    ///
    /// # Errors
    /// - [`ErrorKind::Locked`]: the owner lives; nothing was changed, and the standby stays as it is.
    /// - [`ErrorKind::Fenced`]: a newer epoch was accepted or entered, here or by the owner. It fails for ever.
    /// - [`ErrorKind::Invalid`]: the epoch has more than 32 bits.
    /// - As [`EngineOptions::open`]. The epoch may be accepted then.
    pub fn promote(&mut self, epoch: Epoch) -> Result<(Engine, OpenReport)> {
        self.promote_observed(epoch, Unobserved)
    }

    /// The same, with an observer as in [`EngineOptions::open_observed`].
    ///
    /// # Errors
    /// As [`promote`](Standby::promote).
    pub fn promote_observed(
        &mut self,
        epoch: Epoch,
        observer: impl Observer + Send + 'static,
    ) -> Result<(Engine, OpenReport)> {
        if epoch.get() > u64::from(u32::MAX) {
            return Err(Error::invalid(format!("epoch {epoch} does not fit 32 bits")));
        }
        let home = (self.writing)()?;
        let root = home.root();
        let lock = take_lock(root.as_ref())?;
        let Some(manifest) = ManifestFile::read(&root)? else {
            let why = "there is no engine in this directory".into();
            return Err(Error::new(ErrorKind::Io, "no_log", why));
        };
        // What was seen in the log is a promise as well.
        let accepted = manifest.get().accepted.max(self.current);
        if epoch < accepted && !crate::planted("promote_unfenced") {
            let why = format!("no leader of epoch {epoch} is wanted: epoch {accepted} was accepted");
            return Err(Error::new(ErrorKind::Fenced, "fenced", why));
        }
        if epoch > manifest.get().accepted {
            manifest.commit(|manifest| manifest.accepted = epoch)?;
        }
        let warm = Warm {
            tree: std::mem::take(&mut self.tree),
            generation: std::mem::take(&mut self.generation),
            segment: self.segment.take(),
        };
        let given = Given { lock: Some(lock), warm: Some(warm) };
        let (shared, report) = open_at(home, &self.options, Box::new(observer), given)?;
        if !crate::planted("promote_unfenced") {
            shared.log.advance_epoch(epoch)?;
        }
        Ok((Engine::start(shared)?, report))
    }
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("last", &self.last_zxid()).finish_non_exhaustive()
    }
}
