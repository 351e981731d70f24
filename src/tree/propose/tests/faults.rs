//! Faults of real systems, by their numbers.
