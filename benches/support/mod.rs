//! What benches share: latencies, results as data, pictures, the command line and the device's own limit.
//!
//! A bench file (`harness = false`) includes it with `mod support;`.
#![allow(dead_code, reason = "each bench uses its own part")]
#![allow(clippy::cast_precision_loss, reason = "figures for people: 52 bits are plenty")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranges are asserted or tiny")]

pub(crate) mod aligned;
pub(crate) mod args;
pub(crate) mod csv;
pub(crate) mod device;
pub(crate) mod histogram;
mod labels;
pub(crate) mod plain_log;
pub(crate) mod plot;
pub(crate) mod process;
mod scale;
pub(crate) mod writers;

/// Real time, which is what a bench measures.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}
