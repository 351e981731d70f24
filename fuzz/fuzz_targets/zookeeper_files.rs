//! See `src/bodies/zookeeper_files.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    arborlog_fuzz::bodies::zookeeper_files(input);
});
