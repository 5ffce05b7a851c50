//! The fields of one column of a block, and loads that may read into the padding around them.

use headrace_types::Trim;

use super::cpu::{CpuPath, Task};
use super::high::HighBytes;
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
    flags: u8,
    lifetime: std::marker::PhantomData<&'a [u8]>,
}

/// The field stands between qualifiers, and so is never NULL.
pub const QUALIFIED: u8 = 1;
/// Its text is not what stands there: qualifiers are doubled, or characters escaped.
pub const REWRITTEN: u8 = 2;
/// Text stands behind its closing qualifier.
pub const TEXT_BEHIND: u8 = 4;
/// A qualifier is data in it, and is not doubled.
pub const STRAY: u8 = 16;
/// Its bytes are to be decoded.
pub const DECODED: u8 = 8;
/// What stands there is not its text.
pub const OTHER_TEXT: u8 = REWRITTEN | DECODED;

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
        Field { text: text.start(), start: 0, end, flags: 0, lifetime: std::marker::PhantomData }
    }

    /// The same field between qualifiers, or not.
    pub fn qualified(self, is_qualified: bool) -> Self {
        Field { flags: if is_qualified { QUALIFIED } else { 0 }, ..self }
    }

    /// Whether it stands between qualifiers, and so is never NULL.
    #[inline(always)]
    pub fn is_qualified(&self) -> bool {
        self.flags & QUALIFIED != 0
    }

    /// Whether its text is not what stands there.
    #[inline(always)]
    pub fn is_rewritten(&self) -> bool {
        self.flags & OTHER_TEXT != 0
    }

    /// Whether bytes of it are to be decoded.
    #[inline(always)]
    pub fn is_decoded(&self) -> bool {
        self.flags & DECODED != 0
    }

    /// Whether its qualifiers are doubled, or characters escaped.
    #[inline(always)]
    pub fn is_escaped(&self) -> bool {
        self.flags & REWRITTEN != 0
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

/// A table of field positions: those of all columns of a block.
pub struct FieldTable<'a> {
    text: Text<'a>,
    places: Places<'a>,
    rows: usize,
    columns: usize,
    /// Bytes that are to be decoded; none if none are.
    high: Option<&'a HighBytes>,
}

