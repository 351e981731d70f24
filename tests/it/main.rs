//! All integration tests, as modules of one binary.

mod recovery_codes;
mod tidy;
