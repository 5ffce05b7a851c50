//! Columns that are made, and not read: where rows stand, and by which run they are loaded.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Int64Array, StringViewArray, TimestampMicrosecondArray};
use headrace_types::{ColumnType, CoreError, MadeColumn, MadeFrom};

/// Rows for which values that are the same in all rows are made at once, at least.
const LEAST_CONSTANTS: usize = 1024;
/// The name of standard input, and of nothing else.
const STANDARD_INPUT: &str = "-";

/// Makes columns for the rows of one slice after the other.
#[derive(Default)]
pub struct MadeColumns {
    columns: Vec<Made>,
    file_path: String,
    /// Number of the slice.
    slice: u32,
    /// Lines of the file before the slice.
    lines_before: u64,
    origins: Option<Box<dyn Origins>>,
}

/// Where the rows of a slice stood before: rows that come back stand in another file than the one that columns speak of.
pub trait Origins: Send {
    /// The places of so many lines of the slice, from a line on, counted from 0.
    ///
    /// # Errors
    /// Those of reading where that is kept.
    fn of_lines(&mut self, first: u64, count: usize) -> Result<Vec<RowOrigin>, CoreError>;
}

/// Where a row stood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowOrigin {
    /// Its number in its file, from 1.
    pub row: u64,
    /// Place of its first byte in the text of its file.
    pub byte: u64,
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
    /// Of at least one row, values that all rows of the slice have. A batch takes its front: nothing is copied.
    constants: Option<ArrayRef>,
}

impl MadeColumns {
    /// For columns in this order.
    pub fn new<'a>(columns: impl Iterator<Item = &'a MadeColumn>) -> Self {
        let columns = columns.map(|column| Made { from: column.from.clone(), constants: None }).collect();
        MadeColumns { columns, ..MadeColumns::default() }
    }

    /// What the columns of a row take, bytes.
    pub fn row_bytes(&self) -> usize {
        // A view of a text, or a number.
        let bytes = |made: &Made| if made.from.column_type() == ColumnType::String { 16 } else { 8 };
        self.columns.iter().map(bytes).sum()
    }

    /// Starts a slice of a file, with so many lines of the file before it; or, with origins, of rows that stood there.
    pub fn begin_slice(&mut self, slice: u32, file_path: &str, lines_before: u64, origins: Option<Box<dyn Origins>>) {
        self.lines_before = lines_before;
        self.origins = origins;
        let (is_other_file, is_other_slice) = (self.file_path != file_path, self.slice != slice);
        if is_other_file {
            file_path.clone_into(&mut self.file_path);
        }
        self.slice = slice;
        for made in &mut self.columns {
            let is_other = match made.from {
                MadeFrom::FileName | MadeFrom::FilePath => is_other_file,
                MadeFrom::Slice => is_other_slice,
                _ => false,
            };
            made.constants.take_if(|_| is_other);
        }
    }

    /// The columns of so many rows that stand there.
    ///
    /// # Errors
    /// Those of reading origins.
    pub fn arrays(
        &mut self,
        rows: usize,
        starts: &(impl Iterator<Item = RowStart> + Clone),
    ) -> Result<Vec<ArrayRef>, CoreError> {
        let stood = self.stood(starts)?;
        let MadeColumns { columns, file_path, slice, lines_before, .. } = self;
        let array = |made: &mut Made| match (&made.from, &stood) {
            // Numbers of bytes and rows of a file are far below 2^63.
            (MadeFrom::RowNumber, Some(stood)) => numbers(rows, stood.iter().map(|origin| origin.row as i64)),
            (MadeFrom::ByteOffset, Some(stood)) => numbers(rows, stood.iter().map(|origin| origin.byte as i64)),
            (MadeFrom::RowNumber, None) => {
                numbers(rows, starts.clone().map(|row| (*lines_before + row.line + 1) as i64))
            }
            (MadeFrom::ByteOffset, None) => numbers(rows, starts.clone().map(|row| row.byte as i64)),
            (MadeFrom::SliceRow, _) => numbers(rows, starts.clone().map(|row| row.line as i64)),
            _ => made.constants(rows, file_path, *slice),
        };
        Ok(columns.iter_mut().map(array).collect())
    }

    /// Where the rows stood, if they come back and a column asks.
    fn stood(
        &mut self,
        starts: &(impl Iterator<Item = RowStart> + Clone),
    ) -> Result<Option<Vec<RowOrigin>>, CoreError> {
        let asks = self.columns.iter().any(|made| matches!(made.from, MadeFrom::RowNumber | MadeFrom::ByteOffset));
        let Some(origins) = self.origins.as_mut().filter(|_| asks) else { return Ok(None) };
        // Rows follow each other; rejects between them have places too.
        let Some(first) = starts.clone().next().map(|row| row.line) else { return Ok(Some(Vec::new())) };
        let last = starts.clone().last().map_or(first, |row| row.line);
        let of_lines = origins.of_lines(first, (last - first) as usize + 1)?;
        let of_row = |row: RowStart| of_lines.get((row.line - first) as usize).copied().unwrap_or_default();
        Ok(Some(starts.clone().map(of_row).collect()))
    }
}

