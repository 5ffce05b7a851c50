//! Dialects beyond one delimiter and line feeds, written out one by one.

use headrace_parse::Parser;
use headrace_types::{
    BlankRows, Column, ColumnType, EscapeCodes, ExtraFields, Layout, LayoutShape, Place, RowEnd, RowEndInFields,
    RowEnds, Rule, ShortRows, StrayQualifiers, WidthUnit,
};

use crate::drive::Driver;
use crate::qualified::{run, short, text};
use crate::reference::{self, Value};

/// So many nullable text columns.
fn layout(delimiter: &str, columns: usize) -> Layout {
    let column = |number| Column::new(format!("c{number}"), ColumnType::String, true);
    Layout { delimiter: delimiter.to_owned(), columns: (0..columns).map(column).collect(), ..Layout::default() }
}

fn exactly(text: &str) -> RowEnd {
    RowEnd::Exactly(text.to_owned())
}

/// The rows of a text without a bad one; fields joined by `¦`, NULL as `∅`.
fn rows(layout: &Layout, row_end: &RowEnd, bytes: &[u8]) -> Vec<String> {
    let outcome = run(layout, row_end, bytes);
    assert_eq!(outcome.rejects, [], "{}", bytes.escape_ascii());
    let shown = |value: &Value| match value {
        Value::Null => "∅".to_owned(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    outcome.rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("¦")).collect()
}

#[test]
fn delimiters_of_several_characters_and_row_ends_of_any_text() {
    assert_eq!(rows(&layout("||", 2), &RowEnd::Lf, b"a|||b\n||\nc|d||e"), ["a¦|b", "∅¦∅", "c|d¦e"]);
    let own = Layout { row_end: RowEnds::Exactly("<é>".to_owned()), ..layout("~^~", 2) };
    let bytes = "a\n~^~~^b<é>c~^~<é".as_bytes();
    assert_eq!(rows(&own, &exactly("<é>"), bytes), ["a\n¦~^b", "c¦<é"]);
    // A lone line feed is data where both are demanded.
    assert_eq!(rows(&layout("|", 2), &exactly("\r\n"), b"a\n|b\r\r\nc|\r\n"), ["a\n¦b\r", "c¦∅"]);
    // Nothing begins with a line feed, and so the layout is no other one without it.
    let line_feed = Layout { row_end: RowEnds::Exactly("~".to_owned()), ..layout("\n|", 2) };
    assert_eq!(rows(&line_feed, &exactly("~"), b"a\nb\n|c~"), ["a\nb¦c"]);
}

#[test]
fn a_file_may_be_cut_off_between_carriage_return_and_line_feed() {
    for delimiter in ["|", "||"] {
        let bytes = ["a", "b\r\nc", "d\r"].join(delimiter);
        assert_eq!(rows(&layout(delimiter, 2), &RowEnd::Either, bytes.as_bytes()), ["a¦b", "c¦d"]);
    }
    let quoted = Layout { qualifier: Some('"'), ..layout("||", 2) };
    assert_eq!(rows(&quoted, &RowEnd::Either, b"a||\"b\"\r"), ["a¦b"]);
    assert_eq!(rows(&layout("||", 2), &exactly("\r\n"), b"a||b\r"), ["a¦b\r"]);
}

#[test]
fn escapes_make_tokens_data() {
    let plain = Layout { escape: Some('\\'), ..layout("||", 2) };
    assert_eq!(rows(&plain, &RowEnd::Either, b"a\\||b||\\\\\r\n\\\r\n\\n||\\|c\r\n"), ["a||b¦\\", "\r\nn¦|c"]);
    let quoted = Layout { qualifier: Some('"'), stray_qualifiers: StrayQualifiers::Keep, ..plain.clone() };
    assert_eq!(rows(&quoted, &RowEnd::Lf, b"\"a\\\"b\"\"\\\\\"||\\\"c\"\n"), ["a\"b\"\\¦\"c\""]);
    // One byte behind the escape is enough, and the last byte of a file cannot be one.
    assert_eq!(rows(&plain, &RowEnd::Lf, b"a||b\\|"), ["a¦b|"]);
    let outcome = run(&plain, &RowEnd::Lf, b"a||b\nc||d\\");
    assert_eq!(short(&outcome), [(1, 108, Some(1), Rule::UnfinishedEscape, b"d\\".as_slice())]);
    let outcome = run(&quoted, &RowEnd::Lf, b"\"a\\");
    assert_eq!(short(&outcome), [(0, 100, Some(0), Rule::UnclosedQualifier, b"\"a\\".as_slice())]);
}

#[test]
fn letters_behind_an_escape_mean_what_the_codes_say() {
    let bytes = b"\\0\\b\\n\\r\\t\\Z|\\f\\v\\x41\\x4g\\xg\\101\\1018\n";
    let with = |codes| Layout { escape: Some('\\'), escape_codes: codes, ..layout("|", 2) };
    assert_eq!(rows(&with(EscapeCodes::None), &RowEnd::Lf, bytes), ["0bnrtZ¦fvx41x4gxg1011018"]);
    let mysql = b"\\b\\n\\r\\t\\Z\\N.|\\f\\v\\x41\\101\n";
    assert_eq!(rows(&with(EscapeCodes::Mysql), &RowEnd::Lf, mysql), ["\u{8}\n\r\t\u{1A}N.¦fvx41101"]);
    let postgres = b"\\b\\f\\n\\r\\t\\v\\Z|\\x41\\x4g\\xg\\101\\1018\\7\\.\n";
    let expected = ["\u{8}\u{c}\n\r\t\u{b}Z¦A\u{4}gxgAA8\u{7}."];
    assert_eq!(rows(&with(EscapeCodes::Postgres), &RowEnd::Lf, postgres), expected);
    // Bytes may come of it that no text has.
    let outcome = run(&with(EscapeCodes::Mysql), &RowEnd::Lf, bytes);
    assert_eq!(short(&outcome)[0].3, Rule::NulByte);
    let outcome = run(&with(EscapeCodes::Postgres), &RowEnd::Lf, b"\\xC3\\xA9|a\n\\377|a\n\\000|a\n");
    assert_eq!(outcome.rows, [[text("é"), text("a")]]);
    let found: Vec<_> = outcome.rejects.iter().map(|bad| bad.rule).collect();
    assert_eq!(found, [Rule::InvalidUtf8, Rule::NulByte]);
}

#[test]
fn null_tokens_are_compared_with_what_stands_in_the_file() {
    let mut mysql = Layout { escape: Some('\\'), escape_codes: EscapeCodes::Mysql, ..layout("\t", 3) };
    mysql.null_tokens = vec!["\\N".to_owned(), "\\1".to_owned()];
    let types = [ColumnType::Bool, ColumnType::Varchar { length: 1 }, ColumnType::Int32];
    std::iter::zip(&mut mysql.columns, types).for_each(|(column, column_type)| column.column_type = column_type);
    // `\N` unescaped would be a truth value and a text of one character, `\1` a number.
    let outcome = run(&mysql, &RowEnd::Lf, b"\\N\t\\N\t\\1\nN\tN\t1\n");
    assert_eq!(outcome.rows, [vec![Value::Null; 3], vec![Value::Truth(false), text("N"), Value::Number(1)]]);
    assert_eq!(outcome.rejects, []);
}

#[test]
fn columns_have_their_own_delimiters_and_may_have_no_qualifier() {
    let mut mixed = Layout { qualifier: Some('"'), ..layout(",", 3) };
    mixed.columns[0].delimiter = Some("::".to_owned());
    mixed.columns[1].qualified = false;
    assert_eq!(rows(&mixed, &RowEnd::Lf, b"\"a::\"::\"b,c\nx,:y::\"\",\"z\n\"\n"), ["a::¦\"b¦c", "x,:y¦\"\"¦z\n"]);
    let outcome = run(&mixed, &RowEnd::Lf, b"a,b,c\nd::e,f,g\n");
    let expected =
        [(0, 100, None, Rule::TooFewFields, b"a,b,c".as_slice()), (1, 106, None, Rule::TooManyFields, b"d::e,f,g")];
    assert_eq!(short(&outcome), expected);
}

#[test]
fn row_ends_are_data_in_all_columns_but_the_last() {
    let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..layout("\t", 3) };
    assert_eq!(rows(&bcp, &RowEnd::Lf, b"a\n\tb\n\n\tc\td\n\n\t\t\n"), ["a\n¦b\n\n¦c\td", "\n¦∅¦∅"]);
    let outcome = run(&bcp, &RowEnd::Lf, b"a\tb\tc\nd\ne\n");
    assert_eq!(short(&outcome), [(1, 106, None, Rule::TooFewFields, b"d\ne\n".as_slice())]);
    let escaped = Layout { escape: Some('\\'), ..bcp };
    assert_eq!(rows(&escaped, &RowEnd::Lf, b"a\tb\tc\\\nd\n"), ["a¦b¦c\nd"]);
}

