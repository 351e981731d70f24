//! arborlog: a storage engine for coordination servers. (crate docs to come)
#![allow(dead_code, unused_imports, missing_docs)] // scaffolding while the layers are being built; removed before landing

mod base;
mod io;

pub use base::{Epoch, Error, ErrorKind, Place, Result, Zxid, limits};
#[cfg(any(test, feature = "sim"))]
pub use io::sim;
pub use io::{Backend, BackendChoice, BackendInfo, WriteMode};
