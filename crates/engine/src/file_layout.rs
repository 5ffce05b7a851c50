//! A file's own order of columns, and where its data begin and end.

use std::borrow::Cow;

use headrace_parse::{Automaton, Parser, RowScanner};
use headrace_types::{Column, ColumnType, CoreError, Encoding, Layout};

use crate::origins::origins;
use crate::slices::{refused, scanner};
use crate::spec::{FileSpec, Margin, SliceSpec};

impl FileSpec {
    /// The layout with columns in the order of the file's fields. Fields that are of no column are texts that nobody wants.
    pub fn layout<'a>(&self, layout: &'a Layout) -> Cow<'a, Layout> {
        let encoding = self.encoding_in(layout);
        let Some(fields) = &self.columns else {
            let own = || Cow::Owned(Layout { encoding, ..layout.clone() });
            return if encoding == layout.encoding { Cow::Borrowed(layout) } else { own() };
        };
        let column = |(number, field): (usize, &Option<usize>)| match field.and_then(|index| layout.columns.get(index))
        {
            Some(column) => column.clone(),
            None => Column::new(format!("field {number} that is not loaded"), ColumnType::String, true),
        };
        let columns = std::iter::zip(1.., fields).map(column).collect();
        Cow::Owned(Layout { columns, encoding, ..layout.clone() })
    }

    /// Its encoding: that of the layout, if it says in which order bytes stand.
    pub fn encoding_in(&self, layout: &Layout) -> Encoding {
        if layout.encoding == Encoding::Utf16 && self.encoding.is_utf16() { self.encoding } else { layout.encoding }
    }

    /// The field of a column of the layout.
    pub fn field(&self, column: usize) -> usize {
        let place = |fields: &Vec<Option<usize>>| fields.iter().position(|own| *own == Some(column));
        self.columns.as_ref().map_or(Some(column), place).unwrap_or(usize::MAX)
    }

    /// The column of the layout that a field is of.
    pub fn column(&self, field: usize) -> Option<usize> {
        self.columns.as_ref().map_or(Some(field), |fields| fields.get(field).copied().flatten())
    }

    /// What ends its rows: columns that are not qualified, and the last one, stand where they stand in the file.
    ///
    /// # Errors
    /// `Specification` for a layout that means two things.
    pub fn rows(&self, layout: &Layout) -> Result<Automaton, CoreError> {
        Automaton::of_rows(&self.layout(layout), &self.row_end).map_err(refused)
    }

    /// The same, and what is a comment.
    ///
    /// # Errors
    /// As [`FileSpec::rows`].
    pub fn lines(&self, layout: &Layout) -> Result<Automaton, CoreError> {
        Automaton::new(&self.layout(layout), &self.row_end).map_err(refused)
    }

    /// A scanner at the start of a row of it.
    ///
    /// # Errors
    /// As [`FileSpec::rows`].
    pub fn scanner(&self, layout: &Layout) -> Result<RowScanner, CoreError> {
        scanner(&self.layout(layout), &self.row_end)
    }

    /// A parser of the file's rows whose batches have the columns `wanted` of the layout, made ones behind the others.
    ///
    /// # Errors
    /// Those of [`Parser::of_columns`].
    pub fn parser(&self, layout: &Layout, wanted: &[usize]) -> Result<Parser, CoreError> {
        let own = self.layout(layout);
        let place = |&column: &usize| match column.checked_sub(layout.columns.len()) {
            None => self.field(column),
            Some(made) => own.columns.len() + made,
        };
        Parser::of_columns(&own, &wanted.iter().map(place).collect::<Vec<_>>())
    }

    /// Tells a parser of the file's rows where those of a slice stand, which has so many lines before it; of rows that come back, where
    /// they stood.
    ///
    /// # Errors
    /// Those of opening where that is kept.
    pub fn place_rows(&self, parser: &mut Parser, slice: &SliceSpec, lines_before: u64) -> Result<(), CoreError> {
        let path = self.origin.as_ref().map_or(&self.path, |origin| &origin.path);
        parser.place_slice(slice.number, path, lines_before, origins(self, slice)?);
        Ok(())
    }

    /// First byte of the data.
    pub fn data_begin(&self) -> u64 {
        self.first_byte + self.head.bytes
    }

    /// Byte behind the data.
    pub fn data_end(&self) -> u64 {
        self.size_bytes - self.foot.bytes
    }

    /// What a slice holds before its first row.
    pub fn head_of(&self, slice: &SliceSpec) -> Margin {
        let is_first = self.stream.is_some() || slice.text().begin == self.first_byte;
        if is_first { self.head } else { Margin::default() }
    }

    /// What a slice holds behind its last row.
    pub fn foot_of(&self, slice: &SliceSpec) -> Margin {
        if slice.ends(self) { self.foot } else { Margin::default() }
    }

    /// Place in the text of the first row of a slice.
    pub fn text_begin(&self, slice: &SliceSpec) -> u64 {
        if self.stream.is_some() { self.data_begin() } else { slice.text().begin + self.head_of(slice).bytes }
    }
}