/// Where fields are.
enum Places<'a> {
    /// `marks[r * stride + column]` is the byte before field `column` of row r, `marks[r * stride + column + 1]` the byte
    /// after it. The byte before the text is `u32::MAX`.
    Marks { marks: &'a [u32], stride: usize, qualifiers: Option<Qualifiers> },
    /// Field `column` of row r is that of number `r * columns + column`.
    Spans { spans: &'a [Span], blanks: bool },
    /// Row r begins at `starts[r]` and has `lengths[r]` bytes; its field `column` stands between the two places of the column, or
    /// as much of it as the row has.
    Rows { starts: &'a [u32], lengths: &'a [u32], places: &'a [(u32, u32)] },
}

/// A field with its qualifiers: start and end in the text, and flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// [`QUALIFIED`] and so on.
    pub flags: u8,
}

/// What marks alone do not say of qualified fields.
#[derive(Debug, Clone, Copy)]
pub struct Qualifiers {
    /// The byte.
    pub byte: u8,
    /// Whether fields may hold doubled ones.
    pub doubled: bool,
    /// Whether text may stand behind closing ones, and whether there may be some in fields that do not begin with one.
    pub stray: bool,
}

impl<'a> FieldTable<'a> {
    /// `None` when the marks of a row do not ascend or do not fit the text: then no load would be proved safe.
    pub fn of_marks(
        text: Text<'a>,
        marks: &'a [u32],
        stride: usize,
        rows: usize,
        columns: usize,
        qualifiers: Option<Qualifiers>,
        path: CpuPath,
    ) -> Option<Self> {
        let fits = stride >= columns && marks.len() > (rows.max(1) - 1) * stride + columns;
        let length = text.len();
        let proved = fits && (path.run(Ascend { marks, length }) || rows_ascend(marks, stride, rows, columns, length));
        proved.then_some(FieldTable {
            text,
            places: Places::Marks { marks, stride, qualifiers },
            rows,
            columns,
            high: None,
        })
    }

    /// `None` when a span does not fit the text: then no load would be proved safe. `blanks`: whether blanks may stand around
    /// qualifiers.
    pub fn of_spans(text: Text<'a>, spans: &'a [Span], rows: usize, columns: usize, blanks: bool) -> Option<Self> {
        let length = text.len();
        let fits = |span: &Span| {
            let is_long_enough = span.flags & QUALIFIED == 0 || span.end.wrapping_sub(span.start) >= 2;
            span.start <= span.end && span.end as usize <= length && is_long_enough
        };
        let proved = spans.len() == rows * columns && spans.iter().all(fits);
        proved.then_some(FieldTable { text, places: Places::Spans { spans, blanks }, rows, columns, high: None })
    }

    /// The same, with the bytes of the text that are to be decoded.
    pub fn decoded(self, high: Option<&'a HighBytes>) -> Self {
        FieldTable { high, ..self }
    }

    /// `None` when a row does not fit the text, or a column begins behind its end: then no load would be proved safe.
    pub fn of_places(text: Text<'a>, starts: &'a [u32], lengths: &'a [u32], places: &'a [(u32, u32)]) -> Option<Self> {
        let most = text.len() as u64;
        let rows = std::iter::zip(starts, lengths);
        let fits = rows.fold(true, |all, (&start, &length)| all & (u64::from(start) + u64::from(length) <= most));
        let proved = fits && starts.len() == lengths.len() && places.iter().all(|(from, to)| from <= to);
        let (rows, columns) = (starts.len(), places.len());
        proved.then_some(FieldTable {
            text,
            places: Places::Rows { starts, lengths, places },
            rows,
            columns,
            high: None,
        })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Points `tile` to the fields of `column` in the rows from `first_row`, [`TILE_ROWS`] or as many as there are; `None`
    /// when there is no such column. Blanks at the ends that `trim` names are no part of unqualified ones.
    #[inline(always)]
    pub fn load<'t>(
        &self,
        column: usize,
        first_row: usize,
        trim: Trim,
        tile: &'t mut TileMemory,
    ) -> Option<Tile<'a, 't>> {
        if column >= self.columns {
            return None;
        }
        let rows = self.rows.saturating_sub(first_row).min(TILE_ROWS);
        match self.places {
            Places::Marks { marks, stride, qualifiers } => {
                self.load_marks(marks, stride, first_row * stride + column, &mut *tile, rows);
                match qualifiers {
                    None => tile.flags[..rows].fill(0),
                    Some(qualifiers) => self.strip_qualifiers(qualifiers, tile, rows),
                }
            }
            Places::Spans { spans, blanks } => {
                for row in 0..rows {
                    let span = self.inner(spans[(first_row + row) * self.columns + column], blanks);
                    (tile.starts[row], tile.ends[row], tile.flags[row]) = (span.start, span.end, span.flags);
                }
            }
            Places::Rows { starts, lengths, places } => {
                let ((from, to), own) = (places[column], first_row..first_row + rows);
                let own = std::iter::zip(&starts[own.clone()], &lengths[own]);
                let fields = std::iter::zip(&mut tile.starts, &mut tile.ends);
                for ((field_start, field_end), (&start, &length)) in fields.zip(own) {
                    // start + length <= text length (`of_places`), and from <= to.
                    *field_start = start + from.min(length);
                    *field_end = start + to.min(length);
                }
                tile.flags[..rows].fill(0);
            }
        }
        if trim != Trim::None {
            self.trim(trim, tile, rows);
        }
        if let Some(high) = self.high {
            let places = std::iter::zip(&tile.starts[..rows], &tile.ends[..rows]);
            // Rows ascend, and so do the fields of a column.
            if rows > 0 && high.is_near(tile.starts[0], tile.ends[rows - 1]) {
                for ((&start, &end), flags) in places.zip(&mut tile.flags[..rows]) {
                    *flags |= high.any(start, end) * DECODED;
                }
            }
        }
        let (starts, ends) = (&tile.starts[..rows], &tile.ends[..rows]);
        Some(Tile { text: self.text, starts, ends, flags: &tile.flags[..rows], first_row })
    }

    #[inline(always)]
    fn trim(&self, trim: Trim, tile: &mut TileMemory, rows: usize) {
        let text = self.text.start();
        let (left, right) = (trim != Trim::Right, trim != Trim::Left);
        let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
        for ((start, end), &flags) in places.zip(&tile.flags[..rows]) {
            if flags & QUALIFIED != 0 {
                continue;
            }
            // start <= end <= text length still: neither leaves the field.
            let mut field = Field { text, start: *start, end: *end, flags, lifetime: std::marker::PhantomData };
            // Most have fewer blanks than a word; what has more is looked at word by word.
            let mut goes_on = left;
            while goes_on {
                let blanks = text_bytes(field.u64_at(0)).trailing_zeros() / 8;
                field.start += blanks.min(field.end - field.start);
                goes_on = blanks == 8 && field.start < field.end;
            }
            goes_on = right;
            while goes_on {
                let blanks = text_bytes(field.u64_before(0)).leading_zeros() / 8;
                field.end -= blanks.min(field.end - field.start);
                goes_on = blanks == 8 && field.start < field.end;
            }
            (*start, *end) = (field.start, field.end);
        }
    }

    #[inline(always)]
    fn load_marks(&self, marks: &[u32], stride: usize, from: usize, tile: &mut TileMemory, rows: usize) {
        #[cfg(not(target_endian = "little"))]
        compile_error!("two marks are read as one number, the first one in its low half");
        for (row, pair) in tile.pairs[..rows].iter_mut().enumerate() {
            // SAFETY: the row is below `rows` of the table, and `of_marks` checked that the marks reach to the last column of
            // the last row: there is a mark at this place and one behind it.
            *pair = unsafe { marks.as_ptr().add(from + row * stride).cast::<u64>().read_unaligned() };
        }
        // Apart from the loop above, because this one is made of vector instructions.
        let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
        for ((start, end), pair) in places.zip(&tile.pairs[..rows]) {
            *start = (*pair as u32).wrapping_add(1);
            *end = (*pair >> 32) as u32;
        }
    }

    /// Fields between qualifiers without them, and flags.
    #[inline(always)]
    fn strip_qualifiers(&self, qualifiers: Qualifiers, tile: &mut TileMemory, rows: usize) {
        let qualifier = qualifiers.byte;
        let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
        for ((start, end), flags) in places.zip(&mut tile.flags[..rows]) {
            // SAFETY: start <= end <= text length, and there is padding on both sides of the text.
            let (first, last) =
                unsafe { (*self.text.start().add(*start as usize), *self.text.start().add(*end as usize).sub(1)) };
            let is_qualified = (first == qualifier) & (last == qualifier) & (*end - *start >= 2);
            // Two bytes fewer of two or more: start <= end still.
            *start += u32::from(is_qualified);
            *end -= u32::from(is_qualified);
            *flags = u8::from(is_qualified) * QUALIFIED;
        }
        if qualifiers.doubled || qualifiers.stray {
            self.look_inside(qualifiers, tile, rows);
        }
    }

    #[inline(never)]
    fn look_inside(&self, qualifiers: Qualifiers, tile: &mut TileMemory, rows: usize) {
        let text = self.text.bytes();
        let places = std::iter::zip(&mut tile.starts[..rows], &mut tile.ends[..rows]);
        for ((start, end), flags) in places.zip(&mut tile.flags[..rows]) {
            let field = &text[*start as usize..*end as usize];
            let first = memchr::memchr(qualifiers.byte, field);
            *flags = match (*flags & QUALIFIED, first) {
                (own, None) => own,
                (0, Some(0)) => TEXT_BEHIND,
                (0, Some(_)) => STRAY,
                (_, Some(_)) if has_single(qualifiers.byte, field) => {
                    // It is what is in the file: the two bytes belong to it. They are in the text, as they were found there.
                    (*start, *end) = (*start - 1, *end + 1);
                    TEXT_BEHIND
                }
                (own, Some(_)) => own | REWRITTEN,
            };
        }
    }

    /// The field without its qualifiers.
    #[inline(always)]
    fn inner(&self, span: Span, blanks: bool) -> Span {
        if span.flags & TEXT_BEHIND != 0 {
            // It is what is in the file.
            return Span { flags: span.flags & !(QUALIFIED | REWRITTEN), ..span };
        }
        if span.flags & QUALIFIED == 0 {
            return span;
        }
        let Span { mut start, mut end, flags } = span;
        if blanks {
            let field = &self.text.bytes()[start as usize..end as usize];
            let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
            start += field.iter().position(is_text).unwrap_or(0) as u32;
            end -= field.iter().rev().position(is_text).unwrap_or(0) as u32;
        }
        // Of two qualifiers or more, as `of_spans` checked; whatever the blanks were, start <= end still.
        Span { start: start + 1, end: end.saturating_sub(1).max(start + 1).min(span.end), flags }
    }
}

/// The high bit of every byte that is neither blank nor tab.
#[inline(always)]
fn text_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    // A sum of seven bits carries into the eighth unless they are zero, and never beyond it.
    let differs = |byte: u8| {
        let other = word ^ u64::from_ne_bytes([byte; 8]);
        ((other & LOW) + LOW) | other
    };
    differs(b' ') & differs(b'\t') & !LOW
}

