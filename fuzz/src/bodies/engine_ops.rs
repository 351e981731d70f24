use arborlog::simulate_engine;

use super::directory::Outcome;

/// Bytes of an input that are used: a run of some lives, and not one of minutes.
pub const ENGINE_RUN: usize = 1024;

/// What is done with an engine on simulated disks, and when its power is cut. Refused is what the power came in the
/// way of.
///
/// # Panics
/// If the engine loses or invents something, or refuses what it must not.
pub fn engine_ops(input: &[u8]) -> Outcome {
    let input = &input[..input.len().min(ENGINE_RUN)];
    if input.len() < 3 {
        return Outcome::Skipped;
    }
    if simulate_engine(input) { Outcome::Opened } else { Outcome::Refused }
}
