//! The whole log in one thread, on a simulated disk, from one seed: what it does, and what it must keep.
//!
//! `docs/TESTING.md` tells how to run it and how to replay a seed.

mod crash_points;
mod damage;
mod disturbed;
mod evidence;
mod fixed;
mod model;
mod oracle;
mod planted;
mod process;
mod random_run;
mod replay;
mod world;
