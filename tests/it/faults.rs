//! The faults of real systems that `docs/TESTING.md` lists, each as a test that carries its id.

mod hz;
mod lc;
mod sg;
mod support;
mod tt;
