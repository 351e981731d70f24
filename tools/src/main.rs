//! The command-line tool. Being built.
fn main() {}
