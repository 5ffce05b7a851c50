//! What tokens mean, where they are refused, and skipping against stepping.

use super::*;
use headrace_types::{Column, ColumnType, ExtraFields, RowEndInFields, StrayQualifiers};
use proptest::prelude::*;

/// So many text columns; nothing but a delimiter.
fn layout(delimiter: &str, columns: usize) -> Layout {
    let column = |number| Column::new(format!("c{number}"), ColumnType::String, true);
    Layout { delimiter: delimiter.to_owned(), columns: (0..columns).map(column).collect(), ..Layout::default() }
}

fn quoted(delimiter: &str) -> Layout {
    Layout { qualifier: Some('"'), ..layout(delimiter, 3) }
}

fn escaped(delimiter: &str) -> Layout {
    Layout { escape: Some('\\'), ..quoted(delimiter) }
}

fn exactly(text: &str) -> RowEnd {
    RowEnd::Exactly(text.to_owned())
}

/// What ends where: the place of the last byte, the event, and its length. And the mode behind the text.
fn events(layout: &Layout, row_end: &RowEnd, text: &str) -> (Vec<(usize, Event, u8)>, Mode) {
    let automaton = Automaton::new(layout, row_end).unwrap();
    let (mut state, mut events) = (START, vec![]);
    for (at, byte) in text.bytes().enumerate() {
        let step = automaton.step(state, byte);
        state = step.state;
        if step.event != Event::Nothing {
            events.push((at, step.event, step.length));
        }
    }
    (events, automaton.mode(state))
}

/// The fields of a text: `|` stands between two, `$` behind the last one of a row, `#` behind a comment.
fn cut(layout: &Layout, row_end: &RowEnd, text: &str) -> String {
    let (events, _) = events(layout, row_end, text);
    let (mut found, mut from) = (String::new(), 0);
    for (at, event, length) in events {
        let mark = match event {
            Event::Delimiter => '|',
            Event::RowEnd => '$',
            Event::CommentEnd => '#',
            _ => continue,
        };
        found.push_str(&text[from..at + 1 - usize::from(length)]);
        found.push(mark);
        from = at + 1;
    }
    found + &text[from..]
}

fn refusal(layout: &Layout, row_end: &RowEnd) -> String {
    Automaton::new(layout, row_end).expect_err("it means two things")
}

fn row_ends(scanner: &mut RowScanner, bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (vec![], 0);
    while let Some(found) = scanner.next_row_end(&bytes[at..]) {
        assert_eq!(scanner.state, START);
        ends.push(at + found);
        at += found + 1;
    }
    ends
}

fn check(text: &[u8], ends: &[usize], last: Mode) {
    let mut scanner = RowScanner::new(&quoted(","), &RowEnd::Lf).unwrap();
    assert_eq!(row_ends(&mut scanner, text), ends, "{}", text.escape_ascii());
    let found = events(&quoted(","), &RowEnd::Lf, std::str::from_utf8(text).unwrap()).1;
    assert_eq!(found, last, "{}", text.escape_ascii());
}

#[test]
fn qualifiers_hide_delimiters_and_line_feeds() {
    check(b"a,b\nc\n", &[3, 5], Mode::RowStart);
    check(b"\"a\nb\",c\nd", &[7], Mode::Unqualified);
    check(b"a,\"b\n\"\n", &[6], Mode::RowStart);
    check(b"\"a\"\"\nb\"\n", &[7], Mode::RowStart);
    check(b"\"\"\n\"\"\"\n\"\n", &[2, 8], Mode::RowStart);
    check(b"\"\n", &[], Mode::Inside);
    check(b"\"a\"", &[], Mode::BehindQualifier);
    check(b"a,", &[], Mode::FieldStart);
}

#[test]
fn a_qualifier_inside_an_unqualified_field_is_data() {
    check(b"3\" x 5\"\n\"\n", &[7], Mode::Inside);
    check(b" \"a\n\"\n", &[3], Mode::Inside);
    check(b"a\",\"\n\"\n", &[6], Mode::RowStart);
}

