//! The fields of one column of a block, and loads that may read into the padding around them.

use crate::memory::PADDING_BYTES;

/// A block's text with [`PADDING_BYTES`] readable bytes on both sides.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    whole: &'a [u8],
    length: usize,
}

impl<'a> Text<'a> {
    /// `whole` holds the padding, `length` bytes of text, and the padding again. `None` when it is shorter.
    pub fn new(whole: &'a [u8], length: usize) -> Option<Self> {
        (whole.len() >= length + 2 * PADDING_BYTES).then_some(Text { whole, length })
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

/// One field: `start..end` in the text, and the right to load around it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    text: *const u8,
    /// First byte, in the text.
    pub start: u32,
    /// Byte after the last, in the text.
    pub end: u32,
    lifetime: std::marker::PhantomData<&'a [u8]>,
}

macro_rules! load {
    ($name:ident, $type:ty, $anchor:ident, $offset:expr, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $name(&self, offset: usize) -> $type {
            debug_assert!(offset <= PADDING_BYTES / 2);
            // SAFETY: `Fields::new` checked start <= end <= text length, and the text has PADDING_BYTES (64) readable bytes
            // on both sides; an offset of at most 32 plus 16 loaded bytes stays inside. `from_le` after an unaligned load
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
    load!(u128_at, u128, start, |offset: usize| offset as isize, "Sixteen bytes from `start + offset`; offset <= 32.");
    load!(
        u64_before,
        u64,
        end,
        |offset: usize| -(offset as isize) - 8,
        "The eight bytes that end `offset` bytes before `end`; offset <= 32."
    );

    /// The byte `offset` bytes before `end`; `offset` in 1..=32.
    #[inline(always)]
    pub fn byte_before(&self, offset: usize) -> u8 {
        debug_assert!((1..=PADDING_BYTES / 2).contains(&offset));
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
        // SAFETY: start <= end <= text length, checked by `Fields::new`; the text lives for 'a.
        unsafe { std::slice::from_raw_parts(self.text.offset(self.start as isize), self.len()) }
    }
}

/// The fields of one column, row after row.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    text: Text<'a>,
    /// `marks[r * stride + column]` is the byte before field `column` of row r, `marks[r * stride + column + 1]` the byte
    /// after it. The byte before the text is `u32::MAX`.
    marks: &'a [u32],
    stride: usize,
    rows: usize,
    column: usize,
}

/// A table of field positions: the marks of all columns of a block. See [`Fields`].
pub struct FieldTable<'a> {
    text: Text<'a>,
    marks: &'a [u32],
    stride: usize,
    rows: usize,
    columns: usize,
}

impl<'a> FieldTable<'a> {
    /// `None` when the marks of a row do not ascend or do not fit the text: then no load would be proved safe.
    pub fn new(text: Text<'a>, marks: &'a [u32], stride: usize, rows: usize, columns: usize) -> Option<Self> {
        let fits = stride >= columns && marks.len() > (rows.max(1) - 1) * stride + columns;
        let proved = fits && (ascend(marks, text.len()) || rows_ascend(marks, stride, rows, columns, text.len()));
        proved.then_some(FieldTable { text, marks, stride, rows, columns })
    }

    /// The fields of one column; `None` when there is no such column.
    pub fn column(&self, column: usize) -> Option<Fields<'a>> {
        (column < self.columns).then_some(Fields {
            text: self.text,
            marks: self.marks,
            stride: self.stride,
            rows: self.rows,
            column,
        })
    }
}

/// Whether all marks ascend and lie in the text, which proves start <= end <= length for every field. The first mark may be
/// the byte before the text.
fn ascend(marks: &[u32], length: usize) -> bool {
    let Some((first, rest)) = marks.split_first() else { return false };
    let mut least = first.wrapping_add(1);
    let mut ascending = true;
    for &mark in rest {
        ascending &= mark >= least;
        least = mark.wrapping_add(1);
    }
    ascending && least as usize <= length + 1
}

/// The same row by row: in compacted marks the end of a row's last field and the byte before the next row may be one place,
/// the line feed. They are compacted because a row was bad, so speed does not matter here.
fn rows_ascend(marks: &[u32], stride: usize, rows: usize, columns: usize, length: usize) -> bool {
    (0..rows).all(|row| {
        let own = &marks[row * stride..=row * stride + columns];
        own.windows(2).all(|pair| pair[1] >= pair[0].wrapping_add(1) && pair[1] as usize <= length)
    })
}

impl<'a> Fields<'a> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The fields, one per row.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let own = *self;
        (0..own.rows).map(move |row| {
            let before = row * own.stride + own.column;
            // SAFETY: `row` is below `rows`, and `FieldTable::new` checked that the marks reach to the last column of the
            // last row; `FieldTable::column` that the column is one of those.
            let (start, end) =
                unsafe { (own.marks.get_unchecked(before).wrapping_add(1), *own.marks.get_unchecked(before + 1)) };
            Field { text: own.text.start(), start, end, lifetime: std::marker::PhantomData }
        })
    }
}
