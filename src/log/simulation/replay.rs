//! Seeds that are run again: the one that a failing run named, and those that found something once.

use super::random_run::run_reporting;

/// Each found a bug, in the library or in the simulator, and is kept for ever.
const KEPT: &[u64] = &[];

#[test]
fn simulation_replay() {
    let Ok(seed) = std::env::var("ARBORLOG_SIM_SEED") else {
        for seed in KEPT {
            run_reporting(*seed);
        }
        return;
    };
    let tally = run_reporting(seed.parse().expect("ARBORLOG_SIM_SEED is a number"));
    println!("{tally:?}");
}
