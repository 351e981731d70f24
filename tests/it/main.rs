//! All integration tests, as modules of one binary.

mod faults2;
mod tidy;
