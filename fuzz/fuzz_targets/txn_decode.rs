//! See `src/bodies/txn_decode.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::txn_decode(input);
});