#[test]
fn behind_a_closing_qualifier_text_goes_on_unqualified() {
    check(b"\"a\"b\n", &[4], Mode::RowStart);
    check(b"\"a\"b\"\n\"\n", &[5], Mode::Inside);
    check(b"\"a\" \"b\n\"\n", &[6], Mode::Inside);
    check(b"\"a\"b,\"\n\"\n", &[8], Mode::RowStart);
    check(b"\"a\"\r\n\"b\"\r\"\n", &[4, 10], Mode::RowStart);
    let automaton = Automaton::new(&quoted("||"), &RowEnd::Either).unwrap();
    for (text, behind) in [("\"a\"||", false), ("\"a\"|b", true), ("\"a\"\r\n", false), ("\"a\"\rb", true)] {
        let mut state = START;
        let seen = text.bytes().fold(false, |seen, byte| {
            let step = automaton.step(state, byte);
            state = step.state;
            seen | step.text_behind
        });
        assert_eq!(seen, behind, "{text:?}");
    }
}

#[test]
fn without_a_qualifier_every_line_feed_ends_a_row() {
    let mut scanner = RowScanner::new(&layout("|", 2), &RowEnd::Lf).unwrap();
    assert_eq!(row_ends(&mut scanner, b"\"a\nb|\"\n|"), [2, 6]);
    assert!(!scanner.inside_qualifier() && !scanner.is_open());
    assert_eq!((scanner.next_row_end(b""), scanner.next_row_end(b"\"")), (None, None));
    assert!(!scanner.inside_qualifier());
}

#[test]
fn steps_tell_delimiters_and_row_ends_from_data() {
    use Event::{Closed, Delimiter, Opened, Rewritten, RowEnd};
    let (found, last) = events(&quoted(","), &super::RowEnd::Lf, "\",\",\"\"\na,\n\"\"\"");
    let expected = [
        (0, Opened, 0),
        (2, Closed, 0),
        (3, Delimiter, 1),
        (4, Opened, 0),
        (5, Closed, 0),
        (6, RowEnd, 1),
        (8, Delimiter, 1),
        (9, RowEnd, 1),
        (10, Opened, 0),
        (11, Closed, 0),
        (12, Rewritten, 0),
    ];
    assert_eq!((found.as_slice(), last), (&expected[..], Mode::Inside));
}

#[test]
fn of_delimiters_that_overlap_the_leftmost_counts() {
    let bars = layout("||", 3);
    assert_eq!(cut(&bars, &RowEnd::Lf, "a|||b\n|||\na|b||||\n"), "a||b$||$a|b||$");
    assert_eq!(events(&bars, &RowEnd::Lf, "a|||b").0, [(2, Event::Delimiter, 2)]);
    assert_eq!(cut(&layout("aba", 3), &RowEnd::Lf, "xababay\nabaaba\nab\n"), "x|bay$||$ab$");
    assert_eq!(cut(&layout("aab", 3), &RowEnd::Lf, "aaaab\naaa\n"), "aa|$aaa$");
    assert_eq!(cut(&layout("é", 3), &RowEnd::Lf, "aéè\n"), "a|è$");
    // A token that begins in another one and is not reached.
    assert_eq!(cut(&layout("a|", 3), &exactly("|\n"), "a|\nb|\n"), "|\nb$");
    assert_eq!(events(&bars, &RowEnd::Lf, "a|").1, Mode::Unqualified);
}

#[test]
fn row_ends_are_what_the_file_says_and_nothing_else() {
    let pair = layout("|", 2);
    assert_eq!(cut(&pair, &RowEnd::Lf, "a\r\nb\n\r"), "a\r$b$\r");
    assert_eq!(cut(&pair, &RowEnd::Either, "a\r\nb\nc\rd\r\r\n\r"), "a$b$c\rd\r$\r");
    assert_eq!(cut(&pair, &exactly("\r\n"), "a\r\nb\nc\r|\r\r\n"), "a$b\nc\r|\r$");
    assert_eq!(cut(&pair, &exactly("\r"), "a\rb\n\r"), "a$b\n$");
    assert_eq!(cut(&pair, &exactly("<eol>"), "a|b<e<eol><eol\n>"), "a|b<e$<eol\n>");
    assert_eq!(events(&pair, &exactly("<eol>"), "a<eol>").0, [(5, Event::RowEnd, 5)]);
}