#[test]
fn blanks_around_qualifiers_are_no_text() {
    let around = Layout { qualifier: Some('"'), blanks_around_qualifier: true, ..layout(",", 2) };
    assert_eq!(rows(&around, &RowEnd::Either, b" \t\" a \" , b \r\n  ,\"\"\t\r\n"), [" a ¦ b ", "  ¦"]);
    let outcome = run(&around, &RowEnd::Lf, b"\"a\" b,c\n \"d");
    let expected = [
        (0, 100, Some(0), Rule::TextAfterQualifier, b"\"a\" b".as_slice()),
        (1, 109, Some(0), Rule::UnclosedQualifier, b"\"d"),
    ];
    assert_eq!(short(&outcome), expected);
    let tabs = Layout { delimiter: "\t".to_owned(), ..around };
    assert_eq!(rows(&tabs, &RowEnd::Lf, b" \"a\" \t\"\t\"\n\t \n"), ["a¦\t", "∅¦ "]);
}

#[test]
fn comments_begin_rows_and_blank_rows_are_what_the_layout_says() {
    let commented = Layout { comment: Some("--".to_owned()), qualifier: Some('"'), ..layout(",", 2) };
    let outcome = run(&commented, &RowEnd::Lf, b"--a,\"b\n-c,--\n\n--\nd,\"--\n\"\n--");
    assert_eq!(outcome.rows, [[text("-c"), text("--")], [text("d"), text("--\n")]]);
    assert_eq!((outcome.lines, outcome.skipped, outcome.rejects.len()), (6, 4, 0));
    for (blank_rows, short_rows, found) in [
        (BlankRows::Skip, ShortRows::Reject, Ok(0)),
        (BlankRows::Keep, ShortRows::Reject, Err("1 field instead of 2")),
        (BlankRows::Keep, ShortRows::Fill, Ok(1)),
        (BlankRows::Reject, ShortRows::Fill, Err("a blank row")),
    ] {
        let outcome = run(&Layout { blank_rows, short_rows, ..layout(",", 2) }, &RowEnd::Lf, b"\n");
        match found {
            Ok(rows) => assert_eq!((outcome.rows.len(), outcome.rejects.len()), (rows, 0)),
            Err(note) => assert_eq!(outcome.rejects[0].note.as_deref(), Some(note)),
        }
    }
    let one = Layout { blank_rows: BlankRows::Reject, ..layout(",", 1) };
    assert_eq!(run(&one, &RowEnd::Lf, b"\n").rejects[0].note.as_deref(), Some("a blank row"));
}

