//! Rows: shapes, row ends, headers, locations, written out one by one.

use arrow_array::Array;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, CpuPath, Parsed, Parser, Reject};
use headrace_types::{Column, ColumnType, CoreError, Layout, RowEnd, Rule};

use crate::drive::Driver;
use crate::reference::{Outcome, Value};

/// For texts without a bad row.
fn no_reject(reject: Reject) -> Result<(), CoreError> {
    panic!("{reject:?}")
}

/// Parses a block of so many bytes, without a bad row, that others follow.
fn parse(parser: &mut Parser, block: Memory, length: usize, first_byte: u64) -> Result<Parsed, CoreError> {
    let block = Block { buffer: &block.freeze(), from: 0, length, real_length: length, first_byte, ended: false };
    parser.parse(block, Memory::new, &mut no_reject)
}

fn layout(columns: &[(ColumnType, bool)], trailing_delimiter: bool) -> Layout {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(index, (column_type, nullable))| Column::new(format!("c{index}"), *column_type, *nullable))
        .collect();
    Layout { delimiter: "|".to_owned(), trailing_delimiter, columns, ..Layout::default() }
}

fn pair(trailing_delimiter: bool) -> Layout {
    layout(&[(ColumnType::Int32, false), (ColumnType::String, true)], trailing_delimiter)
}

/// The outcome, the same whatever the instructions and the blocks.
fn run(layout: &Layout, row_end: &RowEnd, text: &[u8]) -> Outcome {
    let mut outcomes = vec![];
    for reads in [&[1][..], &[3, 5], &[7], &[64], &[1000]] {
        for driver in Driver::all(reads, b"|7\n") {
            outcomes.push(driver.run(layout, row_end, text, 100));
        }
    }
    for outcome in &outcomes {
        assert_eq!(*outcome, outcomes[0]);
    }
    outcomes.remove(0)
}

/// Numbers of the first column, and (line, row byte, byte, column, rule, row) of the rejects.
type Short = (Vec<i128>, Vec<(u64, u64, u64, Option<usize>, Rule, Vec<u8>)>);

fn short(outcome: &Outcome) -> Short {
    let number = |row: &Vec<Value>| match row[0] {
        Value::Number(number) => number,
        _ => panic!("the first column is a number"),
    };
    let rejects = outcome.rejects.iter();
    (
        outcome.rows.iter().map(number).collect(),
        rejects.map(|bad| (bad.line, bad.row_byte, bad.byte, bad.column, bad.rule, bad.row.clone())).collect(),
    )
}

#[test]
fn rejects_say_where_they_stand_and_rows_around_them_are_kept() {
    let text = b"1|a\n2\n3|c\n\n4|d|e\nx|f\n5|g\n|h\n6|\xFF\n7|i";
    let (numbers, rejects) = short(&run(&pair(false), &RowEnd::Lf, text));
    assert_eq!(numbers, [1, 3, 5, 7]);
    assert_eq!(
        rejects,
        [
            (1, 104, 104, None, Rule::TooFewFields, b"2\n".to_vec()),
            (4, 111, 111, None, Rule::TooManyFields, b"4|d|e\n".to_vec()),
            (5, 117, 117, Some(0), Rule::BadInteger, b"x|f\n".to_vec()),
            (7, 125, 125, Some(0), Rule::NullNotAllowed, b"|h\n".to_vec()),
            (8, 128, 130, Some(1), Rule::InvalidUtf8, b"6|\xFF\n".to_vec()),
        ]
    );
}

#[test]
fn a_trailing_delimiter_is_demanded_or_is_a_field_of_its_own() {
    let text = b"1|a|\n2|b\n3|c|d|\n4|\n5|e|x\n6||\n";
    let (numbers, rejects) = short(&run(&pair(true), &RowEnd::Lf, text));
    assert_eq!(numbers, [1, 6]);
    let rules: Vec<_> = rejects.iter().map(|reject| (reject.0, reject.4)).collect();
    use Rule::{TooFewFields, TooManyFields};
    assert_eq!(rules, [(1, TooFewFields), (2, TooManyFields), (3, TooFewFields), (4, TooManyFields)]);
    let notes: Vec<_> =
        run(&pair(true), &RowEnd::Lf, text).rejects.into_iter().map(|reject| reject.note.unwrap()).collect();
    assert_eq!(
        notes,
        ["no delimiter after the last field", "3 fields instead of 2", "1 field instead of 2", "3 fields instead of 2"]
    );
    let (numbers, rejects) = short(&run(&pair(false), &RowEnd::Lf, b"1|a|\n2|b\n"));
    assert_eq!((numbers, rejects[0].4), (vec![2], TooManyFields));
}

#[test]
fn carriage_returns_end_rows_only_in_crlf_files() {
    let text = |value: &str| Value::Text(value.to_owned());
    let values = |row_end: &RowEnd, bytes: &[u8]| -> Vec<Value> {
        run(&pair(false), row_end, bytes).rows.into_iter().map(|mut row| row.remove(1)).collect()
    };
    let bytes = b"1|a\r\n2|b\n3|c\r\r\n4|\r\n5|\rd\r\n";
    assert_eq!(values(&RowEnd::Either, bytes), [text("a"), text("b"), text("c\r"), Value::Null, text("\rd")]);
    assert_eq!(values(&RowEnd::Lf, bytes), [text("a\r"), text("b"), text("c\r\r"), text("\r"), text("\rd\r")]);
    // A file cut off between the two: the carriage return belonged to the row end.
    assert_eq!(values(&RowEnd::Either, b"1|a\r\n2|b\r"), [text("a"), text("b")]);
}

