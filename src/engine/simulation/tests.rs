use super::run::Run;

fn runs() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("ARBORLOG_ENGINE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ARBORLOG_ENGINE_RUNS").unwrap_or(60),
    }
}

pub(in crate::engine) fn run(seed: u64) {
    Run::of_seed(seed).lives(6);
}

#[test]
fn crashes_at_any_operation_lose_nothing() {
    for seed in runs() {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("ARBORLOG_ENGINE_SEED={seed} cargo test --lib engine::simulation");
            std::panic::resume_unwind(panic);
        }
    }
}
