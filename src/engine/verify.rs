use super::handle::Engine;
use super::manifest_file::ManifestFile;
use crate::base::{Error, Result, Zxid};
use crate::log::DamagedRecords;
use crate::snapshot::{DamagedRange, SnapshotInfo};

/// What reading everything again has found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Records of the log whose bytes have changed since they were acknowledged: to be fetched from a peer.
    pub log: Vec<DamagedRecords>,
    /// Each snapshot, newest first.
    pub snapshots: Vec<VerifiedSnapshot>,
    /// What is the matter with the engine's manifest; none if it is well.
    pub manifest: Option<Error>,
    /// The last txn that was durable when this began: what came later was not looked at.
    pub through: Zxid,
}

/// A snapshot that was read again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifiedSnapshot {
    /// Its name's zxid.
    pub end: Zxid,
    /// What it says of itself, or the first thing that is the matter with it.
    pub outcome: Result<SnapshotInfo>,
    /// All bytes of its file that are damaged. Where the index of its blocks is, that is one range up to the end.
    pub damaged: Vec<DamagedRange>,
}

impl VerifyReport {
    /// Whether nothing at all is damaged.
    pub fn is_well(&self) -> bool {
        self.log.is_empty() && self.manifest.is_none() && self.snapshots.iter().all(|s| s.outcome.is_ok())
    }
}

impl Engine {
    /// Reads everything that the engine would come back from, and tells exactly what of it is damaged: the log up to
    /// what is durable, all snapshots, the manifest. Writers and snapshots go on meanwhile; what is purged or removed
    /// by them is not missed. Snapshots that are well count as verified from now on.
    ///
    /// It reads as fast as the disk gives. The state in memory is not compared: [`EngineOptions::open_read_only`] tells
    /// the digest of what stands on disk.
    ///
    /// [`EngineOptions::open_read_only`]: crate::EngineOptions::open_read_only
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if something of the log cannot be read. Damage is no error here: it is the
    /// answer.
    pub fn verify(&self) -> Result<VerifyReport> {
        let shared = self.shared();
        let through = shared.log.durable_zxid();
        let manifest = match ManifestFile::read(&shared.home.root()) {
            Ok(Some(_)) => None,
            Ok(None) => {
                let why = "the engine's manifest is missing";
                Some(Error::corrupt("engine_manifest_missing", why))
            }
            Err(error) => Some(error),
        };
        let log = shared.log.verify()?;
        let mut snapshots = Vec::new();
        for end in shared.store.snapshots() {
            let (outcome, damaged) = shared.store.examine(end);
            // Removed meanwhile, as old ones are.
            if outcome.is_ok() || shared.store.snapshots().contains(&end) {
                snapshots.push(VerifiedSnapshot { end, outcome, damaged });
            }
        }
        Ok(VerifyReport { log, snapshots, manifest, through })
    }
}