#[test]
fn an_escape_makes_whole_tokens_data() {
    let bars = escaped("||");
    assert_eq!(cut(&bars, &RowEnd::Lf, "a\\||b||c\n"), "a\\||b|c$");
    // Half a token behind the escape is one byte of data, and what follows it is what it is.
    assert_eq!(cut(&bars, &RowEnd::Lf, "a\\|b\n\\|\n"), "a\\|b$\\|$");
    assert_eq!(cut(&escaped("|"), &RowEnd::Either, "a\\\r\nb\\\\\r\nc\\\nd\\\r|e\r\n"), "a\\\r\nb\\\\$c\\\nd\\\r|e$");
    assert_eq!(cut(&escaped("|"), &exactly("~%"), "a\\~%b\\~|c~%"), "a\\~%b\\~|c$");
    assert_eq!(cut(&escaped("|"), &RowEnd::Lf, "\\\"a|\"b\\\"\n\"|\"c\\\\\"\n"), "\\\"a|\"b\\\"\n\"|\"c\\\\\"$");
    assert_eq!(events(&bars, &RowEnd::Lf, "\\||").0, [(0, Event::Rewritten, 0)]);
    for (text, is_open, mode) in [
        ("a\\", true, Mode::Escaped),
        ("a\\\\", false, Mode::Unqualified),
        ("a\\|", false, Mode::Escaped), // of two bars; there is one byte behind the escape
        ("\"a\\", true, Mode::EscapedInside),
        ("\"a\\\"", true, Mode::Inside),
    ] {
        let mut scanner = RowScanner::new(&bars, &RowEnd::Lf).unwrap();
        assert_eq!(scanner.next_row_end(text.as_bytes()), None, "{text}");
        assert_eq!((scanner.is_open(), events(&bars, &RowEnd::Lf, text).1), (is_open, mode), "{text}");
    }
}

#[test]
fn escaped_row_ends_are_data_for_who_looks_for_row_ends_only() {
    let plain = Layout { escape: Some('\\'), ..layout("|", 2) };
    let kept = Layout { extra_fields: ExtraFields::Keep, ..plain.clone() };
    for layout in [plain, kept] {
        let mut scanner = RowScanner::new(&layout, &RowEnd::Lf).unwrap();
        assert_eq!(row_ends(&mut scanner, b"a\\\n|\\b\nc|\\\n\n"), [6, 11]);
    }
}

#[test]
fn comments_begin_with_a_row_and_end_with_the_next_row_end() {
    let commented = Layout { comment: Some("--".to_owned()), ..escaped(",") };
    assert_eq!(cut(&commented, &RowEnd::Lf, "--a,\"b\\\n\"c\"\n-d,--\n--"), "--a,\"b\\#\"c\"$-d|--$--");
    assert_eq!(cut(&commented, &RowEnd::Either, "--\r\n---\r\r\n--\n-\r\n"), "--#---\r#--#-$");
    assert_eq!(cut(&commented, &exactly("~~"), "--\n~~--~\n~~"), "--\n#--~\n#");
    assert_eq!(events(&commented, &RowEnd::Lf, "-").1, Mode::RowStart);
    assert_eq!(events(&commented, &RowEnd::Lf, "--a").1, Mode::Comment);
    assert_eq!(events(&commented, &RowEnd::Lf, "a\n--").1, Mode::Comment);
    // Not behind blanks, and not in a second field.
    let blanks = Layout { comment: Some("#".to_owned()), blanks_around_qualifier: true, ..quoted(",") };
    assert_eq!(cut(&blanks, &RowEnd::Lf, " #\n,#\n#\n"), " #$|#$##");
}

#[test]
fn columns_may_have_delimiters_of_their_own() {
    let mut mixed = layout(",", 3);
    mixed.columns[0].delimiter = Some("::".to_owned());
    mixed.columns[2].delimiter = Some(";".to_owned());
    assert_eq!(cut(&mixed, &RowEnd::Lf, "a,b::c;d,e,f\n::,\n"), "a,b|c;d|e,f$||$");
    // The last one's stands behind it, and behind fields too many the layout's.
    assert_eq!(cut(&mixed, &RowEnd::Lf, "a::b,c;d,e;f\n"), "a|b|c|d|e;f$");
    mixed.columns[1].qualified = false;
    mixed.qualifier = Some('"');
    assert_eq!(cut(&mixed, &RowEnd::Lf, "\"::\"::\",a\n\"::\n"), "\"::\"|\"|a$\"::\n");
}

