#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parser::fuzzing::convert_one::case(bytes).check(false));
