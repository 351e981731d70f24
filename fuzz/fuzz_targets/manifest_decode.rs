//! See `src/bodies/manifest_decode.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::manifest_decode(input);
});
