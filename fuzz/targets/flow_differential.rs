#![no_main]

#[path = "../../crates/engine/tests/corpus/flow_differential.rs"]
mod flow_differential;
#[path = "../../crates/engine/tests/corpus/place.rs"]
mod place;
#[path = "../../crates/engine/tests/corpus/refused.rs"]
mod refused;

use parser::fuzzing::input;
use parser::{drive, fuzzing, reference};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flow_differential::check(bytes));
