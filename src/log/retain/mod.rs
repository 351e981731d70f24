//! What is kept and what goes: pins, purging from the front, truncation from the back.

mod pin;
mod purge;
mod repair;
mod retention;
mod truncate;

pub use pin::LogPin;
pub(crate) use pin::{Pin, Pins};
pub use purge::PurgeReport;
pub(crate) use purge::purge;
#[cfg(any(test, feature = "sim"))]
pub use repair::repair_record_sim;
pub use repair::{RepairReport, repair_record};
pub use retention::Retention;
pub use truncate::TruncateReport;
pub(crate) use truncate::truncate;
