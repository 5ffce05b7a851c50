//! Drives the real parser over a slice cut into blocks, the way the engine does.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, CpuPath, Parser, arrow_schema};
use headrace_types::{ColumnType, Layout, RowEnd};

use crate::reference::{self, Outcome, Value};

/// How a slice is handed to the parser.
#[derive(Debug, Clone)]
pub struct Driver {
    /// Instructions of the structural pass.
    pub cpu_path: CpuPath,
    /// Bytes read at once, one after the other, over and over.
    pub reads: Vec<usize>,
    /// What the padding is filled with.
    pub padding: Vec<u8>,
}

impl Driver {
    /// One driver per instruction set.
    pub fn all(reads: &[usize], padding: &[u8]) -> Vec<Driver> {
        let driver = |cpu_path| Driver { cpu_path, reads: reads.to_vec(), padding: padding.to_vec() };
        CpuPath::available().into_iter().map(driver).collect()
    }

    /// Parses a slice that starts at `first_byte` of its file.
    pub fn run(&self, layout: &Layout, row_end: &RowEnd, bytes: &[u8], first_byte: u64) -> Outcome {
        self.run_columns(layout, row_end, bytes, first_byte, &reference::all_columns(layout))
    }

    /// The same, of which only these columns are asked for.
    pub fn run_columns(
        &self,
        layout: &Layout,
        row_end: &RowEnd,
        bytes: &[u8],
        first_byte: u64,
        wanted: &[usize],
    ) -> Outcome {
        let mut parser = Parser::of_columns(layout, wanted).unwrap().with_cpu_path(self.cpu_path);
        parser.begin_slice(row_end, 0).unwrap();
        parser.place_slice(reference::SLICE, reference::FILE_PATH, reference::LINES_BEFORE, None);
        let mut outcome = Outcome::default();
        let mut carry: Vec<u8> = vec![];
        let (mut at, mut at_byte) = (0, first_byte);
        let mut batches = vec![];
        for size in self.reads.iter().cycle() {
            let mut text = std::mem::take(&mut carry);
            let count = (*size).min(bytes.len() - at);
            let ended = count < *size; // as `read_full`: an exactly full block does not know yet that it is the last
            text.extend_from_slice(&bytes[at..at + count]);
            at += count;
            if ended && text.is_empty() {
                break;
            }
            let real_length = text.len();
            if ended && parser.needs_row_end() && text.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            let consumed = self.parse(&mut parser, &text, real_length, at_byte, ended, &mut outcome, &mut batches);
            if parser.needs_row_end() && layout.qualifier.is_none() {
                assert_eq!(consumed, text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1));
            }
            carry.extend_from_slice(&text[consumed..]);
            at_byte += consumed.min(real_length) as u64;
            assert_eq!(parser.next_line(), outcome.lines);
            if ended {
                assert!(carry.is_empty());
                break;
            }
        }
        assert_eq!(at_byte, first_byte + bytes.len() as u64);
        drop(parser);
        // Looked at only now: a batch must not need the parser or the blocks behind it.
        for batch in &batches {
            outcome.rows.extend(rows_of_columns(layout, wanted, batch));
        }
        // From places in the batch to columns.
        let read: Vec<usize> = wanted.iter().copied().filter(|&column| column < layout.columns.len()).collect();
        for counts in [&mut outcome.replaced, &mut outcome.stray] {
            *counts = std::mem::take(counts).into_iter().map(|(place, count)| (read[place], count)).collect();
        }
        outcome
    }

    /// Parses a block, batch after batch; the bytes that were consumed.
    #[allow(clippy::too_many_arguments)]
    fn parse(
        &self,
        parser: &mut Parser,
        text: &[u8],
        real_length: usize,
        at_byte: u64,
        ended: bool,
        outcome: &mut Outcome,
        batches: &mut Vec<RecordBatch>,
    ) -> usize {
        let buffer = self.block(text).freeze();
        let mut from = 0;
        loop {
            // A block must not take more than was planned, however short its rows are; 128 rows are always taken.
            let columns = parser.schema().fields().len();
            let most_bytes =
                (17 * text.len().max(64 << 10)).max(128 * 17 * columns) + 3 * text.len() + 128 * (columns + 1);
            let slab = |size| {
                assert!(size <= most_bytes, "a slab of {size} bytes for {} of text", text.len());
                let mut slab = Memory::new(size + 64);
                slab.bytes_mut().fill(0xA5); // recycled memory is not clean
                slab
            };
            let rejected = outcome.rejects.len() as u64;
            let mut on_reject = |reject| {
                outcome.rejects.push(reject);
                Ok(())
            };
            let first_byte = at_byte + from as u64;
            let block = Block { buffer: &buffer, from, length: text.len(), real_length, first_byte, ended };
            let parsed = parser.parse(block, slab, &mut on_reject).unwrap();
            assert_eq!(parsed.rejected, outcome.rejects.len() as u64 - rejected);
            for (column, (nulls, cut)) in parser.ignored() {
                let counts = outcome.ignored.entry(column).or_default();
                *counts = (counts.0 + nulls, counts.1 + cut);
            }
            for (place, replaced) in parsed.replaced.iter().enumerate().filter(|(_, replaced)| **replaced > 0) {
                *outcome.replaced.entry(place).or_default() += replaced;
            }
            for (place, stray) in parsed.stray.iter().enumerate().filter(|(_, stray)| **stray > 0) {
                *outcome.stray.entry(place).or_default() += stray;
            }
            outcome.unequal.0 += parsed.unequal.filled;
            outcome.unequal.1 += parsed.unequal.extended;
            outcome.lf_lines += parsed.line_ends.lf;
            outcome.crlf_lines += parsed.line_ends.crlf;
            outcome.lines += parsed.lines;
            outcome.skipped += parsed.skipped;
            let out = parsed.batch.as_ref().map_or(0, |batch| batch.num_rows());
            assert_eq!(parsed.rows(), out as u64 + parsed.rejected);
            batches.extend(parsed.batch);
            from += parsed.consumed;
            if !parsed.more {
                return from;
            }
            assert!(parsed.consumed > 0);
        }
    }

    /// Text with hostile bytes on both sides.
    fn block(&self, text: &[u8]) -> Memory {
        let mut memory = Memory::new(text.len() + 2 * PADDING_BYTES);
        for (byte, hostile) in std::iter::zip(memory.bytes_mut(), self.padding.iter().cycle()) {
            *byte = *hostile;
        }
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + text.len()].copy_from_slice(text);
        memory
    }
}

