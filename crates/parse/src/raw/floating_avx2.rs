//! The kernel of [`super::floating`] with AVX2.

use std::arch::x86_64::*;

use super::fields::Tile;
use super::floating::{CHARACTERS, Decomposed};

/// All but the lengths. About forty instructions per field: what can be said of eight fields at once is left to
/// [`Decomposed::number`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub fn read(numbers: &mut Decomposed, tile: Tile<'_, '_>, point: u8) {
    let mark = _mm256_set1_epi8(point as i8);
    let Decomposed { digits, behind, first, good, .. } = numbers;
    let outputs = std::iter::zip(digits, behind).zip(std::iter::zip(first, good));
    for (field, ((digits, behind), (first, good))) in std::iter::zip(tile.places(), outputs) {
        let text = vector(&field.chunk_before(0));
        let points = _mm256_movemask_epi8(_mm256_cmpeq_epi8(text, mark)) as u32;
        let point = points.leading_zeros() as usize;
        let count = field.len() - usize::from(point < field.len());
        // What stands before the point moves up one place.
        let squeezed = _mm256_blendv_epi8(text, vector(&field.chunk_before(1)), all_but_last(point));
        let values = _mm256_and_si256(_mm256_xor_si256(squeezed, _mm256_set1_epi8(b'0' as i8)), last(count));
        let is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(values, _mm256_set1_epi8(9)), values);
        *digits = eights_of(_mm256_and_si256(values, is_digit));
        *behind = point as u8;
        *first = field.u64_at(0) as u8;
        *good = _mm256_movemask_epi8(is_digit) as u32;
    }
}

/// All bits set in every byte but the last `count` (at most 32).
#[inline]
#[target_feature(enable = "avx2")]
fn all_but_last(count: usize) -> __m256i {
    mask_from(count & (2 * CHARACTERS - 1))
}

/// All bits set in the last `count` bytes (at most 32, else this means nothing).
#[inline]
#[target_feature(enable = "avx2")]
fn last(count: usize) -> __m256i {
    mask_from(CHARACTERS + (count & (2 * CHARACTERS - 1)))
}

/// 32 of these bytes, from `place` (at most 96): 32 of set bits, 32 of none, 64 of set bits.
#[inline]
#[target_feature(enable = "avx2")]
fn mask_from(place: usize) -> __m256i {
    const BYTES: [u8; 4 * CHARACTERS] = {
        let mut bytes = [u8::MAX; 4 * CHARACTERS];
        let mut place = CHARACTERS;
        while place < 2 * CHARACTERS {
            bytes[place] = 0;
            place += 1;
        }
        bytes
    };
    let place = place.min(3 * CHARACTERS); // the callers' masks make it nothing to do
    // SAFETY: 32 bytes from place 96 at most are within 128.
    unsafe { _mm256_loadu_si256(BYTES.as_ptr().add(place).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn vector(bytes: &[u8; CHARACTERS]) -> __m256i {
    // SAFETY: 32 bytes are a vector's size.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Numbers of eight digit values each, of 32.
#[inline]
#[target_feature(enable = "avx2")]
fn eights_of(values: __m256i) -> [u64; 2] {
    let pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x010A));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
    let fours = _mm_packus_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256::<1>(fours));
    let eights = _mm_madd_epi16(fours, _mm_set1_epi32(0x0001_2710));
    [_mm_cvtsi128_si64(eights) as u64, _mm_extract_epi64::<1>(eights) as u64]
}
