//! The tool as its users run it: the built binary, over directories that are well, torn, damaged or in use.

mod damage;
mod engine;
mod exits;
mod healthy;
mod overlong;
mod repair;
mod sample;
mod streams;