/// Checks a batch as deeply as Arrow can, and takes its values out.
pub fn rows(layout: &Layout, batch: &RecordBatch) -> Vec<Vec<Value>> {
    rows_of_columns(layout, &reference::all_columns(layout), batch)
}

/// The same of a batch that has only these columns; those that are made stand behind the others.
fn rows_of_columns(layout: &Layout, wanted: &[usize], batch: &RecordBatch) -> Vec<Vec<Value>> {
    assert!(batch.num_rows() > 0);
    let (read, made): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|&&column| column < layout.columns.len());
    let wanted = [read, made].concat();
    assert_eq!(*batch.schema(), arrow_schema(layout).project(&wanted).unwrap());
    let types: Vec<ColumnType> = layout.all_columns().map(|(_, column_type)| column_type).collect();
    for array in batch.columns() {
        array.to_data().validate_full().unwrap();
    }
    let value = |row| {
        let columns = std::iter::zip(&wanted, batch.columns());
        columns.map(|(column, array)| value(types[*column], array, row)).collect()
    };
    (0..batch.num_rows()).map(value).collect()
}

fn value(column_type: ColumnType, array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match column_type {
        ColumnType::Int16 => Value::Number(array.as_primitive::<Int16Type>().value(row).into()),
        ColumnType::Int32 => Value::Number(array.as_primitive::<Int32Type>().value(row).into()),
        ColumnType::Int64 => Value::Number(array.as_primitive::<Int64Type>().value(row).into()),
        ColumnType::Decimal { precision: 0..=18, .. } => {
            Value::Number(array.as_primitive::<Decimal64Type>().value(row).into())
        }
        ColumnType::Decimal { .. } => Value::Number(array.as_primitive::<Decimal128Type>().value(row)),
        ColumnType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            Value::Float(if value.is_nan() { u64::MAX } else { value.to_bits().into() })
        }
        ColumnType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            Value::Float(if value.is_nan() { u64::MAX } else { value.to_bits() })
        }
        ColumnType::Bool => Value::Truth(array.as_boolean().value(row)),
        ColumnType::Date => Value::Number(array.as_primitive::<Date32Type>().value(row).into()),
        ColumnType::Time => Value::Number(array.as_primitive::<Time64MicrosecondType>().value(row).into()),
        ColumnType::Timestamp | ColumnType::TimestampTz => {
            Value::Number(array.as_primitive::<TimestampMicrosecondType>().value(row).into())
        }
        ColumnType::String | ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Json => {
            Value::Text(array.as_string_view().value(row).to_owned())
        }
        ColumnType::Bytes => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        ColumnType::Uuid => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
    }
}
