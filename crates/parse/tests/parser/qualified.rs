//! Qualified fields, written out one by one.

use std::collections::BTreeMap;

use headrace_types::{Column, ColumnType, Layout, RowEnd, Rule, StrayQualifiers};

use crate::drive::Driver;
use crate::reference::{self, Outcome, Value};

fn layout(types: &[ColumnType]) -> Layout {
    let column = |(index, column_type): (usize, &ColumnType)| Column::new(format!("c{index}"), *column_type, true);
    Layout {
        delimiter: ",".to_owned(),
        qualifier: Some('"'),
        null_tokens: vec!["NULL".to_owned()],
        columns: types.iter().enumerate().map(column).collect(),
        ..Layout::default()
    }
}

/// The outcome, the same whatever the instructions and the blocks, and that of the reference.
pub fn run(layout: &Layout, row_end: &RowEnd, text: &[u8]) -> Outcome {
    let expected = reference::parse(layout, row_end, text, 100);
    for reads in [&[1][..], &[3, 5], &[7], &[64], &[1000]] {
        for driver in Driver::all(reads, b"\",\n") {
            assert_eq!(driver.run(layout, row_end, text, 100), expected, "{driver:?} {}", text.escape_ascii());
        }
    }
    expected
}

fn texts(columns: usize, text: &[u8]) -> Vec<Vec<Value>> {
    let outcome = run(&layout(&vec![ColumnType::String; columns]), &RowEnd::Lf, text);
    assert_eq!(outcome.rejects, [], "{}", text.escape_ascii());
    outcome.rows
}

/// A text value.
pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Line, first byte of the value, column, rule and value of each reject.
pub type Short<'a> = Vec<(u64, u64, Option<usize>, Rule, &'a [u8])>;

/// The rejects, shorter.
pub fn short(outcome: &Outcome) -> Short<'_> {
    let rejects = outcome.rejects.iter();
    rejects.map(|bad| (bad.line, bad.byte, bad.column, bad.rule, bad.value.as_slice())).collect()
}

#[test]
fn delimiters_row_ends_and_doubled_qualifiers_inside_are_data() {
    assert_eq!(texts(2, b"\"a,b\",\"c\nd\"\n"), [[text("a,b"), text("c\nd")]]);
    assert_eq!(texts(2, b"\"a\"\"b\",\"\"\"\"\n"), [[text("a\"b"), text("\"")]]);
    assert_eq!(texts(1, b"\"\n\n\"\n\"\"\"\n\"\n"), [[text("\n\n")], [text("\"\n")]]);
    assert_eq!(texts(2, b"\"a\r\n\",b"), [[text("a\r\n"), text("b")]]);
}

#[test]
fn a_qualifier_that_is_not_the_first_byte_is_stray() {
    let pair = layout(&[ColumnType::String; 2]);
    let rejected = run(&pair, &RowEnd::Lf, b"3\" nail,5\"\n \"a\",b\na,b\"\"\n");
    let expected: Short<'_> = vec![
        (0, 100, Some(0), Rule::StrayQualifier, b"3\" nail"),
        (1, 111, Some(0), Rule::StrayQualifier, b" \"a\""),
        (2, 120, Some(1), Rule::StrayQualifier, b"b\"\""),
    ];
    assert_eq!((short(&rejected), &rejected.stray), (expected, &BTreeMap::new()));
    let kept = Layout { stray_qualifiers: StrayQualifiers::Keep, ..pair };
    let outcome = run(&kept, &RowEnd::Lf, b"3\" nail,5\"\n \"a\",b\"\"\nx,y\n");
    let rows = [["3\" nail", "5\""], [" \"a\"", "b\"\""], ["x", "y"]];
    assert_eq!(outcome.rows, rows.map(|row| row.map(text)));
    assert_eq!(outcome.stray, BTreeMap::from([(0, 2), (1, 2)]));
}

