//! All integration tests, as modules of one binary.

mod tidy;
