//! The tool as its users run it: the built binary, over directories that are well, torn, damaged or in use.

mod damage;
mod engine;
mod engine_sample;
mod engine_verify;
mod exits;
mod healthy;
mod overlong;
mod pages;
mod readme;
mod repair;
mod restore;
mod sample;
mod snapshot;
mod streams;
mod truncate;
mod wrong_place;
mod zookeeper;
mod zookeeper_told;
