#![no_main]

#[path = "../../crates/engine/tests/corpus/place.rs"]
mod place;
#[path = "../../crates/engine/tests/corpus/refused.rs"]
mod refused;
#[path = "../../crates/engine/tests/corpus/stream.rs"]
mod stream;

use parser::fuzzing::input;
use parser::{drive, reference};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream::check(bytes));
