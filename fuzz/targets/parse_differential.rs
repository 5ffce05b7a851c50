#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(case) = parser::fuzzing::parse_differential::case(bytes) {
        case.check(false);
    }
});