#[test]
fn extra_fields_are_read_as_the_column_that_keeps_them() {
    let mut kept = Layout { extra_fields: ExtraFields::Keep, ..escaped(",") };
    assert_eq!(cut(&kept, &RowEnd::Lf, "a,b,\"c,\n\",\"d\n\",e\n"), "a|b|\"c,\n\"|\"d\n\"|e$");
    kept.columns[2].qualified = false;
    kept.columns[2].delimiter = Some(";".to_owned());
    assert_eq!(cut(&kept, &RowEnd::Lf, "a,\"b\n\",c;\"d\n"), "a|\"b\n\"|c|\"d$");
}

/// The state after a text, the fields and rows of it, and the qualifiers that are data: `!`.
fn marked(layout: &Layout, text: &str) -> String {
    let automaton = Automaton::new(layout, &RowEnd::Lf).unwrap();
    let (mut state, mut shown) = (START, String::new());
    for byte in text.bytes() {
        let step = automaton.step(state, byte);
        state = step.state;
        if step.stray {
            shown.push('!');
        }
        match step.event {
            Event::Delimiter => shown.push('|'),
            Event::RowEnd => shown.push('$'),
            _ => shown.push(char::from(byte)),
        }
    }
    shown
}

#[test]
fn qualifiers_in_other_places_than_around_a_field_are_seen() {
    let plain = quoted(",");
    assert_eq!(marked(&plain, "a\"b,c\"\nd,\"e\"\n"), "a!\"b|c!\"$d|\"e\"$");
    // A qualifier that has closed the field too early is seen as text behind it.
    assert_eq!(marked(&plain, "\"a\"b,\"c\n"), "\"a\"b|\"c\n");
    // Escaped ones, and those of columns without qualifiers, are text like any other.
    assert_eq!(marked(&escaped(","), "a\\\"b,c\n"), "a\\\"b|c$");
    let mut bare = quoted(",");
    bare.columns.iter_mut().for_each(|column| column.qualified = false);
    assert_eq!(marked(&bare, "a\"b,c\n"), "a\"b|c$");
    // Inside of what had begun as a delimiter.
    assert_eq!(marked(&quoted("|\"|"), "a|\"b|\"|c\n"), "a|\"!b|\"|c$");
}

#[test]
fn a_lenient_qualifier_ends_a_field_only_before_a_delimiter_or_a_row_end() {
    let lenient = |delimiter| Layout { stray_qualifiers: StrayQualifiers::Lenient, ..quoted(delimiter) };
    assert_eq!(marked(&lenient(","), "\"a\"b,\n\"\"c\",d\"e\n"), "\"a\"!b,\n\"\"c\"|d!\"e$");
    assert_eq!(marked(&lenient(","), "\"a\" ,\"\n"), "\"a\"! ,\"$");
    assert_eq!(marked(&lenient("||"), "\"a\"|b\"||c\n"), "\"a\"|!b\"||c$");
    let blanks = Layout { blanks_around_qualifier: true, ..lenient(",") };
    assert_eq!(marked(&blanks, "\"a\" b\" ,c\n"), "\"a\" !b\" |c$");
    // Without a delimiter, or with a part of one only, it is not closed at the end.
    for (text, is_inside) in [("\"a\"", false), ("\"a\"b", true), ("\"a\"|", true), ("\"a\"||", false)] {
        let mut scanner = RowScanner::new(&lenient("||"), &RowEnd::Lf).unwrap();
        assert_eq!(scanner.next_row_end(text.as_bytes()), None);
        assert_eq!(scanner.is_open(), is_inside, "{text}");
    }
}

#[test]
fn row_ends_may_be_data_in_all_columns_but_the_last() {
    let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..escaped("\t") };
    assert_eq!(cut(&bcp, &RowEnd::Lf, "a\n\tb\n\n\tc\t\nd\n"), "a\n|b\n\n|c\t$d\n");
    assert_eq!(cut(&bcp, &RowEnd::Lf, "\n\t\tc\\\n\n"), "\n||c\\\n$");
    // Also where nothing else could be escaped in it.
    let plain = Layout { qualifier: None, ..bcp };
    assert_eq!(cut(&plain, &RowEnd::Lf, "a\tb\tc\\\nd\\\t\n"), "a|b|c\\\nd\\\t$");
    let mut scanner = RowScanner::new(&plain, &RowEnd::Lf).unwrap();
    assert_eq!(row_ends(&mut scanner, b"a\n\tb\tc\\\nd\n"), [9]);
}

