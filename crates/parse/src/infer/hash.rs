//! Hashes of texts, of one text and of those of a tile.

/// Odd numbers without a pattern.
const OF_LENGTH: u64 = 0x9E37_79B9_7F4A_7C15;
const OF_WORD: u64 = 0xD6E8_FEB8_6659_FD93;
const OF_END: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// Before the first word of a text of so many bytes.
#[inline(always)]
pub fn begun(length: u64) -> u64 {
    length.wrapping_mul(OF_LENGTH)
}

/// With eight more bytes; behind the last ones of a text stand zeros.
#[inline(always)]
pub fn with_word(state: u64, word: u64) -> u64 {
    // Multiplications of 64 bits, which vectors have.
    let product = (state ^ word).wrapping_mul(OF_WORD);
    product ^ product >> 32
}

/// Behind the last word: never 0.
#[inline(always)]
pub fn ended(state: u64) -> u64 {
    let product = state.wrapping_mul(OF_END);
    (product ^ product >> 29).max(1)
}

/// Of a text.
#[inline]
pub fn hash(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let state = words.iter().fold(begun(text.len() as u64), |state, word| with_word(state, u64::from_le_bytes(*word)));
    if rest.is_empty() {
        return ended(state);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    ended(with_word(state, u64::from_le_bytes(last)))
}
