//! See `src/bodies/segment_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::segment_open(input);
});
