use crate::base::{Epoch, Error, Zxid};
use crate::format::{DatabaseId, Manifest, Numbering};

/// The manifest of a directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ManifestState {
    /// It can be read.
    Present(ManifestInfo),
    /// There is none.
    Missing,
    /// It is damaged, no regular file, or of a newer version.
    Unreadable(Error),
}

/// What a manifest says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ManifestInfo {
    /// The identity of the database.
    pub database_id: DatabaseId,
    /// Counts the manifests of the directory.
    pub version: u64,
    /// What the identifiers are.
    pub numbering: Numbering,
    /// The newest epoch that was made durable.
    pub epoch: Epoch,
    /// What was known durable when it was written.
    pub durable_zxid: Zxid,
    /// Whether a clean close wrote it.
    pub clean: bool,
    /// The oldest segment of the log.
    pub first_seq: u64,
    /// The last record before that segment.
    pub floor_zxid: Zxid,
    /// Segments that end before their files do.
    pub cuts: Vec<CutInfo>,
}

/// The end that a manifest fixes for one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CutInfo {
    /// The segment.
    pub seq: u64,
    /// Its last record that counts.
    pub last_zxid: Zxid,
    /// The segment where the log goes on.
    pub next_seq: u64,
}

impl ManifestInfo {
    pub(super) fn of(manifest: &Manifest) -> ManifestInfo {
        let cut =
            |c: &crate::format::Cut| CutInfo { seq: c.seq, last_zxid: c.last_zxid, next_seq: c.next_seq };
        ManifestInfo {
            database_id: manifest.database_id,
            version: manifest.version,
            numbering: manifest.numbering,
            epoch: manifest.epoch,
            durable_zxid: manifest.durable_zxid,
            clean: manifest.clean,
            first_seq: manifest.first_seq,
            floor_zxid: manifest.floor_zxid,
            cuts: manifest.cuts.iter().map(cut).collect(),
        }
    }
}
