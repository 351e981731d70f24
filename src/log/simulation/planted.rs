//! Bugs planted on purpose, and the proof that each is found.
