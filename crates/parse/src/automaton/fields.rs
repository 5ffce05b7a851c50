//! What ends fields and rows, column by column.

use headrace_types::{ExtraFields, Layout, LayoutShape, RowEnd, RowEndInFields};

/// What ends fields in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub delimiter: Option<Vec<u8>>,
    pub is_qualified: bool,
    pub ends_row: bool,
}

/// What ends the fields of each column, and behind the last one those of fields too many; of one only, if all are the same.
pub(super) fn fields(layout: &Layout) -> Vec<Field> {
    if layout.shape != LayoutShape::Delimited {
        // Only row ends mean anything.
        return vec![Field { delimiter: None, is_qualified: false, ends_row: true }];
    }
    let count = layout.columns.len();
    let own = |index: usize| {
        let column = layout.columns.get(index);
        let is_last = index + 1 == count;
        let other_end = layout.row_end_in_fields == RowEndInFields::Data;
        let delimiter = column.and_then(|column| column.delimiter.as_ref()).unwrap_or(&layout.delimiter);
        Field {
            delimiter: (!(is_last && other_end)).then(|| layout.encoded(delimiter)),
            is_qualified: layout.qualifier.is_some() && column.is_none_or(|column| column.qualified),
            ends_row: !other_end || is_last,
        }
    };
    // Fields too many are read as the layout says in general, or as the column that keeps them; with row ends as data there are none.
    let mut all: Vec<Field> = (0..=count).map(own).collect();
    if layout.row_end_in_fields == RowEndInFields::Data || layout.extra_fields == ExtraFields::Keep {
        all.pop();
    }
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        all.truncate(1);
    }
    all
}

/// The texts that end a row.
pub(super) fn row_ends(layout: &Layout, row_end: &RowEnd) -> Vec<Vec<u8>> {
    match row_end {
        RowEnd::Lf => vec![b"\n".to_vec()],
        RowEnd::Either | RowEnd::OnlyLf | RowEnd::OnlyCrlf => vec![b"\n".to_vec(), b"\r\n".to_vec()],
        RowEnd::Exactly(text) => vec![layout.encoded(text)],
        RowEnd::Every(_) => vec![],
    }
}
