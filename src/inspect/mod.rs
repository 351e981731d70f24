//! Read-only views of the files of a log ([`Directory`]), of snapshots ([`SnapshotDirectory`]) and of a whole engine
//! ([`EngineDirectory`]), for tools, backups and fuzz targets: open or damaged, in use or at rest.
//!
//! Nothing here writes, locks or creates anything, so it works beside a live server and where nothing may be
//! written. What is read is verified by the same code as opening and reading a log; the difference is that
//! damage is handed out as data, and reading goes on behind it.
//!
//! ```no_run
//! use arborlog::inspect::{Directory, Item, Selection};
//!
//! # fn main() -> arborlog::Result<()> {
//! let directory = Directory::open("/var/lib/server/log")?;
//! let mut items = directory.records(&Selection::all())?;
//! while let Some(item) = items.next_item()? {
//!     match item {
//!         Item::Record(record) => println!("{} {} bytes", record.zxid, record.payload.len()),
//!         Item::Damage(damage) => eprintln!("{damage}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod bytes;
mod directory;
mod engine_directory;
mod engine_examination;
mod engine_replay;
mod examination;
mod finding;
mod manifest;
mod memory_file;
mod note;
mod segment;
mod selection;
mod snapshot;
mod snapshot_directory;
mod snapshot_examination;
mod snapshot_reader;
mod state;
mod stream;
mod tally;
mod verdict;

pub use bytes::{
    GroupPlace, SegmentBytes, SegmentScanned, decode_group, decode_manifest, segment_from_bytes,
};
pub use directory::{Directory, Progress};
pub use engine_directory::{EngineDirectory, EngineManifestInfo, EngineManifestState, EngineName};
pub use engine_examination::{Depth, EngineExamination};
pub use engine_replay::ReplayReport;
pub use examination::Examination;
pub use finding::{Finding, Severity};
pub use manifest::{CutInfo, ManifestInfo, ManifestState};
pub use note::Note;
pub use segment::{SegmentInfo, SegmentState};
pub use selection::Selection;
pub use snapshot::load_snapshot;
pub use snapshot_directory::{SnapshotDirectory, SnapshotListing};
pub use snapshot_examination::{SnapshotDamage, SnapshotExamination};
pub use snapshot_reader::SnapshotItem;
pub use stream::{FoundRecord, Item, RecordStream};
pub use verdict::Verdict;

pub use crate::base::{does_harm, harmless};
pub use crate::log::DamagedBytes;

#[cfg(test)]
mod tests;
