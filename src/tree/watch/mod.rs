//! Who wants to hear of which changes: ZooKeeper's watches as a table, fed with the changes that a tree tells.

mod event;
mod kind;
mod names;
mod pairs;
mod set_watches;
mod slab;
mod table;
#[cfg(test)]
mod tests;

pub use event::{WatchEvent, WatchEventKind};
pub use kind::WatchKind;
pub use set_watches::SetWatches;
pub use table::{WatchLimits, WatchTable};
