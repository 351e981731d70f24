//! Faults that were reported of real systems, as tests of the log: groups EP, TR, PU, DF, FS, LK, IU, MM, SL and
//! CL, and a few of others. `docs/TESTING.md` has a row for each.

mod support;
mod view;
