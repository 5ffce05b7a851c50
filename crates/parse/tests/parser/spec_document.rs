//! `docs/spec/text-to-types.md` is checked: every example against the parser, every rule against the code.

use std::collections::{BTreeMap, BTreeSet};

use headrace_types::{ColumnType, Layout, RowEnd, Rule};

use crate::drive::Driver;
use crate::examples::one_column;
use crate::reference::{self, Value};

const DOCUMENT: &str = include_str!("../../../../docs/spec/text-to-types.md");

/// All rules, in the order of their codes. The match makes the compiler ask for a new one here.
fn rules() -> Vec<Rule> {
    use Rule::*;
    let next = |rule| match rule {
        TooFewFields => Some(TooManyFields),
        TooManyFields => Some(RowTooLong),
        RowTooLong => Some(TextAfterQualifier),
        TextAfterQualifier => Some(UnclosedQualifier),
        UnclosedQualifier => Some(UnfinishedEscape),
        UnfinishedEscape => Some(OtherRowEnd),
        OtherRowEnd => Some(RowTooNarrow),
        RowTooNarrow => Some(RowTooWide),
        RowTooWide => Some(StrayQualifier),
        StrayQualifier => Some(NullNotAllowed),
        NullNotAllowed => Some(BadInteger),
        BadInteger => Some(BadDecimal),
        BadDecimal => Some(BadFloat),
        BadFloat => Some(BadBool),
        BadBool => Some(BadDate),
        BadDate => Some(BadTime),
        BadTime => Some(BadTimestamp),
        BadTimestamp => Some(BadUuid),
        BadUuid => Some(BadBytes),
        BadBytes => Some(BadJson),
        BadJson => Some(OutOfRange),
        OutOfRange => Some(WouldRound),
        WouldRound => Some(TooLong),
        TooLong => Some(InvalidUtf8),
        InvalidUtf8 => Some(NulByte),
        NulByte => Some(Unmappable),
        Unmappable => Some(Partition),
        Partition => Some(NoMatch),
        NoMatch => Some(Expression),
        Expression => None,
    };
    std::iter::successors(Some(TooFewFields), |rule| next(*rule)).collect()
}

/// Rows of all tables with this header line.
fn tables(header: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let mut lines = DOCUMENT.lines();
    while let Some(line) = lines.next() {
        if line != header {
            continue;
        }
        let separator = lines.next().unwrap();
        assert!(separator.starts_with("| ---"), "no table under {header}");
        for row in lines.by_ref().take_while(|line| line.starts_with('|')) {
            let cells = row.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
            rows.push(cells.unwrap_or_else(|| panic!("{row}")).split(" | ").map(str::to_owned).collect());
        }
    }
    assert!(!rows.is_empty(), "no table {header}");
    rows
}

/// Text in backquotes.
fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or_else(|| panic!("{cell} is not `code`"))
}

/// Bytes of a quoted text: \xNN is a byte, \\ a backslash.
fn bytes(quoted: &str) -> Vec<u8> {
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_else(|| panic!("{quoted}"));
    let mut bytes = vec![];
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        if rest[at + 1..].starts_with('\\') {
            bytes.push(b'\\');
            rest = &rest[at + 2..];
        } else {
            assert!(rest[at + 1..].starts_with('x'), "{quoted}");
            bytes.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).unwrap());
            rest = &rest[at + 4..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// `decimal(15,2) nullable, qualifier, token NULL`.
fn layout(text: &str) -> Layout {
    let (kind, options) = text.split_once(' ').unwrap_or((text, ""));
    let kind = kind.trim_end_matches(',');
    let (word, numbers) = kind.strip_suffix(')').and_then(|kind| kind.split_once('(')).unwrap_or((kind, ""));
    let numbers: Vec<u32> =
        numbers.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect();
    let column_type = match (word, numbers.as_slice()) {
        ("decimal", [precision, scale]) => ColumnType::Decimal { precision: *precision as u8, scale: *scale as u8 },
        ("char", [length]) => ColumnType::Char { length: *length },
        ("varchar", [length]) => ColumnType::Varchar { length: *length },
        _ => {
            use ColumnType::*;
            let plain = [
                Int16,
                Int32,
                Int64,
                Float32,
                Float64,
                Bool,
                Date,
                Time,
                Timestamp,
                TimestampTz,
                String,
                Bytes,
                Uuid,
                Json,
            ];
            *plain.iter().find(|column_type| column_type.to_string() == word).unwrap_or_else(|| panic!("type {text}"))
        }
    };
    let mut nullable = false;
    let mut qualifier = None;
    let mut tokens = vec![];
    for option in options.split(", ").filter(|option| !option.is_empty()) {
        match option.strip_prefix("token ") {
            Some(token) => tokens.push(token),
            None if option == "qualifier" => qualifier = Some('"'),
            None => {
                assert_eq!(option, "nullable", "{text}");
                nullable = true;
            }
        }
    }
    Layout { qualifier, ..one_column(column_type, nullable, &tokens) }
}

fn date(days: i128) -> String {
    let is_leap = |year: i128| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let (mut year, mut left) = (0, days + 719_528); // days since 0000-01-01
    if left < 0 {
        return format!("{} days before the year 0", -left);
    }
    while left >= 365 + i128::from(is_leap(year)) {
        left -= 365 + i128::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i128::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, left + 1)
}

fn time(microseconds: i128) -> String {
    let seconds = microseconds / 1_000_000;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if microseconds % 1_000_000 == 0 { text } else { format!("{text}.{:06}", microseconds % 1_000_000) }
}

/// The value as the document writes it.
fn shown(column_type: ColumnType, value: &Value) -> String {
    const DAY: i128 = 86_400_000_000;
    match (column_type, value) {
        (ColumnType::Decimal { scale, .. }, Value::Number(number)) if scale > 0 => {
            let unit = 10_u128.pow(scale.into());
            let sign = if *number < 0 { "-" } else { "" };
            let magnitude = number.unsigned_abs();
            format!("`{sign}{}.{:0width$}`", magnitude / unit, magnitude % unit, width = scale.into())
        }
        (ColumnType::Date, Value::Number(days)) => format!("`{}`", date(*days)),
        (ColumnType::Time, Value::Number(microseconds)) => format!("`{}`", time(*microseconds)),
        (ColumnType::Timestamp, Value::Number(number)) => {
            format!("`{} {}`", date(number.div_euclid(DAY)), time(number.rem_euclid(DAY)))
        }
        (ColumnType::TimestampTz, Value::Number(number)) => {
            format!("`{} {}Z`", date(number.div_euclid(DAY)), time(number.rem_euclid(DAY)))
        }
        (_, Value::Null) => "NULL".to_owned(),
        (_, Value::Number(number)) => format!("`{number}`"),
        (_, Value::Truth(truth)) => format!("`{truth}`"),
        (_, Value::Float(u64::MAX)) => "`NaN`".to_owned(),
        (ColumnType::Float32, Value::Float(bits)) => format!("`{:?}`", f32::from_bits(*bits as u32)),
        (_, Value::Float(bits)) => format!("`{:?}`", f64::from_bits(*bits)),
        (_, Value::Bytes(bytes)) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            if bytes.is_empty() { "`\"\"`".to_owned() } else { format!("`{digits}`") }
        }
        (_, Value::Text(text)) => {
            let escaped: String = text
                .chars()
                .map(|one| match one {
                    '\\' => "\\\\".to_owned(),
                    one if one.is_control() => format!("\\x{:02X}", one as u32),
                    one => one.to_string(),
                })
                .collect();
            format!("`\"{escaped}\"`")
        }
    }
}

