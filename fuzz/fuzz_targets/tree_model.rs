//! See `src/bodies/tree_model.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::tree_model(input);
});
