//! The fields of one column of a block, and loads that may read into the padding around them.

use super::cpu::{CpuPath, Task};
use super::memory::PADDING_BYTES;

/// A block's text with [`PADDING_BYTES`] readable bytes on both sides.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    whole: &'a [u8],
    length: usize,
}

impl<'a> Text<'a> {
    /// `whole` holds the padding, `length` bytes of text, and the padding again. `None` when it is shorter, or the text does
    /// not fit 32-bit positions.
    pub fn new(whole: &'a [u8], length: usize) -> Option<Self> {
        (length < u32::MAX as usize && whole.len() >= length + 2 * PADDING_BYTES).then_some(Text { whole, length })
    }

    /// The text without padding.
    pub fn bytes(&self) -> &'a [u8] {
        &self.whole[PADDING_BYTES..PADDING_BYTES + self.length]
    }

    /// The first byte; a pointer that may also reach into the padding on both sides.
    fn start(&self) -> *const u8 {
        // SAFETY: `new` checked that `whole` holds the padding.
        unsafe { self.whole.as_ptr().add(PADDING_BYTES) }
    }

    /// Length without padding, bytes.
    pub fn len(&self) -> usize {
        self.length
    }
}

/// One field: `start..end` in the text, without qualifiers, and the right to load around it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    text: *const u8,
    start: u32,
    end: u32,
    /// Whether it stands between qualifiers, and so is never NULL.
    pub is_qualified: bool,
    lifetime: std::marker::PhantomData<&'a [u8]>,
}

macro_rules! load {
    ($name:ident, $type:ty, $anchor:ident, $offset:expr, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $name(&self, offset: usize) -> $type {
            let offset = offset.min(PADDING_BYTES / 2);
            // SAFETY: start <= end <= text length (`FieldTable`), and the text has PADDING_BYTES (64) readable bytes
            // on both sides; an offset of at most 32 plus 8 loaded bytes stays inside. `from_le` after an unaligned load
            // has no alignment demand.
            let at = unsafe { self.text.offset(self.$anchor as isize + $offset(offset)) };
            // SAFETY: as above.
            <$type>::from_le(unsafe { at.cast::<$type>().read_unaligned() })
        }
    };
}

impl<'a> Field<'a> {
    load!(
        u64_at,
        u64,
        start,
        |offset: usize| offset as isize,
        "Eight bytes from `start + offset`, first byte lowest; offset <= 32."
    );
    load!(
        u64_before,
        u64,
        end,
        |offset: usize| -(offset as isize) - 8,
        "The eight bytes that end `offset` bytes before `end`; offset <= 32."
    );

    /// The 32 bytes that end `offset` (at most 32) bytes before `end`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn chunk_before(&self, offset: usize) -> [u8; PADDING_BYTES / 2] {
        let offset = offset.min(PADDING_BYTES / 2);
        // SAFETY: end <= text length (`FieldTable`), and the PADDING_BYTES before the text are twice as many as are loaded.
        unsafe { self.text.offset(self.end as isize - offset as isize).cast::<[u8; PADDING_BYTES / 2]>().sub(1).read() }
    }

    /// The whole text as one field.
    pub fn whole(text: Text<'a>) -> Self {
        // `Text` has fewer than 2^32 bytes, see `Text::new`.
        let end = text.length as u32;
        Field { text: text.start(), start: 0, end, is_qualified: false, lifetime: std::marker::PhantomData }
    }

    /// First byte, in the text.
    #[inline(always)]
    pub fn start(&self) -> u32 {
        self.start
    }

    /// The byte `offset` bytes before `end`; `offset` in 1..=32.
    #[inline(always)]
    pub fn byte_before(&self, offset: usize) -> u8 {
        let offset = offset.clamp(1, PADDING_BYTES / 2);
        // SAFETY: as in `load!`: end <= text length, at most 32 bytes before it are text or padding.
        unsafe { *self.text.offset(self.end as isize - offset as isize) }
    }

    /// Length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The field's bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: start <= end <= text length (`FieldTable`); the text lives for 'a.
        unsafe { std::slice::from_raw_parts(self.text.offset(self.start as isize), self.len()) }
    }
}

/// A table of field positions: the marks of all columns of a block.
pub struct FieldTable<'a> {
    text: Text<'a>,
    /// `marks[r * stride + column]` is the byte before field `column` of row r, `marks[r * stride + column + 1]` the byte
    /// after it. The byte before the text is `u32::MAX`.
    marks: &'a [u32],
    stride: usize,
    rows: usize,
    columns: usize,
    qualifier: Option<u8>,
}

