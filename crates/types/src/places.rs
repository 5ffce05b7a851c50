//! Layouts whose columns stand at places of their rows.

use crate::{
    BlankRows, ExtraFields, Header, Layout, LayoutShape, RowEnd, RowEndInFields, RowEnds, ShortRows, WidthUnit,
};

/// Longest row that places can reach, bytes or characters.
pub const MAX_ROW_WIDTH: u32 = 1 << 30;

impl Layout {
    /// Width of a whole row: that of fixed width, or the least of ragged right; 0 where delimiters tell fields.
    pub fn row_width(&self) -> u32 {
        let place = self.columns.last().and_then(|column| column.place);
        place.map_or(0, |place| place.start + place.width.unwrap_or(0))
    }

    /// Whether a row without a byte is a row like others, whatever `blank_rows` skips: the empty field of the only column.
    pub fn takes_empty_rows(&self) -> bool {
        match self.shape {
            LayoutShape::Delimited => self.columns.len() == 1 && !self.trailing_delimiter,
            _ => self.row_width() == 0,
        }
    }

    /// How rows end, if that is the same in all files.
    pub fn known_row_end(&self) -> Option<RowEnd> {
        match &self.row_end {
            RowEnds::Auto => None,
            RowEnds::Exactly(text) => Some(RowEnd::Exactly(text.clone())),
            RowEnds::None => Some(RowEnd::Every(self.row_width().max(1))),
        }
    }

    /// Whether places count bytes, in whatever words they are told. A byte of a page is a character.
    pub fn places_are_bytes(&self) -> bool {
        self.width_unit == WidthUnit::Bytes || self.encoding.page().is_some()
    }

    /// That places are what tells fields apart, and everything that tells them.
    pub(crate) fn check_places(&self) -> Result<(), String> {
        let refuse = |text: &str| Err(text.to_owned());
        if self.shape == LayoutShape::Delimited {
            return refuse("a column has a place, and delimiters tell the fields");
        }
        let is_delimited = self.columns.iter().any(|column| column.delimiter.is_some()) || !self.delimiter.is_empty();
        if is_delimited || self.trailing_delimiter || self.row_end_in_fields == RowEndInFields::Data {
            return refuse("columns have places, and delimiters too");
        }
        if self.qualifier.is_some() || self.escape.is_some() || self.comment.is_some() {
            return refuse("columns have places: qualifiers, escapes and comments mean nothing");
        }
        if self.header == Header::ByName {
            return refuse("columns stand where the layout says, and not where a header does");
        }
        let mut before = 0;
        for (number, column) in (1..).zip(&self.columns) {
            let Some(place) = column.place else { return Err(format!("column `{}` has no place", column.name)) };
            let is_last = number == self.columns.len();
            if place.start < before {
                return Err(format!("column `{}` begins before the one before it ends", column.name));
            }
            let is_open = is_last && self.shape == LayoutShape::RaggedRight;
            if place.width.is_none() != is_open || place.width == Some(0) {
                return Err(format!("column `{}` must have {} width", column.name, if is_open { "no" } else { "a" }));
            }
            before = place.start.saturating_add(place.width.unwrap_or(0));
            if before > MAX_ROW_WIDTH {
                return Err(format!("column `{}` ends behind place {MAX_ROW_WIDTH}", column.name));
            }
        }
        if self.encoding.is_utf16() && self.width_unit == WidthUnit::Bytes {
            return refuse("places in UTF-16 count characters, and not bytes");
        }
        if self.shape == LayoutShape::RaggedRight && self.extra_fields == ExtraFields::Keep {
            return refuse("the last column goes on to the row end anyway");
        }
        let is_plain = self.short_rows == ShortRows::Reject
            && self.extra_fields == ExtraFields::Reject
            && self.blank_rows == BlankRows::Skip
            && self.width_unit == WidthUnit::Bytes;
        if self.row_end == RowEnds::None && !is_plain {
            return refuse("rows without row end have so many bytes, all of them");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, ColumnType, Encoding, Place};

    /// Texts at these places.
    fn layout(shape: LayoutShape, places: &[(u32, Option<u32>)]) -> Layout {
        let column = |(number, &(start, width)): (usize, &(u32, Option<u32>))| Column {
            place: Some(Place { start, width }),
            ..Column::new(format!("c{number}"), ColumnType::String, true)
        };
        Layout { shape, columns: places.iter().enumerate().map(column).collect(), ..Layout::default() }
    }

    #[test]
    fn places_ascend_and_do_not_overlap() {
        use LayoutShape::{Delimited, FixedWidth, RaggedRight};
        let good = [
            layout(FixedWidth, &[(0, Some(3)), (3, Some(1)), (9, Some(2))]),
            layout(RaggedRight, &[(0, Some(3)), (4, None)]),
            layout(RaggedRight, &[(0, None)]),
        ];
        assert_eq!(good.map(|layout| (layout.check(), layout.row_width())), [(Ok(()), 11), (Ok(()), 4), (Ok(()), 0)]);
        for bad in [
            layout(FixedWidth, &[(0, Some(3)), (2, Some(1))]),
            layout(FixedWidth, &[(3, Some(1)), (0, Some(1))]),
            layout(FixedWidth, &[(0, Some(0))]),
            layout(FixedWidth, &[(0, None)]),
            layout(FixedWidth, &[(0, Some(1)), (u32::MAX, Some(u32::MAX))]),
            layout(RaggedRight, &[(0, None), (5, None)]),
            layout(RaggedRight, &[(0, Some(3))]),
            Layout { delimiter: "|".to_owned(), ..layout(Delimited, &[(0, Some(3))]) },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        let placeless = Layout { columns: vec![Column::new("a", ColumnType::String, true)], ..Layout::default() };
        assert!(Layout { shape: FixedWidth, ..placeless }.check().is_err());
    }

    #[test]
    fn what_tells_other_fields_apart_is_refused() {
        let fixed = layout(LayoutShape::FixedWidth, &[(0, Some(3))]);
        let ragged = layout(LayoutShape::RaggedRight, &[(0, None)]);
        let endless = Layout { row_end: RowEnds::None, ..fixed.clone() };
        assert_eq!((endless.check(), endless.known_row_end()), (Ok(()), Some(RowEnd::Every(3))));
        for bad in [
            Layout { delimiter: "|".to_owned(), ..fixed.clone() },
            Layout { qualifier: Some('"'), ..fixed.clone() },
            Layout { comment: Some("#".to_owned()), ..fixed.clone() },
            Layout { trailing_delimiter: true, ..fixed.clone() },
            Layout { row_end_in_fields: RowEndInFields::Data, ..fixed.clone() },
            Layout { header: Header::ByName, ..fixed.clone() },
            Layout { encoding: Encoding::Utf16Le, ..fixed },
            Layout { extra_fields: ExtraFields::Keep, ..ragged.clone() },
            Layout { row_end: RowEnds::None, ..ragged },
            Layout { short_rows: ShortRows::Fill, ..endless.clone() },
            Layout { encoding: Encoding::Utf16, ..endless.clone() },
            Layout { width_unit: WidthUnit::Characters, ..endless },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
