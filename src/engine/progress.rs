use std::fmt;
use std::sync::Arc;

use crate::snapshot::LoadProgress;

/// What takes long enough to be watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Activity {
    /// A snapshot is read and made a tree of: at an open, an install, a restore.
    LoadSnapshot,
    /// Txns of the log are applied behind it.
    ReplayLog,
    /// A snapshot is written.
    WriteSnapshot,
}

/// How far an [`Activity`] has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// What is under way.
    pub activity: Activity,
    /// Bytes that were read or written.
    pub done_bytes: u64,
    /// How many there will be, where that is known.
    pub total_bytes: Option<u64>,
    /// Nodes of a snapshot, or txns of the log.
    pub done: u64,
    /// How many there will be, where that is known; of a snapshot that is written, how many there were at its begin.
    pub total: Option<u64>,
}

/// Tells how far something has come.
type Tell = dyn Fn(&Progress) + Send + Sync;

/// Whom to tell, if anyone.
#[derive(Clone, Default)]
pub(crate) struct Told(Option<Arc<Tell>>);

impl Told {
    pub(crate) fn new(tell: impl Fn(&Progress) + Send + Sync + 'static) -> Told {
        Told(Some(Arc::new(tell)))
    }

    /// This one, or if it is nobody, the other.
    pub(super) fn or(self, other: &Told) -> Told {
        Told(self.0.or_else(|| other.0.clone()))
    }

    pub(crate) fn tell(&self, progress: &Progress) {
        if let Some(tell) = &self.0 {
            tell(progress);
        }
    }

    /// The same of a load.
    pub(super) fn loaded(&self, load: LoadProgress) {
        self.tell(&Progress {
            activity: Activity::LoadSnapshot,
            done_bytes: load.done_bytes,
            total_bytes: Some(load.total_bytes),
            done: load.done_nodes,
            total: Some(load.total_nodes),
        });
    }

    /// The same of a replay; how much there is shows only at its end.
    pub(super) fn replayed(&self, txns: u64, bytes: u64) {
        let activity = Activity::ReplayLog;
        self.tell(&Progress { activity, done_bytes: bytes, total_bytes: None, done: txns, total: None });
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.0.is_some()).finish()
    }
}
