//! Reading a log back: bytes of a file, groups out of bytes, records out of groups, and segments scanned whole.

mod each;
mod group;
mod reader;
mod scan;
mod window;

pub(crate) use each::each_record;
pub(crate) use group::{Records, verify_group};
pub(crate) use reader::not_in_log;
pub use reader::{LogReader, Record};
pub(crate) use scan::{SegmentScan, StopKind, is_blank_file, scan_segment};
pub(crate) use window::Window;
