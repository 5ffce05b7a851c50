#![no_main]

#[path = "../../crates/engine/tests/corpus/inflate.rs"]
mod inflate;

use parser::fuzzing::input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inflate::check(bytes));
