//! The structural kernel in plain 64-bit registers.

use super::structure::{Chunk, Find, Kernel, Masks};

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bit of every byte of `word` that equals the byte repeated in `pattern`; exact, without borrow between bytes.
#[inline(always)]
pub fn equal_bytes(word: u64, pattern: u64) -> u64 {
    let difference = word ^ pattern;
    !(((difference & !HIGH) + !HIGH) | difference) & HIGH
}

/// The low bits of eight bytes that are 0 or 1, side by side.
#[inline(always)]
pub fn low_bits(word: u64) -> u64 {
    word.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Eight bytes at a time.
pub struct Portable;

impl Kernel for Portable {
    #[inline(always)]
    fn scan(chunk: &Chunk, find: Find<'_>) -> Masks {
        let mut masks = Masks::default();
        for (index, word) in chunk.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let found = |byte: u8| low_bits(equal_bytes(word, LOW * u64::from(byte)) >> 7) << (8 * index);
            masks.delimiters |= found(find.delimiter);
            masks.line_feeds |= found(b'\n');
            if let Some(qualifier) = find.qualifier {
                masks.qualifiers |= found(qualifier);
                masks.carriage_returns |= found(b'\r');
            }
            masks.non_ascii |= word & HIGH;
            // Not 0 when a byte is 0; which one cannot be told.
            masks.nul |= word.wrapping_sub(LOW) & !word & HIGH;
        }
        masks
    }

    #[inline(always)]
    fn equal(chunk: &Chunk, byte: u8) -> u64 {
        let words = chunk.as_chunks::<8>().0.iter().enumerate();
        words.fold(0, |found, (index, word)| {
            let equal = equal_bytes(u64::from_le_bytes(*word), LOW * u64::from(byte));
            found | low_bits(equal >> 7) << (8 * index)
        })
    }

    #[inline(always)]
    fn high(chunk: &Chunk) -> u64 {
        let words = chunk.as_chunks::<8>().0.iter().enumerate();
        words.fold(0, |found, (index, word)| found | low_bits((u64::from_le_bytes(*word) & HIGH) >> 7) << (8 * index))
    }

    #[inline(always)]
    fn non_ascii(chunk: &Chunk) -> u64 {
        chunk.as_chunks::<8>().0.iter().fold(0, |any, word| any | (u64::from_le_bytes(*word) & HIGH))
    }
}
