//! All integration tests, as modules of one binary.

mod golden;
mod tidy;