impl<'a> FieldTable<'a> {
    /// `None` when the marks of a row do not ascend or do not fit the text: then no load would be proved safe.
    pub fn new(
        text: Text<'a>,
        marks: &'a [u32],
        stride: usize,
        rows: usize,
        columns: usize,
        qualifier: Option<u8>,
        path: CpuPath,
    ) -> Option<Self> {
        let fits = stride >= columns && marks.len() > (rows.max(1) - 1) * stride + columns;
        let length = text.len();
        let proved = fits && (path.run(Ascend { marks, length }) || rows_ascend(marks, stride, rows, columns, length));
        proved.then_some(FieldTable { text, marks, stride, rows, columns, qualifier })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Points `tile` to the fields of `column` in the rows from `first_row`, [`TILE_ROWS`] or as many as there are; `None`
    /// when there is no such column.
    #[inline(always)]
    pub fn load<'t>(&self, column: usize, first_row: usize, tile: &'t mut TileMemory) -> Option<Tile<'a, 't>> {
        if column >= self.columns {
            return None;
        }
        let rows = self.rows.saturating_sub(first_row).min(TILE_ROWS);
        let from = first_row * self.stride + column;
        #[cfg(not(target_endian = "little"))]
        compile_error!("two marks are read as one number, the first one in its low half");
        for (row, pair) in tile.pairs[..rows].iter_mut().enumerate() {
            // SAFETY: the row is below `rows` of the table, and `new` checked that the marks reach to the last column of the
            // last row: there is a mark at this place and one behind it.
            *pair = unsafe { self.marks.as_ptr().add(from + row * self.stride).cast::<u64>().read_unaligned() };
        }
        // Apart from the loop above, because this one is made of vector instructions.
        let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
        for ((start, end), pair) in places.zip(&tile.pairs[..rows]) {
            *start = (*pair as u32).wrapping_add(1);
            *end = (*pair >> 32) as u32;
        }
        let is_qualified = &mut tile.is_qualified[..rows];
        match self.qualifier {
            None => is_qualified.fill(false),
            Some(qualifier) => {
                let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
                for ((start, end), is_qualified) in places.zip(is_qualified) {
                    // SAFETY: start <= end <= text length, and there is padding on both sides of the text.
                    let (first, last) = unsafe {
                        (*self.text.start().add(*start as usize), *self.text.start().add(*end as usize).sub(1))
                    };
                    *is_qualified = (first == qualifier) & (last == qualifier) & (*end - *start >= 2);
                    // Two bytes fewer of two or more: start <= end still.
                    *start += u32::from(*is_qualified);
                    *end -= u32::from(*is_qualified);
                }
            }
        }
        let (starts, ends) = (&tile.starts[..rows], &tile.ends[..rows]);
        Some(Tile { text: self.text, starts, ends, is_qualified: &tile.is_qualified[..rows], first_row })
    }
}

/// Whether all marks ascend and lie in the text, which proves start <= end <= length for every field. The first mark may be
/// the byte before the text.
struct Ascend<'a> {
    marks: &'a [u32],
    length: usize,
}

impl Task for Ascend<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let [first, rest @ ..] = self.marks else { return false };
        let ascending = |earlier: &[u32], later: &[u32]| {
            std::iter::zip(earlier, later).fold(true, |all, (earlier, later)| all & (earlier < later))
        };
        // The first mark may be the greatest number, which stands for -1.
        (*first == u32::MAX || rest.first().is_none_or(|second| first < second))
            && ascending(rest, rest.get(1..).unwrap_or_default())
            && rest.last().is_none_or(|&last| (last as usize) < self.length)
    }
}

/// The same row by row: in compacted marks the end of a row's last field and the byte before the next row may be one place,
/// the line feed. They are compacted because a row was bad, so speed does not matter here.
fn rows_ascend(marks: &[u32], stride: usize, rows: usize, columns: usize, length: usize) -> bool {
    (0..rows).all(|row| {
        let own = &marks[row * stride..=row * stride + columns];
        own.windows(2).all(|pair| pair[1] >= pair[0].wrapping_add(1) && pair[1] as usize <= length)
    })
}

/// Rows that are converted together, column after column: their text, positions and values stay in the first-level cache.
pub const TILE_ROWS: usize = 128;

/// Memory for the positions of one tile, reused.
pub struct TileMemory {
    /// The marks before (low half) and behind each field.
    pairs: Words,
    starts: [u32; TILE_ROWS],
    ends: [u32; TILE_ROWS],
    is_qualified: [bool; TILE_ROWS],
}

impl Default for TileMemory {
    fn default() -> Self {
        TileMemory {
            pairs: [0; TILE_ROWS],
            starts: [0; TILE_ROWS],
            ends: [0; TILE_ROWS],
            is_qualified: [false; TILE_ROWS],
        }
    }
}

/// Eight bytes per row of a tile.
pub type Words = [u64; TILE_ROWS];

/// The fields of one column in up to [`TILE_ROWS`] rows.
#[derive(Clone, Copy)]
pub struct Tile<'a, 't> {
    text: Text<'a>,
    /// Start and end of every field: start <= end <= text length, checked by [`FieldTable::new`]. Of equal length.
    starts: &'t [u32],
    ends: &'t [u32],
    is_qualified: &'t [bool],
    first_row: usize,
}

