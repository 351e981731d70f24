//! The DataTree: what a coordination server keeps in memory and applies its log to. No I/O, no clock, no threads.
mod store;
