//! Reading a log back: bytes of a file, groups out of bytes, records out of groups, and segments scanned whole.

mod ahead;
#[cfg(test)]
mod ahead_tests;
mod checks;
mod cursor;
mod damage;
mod each;
mod group;
mod piece;
mod reader;
mod replay;
mod scan;
#[cfg(test)]
mod scan_tests;
mod verify;
mod window;

pub(crate) use ahead::Helpers;
pub(crate) use cursor::Cursor;
pub use damage::Damage;
pub(crate) use damage::{payload_is_right, segment_damage};
pub(crate) use each::each_record;
pub(crate) use group::{Records, verify_group};
pub(crate) use reader::not_in_log;
pub use reader::{LogReader, Record};
pub(crate) use replay::Replay;
pub(crate) use scan::{
    SegmentScan, StopKind, check_owner, is_blank_file, peek_floor, scan_prepared, scan_segment, scan_through,
};
pub(crate) use verify::verify;
pub(crate) use window::Window;
