//! The texts `[-]digits[.digits]` of a tile, taken apart: one text per vector.

use super::cpu::{CpuPath, Kind};
use super::fields::{TILE_ROWS, Tile};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// What the texts of up to [`TILE_ROWS`] rows write, row by row. Means nothing in a row that is wrong.
pub struct Decomposed {
    /// All digits, without the point: those before the last 16, and the last 16.
    digits: [[u64; 2]; TILE_ROWS],
    scales: [u8; TILE_ROWS],
    negatives: [u8; TILE_ROWS],
    wrongs: [u8; TILE_ROWS],
    rows: usize,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Number {
    /// Number of all digits.
    pub magnitude: u64,
    /// Digits behind the point.
    pub scale: u8,
    /// 1 behind a minus.
    pub negative: u8,
    /// Not 0 when the text is another one, longer than 32 characters, or has more than 19 digits that count.
    pub wrong: u8,
}

impl Decomposed {
    /// The texts of a tile. False, and nothing done, when the path has no instructions for it.
    #[inline(always)]
    pub fn read(&mut self, tile: Tile<'_, '_>, path: CpuPath) -> bool {
        match path.kind() {
            // SAFETY: values of these kinds are only made for a processor that has what the function needs; that of
            // AVX-512 is only chosen when AVX2 is there too.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => unsafe { read_avx2(self, tile) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => return false,
            Kind::Portable => return false,
        }
        true
    }

    /// Rows that were read.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What row `row` writes.
    #[inline(always)]
    pub fn number(&self, row: usize) -> Number {
        let [first, last] = self.digits[row];
        Number {
            magnitude: first.wrapping_mul(10_000_000_000_000_000).wrapping_add(last),
            scale: self.scales[row],
            negative: self.negatives[row],
            // 19 digits fit 64 bits.
            wrong: self.wrongs[row] | u8::from(first > 999),
        }
    }
}

impl Default for Decomposed {
    fn default() -> Self {
        let none = [0; TILE_ROWS];
        Decomposed { digits: [[0; 2]; TILE_ROWS], scales: none, negatives: none, wrongs: none, rows: 0 }
    }
}

/// Characters of a vector.
#[cfg(target_arch = "x86_64")]
const CHARACTERS: usize = 32;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_avx2(numbers: &mut Decomposed, tile: Tile<'_, '_>) {
    let Decomposed { digits, scales, negatives, wrongs, rows } = numbers;
    *rows = tile.rows();
    let parts = std::iter::zip(scales, negatives).zip(std::iter::zip(wrongs, digits));
    for (field, ((scale, negative), (wrong, digits))) in std::iter::zip(tile.places(), parts) {
        let (length, text) = (field.len(), vector(&field.chunk_before(0)));
        let own = (u64::MAX << (CHARACTERS - length.min(CHARACTERS))) as u32;
        let points = _mm256_movemask_epi8(_mm256_cmpeq_epi8(text, _mm256_set1_epi8(b'.' as i8))) as u32 & own;
        // Without a point all characters are behind it.
        let behind = points.leading_zeros() as usize;
        let has_point = behind < CHARACTERS;
        let is_negative = field.u64_at(0) as u8 == b'-';
        let count = length as isize - isize::from(is_negative) - isize::from(has_point);
        // What stands before the point moves up one place.
        let squeezed = _mm256_blendv_epi8(text, vector(&field.chunk_before(1)), all_but_last(behind));
        let values = _mm256_xor_si256(squeezed, _mm256_set1_epi8(b'0' as i8));
        let values = _mm256_andnot_si256(all_but_last(count.max(0) as usize), values);
        let above_nine = _mm256_subs_epu8(values, _mm256_set1_epi8(9));
        *digits = number_of(values);
        *scale = if has_point { behind as u8 } else { 0 };
        *negative = u8::from(is_negative);
        *wrong = u8::from((length > CHARACTERS) | (count < 1) | (_mm256_testz_si256(above_nine, above_nine) == 0));
    }
}

/// All bits set in every byte but the last `count` (at most 32).
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn all_but_last(count: usize) -> __m256i {
    const BYTES: [u8; 2 * CHARACTERS] = {
        let mut bytes = [0; 2 * CHARACTERS];
        let mut place = 0;
        while place < CHARACTERS {
            bytes[place] = u8::MAX;
            place += 1;
        }
        bytes
    };
    // SAFETY: 32 bytes from place 32 at most are within 64.
    unsafe { _mm256_loadu_si256(BYTES.as_ptr().add(count.min(CHARACTERS)).cast()) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn vector(bytes: &[u8; CHARACTERS]) -> __m256i {
    // SAFETY: 32 bytes are a vector's size.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Number of 32 digit values: the first 16 and the last 16. Means nothing if one is above 9.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn number_of(values: __m256i) -> [u64; 2] {
    let pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x010A));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
    // Both halves packed into 16 bits, and side by side.
    let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(fours, fours));
    let eights = _mm_madd_epi16(_mm256_castsi256_si128(packed), _mm_set1_epi32(0x0001_2710));
    let high = _mm_mul_epu32(eights, _mm_set1_epi64x(100_000_000));
    let sixteens = _mm_add_epi64(high, _mm_srli_epi64::<32>(eights));
    [_mm_cvtsi128_si64(sixteens) as u64, _mm_extract_epi64::<1>(sixteens) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::fields::{FieldTable, Text, TileMemory};
    use crate::raw::memory::PADDING_BYTES;

    /// What every path that has instructions for it reads in one field.
    fn read(field: &[u8]) -> Option<Number> {
        // Padding full of digits, points and signs: what is read as part of the field is found out.
        let padding = b"-1.".iter().copied().cycle();
        let mut whole: Vec<u8> = padding.clone().take(PADDING_BYTES).collect();
        whole.extend_from_slice(field);
        whole.push(b',');
        whole.extend(padding.take(PADDING_BYTES));
        let text = Text::new(&whole, field.len() + 1).unwrap();
        let marks = [u32::MAX, field.len() as u32];
        let numbers: Vec<_> = CpuPath::available()
            .into_iter()
            .filter_map(|path| {
                let table = FieldTable::new(text, &marks, 1, 1, 1, None, path).unwrap();
                let (mut numbers, mut memory) = (Decomposed::default(), TileMemory::default());
                let is_read = numbers.read(table.load(0, 0, &mut memory).unwrap(), path);
                assert_eq!((is_read, numbers.rows()), (path.has_wide_vectors(), usize::from(is_read)));
                is_read.then(|| numbers.number(0))
            })
            .collect();
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{field:?}");
        numbers.into_iter().next()
    }

    #[test]
    fn a_point_anywhere() {
        let text = "1234567890123456789";
        for count in 1..=text.len() {
            for place in 0..=count {
                for sign in ["", "-"] {
                    for zeros in ["", "0", "00000000000"] {
                        let field = format!("{sign}{zeros}{}.{}", &text[..place], &text[place..count]);
                        let Some(number) = read(field.as_bytes()) else { return };
                        let right = Number {
                            magnitude: text[..count].parse().unwrap(),
                            scale: (count - place) as u8,
                            negative: u8::from(sign == "-"),
                            wrong: 0,
                        };
                        assert_eq!(number, right, "{field}");
                        let whole = field.replace('.', "");
                        assert_eq!(read(whole.as_bytes()), Some(Number { scale: 0, ..right }), "{whole}");
                    }
                }
            }
        }
    }
}