#[test]
fn fields_with_text_after_the_closing_qualifier_are_kept_as_they_are_in_the_file() {
    let pair = Layout { stray_qualifiers: StrayQualifiers::Keep, ..layout(&[ColumnType::String; 2]) };
    let outcome = run(&pair, &RowEnd::Lf, b"\"a\" b,\"c\"\"d\"e\"\n\"f\",\"\"\"g\"\n");
    assert_eq!(outcome.rows, [["\"a\" b", "\"c\"\"d\"e\""], ["f", "\"g"]].map(|row| row.map(text)));
    assert_eq!(outcome.stray, BTreeMap::from([(0, 1), (1, 1)]));
}

#[test]
fn a_lenient_qualifier_closes_a_field_only_before_a_delimiter_or_a_row_end() {
    let pair = Layout { stray_qualifiers: StrayQualifiers::Lenient, ..layout(&[ColumnType::String; 2]) };
    let text_of_file = b"\"a \"b\", c\",7.00\"Pillow\n\"d\ne\"f\n\"\"g\",\"\"\"h\"\n\"i\",\"j\"\"";
    let outcome = run(&pair, &RowEnd::Either, text_of_file);
    let rows = [["a \"b", " c\""], ["d\ne\"f\n\"g", "\"h"]];
    // The first row has a field too many: before the delimiter the qualifier has closed the first one.
    assert_eq!(outcome.rows, [rows[1].map(text)]);
    let expected: Short<'_> = vec![
        (0, 100, None, Rule::TooManyFields, b"\"a \"b\", c\",7.00\"Pillow"),
        (2, 145, Some(1), Rule::UnclosedQualifier, b"\"j\"\""),
    ];
    assert_eq!(short(&outcome), expected);
    assert_eq!(outcome.stray, BTreeMap::from([(0, 1)]));
}

#[test]
fn a_qualified_field_is_never_null() {
    assert_eq!(texts(4, b",\"\",NULL,\"NULL\"\n"), [[Value::Null, text(""), Value::Null, text("NULL")]]);
    let kinds = [ColumnType::Int32, ColumnType::Date, ColumnType::Bytes, ColumnType::Char { length: 2 }];
    let outcome = run(&layout(&kinds), &RowEnd::Lf, b"\"12\",\"2024-01-02\",\"00ff\",\"a \"\n,,\"\",\"  \"\n");
    assert_eq!(outcome.rows[0][0], Value::Number(12));
    assert_eq!(outcome.rows[1], [Value::Null, Value::Null, Value::Bytes(vec![]), text("")]);
    let outcome = run(&layout(&kinds), &RowEnd::Lf, b"\"\",,,\n,\"\",,\n\"NULL\",,,\n");
    let rules: Vec<_> = short(&outcome).into_iter().map(|bad| (bad.2, bad.3, bad.4)).collect();
    assert_eq!(
        rules,
        [
            (Some(0), Rule::BadInteger, b"\"\"".as_slice()),
            (Some(1), Rule::BadDate, b"\"\""),
            (Some(0), Rule::BadInteger, b"\"NULL\""),
        ]
    );
    // A blank line has no field; two qualifiers are one.
    let mut one = layout(&[ColumnType::String]);
    assert_eq!(run(&one, &RowEnd::Lf, b"\n\"\"\n").rows, [[Value::Null], [text("")]]);
    one.trailing_delimiter = true;
    let outcome = run(&one, &RowEnd::Lf, b"\n\"\",\n\"\"\n");
    assert_eq!((outcome.skipped, outcome.rows.len(), outcome.rejects[0].rule), (1, 1, Rule::TooFewFields));
}

