#![no_main]

#[path = "../../crates/engine/tests/corpus/spec_json.rs"]
mod spec_json;

use parser::fuzzing::input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spec_json::check(bytes));
