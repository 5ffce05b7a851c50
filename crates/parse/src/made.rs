//! Columns that are made, and not read: where rows stand, and when they are loaded.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Int64Array, StringViewArray, TimestampMicrosecondArray};
use headrace_types::{MadeColumn, MadeFrom};

/// Rows for which values that are the same in all rows are made at once, at least.
const LEAST_CONSTANTS: usize = 1024;
/// The name of standard input, and of nothing else.
const STANDARD_INPUT: &str = "-";

/// Makes columns for the rows of one slice after the other.
#[derive(Default)]
pub struct MadeColumns {
    columns: Vec<Made>,
    file_path: String,
    /// Lines of the file before the slice.
    lines_before: u64,
}

/// Where a row stands in its slice.
#[derive(Debug, Clone, Copy)]
pub struct RowStart {
    /// Line of the slice, from 0.
    pub line: u64,
    /// Place of its first byte in the text of the file.
    pub byte: u64,
}

struct Made {
    from: MadeFrom,
    /// Of at least one row, values that all rows of the file have. A batch takes its front: nothing is copied.
    constants: Option<ArrayRef>,
}

impl MadeColumns {
    /// For columns in this order.
    pub fn new<'a>(columns: impl Iterator<Item = &'a MadeColumn>) -> Self {
        let columns = columns.map(|column| Made { from: column.from, constants: None }).collect();
        MadeColumns { columns, ..MadeColumns::default() }
    }

    /// What the columns of a row take, bytes.
    pub fn row_bytes(&self) -> usize {
        let bytes = |made: &Made| if matches!(made.from, MadeFrom::FileName | MadeFrom::FilePath) { 16 } else { 8 };
        self.columns.iter().map(bytes).sum()
    }

    /// Starts a slice of a file, with so many lines of the file before it.
    pub fn begin_slice(&mut self, file_path: &str, lines_before: u64) {
        self.lines_before = lines_before;
        if self.file_path != file_path {
            file_path.clone_into(&mut self.file_path);
            self.columns.iter_mut().for_each(|made| made.constants = None);
        }
    }

    /// The columns of so many rows that stand there.
    pub fn arrays(&mut self, rows: usize, starts: &(impl Iterator<Item = RowStart> + Clone)) -> Vec<ArrayRef> {
        let MadeColumns { columns, file_path, lines_before } = self;
        let array = |made: &mut Made| match made.from {
            // Numbers of bytes and rows of a file are far below 2^63.
            MadeFrom::RowNumber => numbers(rows, starts.clone().map(|row| (*lines_before + row.line + 1) as i64)),
            MadeFrom::SliceRow => numbers(rows, starts.clone().map(|row| row.line as i64)),
            MadeFrom::ByteOffset => numbers(rows, starts.clone().map(|row| row.byte as i64)),
            MadeFrom::FileName | MadeFrom::FilePath | MadeFrom::LoadTime(_) => made.constants(rows, file_path),
        };
        columns.iter_mut().map(array).collect()
    }
}

impl Made {
    fn constants(&mut self, rows: usize, file_path: &str) -> ArrayRef {
        if let Some(constants) = self.constants.as_ref().filter(|constants| constants.len() >= rows) {
            return constants.slice(0, rows);
        }
        let many = rows.max(LEAST_CONSTANTS);
        let constants: ArrayRef = match self.from {
            MadeFrom::LoadTime(time) => {
                // Zone and unit are those of `ColumnType::TimestampTz`.
                Arc::new(TimestampMicrosecondArray::from_value(time.unwrap_or_default(), many).with_timezone("UTC"))
            }
            MadeFrom::FileName => Arc::new(repeated(file_name(file_path), many)),
            _ => Arc::new(repeated(file_path, many)),
        };
        self.constants.insert(constants).slice(0, rows)
    }
}

fn numbers(rows: usize, values: impl Iterator<Item = i64>) -> ArrayRef {
    // Their memory was planned for this many.
    let mut numbers = Vec::with_capacity(rows);
    numbers.extend(values);
    Arc::new(Int64Array::new(numbers.into(), None))
}

/// The same text in all rows: views of one.
fn repeated(text: &str, rows: usize) -> StringViewArray {
    let mut builder = StringViewBuilder::with_capacity(rows).with_deduplicate_strings();
    (0..rows).for_each(|_| builder.append_value(text));
    builder.finish()
}

fn file_name(path: &str) -> &str {
    if path == STANDARD_INPUT { path } else { path.rsplit('/').next().unwrap_or(path) }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray;

    use super::*;

    fn column(from: MadeFrom) -> MadeColumn {
        MadeColumn { name: "made".to_owned(), from }
    }

    #[test]
    fn a_text_that_all_rows_have_is_kept_once() {
        let path = "/a/folder/whose/name/does/not/fit/a/view/and a file.csv.gz";
        let mut made = MadeColumns::new([column(MadeFrom::FilePath), column(MadeFrom::FileName)].iter());
        made.begin_slice(path, 0);
        let starts = |rows| (0..rows).map(|line| RowStart { line: line as u64, byte: 0 });
        let first = made.arrays(5, &starts(5));
        let second = made.arrays(900, &starts(900));
        for (arrays, rows) in [(&first, 5), (&second, 900)] {
            let paths = arrays[0].as_string_view();
            assert_eq!((paths.len(), paths.data_buffers().len()), (rows, 1));
            assert_eq!(paths.data_buffers()[0].len(), path.len());
            assert!(paths.iter().all(|text| text == Some(path)));
            assert!(arrays[1].as_string_view().iter().all(|text| text == Some("and a file.csv.gz")));
        }
        let buffers = |arrays: &[ArrayRef]| arrays[0].as_string_view().views().inner().as_ptr();
        assert_eq!(buffers(&first), buffers(&second));
        made.begin_slice("-", 7);
        let arrays = made.arrays(5000, &starts(5000));
        assert!(arrays.iter().all(|array| array.as_string_view().iter().all(|text| text == Some("-"))));
        assert_eq!(arrays[0].len(), 5000);
    }
}
