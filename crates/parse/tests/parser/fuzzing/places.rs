//! Layouts whose columns stand at places of their rows, and rows of them.

use headrace_types::{
    BlankRows, Column, ColumnType, ExtraFields, Layout, LayoutShape, MixedRowEnds, Place, RowEnd, ShortRows, WidthUnit,
};

use super::dialects;
use super::input::{Input, Random};

const ROW_ENDS: &[&str] = &["\n", "\r\n", "\r", "~", "\n\n", "aab", "<é>", "  "];
const FILLERS: &[&str] = &[" ", " ", "  ", "0", "x", "\t", "é"];

/// Gives the columns of a layout places, and the layout what goes with them. How rows end.
pub fn place(layout: &mut Layout, input: &mut Input<'_>) -> RowEnd {
    let mut row_end = match input.below(8) {
        0 | 1 => RowEnd::Lf,
        2 => RowEnd::Either,
        3 => RowEnd::OnlyLf,
        4 => RowEnd::OnlyCrlf,
        5 => RowEnd::Exactly(input.pick(ROW_ENDS).to_owned()),
        _ => RowEnd::Every(0),
    };
    dialects::leave_out_wrong_values(layout);
    let flags = input.byte();
    let is = |bit: u32| flags >> bit & 1 == 1;
    let columns = std::mem::take(&mut layout.columns);
    *layout = Layout {
        shape: if is(0) && is(1) { LayoutShape::RaggedRight } else { LayoutShape::FixedWidth },
        null_tokens: std::mem::take(&mut layout.null_tokens),
        width_unit: if is(2) { WidthUnit::Characters } else { WidthUnit::Bytes },
        short_rows: if is(3) { ShortRows::Fill } else { ShortRows::Reject },
        extra_fields: if is(4) && is(5) { ExtraFields::Keep } else { ExtraFields::Reject },
        blank_rows: [BlankRows::Skip, BlankRows::Keep, BlankRows::Reject, BlankRows::Skip][usize::from(flags >> 6)],
        mixed_row_ends: MixedRowEnds::Accept,
        columns,
        ..Layout::default()
    };
    let count = layout.columns.len();
    let mut before = 0;
    for (index, column) in layout.columns.iter_mut().enumerate() {
        let start = before + [0, 0, 0, 0, 0, 1, 2, 9][input.below(8)];
        let width = 1 + input.below([4, 12, 12, 40][index % 4]) as u32;
        let is_open = layout.shape == LayoutShape::RaggedRight && index + 1 == count;
        column.place = Some(Place { start, width: (!is_open).then_some(width) });
        before = start + width;
    }
    settle(layout, &mut row_end);
    row_end
}

/// Leaves out what cannot go together.
fn settle(layout: &mut Layout, row_end: &mut RowEnd) {
    if layout.shape == LayoutShape::RaggedRight {
        layout.extra_fields = ExtraFields::Reject;
    }
    if layout.extra_fields == ExtraFields::Keep
        && let Some(column) = layout.columns.last_mut()
    {
        (column.column_type, column.format) = (ColumnType::String, None);
    }
    if let RowEnd::Every(bytes) = row_end {
        if layout.shape == LayoutShape::RaggedRight {
            *row_end = RowEnd::Lf;
        } else {
            *bytes = layout.row_width();
            (layout.short_rows, layout.extra_fields) = (ShortRows::Reject, ExtraFields::Reject);
            (layout.blank_rows, layout.width_unit) = (BlankRows::Skip, WidthUnit::Bytes);
        }
    }
    assert!(dialects::is_accepted(layout, row_end), "{layout:?} {row_end:?} {:?}", layout.check());
}

/// A row of these fields, filled up or cut to their widths; a `fate` of 128 and more is another than the layout's.
pub fn row(layout: &Layout, row_end: &RowEnd, fields: &[Vec<u8>], fate: u8, random: &mut Random) -> Vec<u8> {
    let mut row = vec![];
    for (column, field) in std::iter::zip(&layout.columns, fields) {
        fill(&mut row, layout, column, random);
        match column.place.and_then(|place| place.width) {
            Some(width) => row.extend(fitted(layout, field, width as usize, random)),
            None => row.extend_from_slice(field),
        }
    }
    match if fate < 128 { 0 } else { fate % 8 } {
        1 | 2 => row.truncate(random.below(row.len() + 1)),
        3 => row.extend_from_slice(random.pick(FILLERS).as_bytes()),
        4 => row.clear(),
        5 => {
            let at = random.below(row.len() + 1);
            row.insert(at, random.pick(b"\n\r\0\xC3\x80 ~"));
        }
        _ => {}
    }
    let own = dialects::row_end_text(layout, row_end);
    row.extend_from_slice(match (row_end, fate) {
        (RowEnd::Every(_), _) => b"",
        (RowEnd::Lf, 134) => b"\r\n",
        (_, 142) => b"",
        (_, 150) => b"\n",
        _ => &own,
    });
    row
}

fn width(layout: &Layout, text: &[u8]) -> usize {
    if layout.places_are_bytes() { text.len() } else { String::from_utf8_lossy(text).chars().count() }
}

/// Fills a row up to a column.
fn fill(row: &mut Vec<u8>, layout: &Layout, column: &Column, random: &mut Random) {
    let start = column.place.map_or(0, |place| place.start as usize);
    let gap = start.saturating_sub(width(layout, row));
    let filler = random.pick(b"  x\t0");
    row.extend(std::iter::repeat_n(filler, gap));
}

/// A field of exactly that width, if it is text.
fn fitted(layout: &Layout, field: &[u8], wanted: usize, random: &mut Random) -> Vec<u8> {
    let mut field = match layout.width_unit {
        WidthUnit::Characters if std::str::from_utf8(field).is_ok() => {
            String::from_utf8_lossy(field).chars().take(wanted).collect::<String>().into_bytes()
        }
        _ => field[..field.len().min(wanted)].to_vec(),
    };
    let blanks = wanted.saturating_sub(width(layout, &field));
    let front = if random.once_in(3) { blanks } else { 0 };
    field.splice(0..0, std::iter::repeat_n(b' ', front));
    field.extend(std::iter::repeat_n(b' ', blanks - front));
    field
}

/// A file of the layout: `dirt` of 256 rows and fields are not what it wants.
pub fn file(layout: &Layout, row_end: &RowEnd, rows: usize, dirt: u8, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![];
    for _ in 0..rows {
        let texts = layout.columns.iter().map(|column| {
            let (kind, format) = (column.column_type, column.format.as_ref());
            super::texts::random_field(kind, format, &layout.null_tokens, dirt, random)
        });
        let texts: Vec<Vec<u8>> = texts.collect();
        let fate = if random.below(256) < usize::from(dirt) { random.below(256) as u8 } else { 0 };
        bytes.extend(row(layout, row_end, &texts, fate, random));
    }
    bytes
}
