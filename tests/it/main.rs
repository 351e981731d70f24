//! All integration tests, as modules of one binary.

#[cfg(feature = "sim")]
mod allocations;
#[cfg(feature = "sim")]
mod faults;
mod golden;
mod tidy;
