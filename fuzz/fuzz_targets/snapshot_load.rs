//! See `src/bodies/snapshot_load.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::snapshot_load(input);
});
