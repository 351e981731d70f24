//! All integration tests, as modules of one binary.

mod allocations;
mod allocations_per_append;
mod kill_loop;
mod tidy;