#[test]
fn short_rows_are_filled() {
    let mut filled = Layout { short_rows: ShortRows::Fill, ..layout(",", 3) };
    assert_eq!(rows(&filled, &RowEnd::Either, b"a\r\nb,c\r\nd,\r\ne,f,g"), ["a¦∅¦∅", "b¦c¦∅", "d¦∅¦∅", "e¦f¦g"]);
    filled.columns[2].nullable = false;
    let outcome = run(&filled, &RowEnd::Lf, b"a,b\na,b,c,d\n");
    let expected =
        [(0, 103, Some(2), Rule::NullNotAllowed, b"".as_slice()), (1, 104, None, Rule::TooManyFields, b"a,b,c,d")];
    assert_eq!(short(&outcome), expected);
    let trailing = Layout { trailing_delimiter: true, ..layout(",", 2) };
    let trailing = Layout { short_rows: ShortRows::Fill, ..trailing };
    assert_eq!(rows(&trailing, &RowEnd::Lf, b"a,b,\na,b\na,\na\n"), ["a¦b", "a¦b", "a¦∅", "a¦∅"]);
}

#[test]
fn rows_with_extra_fields_keep_them_as_they_are_in_the_file() {
    let kept = Layout { qualifier: Some('"'), escape: Some('\\'), extra_fields: ExtraFields::Keep, ..layout(",", 2) };
    let text = b"\"a,\",b,\"c\n,\"\n\\,,d\\,,\"\"\"e\"\n,\na,,\n";
    assert_eq!(rows(&kept, &RowEnd::Lf, text), ["a,¦b,\"c\n,\"", ",¦d\\,,\"\"\"e\"", "∅¦∅", "a¦,"]);
    assert_eq!(run(&kept, &RowEnd::Lf, text).unequal, (0, 3));
    let outcome = run(&kept, &RowEnd::Lf, b"a\n");
    assert_eq!(short(&outcome)[0].3, Rule::TooFewFields);
    // A last column without qualifiers keeps whatever there is.
    let mut bare = kept;
    bare.columns[1].qualified = false;
    assert_eq!(rows(&bare, &RowEnd::Lf, b"\"a\",{\"b\": 1, \"c\":\"d\"}\n"), ["a¦{\"b\": 1, \"c\":\"d\"}"]);
}

