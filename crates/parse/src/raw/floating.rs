//! Texts with the point anywhere, `[-]digits[.digits]`, taken apart: one text per vector, then the same row after row.

use super::cpu::{CpuPath, Kind};
use super::fields::{TILE_ROWS, Tile};

/// What the texts of up to [`TILE_ROWS`] rows write, row by row. Of each field the last 32 characters were looked at, and of
/// a shorter one also what stands before it.
pub struct Decomposed {
    /// The digits without the point, eight in each half: those before the last 16, and the last 16; the earlier ones in the
    /// low half.
    pub(super) digits: [[u64; 2]; TILE_ROWS],
    /// Characters behind the last point among the 32, in the field or before it; 32 when there is none.
    pub(super) behind: [u8; TILE_ROWS],
    /// First characters of the fields.
    pub(super) first: [u8; TILE_ROWS],
    /// A bit per character, the last one highest, after the point was taken out: whether it is a digit or before the field.
    pub(super) good: [u32; TILE_ROWS],
    /// Characters of the fields.
    lengths: [u32; TILE_ROWS],
    rows: usize,
}

/// One number. Means nothing when it is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Number {
    /// Number of all digits.
    pub magnitude: u64,
    /// Digits behind the point.
    pub scale: u32,
    /// 1 behind a minus.
    pub negative: u32,
    /// Whether the text is another one, longer than 32 characters, or has more than 19 digits that count.
    pub wrong: bool,
}

impl Decomposed {
    /// The texts of a tile, which have this point. False, and nothing done, when the path has no instructions for it.
    #[inline(always)]
    pub fn read(&mut self, tile: Tile<'_, '_>, point: u8, path: CpuPath) -> bool {
        let is_read = match path.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => {
                // SAFETY: values of these kinds are only made for a processor that has what the function needs: that of
                // AVX-512 only when AVX2 is there too.
                unsafe { super::floating_avx2::read(self, tile, point) };
                true
            }
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => false,
            Kind::Portable => false,
        };
        self.rows = if is_read { tile.rows() } else { 0 };
        for (length, (start, end)) in self.lengths.iter_mut().zip(std::iter::zip(tile.starts(), tile.ends())) {
            *length = end - start;
        }
        is_read
    }

    /// Rows that were read.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What row `row` writes.
    #[inline(always)]
    pub fn number(&self, row: usize) -> Number {
        let [before, last] = self.digits[row].map(|eights| 100_000_000 * (eights & 0xFFFF_FFFF) + (eights >> 32));
        let (length, behind) = (self.lengths[row], u32::from(self.behind[row]));
        // A point before the field is none.
        let has_point = behind < length;
        let count = length - u32::from(has_point);
        let negative = u32::from(self.first[row] == b'-');
        // Nothing but digits, or one character before them.
        let sign = negative.unbounded_shl(32_u32.wrapping_sub(count));
        Number {
            magnitude: before.wrapping_mul(10_000_000_000_000_000).wrapping_add(last),
            scale: if has_point { behind } else { 0 },
            negative,
            // 19 digits fit 64 bits.
            wrong: (self.good[row] != !sign) | (count <= negative) | (length > CHARACTERS as u32) | (before > 999),
        }
    }
}

impl Default for Decomposed {
    fn default() -> Self {
        Decomposed {
            digits: [[0; 2]; TILE_ROWS],
            behind: [0; TILE_ROWS],
            first: [0; TILE_ROWS],
            good: [0; TILE_ROWS],
            lengths: [0; TILE_ROWS],
            rows: 0,
        }
    }
}

/// Characters that are looked at.
pub(super) const CHARACTERS: usize = 32;

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
                let table = FieldTable::of_marks(text, &marks, 1, 1, 1, None, path).unwrap();
                let (mut numbers, mut memory) = (Decomposed::default(), TileMemory::default());
                let is_read =
                    numbers.read(table.load(0, 0, headrace_types::Trim::None, &mut memory).unwrap(), b'.', path);
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
                            scale: (count - place) as u32,
                            negative: u32::from(sign == "-"),
                            wrong: false,
                        };
                        assert_eq!(number, right, "{field}");
                        let whole = field.replace('.', "");
                        assert_eq!(read(whole.as_bytes()), Some(Number { scale: 0, ..right }), "{whole}");
                    }
                }
            }
        }
    }

    #[test]
    fn other_texts_are_wrong() {
        let long = "1".repeat(33);
        let (too_many, too_long) = (&long[..20], long.as_str());
        let texts =
            ["", "-", ".", "-.", "1.2.3", "1..2", "--1", "1-", "-1-", ".-1", "+1", "1e5", "1,5", "1 ", " 1", "inf"];
        for text in texts.into_iter().chain([too_many, too_long]) {
            assert!(read(text.as_bytes()).is_none_or(|number| number.wrong), "{text}");
        }
        for bad in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit() && *byte != b'.') {
            for place in 0..32 {
                let mut text = [b'0'; 32];
                text[place] = bad;
                let is_sign = place == 0 && bad == b'-';
                assert!(read(&text).is_none_or(|number| number.wrong != is_sign), "{bad} at {place}");
            }
        }
    }
}
