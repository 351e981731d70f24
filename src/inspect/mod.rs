//! Read-only views of a log's files, for tools, backups and fuzz targets: open or damaged, in use or at rest.
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
mod examination;
mod manifest;
mod memory_file;
mod note;
mod segment;
mod selection;
mod snapshot;
mod state;
mod stream;
mod tally;
mod verdict;

pub use bytes::{
    GroupPlace, SegmentBytes, SegmentScanned, decode_group, decode_manifest, segment_from_bytes,
};
pub use directory::{Directory, Progress};
pub use examination::Examination;
pub use manifest::{CutInfo, ManifestInfo, ManifestState};
pub use note::Note;
pub use segment::{SegmentInfo, SegmentState};
pub use selection::Selection;
pub use snapshot::load_snapshot;
pub use stream::{FoundRecord, Item, RecordStream};
pub use verdict::Verdict;

pub use crate::log::DamagedBytes;

#[cfg(test)]
mod tests;