#[test]
fn blanks_may_stand_around_qualifiers() {
    let around = Layout { blanks_around_qualifier: true, ..quoted(",") };
    assert_eq!(cut(&around, &RowEnd::Lf, " \t\"a,\" \t,\"b\n\"\t\n"), " \t\"a,\" \t|\"b\n\"\t$");
    assert_eq!(cut(&around, &RowEnd::Lf, " a \",\" b\n"), " a \"|\" b\n");
    assert_eq!(events(&around, &RowEnd::Lf, " ").1, Mode::FieldStart);
    assert_eq!(events(&around, &RowEnd::Lf, "\"a\" ").1, Mode::BehindBlanks);
    assert_eq!(events(&around, &RowEnd::Lf, "\"a\" \"").1, Mode::Unqualified);
    // A tab that is the delimiter is no blank.
    let tabs = Layout { delimiter: "\t".to_owned(), ..around };
    assert_eq!(cut(&tabs, &RowEnd::Lf, "\t \"\t\" \t\n"), "| \"\t\" |$");
}

#[test]
fn layouts_that_mean_two_things_are_refused() {
    let own = |delimiter: &str| {
        let mut own = escaped("|");
        own.columns[0].delimiter = Some(delimiter.to_owned());
        own
    };
    let comment = |text: &str| Layout { comment: Some(text.to_owned()), ..layout("|", 2) };
    let blanks = |delimiter: &str| Layout { blanks_around_qualifier: true, ..quoted(delimiter) };
    for (bad, row_end, text) in [
        (layout("|", 2), exactly("|\n"), r#"delimiter "|" and row end "|\n" begin alike"#),
        (layout("|", 2), exactly("|"), r#"delimiter "|" and row end "|" begin alike"#),
        (layout("||", 2), exactly("|"), r#"row end "|" and delimiter "||" begin alike"#),
        (layout("a|b", 2), exactly("|"), r#"row end "|" stands inside of delimiter "a|b""#),
        (layout("|", 2), exactly("~|\n"), r#"delimiter "|" stands inside of row end "~|\n""#),
        (comment("a|b"), RowEnd::Lf, r#"delimiter "|" stands inside of comment mark "a|b""#),
        (layout("\r\n", 2), RowEnd::Either, r#"delimiter "\r\n" and row end "\r\n" begin alike"#),
        (comment("|"), RowEnd::Lf, r#"comment mark "|" and delimiter "|" begin alike"#),
        (comment("|-"), RowEnd::Lf, r#"delimiter "|" and comment mark "|-" begin alike"#),
        (comment("\n#"), RowEnd::Lf, r#"row end "\n" and comment mark "\n#" begin alike"#),
        (comment(""), RowEnd::Lf, r#""" is not 1 to 64 bytes long"#),
        (blanks(" |"), RowEnd::Lf, r#"blank beside a qualifier " " and delimiter " |" begin alike"#),
        (quoted("\"|"), RowEnd::Lf, r#"qualifier "\"" and delimiter "\"|" begin alike"#),
        (
            Layout { qualifier: Some('\t'), ..blanks("|") },
            RowEnd::Lf,
            r#"qualifier "\t" and blank beside a qualifier "\t" begin alike"#,
        ),
        (own("\\|"), RowEnd::Lf, r#"escape "\\" stands inside of "\\|""#),
        (own("|\\"), RowEnd::Lf, r#"escape "\\" stands inside of "|\\""#),
        (escaped("|"), exactly("\\\n"), r#"escape "\\" stands inside of "\\\n""#),
        (layout(&"-".repeat(65), 2), RowEnd::Lf, &format!("{:?} is not 1 to 64 bytes long", "-".repeat(65))),
    ] {
        assert_eq!(refusal(&bad, &row_end), text);
    }
    for (good, row_end) in [(layout("|", 2), exactly("\n|")), (own("|~"), RowEnd::Lf), (comment("-|"), exactly("-"))] {
        if let Err(text) = Automaton::new(&good, &row_end) {
            assert_eq!(text, r#"row end "-" and comment mark "-|" begin alike"#);
        }
    }
}

#[test]
fn what_would_take_too_much_memory_is_refused() {
    let mut own = layout("|", 100);
    own.columns.iter_mut().zip(100..).for_each(|(column, number)| column.delimiter = Some(format!("~^{number}~")));
    let build = |most_steps| Builder::new(&own, &RowEnd::Lf, fields(&own)).build_within(most_steps);
    // One for each state and each byte of tokens, or any other.
    let steps = build(usize::MAX).unwrap().steps.len();
    assert_eq!(build(steps).unwrap().steps.len(), steps);
    assert_eq!(build(steps - 1).unwrap_err(), "the layout has too many columns with delimiters of their own");
    assert!(Automaton::new(&layout("||", 20_000), &RowEnd::Lf).is_ok());
    let many = Layout { row_end_in_fields: RowEndInFields::Data, ..layout("||", 20_000) };
    assert!(Automaton::new(&many, &RowEnd::Lf).is_ok());
}

#[test]
fn states_that_differ_in_nothing_else_are_one() {
    let states = |layout: &Layout| {
        let automaton = Automaton::of_rows(layout, &RowEnd::Lf).unwrap();
        (automaton.states(), Automaton::new(layout, &RowEnd::Lf).unwrap().states())
    };
    // Before a field and behind a closing qualifier; between qualifiers; in other text.
    assert_eq!(states(&quoted(",")), (3, 5));
    // A chain: only the last column ends at a row end.
    let chain = Layout { row_end_in_fields: RowEndInFields::Data, ..layout(",", 1000) };
    assert_eq!(states(&chain), (1000, 2000));
    // Columns with other delimiters are not alike: behind them text means another thing.
    let mut own = quoted(",");
    own.columns[1].delimiter = Some(";".to_owned());
    assert_eq!(states(&own).0, 9);
}

/// Layouts whose row ends can be looked for in several ways.
fn layouts() -> Vec<(Layout, RowEnd)> {
    let mut own = escaped("||");
    own.columns[1].delimiter = Some("ab".to_owned());
    let everything = Layout { comment: Some("b|".to_owned()), blanks_around_qualifier: true, ..own.clone() };
    let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..escaped("a") };
    let kept = Layout { extra_fields: ExtraFields::Keep, qualifier: None, ..escaped("|") };
    let lenient = Layout { stray_qualifiers: StrayQualifiers::Lenient, ..quoted(",\n") };
    vec![
        (lenient, exactly("\n\n")),
        (Layout { stray_qualifiers: StrayQualifiers::Lenient, ..escaped(",") }, RowEnd::Either),
        (quoted(","), RowEnd::Lf),
        (Layout { qualifier: Some('b'), ..quoted(",") }, RowEnd::Either),
        (layout(",", 3), RowEnd::Lf),
        (layout("\r,", 3), exactly("\n\n")),
        (layout("|\n", 3), RowEnd::Either),
        (own, exactly("\n\r")),
        (everything, RowEnd::Either),
        (bcp, RowEnd::Lf),
        (kept, RowEnd::Lf),
    ]
}

proptest! {
    #[test]
    fn skipping_equals_stepping_however_the_text_is_cut(
        bytes in prop::collection::vec(prop::sample::select(b"\"\"\",,\n\nab\r |\\".to_vec()), 0..300),
        pieces in prop::collection::vec(0_usize..40, 1..8),
        (layout, row_end) in prop::sample::select(layouts()),
    ) {
        // Of the whole automaton, although the scanner may have a simpler one.
        let automaton = Automaton::new(&layout, &row_end).unwrap();
        let mut state = START;
        let mut skipping = RowScanner::new(&layout, &row_end).unwrap();
        let mut rest = bytes.as_slice();
        for piece in pieces.into_iter().chain([bytes.len()]) {
            let (piece, behind) = rest.split_at(piece.min(rest.len()));
            let mut ends = vec![];
            for (at, &byte) in piece.iter().enumerate() {
                let step = automaton.step(state, byte);
                state = step.state;
                if matches!(step.event, Event::RowEnd | Event::CommentEnd) {
                    ends.push(at);
                }
            }
            prop_assert_eq!(row_ends(&mut skipping, piece), ends);
            let mode = automaton.mode(state);
            prop_assert_eq!(skipping.inside_qualifier(), automaton.is_inside(state));
            let is_escaped = mode == Mode::Escaped && !automaton.is_partial(state);
            prop_assert_eq!(skipping.is_open(), is_escaped || skipping.inside_qualifier());
            rest = behind;
        }
    }
}
