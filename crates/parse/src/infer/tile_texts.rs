//! The texts of a tile, for loops over them.

use super::hash::{begun, ended, hash, with_word};
use crate::raw::fields::{OTHER_TEXT, TILE_ROWS, Tile, TileMemory, Words};

/// Words of a text that loops know.
pub const WORDS: usize = 5;
/// Bytes of a word.
const WORD_BYTES: usize = 8;
/// Longest text of that many words.
pub const LONGEST_BYTES: u32 = (WORDS * WORD_BYTES) as u32;
/// Longer ones are hashed by themselves, bytes.
const MOST_BYTES: u32 = 6 * LONGEST_BYTES;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Texts of a tile, and what is made of them. Reused.
pub struct TileTexts {
    /// Bytes.
    pub lengths: [u32; TILE_ROWS],
    /// Eight bytes of each text, then the next eight, and so on; zeros behind its end.
    pub words: [Words; WORDS],
    /// The last byte of each text, if it was loaded.
    pub last: [u8; TILE_ROWS],
    /// Whether (not 0) a text has to be looked at by itself.
    pub unsure: [u8; TILE_ROWS],
    /// What texts of numbers and days stand for.
    pub numbers: [i64; TILE_ROWS],
    /// Hashes of the texts.
    pub hashes: Words,
}

impl Default for TileTexts {
    fn default() -> Self {
        TileTexts {
            lengths: [0; TILE_ROWS],
            words: [[0; TILE_ROWS]; WORDS],
            last: [0; TILE_ROWS],
            unsure: [0; TILE_ROWS],
            numbers: [0; TILE_ROWS],
            hashes: [0; TILE_ROWS],
        }
    }
}

impl TileTexts {
    /// Takes the lengths, and forgets what was unsure but for empty fields and those whose text is not what stands there. The
    /// greatest length.
    #[inline(always)]
    pub fn measure(&mut self, tile: Tile<'_, '_>) -> u32 {
        let rows = tile.rows();
        let (starts, ends, flags) = (&tile.starts()[..rows], &tile.ends()[..rows], &tile.flags()[..rows]);
        let (lengths, unsure) = (&mut self.lengths[..rows], &mut self.unsure[..rows]);
        let mut longest = 0;
        for row in 0..rows {
            let length = ends[row] - starts[row];
            lengths[row] = length;
            longest = longest.max(length);
            unsure[row] = u8::from(length == 0) | u8::from(flags[row] & OTHER_TEXT != 0);
        }
        longest
    }

    /// Loads so many words of every text: as many as the longest needs, or [`WORDS`].
    #[inline(always)]
    pub fn load(&mut self, tile: Tile<'_, '_>, longest: u32) -> usize {
        let count = (longest as usize).div_ceil(WORD_BYTES).clamp(1, WORDS);
        let rows = tile.rows();
        let lengths = &self.lengths[..rows];
        for (index, words) in self.words[..count].iter_mut().enumerate() {
            load(tile, lengths, 0, (WORD_BYTES * index) as u32, words);
        }
        count
    }

    /// Loads the last bytes.
    #[inline(always)]
    pub fn load_last(&mut self, tile: Tile<'_, '_>) {
        for (last, field) in std::iter::zip(&mut self.last, tile.places()) {
            *last = field.byte_before(1);
        }
    }

    /// Of sure texts, how many have a blank at an end, and how many end with one that is no tab. First words and last bytes were loaded.
    #[inline(always)]
    pub fn blanks(&self, rows: usize) -> (u64, u64) {
        let (first, last, unsure) = (&self.words[0][..rows], &self.last[..rows], &self.unsure[..rows]);
        let (mut either, mut behind) = (0_u32, 0_u32);
        for row in 0..rows {
            let is_sure = unsure[row] == 0;
            let is_blank = |byte: u8| (byte == b' ') | (byte == b'\t');
            either += u32::from(is_sure & (is_blank(first[row] as u8) | is_blank(last[row])));
            behind += u32::from(is_sure & (last[row] == b' '));
        }
        (either.into(), behind.into())
    }