#[test]
fn text_behind_a_closing_qualifier_rejects_the_row_and_no_other() {
    let layout = layout(&[ColumnType::String, ColumnType::Int32]);
    let text = b"\"a\"b,1\n\"c\" ,2\nd,\"3\"4\n\"e\"\"f\" \"g,h\",7\n\"h\"x\"\nok,5\n";
    let outcome = run(&layout, &RowEnd::Lf, text);
    assert_eq!(outcome.rows.len(), 1);
    assert_eq!(
        short(&outcome),
        [
            (0, 100, Some(0), Rule::TextAfterQualifier, b"\"a\"b".as_slice()),
            (1, 107, Some(0), Rule::TextAfterQualifier, b"\"c\" "),
            (2, 116, Some(1), Rule::TextAfterQualifier, b"\"3\"4"),
            (3, 121, None, Rule::TooManyFields, b"\"e\"\"f\" \"g,h\",7"),
            (4, 136, None, Rule::TooFewFields, b"\"h\"x\""),
        ]
    );
    // The first bad column counts.
    let outcome = run(&layout, &RowEnd::Lf, b"\"a\"b,x\n");
    assert_eq!(short(&outcome), [(0, 100, Some(0), Rule::TextAfterQualifier, b"\"a\"b".as_slice())]);
    let swapped = Layout { columns: layout.columns.iter().rev().cloned().collect(), ..layout };
    let outcome = run(&swapped, &RowEnd::Lf, b"x,\"a\"b\n");
    assert_eq!(short(&outcome), [(0, 100, Some(0), Rule::BadInteger, b"x".as_slice())]);
}

#[test]
fn carriage_returns_behind_a_closing_qualifier() {
    let pair = layout(&[ColumnType::String, ColumnType::String]);
    let outcome = run(&pair, &RowEnd::Either, b"a,\"b\"\r\nc,\"d\"\ne,\"f\r\n\"\r\ng,\"h\"\r");
    assert_eq!(outcome.rejects, []);
    let second: Vec<_> = outcome.rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(second, [text("b"), text("d"), text("f\r\n"), text("h")]);
    let outcome = run(&pair, &RowEnd::Either, b"\"a\"\r,b\r\nc,\"d\"\r\r\n");
    assert_eq!(
        short(&outcome),
        [
            (0, 100, Some(0), Rule::TextAfterQualifier, b"\"a\"\r".as_slice()),
            (1, 110, Some(1), Rule::TextAfterQualifier, b"\"d\"\r"),
        ]
    );
    let outcome = run(&pair, &RowEnd::Lf, b"a,\"b\"\r\n");
    assert_eq!(short(&outcome), [(0, 102, Some(1), Rule::TextAfterQualifier, b"\"b\"\r".as_slice())]);
}

#[test]
fn an_open_qualifier_takes_the_rest_of_the_slice() {
    let pair = layout(&[ColumnType::Int32, ColumnType::String]);
    for (text, rows, found) in [
        (b"1,a\n2,\"b\n3,c\n".as_slice(), 1, (1, 106, Some(1), Rule::UnclosedQualifier, b"\"b\n3,c\n".as_slice())),
        (b"1,a\nx,\"b\"\"", 1, (1, 106, Some(1), Rule::UnclosedQualifier, b"\"b\"\"")),
        (b"\"", 0, (0, 100, Some(0), Rule::UnclosedQualifier, b"\"")),
        (b"1,2,\"3\n\n\n", 0, (0, 104, None, Rule::UnclosedQualifier, b"\"3\n\n\n")),
        (b"\"1\"x,\"3\r\n", 0, (0, 105, Some(1), Rule::UnclosedQualifier, b"\"3\r\n")),
    ] {
        for row_end in [RowEnd::Lf, RowEnd::Either] {
            let outcome = run(&pair, &row_end, text);
            assert_eq!((outcome.rows.len(), short(&outcome)), (rows, vec![found]), "{}", text.escape_ascii());
            let bad = &outcome.rejects[0];
            assert_eq!(bad.row, text[(bad.row_byte - 100) as usize..]);
        }
    }
}

#[test]
fn without_a_qualifier_it_is_a_byte_like_any_other() {
    let plain = Layout { qualifier: None, ..layout(&[ColumnType::String]) };
    assert_eq!(run(&plain, &RowEnd::Lf, b"\"a\"\"\n\"\n").rows, [[text("\"a\"\"")], [text("\"")]]);
}