/// What is found in place of the result, if it is something else.
fn disproved(layout: &Layout, text: &str, result: &str) -> Option<String> {
    let mut line = bytes(code(text));
    assert!(layout.qualifier.is_some() || (!line.contains(&b'|') && !line.contains(&b'\n')), "{text}");
    line.push(b'\n');
    let expected = reference::parse(layout, &RowEnd::Lf, &line, 0);
    Driver::all(&[1000], b"5|").into_iter().find_map(|driver| {
        let outcome = driver.run(layout, &RowEnd::Lf, &line, 0);
        assert_eq!(outcome, expected, "{text}");
        let found = match (&outcome.rows[..], &outcome.rejects[..]) {
            ([values], []) => shown(layout.columns[0].column_type, &values[0]),
            ([], [reject]) => format!("reject `{}`", reject.rule),
            _ => panic!("{text}: {outcome:?}"),
        };
        (found != result).then_some(found)
    })
}

#[test]
fn every_example_of_the_document_holds() {
    let mut wrong = vec![];
    let mut seen: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for row in tables("| type | text | result |") {
        let [kind, text, result] = row.as_slice() else { panic!("{row:?}") };
        let layout = layout(code(kind));
        if let Some(found) = disproved(&layout, text, result) {
            wrong.push(format!("| {kind} | {text} | {found} |"));
        }
        let word = layout.columns[0].column_type.to_string();
        let word = word.split('(').next().unwrap_or_default().to_owned();
        seen.entry(word).or_default().insert(result.starts_with("reject"));
    }
    for row in tables("| type | format | text | result |") {
        let [kind, format, text, result] = row.as_slice() else { panic!("{row:?}") };
        let mut layout = layout(code(kind));
        layout.columns[0].format = Some(serde_json::from_str(code(format)).unwrap());
        if let Some(found) = disproved(&layout, text, result) {
            wrong.push(format!("| {kind} | {format} | {text} | {found} |"));
        }
    }
    assert!(wrong.is_empty(), "the parser says:\n{}", wrong.join("\n"));
    assert_eq!(seen.len(), 17, "types with examples: {:?}", seen.keys());
    for (word, results) in seen {
        assert_eq!(results.len(), 2, "{word} needs an accepted and a rejected example");
    }
}

#[test]
fn every_rule_is_in_the_document_as_it_is_in_the_code() {
    let expected: Vec<_> = rules()
        .into_iter()
        .map(|rule| [format!("`{rule}`"), rule.code().to_owned(), rule.expected().to_owned(), rule.hint().to_owned()])
        .collect();
    let found: Vec<_> = tables("| rule | code | meaning | expected | hint |")
        .into_iter()
        .map(|row| {
            assert!(!row[2].is_empty());
            [row[0].clone(), row[1].clone(), row[3].clone(), row[4].clone()]
        })
        .collect();
    assert_eq!(found, expected);
    let names: BTreeSet<_> = rules().iter().map(ToString::to_string).collect();
    let codes: BTreeSet<_> = rules().iter().map(|rule| rule.code()).collect();
    assert_eq!((names.len(), codes.len()), (Rule::ALL.len(), Rule::ALL.len()));
    // The JSON form, which reports carry, is the same name.
    for rule in rules() {
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.to_string());
    }
}