#[test]
fn rows_without_extra_fields_are_the_same_whether_these_are_kept_or_not() {
    // One row of each kind that a last field may have.
    let fields = ["x", "\"x, y\"", "\"x \"\"y\"\"\"", "\"x\ny\"", "\"\"", "", "\\,", "a\"b", "\"a\"b", " \"x\" "];
    let text: String = fields.iter().map(|field| format!("1,a,{field}\n")).collect();
    for (escape, blanks) in [(None, false), (Some('\\'), false), (None, true)] {
        let plain = Layout { qualifier: Some('"'), escape, blanks_around_qualifier: blanks, ..layout(",", 3) };
        let kept = Layout { extra_fields: ExtraFields::Keep, ..plain.clone() };
        let (expected, found) = (run(&plain, &RowEnd::Lf, text.as_bytes()), run(&kept, &RowEnd::Lf, text.as_bytes()));
        // Only the escaped delimiter is one without an escape.
        let whole: Vec<_> = found.rows.iter().filter(|row| expected.rows.contains(row)).cloned().collect();
        assert_eq!(whole, expected.rows);
        assert_eq!(found.rows.len() as u64 - expected.rows.len() as u64, found.unequal.1);
    }
}

#[test]
fn what_no_file_can_have_is_refused_before_the_first_file() {
    let commented = Layout { comment: Some("\r".to_owned()), ..layout(",", 2) };
    let refused = Parser::new(&commented).err().map(|error| error.what);
    assert_eq!(refused.as_deref(), Some(r#"layout: comment mark "\r" and row end "\r\n" begin alike"#));
    let line_feed = Layout { row_end: RowEnds::Exactly("\n".to_owned()), ..commented };
    assert_eq!(rows(&line_feed, &exactly("\n"), b"\ra\nb,c\n"), ["b¦c"]);
}

#[test]
fn tokens_stand_across_the_edges_of_what_is_looked_through_at_once() {
    const WINDOW_BYTES: usize = 64 << 10;
    let walked = Layout { escape: Some('\\'), qualifier: Some('"'), ..layout("~^~", 2) };
    let mut placed = Layout { shape: LayoutShape::RaggedRight, width_unit: WidthUnit::Characters, ..layout("", 2) };
    std::iter::zip(&mut placed.columns, [(0, Some(1)), (1, None)])
        .for_each(|(column, (start, width))| column.place = Some(Place { start, width }));
    let rows = "a~^~b\\~^~\r\n\"c\r\n\"\"~^~\"~^~d\r\n\u{e9}\u{1f600}~^~\"\"\r\n";
    for layout in [walked, placed] {
        for before in 0..rows.len() {
            // Two edges, and every byte of the rows on one of them.
            let long = "x".repeat(WINDOW_BYTES - before);
            let text = ["y~^~z\r\n", &long, "~^~\r\n", rows, &long, "~^~\r\n", rows].concat();
            let expected = reference::parse(&layout, &RowEnd::Either, text.as_bytes(), 0);
            for driver in Driver::all(&[1 << 20], b"~") {
                let found = driver.run(&layout, &RowEnd::Either, text.as_bytes(), 0);
                assert!(found == expected, "{driver:?} {before} {layout:?}");
            }
        }
    }
}
