//! The structural pass in plain 64-bit registers.

use std::mem::MaybeUninit;

use super::Seen;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bit of every byte of `word` that equals the byte repeated in `pattern`; exact, without borrow between bytes.
fn equal_bytes(word: u64, pattern: u64) -> u64 {
    let difference = word ^ pattern;
    !(((difference & !HIGH) + !HIGH) | difference) & HIGH
}

/// Writes the positions of `delimiter` and line feed in `bytes` to `room`, which holds at least `bytes.len()` places.
pub fn index(bytes: &[u8], delimiter: u8, room: &mut [MaybeUninit<u32>]) -> Seen {
    let delimiters = LOW * u64::from(delimiter);
    let line_feeds = LOW * u64::from(b'\n');
    let mut seen = Seen::default();
    let mut all = 0;
    let mut base = 0;
    let mut chunks = bytes.chunks_exact(8);
    let mut scan = |word: u64, valid: u64| {
        let ends = equal_bytes(word, line_feeds) & valid;
        let mut marks = ends | (equal_bytes(word, delimiters) & valid);
        seen.line_feeds += ends.count_ones() as usize;
        seen.nul |= equal_bytes(word, 0) & valid != 0;
        all |= word & valid;
        while marks != 0 {
            room[seen.marks].write(base + marks.trailing_zeros() / 8);
            seen.marks += 1;
            marks &= marks - 1;
        }
        base += 8;
    };
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        scan(u64::from_le_bytes(word), HIGH);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        scan(u64::from_le_bytes(word), HIGH >> (8 * (8 - rest.len())));
    }
    seen.non_ascii = all & HIGH != 0;
    seen
}
