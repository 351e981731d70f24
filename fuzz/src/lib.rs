//! The bodies of the fuzz targets, and the allocator that tells how much memory they take.

#[path = "../../tests/it/allocations.rs"]
#[allow(dead_code, reason = "the targets only ask for the peak")]
mod allocations;
pub mod bodies;
