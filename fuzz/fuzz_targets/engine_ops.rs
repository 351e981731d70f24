//! See `src/bodies/engine_ops.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::engine_ops(input);
});
