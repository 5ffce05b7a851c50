//! Columns of few different texts: they are only counted.

use super::facts::{ColumnFacts, Place};
use super::tile_texts::{LONGEST_BYTES, TileTexts, WORDS};
use crate::raw::fields::{OTHER_TEXT, Tile};

/// Different texts at most.
const MOST_TEXTS: usize = 16;

/// Texts that were met, and how often since.
#[derive(Debug, Clone, Default)]
pub struct FewTexts {
    texts: Vec<KnownText>,
}

#[derive(Debug, Clone)]
struct KnownText {
    words: [u64; WORDS],
    text: Box<[u8]>,
    /// How often it was met since the facts were told.
    count: u64,
}

/// Behind all places: where a text was met first the facts know already.
const KNOWN_PLACE: Place = (u32::MAX, u64::MAX);

impl FewTexts {
    /// Of texts that the facts have taken. None if there are more different ones, or longer ones.
    pub fn of<'a>(texts: impl Iterator<Item = &'a [u8]>, most: usize) -> Option<Self> {
        let mut few = FewTexts::default();
        for text in texts {
            if few.meet(text) == Met::TooMany || few.texts.len() > most {
                return None;
            }
        }
        few.texts.iter_mut().for_each(|known| known.count = 0);
        Some(few)
    }

    /// Counts the texts of a tile that are known; the others are unsure.
    #[inline(always)]
    pub fn count(&mut self, tile: Tile<'_, '_>, texts: &mut TileTexts, longest: u32) {
        if longest > LONGEST_BYTES {
            return texts.unsure[..tile.rows()].fill(1);
        }
        let loaded = texts.load(tile, longest);
        for (row, flags) in tile.flags().iter().enumerate() {
            if flags & OTHER_TEXT != 0 {
                texts.words[0][row] = u64::MAX; // no text begins so
            }
        }
        match loaded {
            1 => self.count_words::<1>(texts, tile.rows()),
            2 => self.count_words::<2>(texts, tile.rows()),
            3 => self.count_words::<3>(texts, tile.rows()),
            _ => {
                texts.words[loaded..].iter_mut().for_each(|words| words.fill(0));
                self.count_words::<WORDS>(texts, tile.rows());
            }
        }
    }

    /// Texts of at most so many words. There is no NUL in any text.
    #[inline(always)]
    fn count_words<const N: usize>(&mut self, texts: &mut TileTexts, rows: usize) {
        let words: [&[u64]; N] = std::array::from_fn(|index| &texts.words[index][..rows]);
        let unsure = &mut texts.unsure[..rows];
        unsure.fill(1);
        let known = self.texts.iter_mut().filter(|known| known.text.len() <= 8 * N);
        for known in known {
            let mut count = 0_u32;
            for row in 0..rows {
                let mut differs = 0;
                for (index, words) in words.iter().enumerate() {
                    differs |= words[row] ^ known.words[index];
                }
                unsure[row] &= u8::from(differs != 0);
                count += u32::from(differs == 0);
            }
            known.count += u64::from(count);
        }
    }

    /// Counts a text if it is known. Else it is from now on, if there is room.
    pub fn meet(&mut self, text: &[u8]) -> Met {
        if let Some(known) = self.texts.iter_mut().find(|known| *known.text == *text) {
            known.count += 1;
            return Met::Counted;
        }
        if self.texts.len() == MOST_TEXTS || text.is_empty() || text.len() > LONGEST_BYTES as usize {
            return Met::TooMany;
        }
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(text.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        self.texts.push(KnownText { words, text: text.into(), count: 0 });
        Met::New
    }

    /// Tells the facts what was counted.
    pub fn tell(&mut self, facts: &mut ColumnFacts) {
        for known in self.texts.iter_mut().filter(|known| known.count > 0) {
            facts.add_many(&known.text, std::mem::take(&mut known.count), KNOWN_PLACE);
        }
    }
}

/// What a text was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// Known.
    Counted,
    /// New: the facts have to take it.
    New,
    /// One that cannot be kept: the facts have to take it.
    TooMany,
}