    /// Hashes of texts of which so many words were loaded. `is_any`: of any text, and what is not all ASCII is noted.
    #[inline(always)]
    pub fn hash(&mut self, tile: Tile<'_, '_>, count: usize, longest: u32, is_any: bool) {
        let rows = tile.rows();
        let (lengths, hashes) = (&self.lengths[..rows], &mut self.hashes[..rows]);
        for row in 0..rows {
            hashes[row] = begun(u64::from(lengths[row]));
        }
        let mut high: Words = [0; TILE_ROWS];
        let high = &mut high[..rows];
        for (index, words) in self.words[..count].iter().enumerate() {
            add_word(hashes, high, &words[..rows], lengths, (WORD_BYTES * index) as u32);
        }
        if is_any && longest > LONGEST_BYTES {
            add_rest(tile, hashes, high, lengths, longest);
        }
        hashes.iter_mut().for_each(|hash| *hash = ended(*hash));
        if !is_any {
            return;
        }
        let unsure = &mut self.unsure[..rows];
        for row in 0..rows {
            unsure[row] |= u8::from(high[row] & HIGH_BITS != 0);
        }
        if longest > MOST_BYTES {
            for row in (0..rows).filter(|&row| lengths[row] > MOST_BYTES) {
                let text = tile.field(row).bytes();
                hashes[row] = hash(text);
                unsure[row] |= u8::from(!text.is_ascii());
            }
        }
    }

    /// Rows that are sure, and the least and greatest length among them.
    #[inline(always)]
    pub fn sure(&self, rows: usize) -> (u64, (u32, u32)) {
        let (lengths, unsure) = (&self.lengths[..rows], &self.unsure[..rows]);
        let (mut count, mut least, mut greatest) = (0, u32::MAX, 0);
        for row in 0..rows {
            let is_sure = unsure[row] == 0;
            count += u32::from(is_sure);
            least = least.min(if is_sure { lengths[row] } else { u32::MAX });
            greatest = greatest.max(if is_sure { lengths[row] } else { 0 });
        }
        (u64::from(count), (least, greatest))
    }
}

/// The word at this byte of each text that is longer.
#[inline(always)]
fn add_word(hashes: &mut [u64], high: &mut [u64], words: &[u64], lengths: &[u32], byte: u32) {
    for ((hash, high), (word, length)) in std::iter::zip(std::iter::zip(hashes, high), std::iter::zip(words, lengths)) {
        let next = with_word(*hash, *word);
        *hash = if *length > byte { next } else { *hash };
        *high |= word;
    }
}

/// The words behind those that are kept, up to [`MOST_BYTES`].
#[inline(never)]
fn add_rest(tile: Tile<'_, '_>, hashes: &mut [u64], high: &mut [u64], lengths: &[u32], longest: u32) {
    let (mut memory, mut words) = (TileMemory::default(), [0; TILE_ROWS]);
    let none = [0; TILE_ROWS];
    for first in (LONGEST_BYTES..longest.min(MOST_BYTES)).step_by(LONGEST_BYTES as usize) {
        let rest = tile.peeled(&[first; TILE_ROWS], &none, &mut memory);
        for offset in (0..LONGEST_BYTES).step_by(WORD_BYTES).take_while(|offset| first + offset < longest) {
            let words = load(rest, lengths, first, offset, &mut words);
            add_word(hashes, high, words, lengths, first + offset);
        }
    }
}

/// Of each text the eight bytes from `first + offset` on, zeros behind its end; the tile begins at byte `first` of its texts.
#[inline(always)]
fn load<'w>(tile: Tile<'_, '_>, lengths: &[u32], first: u32, offset: u32, words: &'w mut Words) -> &'w [u64] {
    tile.words_at(offset as usize, words);
    let rows = tile.rows();
    let (words, lengths) = (&mut words[..rows], &lengths[..rows]);
    for row in 0..rows {
        let kept = lengths[row].saturating_sub(first + offset).min(WORD_BYTES as u32);
        words[row] &= u64::MAX.unbounded_shr(64 - 8 * kept);
    }
    words
}
