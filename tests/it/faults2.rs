//! Faults that were reported of real systems, as tests of the log: groups EP, TR, PU, DF, FS, LK, IU, MM, SL and
//! CL, and a few of others. `docs/TESTING.md` has a row for each.

mod children;
mod lk;
mod mm;
mod support;
mod view;

#[cfg(feature = "sim")]
mod cl;
#[cfg(feature = "sim")]
mod df;
#[cfg(feature = "sim")]
mod ep;
#[cfg(feature = "sim")]
mod fs;
#[cfg(feature = "sim")]
mod iu;
#[cfg(feature = "sim")]
mod lg;
#[cfg(feature = "sim")]
mod pu;
#[cfg(feature = "sim")]
mod sl;
#[cfg(feature = "sim")]
mod tr;