impl<'a, 't> Tile<'a, 't> {
    /// Rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.starts.len()
    }

    /// The table's row that is row 0 of the tile.
    #[inline(always)]
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// First bytes of the fields, in the text.
    #[inline(always)]
    pub fn starts(&self) -> &'t [u32] {
        self.starts
    }

    /// Bytes after the last ones, in the text.
    #[inline(always)]
    pub fn ends(&self) -> &'t [u32] {
        self.ends
    }

    /// Whether any field stands between qualifiers.
    #[inline(always)]
    pub fn has_qualified(&self) -> bool {
        self.is_qualified.iter().fold(false, |any, is_qualified| any | is_qualified)
    }

    /// Length of the longest field, bytes.
    #[inline(always)]
    pub fn longest(&self) -> u32 {
        std::iter::zip(self.starts, self.ends).fold(0, |longest, (start, end)| longest.max(end - start))
    }

    /// The field of a row.
    #[inline(always)]
    pub fn field(&self, row: usize) -> Field<'a> {
        Field {
            text: self.text.start(),
            start: self.starts[row],
            end: self.ends[row],
            is_qualified: self.is_qualified[row],
            lifetime: std::marker::PhantomData,
        }
    }

    /// The fields of some rows, each without the last so many bytes (all of it, if it is shorter). As many numbers as rows.
    #[inline(always)]
    pub fn shortened<'m>(&self, rows: &[u8], bytes: &[u32], memory: &'m mut TileMemory) -> Tile<'a, 'm> {
        let count = rows.len().min(bytes.len()).min(TILE_ROWS);
        for (place, (&row, &bytes)) in std::iter::zip(rows, bytes).take(count).enumerate() {
            let row = usize::from(row);
            // Not before the start: start <= end <= text length holds still.
            memory.starts[place] = self.starts[row];
            memory.ends[place] = self.ends[row].saturating_sub(bytes).max(self.starts[row]);
            memory.is_qualified[place] = self.is_qualified[row];
        }
        let (starts, ends) = (&memory.starts[..count], &memory.ends[..count]);
        Tile { text: self.text, starts, ends, is_qualified: &memory.is_qualified[..count], first_row: self.first_row }
    }

    /// The fields, one per row, for loads: what does not matter for them is not said.
    #[inline(always)]
    pub fn places(&self) -> impl Iterator<Item = Field<'a>> + use<'a, 't> {
        let text = self.text.start();
        std::iter::zip(self.starts, self.ends).map(move |(&start, &end)| Field {
            text,
            start,
            end,
            is_qualified: false,
            lifetime: std::marker::PhantomData,
        })
    }

    /// Of every field the eight bytes from its start + `offset` (at most 32); see [`Field::u64_at`].
    #[inline(always)]
    pub fn words_at<'w>(&self, offset: usize, words: &'w mut Words) -> &'w [u64] {
        let words = &mut words[..self.rows()];
        for (word, field) in std::iter::zip(&mut *words, self.places()) {
            *word = field.u64_at(offset);
        }
        words
    }

    /// Of every field the eight bytes that end `offset` (at most 32) bytes before its end; see [`Field::u64_before`].
    #[inline(always)]
    pub fn words_before<'w>(&self, offset: usize, words: &'w mut Words) -> &'w [u64] {
        let words = &mut words[..self.rows()];
        for (word, field) in std::iter::zip(&mut *words, self.places()) {
            *word = field.u64_before(offset);
        }
        words
    }

    /// Of every field the last 8 N bytes: the last eight of all fields, then the eight before them, and so on.
    #[inline(always)]
    pub fn last_words<const N: usize>(&self) -> [Words; N] {
        const { assert!(8 * N <= PADDING_BYTES / 2) };
        let mut words = [[0; TILE_ROWS]; N];
        for (index, words) in words.iter_mut().enumerate() {
            self.words_before(8 * index, words);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_do_not_ascend_or_leave_the_text_are_refused() {
        let whole = [b'x'; 10 + 2 * PADDING_BYTES];
        let text = Text::new(&whole, 10).unwrap();
        let accepts = |marks: &[u32], stride, rows, columns| {
            let accepted: Vec<bool> = CpuPath::available()
                .into_iter()
                .map(|path| FieldTable::new(text, marks, stride, rows, columns, None, path).is_some())
                .collect();
            assert!(accepted.iter().all(|&one| one == accepted[0]), "{marks:?}");
            accepted[0]
        };
        assert!(accepts(&[u32::MAX, 3, 9], 2, 1, 2));
        assert!(accepts(&[0, 1, 2, 3, 9], 2, 2, 2));
        assert!(accepts(&[u32::MAX, 0, 1, 5, 9], 2, 2, 2));
        for bad in [&[u32::MAX, 3, u32::MAX][..], &[u32::MAX, 3, 11], &[5, 3, 9], &[u32::MAX, u32::MAX, 4], &[3, 3, 3]]
        {
            assert!(!accepts(bad, 2, 1, 2), "{bad:?}");
        }
        assert!(!accepts(&[u32::MAX, 3], 2, 1, 2), "too few");
        // In compacted marks a row may begin where the one before ended.
        assert!(accepts(&[u32::MAX, 1, 3, 3, 4, 5], 3, 2, 2));
        assert!(!accepts(&[u32::MAX, 1, 3, 3, 4, 11], 3, 2, 2));
    }
}
