//! Truth values of given texts, in any case.

use headrace_types::{Rule, TruthFormat, folded};

use super::super::Convert;
use super::names::spelled;
use crate::raw::fields::{Field, Tile};

/// The texts and what they mean.
#[derive(Debug)]
pub struct Words {
    /// Folded.
    texts: Vec<(String, u8)>,
    /// The same for the loop over tiles; as many, if it knows them all.
    short: Vec<Word>,
}

/// A text of up to eight bytes.
#[derive(Debug)]
struct Word {
    bytes: u64,
    /// The bit of every letter that tells small from large.
    case: u64,
    length: u32,
    value: u8,
}

/// Longest text of a [`Word`].
const WORD_BYTES: usize = 8;

impl Words {
    /// Of a format that has been checked.
    pub fn new(format: &TruthFormat) -> Self {
        let yes = format.yes.iter().map(|text| (folded(text), 1));
        let no = format.no.iter().map(|text| (folded(text), 0));
        let texts: Vec<_> = yes.chain(no).collect();
        let short = texts.iter().filter(|(text, _)| text.len() <= WORD_BYTES && text.is_ascii());
        let short = short.map(|(text, value)| Word::new(text.as_bytes(), *value)).collect();
        Words { texts, short }
    }

    /// Why texts are converted field by field, if they are.
    pub fn field_by_field(&self) -> Option<&'static str> {
        (self.short.len() < self.texts.len()).then_some("words of more than eight characters, or not ASCII")
    }
}

impl Word {
    fn new(text: &[u8], value: u8) -> Self {
        let (mut bytes, mut case) = ([0; WORD_BYTES], [0; WORD_BYTES]);
        bytes[..text.len()].copy_from_slice(text);
        for (case, byte) in std::iter::zip(&mut case, text) {
            *case = if byte.is_ascii_alphabetic() { 0x20 } else { 0 };
        }
        Word { bytes: u64::from_le_bytes(bytes), case: u64::from_le_bytes(case), length: text.len() as u32, value }
    }
}

impl Convert for &Words {
    type Value = u8;

    fn convert(&self, field: Field<'_>) -> Result<u8, Rule> {
        let text = field.bytes();
        let found = self.texts.iter().find(|(word, _)| spelled(text, word) == Some(text.len()));
        found.map(|(_, value)| *value).ok_or(Rule::BadBool)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [u8], inexact: &mut [u8]) -> bool {
        let rows = tile.rows();
        let mut words = [0; crate::raw::fields::TILE_ROWS];
        let words = &tile.words_at(0, &mut words)[..rows];
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        inexact.fill(1);
        for word in &self.short {
            let keep = u64::MAX.unbounded_shr(64 - 8 * word.length) & !word.case;
            for row in 0..rows {
                let differs = (words[row] ^ word.bytes) & keep;
                let is_word = (differs == 0) & (ends[row] - starts[row] == word.length);
                values[row] = if is_word { word.value } else { values[row] };
                inexact[row] &= u8::from(!is_word);
            }
        }
        true
    }
}
