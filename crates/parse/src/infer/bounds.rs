//! The least and greatest text of a column so far, as far as loops over tiles have met them: by their first 16 bytes.

use super::tile_texts::TileTexts;

/// Of texts that were sure.
#[derive(Debug, Clone, Default)]
pub struct TextBounds {
    least: Option<Bound>,
    greatest: Option<Bound>,
}

/// First bytes, as numbers that are ordered like texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Front(u64, u64);

#[derive(Debug, Clone, Copy)]
struct Bound {
    front: Front,
    /// Whether a text that is no longer than that was told.
    is_whole: bool,
}

/// Bytes of a front.
const FRONT_BYTES: u32 = 16;

impl TextBounds {
    /// Tells the sure rows of a tile that may widen the bounds. Words of the texts were loaded; `longest`: bytes.
    #[inline(always)]
    pub fn widen(&mut self, texts: &TileTexts, rows: usize, longest: u32, mut tell: impl FnMut(usize)) {
        let has_second = longest > 8;
        let (first, unsure) = (&texts.words[0][..rows], &texts.unsure[..rows]);
        let (mut least, mut greatest) = (u64::MAX, 0);
        for row in 0..rows {
            // All ones where a row is unsure.
            let mask = u64::from(unsure[row] != 0).wrapping_neg();
            let front = first[row].swap_bytes();
            least = least.min(front | mask);
            greatest = greatest.max(front & !mask);
        }
        if self.least.is_none_or(|own| least <= own.front.0) {
            let found = Self::ends(texts, rows, least, has_second).0;
            Self::tell(&mut self.least, Front(least, found), longest, |new, own| new < own, texts, rows, &mut tell);
        }
        if self.greatest.is_none_or(|own| greatest >= own.front.0) {
            let found = Self::ends(texts, rows, greatest, has_second).1;
            Self::tell(
                &mut self.greatest,
                Front(greatest, found),
                longest,
                |new, own| new > own,
                texts,
                rows,
                &mut tell,
            );
        }
    }

    /// Least and greatest second word of the rows that begin so.
    #[inline(always)]
    fn ends(texts: &TileTexts, rows: usize, front: u64, has_second: bool) -> (u64, u64) {
        if !has_second {
            return (0, 0);
        }
        let (first, second) = (&texts.words[0][..rows], &texts.words[1][..rows]);
        let unsure = &texts.unsure[..rows];
        let (mut least, mut greatest) = (u64::MAX, 0);
        for row in 0..rows {
            let is_other = (unsure[row] != 0) | (first[row].swap_bytes() != front);
            let mask = u64::from(is_other).wrapping_neg();
            let second = second[row].swap_bytes();
            least = least.min(second | mask);
            greatest = greatest.max(second & !mask);
        }
        (least, greatest)
    }

    #[inline(always)]
    fn tell(
        own: &mut Option<Bound>,
        front: Front,
        longest: u32,
        is_better: impl Fn(Front, Front) -> bool,
        texts: &TileTexts,
        rows: usize,
        tell: &mut impl FnMut(usize),
    ) {
        let is_whole = longest <= FRONT_BYTES;
        if let Some(own) = own
            && (is_better(own.front, front) || (own.front == front && own.is_whole && is_whole))
        {
            return;
        }
        let begins_so = |row: usize| {
            let second = if longest > 8 { texts.words[1][row].swap_bytes() } else { 0 };
            texts.unsure[row] == 0 && Front(texts.words[0][row].swap_bytes(), second) == front
        };
        for row in (0..rows).filter(|&row| begins_so(row)) {
            tell(row);
            if is_whole {
                break; // the others are the same text
            }
        }
        *own = Some(Bound { front, is_whole });
    }
}
