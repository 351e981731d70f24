//! Reading a log back: bytes of a file, groups out of bytes, records out of groups, and segments scanned whole.

mod each;
mod group;
mod reader;
mod scan;
mod window;

pub(crate) use each::each_record;
pub(crate) use group::{BadGroup, GroupTotals, Records, verify_group};
pub use reader::{LogReader, Record};
pub(crate) use reader::not_in_log;
pub(crate) use scan::{Beyond, SegmentScan, Stop, StopKind, check_owner, is_blank_file, scan_segment};
pub(crate) use window::Window;