/// Whether a qualifier stands alone: then it closed the field.
fn has_single(qualifier: u8, text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(qualifier, rest) {
        if rest.get(at + 1) != Some(&qualifier) {
            return true;
        }
        rest = &rest[at + 2..];
    }
    false
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
    flags: [u8; TILE_ROWS],
}

impl Default for TileMemory {
    fn default() -> Self {
        TileMemory { pairs: [0; TILE_ROWS], starts: [0; TILE_ROWS], ends: [0; TILE_ROWS], flags: [0; TILE_ROWS] }
    }
}

/// Eight bytes per row of a tile.
pub type Words = [u64; TILE_ROWS];

/// The fields of one column in up to [`TILE_ROWS`] rows.
#[derive(Clone, Copy)]
pub struct Tile<'a, 't> {
    text: Text<'a>,
    /// Start and end of every field: start <= end <= text length, checked by [`FieldTable`]. Of equal length.
    starts: &'t [u32],
    ends: &'t [u32],
    flags: &'t [u8],
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

    /// The flags of the fields.
    #[inline(always)]
    pub fn flags(&self) -> &'t [u8] {
        self.flags
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
            flags: self.flags[row],
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
            memory.flags[place] = self.flags[row];
        }
        let (starts, ends) = (&memory.starts[..count], &memory.ends[..count]);
        Tile { text: self.text, starts, ends, flags: &memory.flags[..count], first_row: self.first_row }
    }

    /// The same fields, each without so many bytes in front and behind; as many numbers as rows. Of shorter ones nothing is left.
    #[inline(always)]
    pub fn peeled<'m>(&self, front: &[u32], behind: &[u32], memory: &'m mut TileMemory) -> Tile<'a, 'm> {
        let rows = self.rows().min(front.len()).min(behind.len());
        for row in 0..rows {
            // start <= end <= text length holds still.
            let start = self.starts[row].saturating_add(front[row]).min(self.ends[row]);
            memory.starts[row] = start;
            memory.ends[row] = self.ends[row].saturating_sub(behind[row]).max(start);
            memory.flags[row] = self.flags[row];
        }
        let (starts, ends) = (&memory.starts[..rows], &memory.ends[..rows]);
        Tile { text: self.text, starts, ends, flags: &memory.flags[..rows], first_row: self.first_row }
    }

    /// The fields, one per row, for loads: what does not matter for them is not said.
    #[inline(always)]
    pub fn places(&self) -> impl Iterator<Item = Field<'a>> + use<'a, 't> {
        let text = self.text.start();
        std::iter::zip(self.starts, self.ends).map(move |(&start, &end)| Field {
            text,
            start,
            end,
            flags: 0,
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
    fn blanks_and_tabs_are_told_from_every_other_byte() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                let mut bytes = *b" \t \t  \t\t";
                bytes[place] = byte;
                let expected = if matches!(byte, b' ' | b'\t') { 0 } else { 0x80_u64 << (8 * place) };
                assert_eq!(text_bytes(u64::from_le_bytes(bytes)), expected, "{byte}");
            }
        }
    }

    #[test]
    fn rows_that_leave_the_text_are_refused() {
        let whole = [b'x'; 10 + 2 * PADDING_BYTES];
        let text = Text::new(&whole, 10).unwrap();
        let accepts = |starts: &[u32], lengths: &[u32], places: &[(u32, u32)]| {
            FieldTable::of_places(text, starts, lengths, places).is_some()
        };
        assert!(accepts(&[0, 5], &[5, 5], &[(0, 3), (4, u32::MAX)]));
        assert!(!accepts(&[0, 5], &[5, 6], &[(0, 3)]), "behind the end");
        assert!(!accepts(&[u32::MAX], &[u32::MAX], &[(0, 3)]), "the sum is greater than any place");
        assert!(!accepts(&[0, 5], &[5], &[(0, 3)]), "too few");
        assert!(!accepts(&[0], &[5], &[(3, 2)]), "an end before its start");
        let table = FieldTable::of_places(text, &[0, 4], &[4, 6], &[(1, 3), (5, u32::MAX)]).unwrap();
        let mut memory = TileMemory::default();
        let tile = table.load(1, 0, Trim::None, &mut memory).unwrap();
        assert_eq!((tile.starts(), tile.ends()), (&[4, 9][..], &[4, 10][..]));
    }

    #[test]
    fn positions_that_do_not_ascend_or_leave_the_text_are_refused() {
        let whole = [b'x'; 10 + 2 * PADDING_BYTES];
        let text = Text::new(&whole, 10).unwrap();
        let accepts = |marks: &[u32], stride, rows, columns| {
            let accepted: Vec<bool> = CpuPath::available()
                .into_iter()
                .map(|path| FieldTable::of_marks(text, marks, stride, rows, columns, None, path).is_some())
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
