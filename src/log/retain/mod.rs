//! What is kept and what goes: pins, purging from the front, truncation from the back.

mod checkpoint;
mod overlay;
mod pin;
mod purge;
mod rebuild;
mod repair;
mod retention;
mod salvage;
mod salvage_report;
mod truncate;

pub use pin::LogPin;
pub(crate) use pin::{Pin, Pins};
pub use purge::PurgeReport;
pub(crate) use purge::purge;
pub(crate) use rebuild::rebuild;
#[cfg(any(test, feature = "sim"))]
pub use repair::repair_record_sim;
pub use repair::{RepairReport, repair_record};
pub use retention::Retention;
pub use salvage::{SalvageOptions, salvage};
pub use salvage_report::{Loss, ManifestRepair, SalvageReport};
pub(crate) use truncate::truncate_on;
pub use truncate::{Execution, TruncateReport, truncate_dir};
