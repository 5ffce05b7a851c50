//! The reference for rows whose columns stand at places of them.

use headrace_types::{BlankRows, Encoding, ExtraFields, Layout, LayoutShape, Rule, ShortRows, WidthUnit};

/// Where every character of a row begins, or every byte, and the end of the row. What continues no character is part of the one
/// before it; in a page every byte is one.
fn marks(layout: &Layout, content: &[u8]) -> Vec<usize> {
    let is_page = matches!(layout.encoding, Encoding::Page(_));
    let begins = |&at: &usize| match layout.width_unit {
        WidthUnit::Characters if !is_page => at == 0 || content[at] & 0b1100_0000 != 0b1000_0000,
        _ => true,
    };
    (0..content.len()).filter(begins).chain([content.len()]).collect()
}

/// First byte or character of every column and the one behind its last; as much as the row has.
fn places(layout: &Layout, width: usize) -> Vec<(usize, usize)> {
    let count = layout.columns.len();
    let place = |(index, column): (usize, &headrace_types::Column)| {
        let place = column.place.unwrap();
        let start = place.start as usize;
        let is_open = index + 1 == count && layout.extra_fields == ExtraFields::Keep;
        let end = place.width.filter(|_| !is_open).map_or(usize::MAX, |width| start + width as usize);
        (start.min(width), end.min(width))
    };
    layout.columns.iter().enumerate().map(place).collect()
}

/// The fields of a row without its row end: offset and text.
pub fn fields<'a>(layout: &Layout, content: &'a [u8]) -> Vec<(usize, &'a [u8])> {
    let marks = marks(layout, content);
    let places = places(layout, marks.len() - 1);
    places.into_iter().map(|(start, end)| (marks[start], &content[marks[start]..marks[end]])).collect()
}

/// Why a row has the wrong width, if it has.
pub fn wrong_width(layout: &Layout, content: &[u8]) -> Option<(Rule, String)> {
    let width = marks(layout, content).len() - 1;
    if width == 0 && layout.blank_rows == BlankRows::Reject {
        return Some((Rule::RowTooNarrow, "a blank row".to_owned()));
    }
    let last = layout.columns[layout.columns.len() - 1].place.unwrap();
    let least = (last.start + last.width.unwrap_or(0)) as usize;
    let is_open = layout.shape == LayoutShape::RaggedRight || layout.extra_fields == ExtraFields::Keep;
    let unit = match layout.width_unit {
        WidthUnit::Bytes => "byte",
        WidthUnit::Characters => "character",
    };
    let (plural, more) = (if width == 1 { "" } else { "s" }, if is_open { " or more" } else { "" });
    let note = format!("{width} {unit}{plural} instead of {least}{more}");
    if width > least {
        return (!is_open).then_some((Rule::RowTooWide, note));
    }
    if width == least {
        return None;
    }
    if layout.short_rows == ShortRows::Reject {
        return Some((Rule::RowTooNarrow, note));
    }
    let is_cut = |column: &&headrace_types::Column| {
        let place = column.place.unwrap();
        let end = place.start as usize + place.width.map_or(0, |width| width as usize);
        (place.start as usize) < width && width < end
    };
    let is_part = layout.columns.iter().find(is_cut).is_some_and(|column| !column.column_type.is_text());
    is_part.then(|| (Rule::RowTooNarrow, note + ", and a part of a field that is no text"))
}

/// Whether a whole row is narrower than the columns, and whether it is wider.
pub fn other_width(layout: &Layout, content: &[u8]) -> (bool, bool) {
    let width = marks(layout, content).len() - 1;
    let last = layout.columns[layout.columns.len() - 1].place.unwrap();
    let (start, own) = (last.start as usize, last.width.map(|width| width as usize));
    (width < start + own.unwrap_or(0), own.is_some_and(|own| width > start + own))
}
