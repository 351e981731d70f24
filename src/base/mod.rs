//! The ground floor: identifiers, bounds, checksums, errors and the clock. Imports nothing else of the crate.

pub(crate) mod checksum;
pub(crate) mod clock;
mod code;
mod counted;
mod epoch;
mod error;
mod harmless;
mod histogram;
mod hot_lock;
pub mod limits;
pub(crate) mod planted;
mod random;
pub(crate) mod sync;
mod zxid;

pub(crate) use clock::Clock;
pub use code::Code;
pub(crate) use counted::counted;
pub use epoch::Epoch;
pub use error::{Error, ErrorKind, Place, Result};
pub use harmless::{does_harm, harmless};
pub use histogram::Histogram;
pub(crate) use histogram::{BUCKETS, Times, bucket, quantile_ns};
pub(crate) use hot_lock::{HotCondition, HotGuard, HotLock};
pub(crate) use random::Random;
pub use zxid::Zxid;