impl Made {
    fn constants(&mut self, rows: usize, file_path: &str, slice: u32) -> ArrayRef {
        if let Some(constants) = self.constants.as_ref().filter(|constants| constants.len() >= rows) {
            return constants.slice(0, rows);
        }
        let many = rows.max(LEAST_CONSTANTS);
        let constants: ArrayRef = match &self.from {
            MadeFrom::LoadTime(time) => {
                // Zone and unit are those of `ColumnType::TimestampTz`.
                Arc::new(TimestampMicrosecondArray::from_value(time.unwrap_or_default(), many).with_timezone("UTC"))
            }
            MadeFrom::Slice => Arc::new(Int64Array::from_value(i64::from(slice), many)),
            MadeFrom::RunId(text) | MadeFrom::PackageHash(text) => {
                Arc::new(repeated(text.as_deref().unwrap_or_default(), many))
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
        made.begin_slice(1, path, 0, None);
        let starts = |rows| (0..rows).map(|line| RowStart { line: line as u64, byte: 0 });
        let first = made.arrays(5, &starts(5)).unwrap();
        let second = made.arrays(900, &starts(900)).unwrap();
        for (arrays, rows) in [(&first, 5), (&second, 900)] {
            let paths = arrays[0].as_string_view();
            assert_eq!((paths.len(), paths.data_buffers().len()), (rows, 1));
            assert_eq!(paths.data_buffers()[0].len(), path.len());
            assert!(paths.iter().all(|text| text == Some(path)));
            assert!(arrays[1].as_string_view().iter().all(|text| text == Some("and a file.csv.gz")));
        }
        let buffers = |arrays: &[ArrayRef]| arrays[0].as_string_view().views().inner().as_ptr();
        assert_eq!(buffers(&first), buffers(&second));
        made.begin_slice(2, "-", 7, None);
        let arrays = made.arrays(5000, &starts(5000)).unwrap();
        assert!(arrays.iter().all(|array| array.as_string_view().iter().all(|text| text == Some("-"))));
        assert_eq!(arrays[0].len(), 5000);
    }

    #[test]
    fn rows_say_which_run_loads_them_and_in_which_slice() {
        let run = "20260728-120000-0123456789abcdef";
        let columns =
            [MadeFrom::RunId(Some(run.to_owned())), MadeFrom::PackageHash(Some("5f3a".to_owned())), MadeFrom::Slice]
                .map(column);
        let mut made = MadeColumns::new(columns.iter());
        assert_eq!(made.row_bytes(), 16 + 16 + 8);
        let starts = [RowStart { line: 0, byte: 0 }; 3];
        // Of another slice of the same file, and of the same slice of another.
        for (slice, path) in [(7, "a.csv"), (8, "a.csv"), (8, "b.csv"), (7, "b.csv")] {
            made.begin_slice(slice, path, 0, None);
            let arrays = made.arrays(3, &starts.into_iter()).unwrap();
            assert!(arrays[0].as_string_view().iter().all(|text| text == Some(run)));
            assert!(arrays[1].as_string_view().iter().all(|text| text == Some("5f3a")));
            let slices = arrays[2].as_primitive::<arrow_array::types::Int64Type>();
            assert_eq!((slices.values().to_vec(), slices.null_count()), (vec![i64::from(slice); 3], 0));
        }
    }

    struct Tenfold;

    impl Origins for Tenfold {
        fn of_lines(&mut self, first: u64, count: usize) -> Result<Vec<RowOrigin>, CoreError> {
            Ok((first..first + count as u64).map(|line| RowOrigin { row: 10 * line, byte: 1000 * line }).collect())
        }
    }

    #[test]
    fn rows_that_come_back_say_where_they_stood() {
        let columns = [MadeFrom::RowNumber, MadeFrom::ByteOffset, MadeFrom::SliceRow].map(column);
        let mut made = MadeColumns::new(columns.iter());
        made.begin_slice(1, "repaired", 3, Some(Box::new(Tenfold)));
        // Line 6 is a reject.
        let starts = [5, 7].map(|line| RowStart { line, byte: line });
        let arrays = made.arrays(2, &starts.into_iter()).unwrap();
        let values = |index: usize| arrays[index].as_primitive::<arrow_array::types::Int64Type>().values().to_vec();
        assert_eq!((values(0), values(1), values(2)), (vec![50, 70], vec![5000, 7000], vec![5, 7]));
        assert!(made.arrays(0, &std::iter::empty()).unwrap().iter().all(|array| array.is_empty()));
        made.begin_slice(1, "repaired", 3, None);
        let arrays = made.arrays(2, &starts.into_iter()).unwrap();
        assert_eq!(arrays[0].as_primitive::<arrow_array::types::Int64Type>().values(), &[9, 11]);
    }
}
