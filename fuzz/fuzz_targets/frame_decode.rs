//! See `src/bodies/frame_decode.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::frame_decode(input);
});
