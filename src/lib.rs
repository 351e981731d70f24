//! arborlog: a storage engine for coordination servers. (crate docs to come)
#![allow(dead_code, unused_imports, missing_docs)] // scaffolding while the layers are being built; removed before landing

mod base;
mod format;
mod io;
mod log;

pub use base::{Epoch, Error, ErrorKind, Place, Result, Zxid, limits};
pub use format::{DatabaseId, Numbering, SegmentFill};
pub use io::{Backend, BackendChoice, BackendInfo, WriteMode};

use base::planted::planted;
