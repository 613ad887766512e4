//! Hands the fuzzer's bytes to `unstuck_fuzz::planted`.
#![no_main]
#![allow(missing_docs, unsafe_code, reason = "the macro's own code")]

libfuzzer_sys::fuzz_target!(|data: &[u8]| unstuck_fuzz::planted(data));