#[test]
fn blank_lines_are_skipped_unless_they_are_the_one_column() {
    let outcome = run(&pair(false), &RowEnd::Either, b"\r\n1|a\r\n\n\r\n2|b\r\n\r\n");
    assert_eq!((outcome.lines, outcome.skipped, outcome.rows.len()), (6, 4, 2));
    let single = layout(&[(ColumnType::String, true)], false);
    for (row_end, text) in [(RowEnd::Lf, b"\na\n\n".as_slice()), (RowEnd::Either, b"\r\na\r\n\r\n")] {
        let outcome = run(&single, &row_end, text);
        assert_eq!((outcome.lines, outcome.skipped, outcome.rows.len()), (3, 0, 3));
        assert_eq!(outcome.rows[0], [Value::Null]);
    }
    // In a file that ends its rows with line feeds a lone carriage return is text.
    let outcome = run(&pair(false), &RowEnd::Lf, b"1|a\n\r\n");
    assert_eq!((outcome.skipped, outcome.rejects[0].rule), (0, Rule::TooFewFields));
}

#[test]
fn lines_that_were_taken_before_are_counted() {
    let mut parser = Parser::new(&layout(&[(ColumnType::Int32, false)], false)).unwrap();
    parser.begin_slice(&RowEnd::Lf, 3).unwrap();
    parser.skip_line();
    let mut memory = Memory::new(2 * PADDING_BYTES + 4);
    memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + 4].copy_from_slice(b"1\n2\n");
    let parsed = parse(&mut parser, memory, 4, 50).unwrap();
    assert_eq!((parsed.rows(), parsed.skipped, parser.next_line()), (2, 0, 6));
}

#[test]
fn the_first_bad_column_of_a_row_names_the_reject() {
    let kinds = [(ColumnType::Int32, false), (ColumnType::Date, false), (ColumnType::Varchar { length: 2 }, false)];
    let layout = layout(&kinds, false);
    let outcome = run(&layout, &RowEnd::Lf, b"1|x|abc\nx|x|abc\n1|2024-01-01|abc\n\xFF|\0|\xFF\n1|2024-01-01|\n");
    let found: Vec<_> = outcome.rejects.iter().map(|bad| (bad.column.unwrap(), bad.rule, bad.value.clone())).collect();
    assert_eq!(
        found,
        [
            (1, Rule::BadDate, b"x".to_vec()),
            (0, Rule::BadInteger, b"x".to_vec()),
            (2, Rule::TooLong, b"abc".to_vec()),
            (0, Rule::BadInteger, b"\xFF".to_vec()),
            (2, Rule::NullNotAllowed, b"".to_vec()),
        ]
    );
}

#[test]
fn values_of_rejects_are_cut_and_their_rows_are_whole() {
    let layout = layout(&[(ColumnType::Int32, false), (ColumnType::Varchar { length: 5 }, true)], false);
    let long = "y".repeat(5000);
    for text in [format!("1|{long}\n"), format!("{long}\n"), format!("1|{long}")] {
        let outcome = Driver::all(&[100_000], b"|")[0].run(&layout, &RowEnd::Lf, text.as_bytes(), 0);
        assert_eq!(outcome.rejects[0].value, &long.as_bytes()[..1000]);
        assert_eq!(outcome.rejects[0].row, text.as_bytes());
    }
}

#[test]
fn a_batch_of_good_rows_has_no_null_buffer_without_nulls() {
    let mut parser = Parser::new(&pair(false)).unwrap();
    parser.begin_slice(&RowEnd::Lf, 0).unwrap();
    let mut memory = Memory::new(2 * PADDING_BYTES + 4);
    memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + 4].copy_from_slice(b"1|a\n");
    let batch = parse(&mut parser, memory, 4, 0).unwrap().batch.unwrap();
    assert!(batch.columns().iter().all(|column| column.nulls().is_none()));
}

#[test]
fn a_block_smaller_than_it_claims_is_an_error() {
    let mut parser = Parser::new(&pair(false)).unwrap();
    parser.begin_slice(&RowEnd::Lf, 0).unwrap();
    assert!(parse(&mut parser, Memory::new(2 * PADDING_BYTES), 1, 0).is_err());
    assert!(parse(&mut parser, Memory::new(2 * PADDING_BYTES), 0, 0).unwrap().batch.is_none());
}

#[test]
fn more_columns_than_a_vector_has_marks() {
    let columns = vec![(ColumnType::Int16, true); 500];
    let layout = layout(&columns, true);
    let row = (0..500).map(|number| number.to_string() + "|").collect::<String>() + "\n";
    let text = row.repeat(20) + "1|2|\n" + &row;
    let outcome = run(&layout, &RowEnd::Lf, text.as_bytes());
    assert_eq!((outcome.rows.len(), outcome.rejects.len()), (21, 1));
    assert_eq!(outcome.rows[20][499], Value::Number(499));
}

#[test]
fn the_portable_path_is_always_there() {
    assert_eq!(CpuPath::available().last(), Some(&CpuPath::PORTABLE));
}
