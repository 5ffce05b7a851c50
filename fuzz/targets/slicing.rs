#![no_main]

#[path = "../../crates/engine/tests/corpus/refused.rs"]
mod refused;
#[path = "../../crates/engine/tests/corpus/slicing.rs"]
mod slicing;

use parser::fuzzing::input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| slicing::check(bytes));
