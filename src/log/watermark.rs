use crate::base::Zxid;
use crate::base::sync::{AtomicU64, Ordering};

/// The last record that is durable, for everyone to see without a lock. Only rises.
#[derive(Debug)]
pub(crate) struct Watermark(AtomicU64);

impl Watermark {
    pub(crate) fn new(zxid: Zxid) -> Watermark {
        Watermark(AtomicU64::new(zxid.get()))
    }

    pub(crate) fn get(&self) -> Zxid {
        Zxid::new(self.0.load(Ordering::Acquire))
    }

    /// Publishes that everything up to `zxid` is durable. Leaders of two groups may come here in either order.
    pub(crate) fn raise(&self, zxid: Zxid) {
        self.0.fetch_max(zxid.get(), Ordering::AcqRel);
    }
}
