//! Formats by example: what each accepts and refuses, beside plain texts in one tile, on every instruction set.

use headrace_types::{ColumnType, Format, Layout, RowEnd, Rule};
use proptest::prelude::*;

use crate::drive::Driver;
use crate::examples::one_column;
use crate::fuzzing::formats::{self, plausible};
use crate::fuzzing::input::{Input, Random};
use crate::reference::{self, Value};

fn layout(column_type: ColumnType, format: &str) -> Layout {
    let mut layout = one_column(column_type, false, &[]);
    layout.columns[0].format = Some(serde_json::from_str(format).unwrap());
    assert_eq!(layout.check(), Ok(()), "{format}");
    layout
}

/// The texts have these values, or break these rules; each stands in tiles full of others.
fn check(column_type: ColumnType, format: &str, examples: &[(&str, Result<Value, Rule>)]) {
    let layout = layout(column_type, format);
    for (text, expected) in examples {
        let mut bytes = vec![];
        for row in 0..300 {
            let (other, _) = &examples[row % examples.len()];
            bytes.extend_from_slice(if row % 3 == 0 { text } else { other }.as_bytes());
            bytes.push(b'\n');
        }
        let one = reference::parse(&layout, &RowEnd::Lf, format!("{text}\n").as_bytes(), 0);
        let found = match (&one.rows[..], &one.rejects[..]) {
            ([row], []) => Ok(row[0].clone()),
            ([], [reject]) => Err(reject.rule),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, *expected, "reference: {text}");
        let expected = reference::parse(&layout, &RowEnd::Lf, &bytes, 0);
        for driver in Driver::all(&[1 << 20], b"1.234,5") {
            assert_eq!(driver.run(&layout, &RowEnd::Lf, &bytes, 0), expected, "{text}");
        }
    }
}

fn number(value: i128) -> Result<Value, Rule> {
    Ok(Value::Number(value))
}

const DECIMAL: ColumnType = ColumnType::Decimal { precision: 15, scale: 2 };
const BAD: Result<Value, Rule> = Err(Rule::BadDecimal);

#[test]
fn decimal_comma() {
    check(
        DECIMAL,
        r#"{"kind":"number","decimal":","}"#,
        &[
            ("1234,56", number(123_456)),
            ("-0,05", number(-5)),
            ("+7", number(700)),
            (",5", number(50)),
            ("5,", number(500)),
            ("1,234", Err(Rule::WouldRound)),
            ("1,2300", number(123)),
            ("99999999999999,00", Err(Rule::OutOfRange)),
            ("1.5", BAD),
            ("1,5,0", BAD),
            (",", BAD),
            ("1e3", BAD),
            ("5-", BAD),
        ],
    );
    let float = |value: f64| Ok(Value::Float(value.to_bits()));
    check(
        ColumnType::Float64,
        r#"{"kind":"number","decimal":",","scientific":true}"#,
        &[
            ("1234,56", float(1234.56)),
            ("-1,5e-3", float(-0.0015)),
            ("0,1", float(0.1)),
            ("inf", float(f64::INFINITY)),
            ("1e309", Err(Rule::OutOfRange)),
            ("1.5", Err(Rule::BadFloat)),
        ],
    );
    check(
        ColumnType::Float64,
        r#"{"kind":"number","decimal":","}"#,
        &[("1,5e3", Err(Rule::BadFloat)), ("2,5", float(2.5))],
    );
}

#[test]
fn groups() {
    let german = r#"{"kind":"number","decimal":",","group":{"mark":".","sizes":[3],"optional":true}}"#;
    check(
        DECIMAL,
        german,
        &[
            ("1.234,56", number(123_456)),
            ("-1.234.567.890.123,45", number(-123_456_789_012_345)),
            ("1234,56", number(123_456)),
            ("999,00", number(99_900)),
            ("1.234", number(123_400)),
            ("12", number(1200)),
            ("1.234.567", number(123_456_700)),
            ("9.999.999.999.999", number(999_999_999_999_900)),
            ("10.000.000.000.000", Err(Rule::OutOfRange)),
            ("001.234,00", number(123_400)),
            ("12.345.678.901.234,56", Err(Rule::OutOfRange)),
            ("1.23,56", BAD),
            ("12.34,56", BAD),
            ("1.2345,56", BAD),
            ("1234.567,00", BAD),
            (".234,56", BAD),
            ("1..234,56", BAD),
            ("-.234,56", BAD),
            ("1.234.,56", BAD),
            ("1.234,56.7", BAD),
            ("1,234.56", BAD),
        ],
    );
    let strict = r#"{"kind":"number","decimal":".","group":{"mark":"\u00a0","sizes":[3],"optional":false}}"#;
    check(
        DECIMAL,
        strict,
        &[
            ("1\u{a0}234.56", number(123_456)),
            ("1\u{a0}234\u{a0}567.00", number(123_456_700)),
            ("12.5", number(1250)),
            ("1234.56", BAD),
            ("1 234.56", BAD),
            ("1\u{a0}23.56", BAD),
        ],
    );
    let swiss = r#"{"kind":"number","decimal":".","group":{"mark":"’","sizes":[3],"optional":true}}"#;
    check(
        ColumnType::Int64,
        swiss,
        &[
            ("9’223’372’036’854’775’807", number(i64::MAX.into())),
            ("9’223’372’036’854’775’808", Err(Rule::OutOfRange)),
            ("-1’000", number(-1000)),
            ("1'000", Err(Rule::BadInteger)),
            ("1.0", Err(Rule::BadInteger)),
        ],
    );
    let indian = r#"{"kind":"number","decimal":".","group":{"mark":",","sizes":[3,2],"optional":true}}"#;
    check(
        DECIMAL,
        indian,
        &[
            ("12,34,567.89", number(123_456_789)),
            ("1,234.00", number(123_400)),
            ("123,456.00", BAD),
            ("1,234,567.00", BAD),
        ],
    );
}

#[test]
fn currencies_and_signs() {
    let format = r#"{"kind":"number","decimal":",","group":{"mark":" ","sizes":[3],"optional":true},
        "currency":["€","EUR"],"negative":["minus","trailing_minus","parentheses"]}"#;
    check(
        DECIMAL,
        format,
        &[
            ("1 234,50 €", number(123_450)),
            ("€1,5", number(150)),
            ("EUR\u{a0}\u{202f}1,5", number(150)),
            ("-€ 5", number(-500)),
            ("€ -5", number(-500)),
            ("5- EUR", number(-500)),
            ("5 EUR-", number(-500)),
            ("(5 €)", number(-500)),
            ("€ (5)", number(-500)),
            ("+5", number(500)),
            ("5 Euro", BAD),
            ("€5€", BAD),
            ("-5-", BAD),
            ("(-5)", BAD),
            ("(5", BAD),
            ("- 5", BAD),
            ("€", BAD),
            ("()", BAD),
            (" 5", BAD),
        ],
    );
    check(
        DECIMAL,
        r#"{"kind":"number","decimal":".","negative":["trailing_minus"]}"#,
        &[("5.00-", number(-500)), ("5.00", number(500)), ("-5.00", BAD)],
    );
}

#[test]
fn exponents_and_hexadecimal_digits() {
    check(
        DECIMAL,
        r#"{"kind":"number","decimal":",","scientific":true}"#,
        &[
            ("1,5e3", number(150_000)),
            ("-1,25E-1", Err(Rule::WouldRound)),
            ("125e-2", number(125)),
            ("1e-2", number(1)),
            ("1e-3", Err(Rule::WouldRound)),
            ("0e999999999999999999999", number(0)),
            ("1e12", number(100_000_000_000_000)),
            ("1e13", Err(Rule::OutOfRange)),
            ("1e99999999999999999999", Err(Rule::OutOfRange)),
            ("1e-99999999999999999999", Err(Rule::WouldRound)),
            ("1e", BAD),
            ("e5", BAD),
            ("1e1,5", BAD),
            ("1e5e5", BAD),
        ],
    );
    check(
        ColumnType::Int16,
        r#"{"kind":"number","decimal":".","scientific":true}"#,
        &[
            ("1.5e3", number(1500)),
            ("-3.2768e4", number(-32768)),
            ("3.2768e4", Err(Rule::OutOfRange)),
            ("1.5e0", Err(Rule::WouldRound)),
            ("15e-1", Err(Rule::WouldRound)),
            ("150e-1", number(15)),
            ("1.5", Err(Rule::BadInteger)),
            ("7", number(7)),
        ],
    );
    check(
        ColumnType::Int16,
        r#"{"kind":"number","decimal":".","hex":true}"#,
        &[
            ("0x7FFF", number(32767)),
            ("ff", number(255)),
            ("-0X8000", number(-32768)),
            ("8000", Err(Rule::OutOfRange)),
            ("0xffffffffffffffffffffffffffffffffff", Err(Rule::OutOfRange)),
            ("0x", Err(Rule::BadInteger)),
            ("1g", Err(Rule::BadInteger)),
            ("1.0", Err(Rule::BadInteger)),
        ],
    );
    // 10^38 - 1 has 32 hexadecimal digits.
    check(
        ColumnType::Decimal { precision: 38, scale: 0 },
        r#"{"kind":"number","decimal":".","hex":true}"#,
        &[
            ("0x4b3b4ca85a86c47a098a223fffffffff", number(10_i128.pow(38) - 1)),
            ("4B3B4CA85A86C47A098A223FFFFFFFFF", number(10_i128.pow(38) - 1)),
            ("-2b1a60eea047ff000d612f75169b0853", number(-0x2b1a60eea047ff000d612f75169b0853)),
            ("4b3b4ca85a86c47a098a224000000000", Err(Rule::OutOfRange)),
            ("-0x4b3b4ca85a86c47a098a224000000000", Err(Rule::OutOfRange)),
            ("80000000000000000000000000000000", Err(Rule::OutOfRange)),
            ("1ffffffffffffffffffffffffffffffff", Err(Rule::OutOfRange)),
        ],
    );
}

const DAY: i128 = 86_400_000_000;

#[test]
fn dates() {
    const BAD: Result<Value, Rule> = Err(Rule::BadDate);
    check(
        ColumnType::Date,
        r#"{"kind":"patterns","patterns":["dd.MM.yyyy"]}"#,
        &[
            ("02.01.1970", number(1)),
            ("29.02.2000", number(11_016)),
            ("01.01.0001", number(-719_162)),
            ("31.12.9999", number(2_932_896)),
            ("29.02.1900", BAD),
            ("01.01.0000", BAD),
            ("31.04.2024", BAD),
            ("1.01.2024", BAD),
            ("01.01.24", BAD),
            ("01/01/2024", BAD),
            ("01.01.2024 ", BAD),
            ("1970-01-02", BAD),
        ],
    );
    check(
        ColumnType::Date,
        r#"{"kind":"patterns","patterns":["d.M.yyyy","M/d/yyyy"]}"#,
        &[
            ("2.1.1970", number(1)),
            ("02.01.1970", number(1)),
            ("2.01.1970", number(1)),
            ("1/2/1970", number(1)),
            ("002.1.1970", BAD),
            ("2..1970", BAD),
            ("2.1.970", BAD),
            (".1.1970", BAD),
            ("2.1/1970", BAD),
        ],
    );
    check(
        ColumnType::Date,
        r#"{"kind":"patterns","patterns":["yyyy-M-d"]}"#,
        &[("1970-1-2", number(1)), ("1970-01-02", number(1)), ("1970-1-", BAD), ("1970-1-023", BAD)],
    );
    check(
        ColumnType::Date,
        r#"{"kind":"patterns","patterns":["ddMMyy"],"pivot":1950}"#,
        &[("020170", number(1)), ("010150", number(-7305)), ("010149", number(28_855)), ("01014", BAD)],
    );
    let names = r#""short_months":[["Jan","Jan."],["Feb"],["Mär","Mrz"],["Apr"],["Mai"],["Jun"],["Jul"],["Aug"],["Sep"],
        ["Okt"],["Nov"],["Dez"]]"#;
    check(
        ColumnType::Date,
        &format!(r#"{{"kind":"patterns","patterns":["d. MMM. yyyy","dd-MMM-yyyy"],{names}}}"#),
        &[
            ("2. Jan. 1970", number(1)),
            ("2. JAN.. 1970", number(1)),
            ("1. MÄR. 1970", number(59)),
            ("01-mrz-1970", number(59)),
            ("1-mrz-1970", BAD),
            ("2. Foo. 1970", BAD),
            ("2. Jan 1970", BAD),
        ],
    );
}

#[test]
fn times_and_timestamps() {
    const BAD: Result<Value, Rule> = Err(Rule::BadTimestamp);
    check(
        ColumnType::Timestamp,
        r#"{"kind":"patterns","patterns":["dd.MM.yyyy HH:mm:ss","dd.MM.yyyy"]}"#,
        &[
            ("02.01.1970 00:00:01", number(DAY + 1_000_000)),
            ("02.01.1970", number(DAY)),
            ("02.01.1970 24:00:00", BAD),
            ("02.01.1970 23:60:00", BAD),
            ("02.01.1970 23:59:59", number(2 * DAY - 1_000_000)),
            ("02.01.1970 23:59", BAD),
        ],
    );
    check(
        ColumnType::Timestamp,
        r#"{"kind":"patterns","patterns":["M/d/yyyy h:mm:ss tt"]}"#,
        &[
            ("1/2/1970 12:00:00 AM", number(DAY)),
            ("1/2/1970 12:00:00 PM", number(DAY + DAY / 2)),
            ("01/02/1970 1:00:00 pm", number(DAY + 13 * DAY / 24)),
            ("1/2/1970 13:00:00 PM", BAD),
            ("1/2/1970 0:00:00 AM", BAD),
            ("1/2/1970 1:00:00 XM", BAD),
            ("1/2/1970 1:00:00", BAD),
        ],
    );
    check(
        ColumnType::Timestamp,
        r#"{"kind":"patterns","patterns":["yyyyMMddHHmmssfffffff"]}"#,
        &[
            ("197001020000001234560", number(DAY + 123_456)),
            ("197001020000001234567", Err(Rule::WouldRound)),
            ("19700102000000123456", BAD),
        ],
    );
    // Numbers of one or two digits behind a fraction.
    check(
        ColumnType::Timestamp,
        r#"{"kind":"patterns","patterns":["HHmmssfff d.M.yyyy"]}"#,
        &[
            ("000000123 2.1.1970", number(DAY + 123_000)),
            ("000000123 12.1.1970", number(11 * DAY + 123_000)),
            ("000000123 02.01.1970", number(DAY + 123_000)),
            ("00000123 2.1.1970", BAD),
        ],
    );
    check(
        ColumnType::Timestamp,
        r#"{"kind":"patterns","patterns":["H:mm:ss.f d.M.yyyy"]}"#,
        &[("0:00:09.1 2.1.1970", number(DAY + 9_100_000)), ("00:00:09.1 12.11.1970", number(315 * DAY + 9_100_000))],
    );
    check(
        ColumnType::Time,
        r#"{"kind":"patterns","patterns":["H:mm:ss.FFF"]}"#,
        &[
            ("1:02:03", number(3_723_000_000)),
            ("01:02:03.5", number(3_723_500_000)),
            ("01:02:03.", Err(Rule::BadTime)),
            ("01:02:03.1234", Err(Rule::BadTime)),
        ],
    );
    check(
        ColumnType::TimestampTz,
        r#"{"kind":"patterns","patterns":["yyyy-MM-dd HH:mmzzz"]}"#,
        &[
            ("1970-01-02 00:00+01:00", number(DAY - DAY / 24)),
            ("1970-01-02 00:00-01", number(DAY + DAY / 24)),
            ("1970-01-02 00:00Z", number(DAY)),
            ("1970-01-02 00:00+16:00", BAD),
            ("1970-01-02 00:00", BAD),
        ],
    );
    check(
        ColumnType::TimestampTz,
        r#"{"kind":"patterns","patterns":["dd.MM.yyyy HH:mm"],"offset_minutes":60}"#,
        &[("02.01.1970 01:00", number(DAY)), ("01.01.0001 00:00", number(-719_162 * DAY - DAY / 24))],
    );
    check(
        ColumnType::TimestampTz,
        r#"{"kind":"epoch","unit":"ms"}"#,
        &[
            ("1500", number(1_500_000)),
            ("-1.5", number(-1500)),
            ("0.0001", Err(Rule::WouldRound)),
            ("253402300799999", number(253_402_300_799_999_000)),
            ("253402300800000", Err(Rule::OutOfRange)),
            ("-62135596800001", Err(Rule::OutOfRange)),
            ("1e3", BAD),
            ("x", BAD),
        ],
    );
}

#[test]
fn words_for_truth_values() {
    let (yes, no) = (Ok(Value::Truth(true)), Ok(Value::Truth(false)));
    check(
        ColumnType::Bool,
        r#"{"kind":"truth","true":["J","wahr","["],"false":["N","falsch","Ä"]}"#,
        &[
            ("J", yes.clone()),
            ("j", yes.clone()),
            ("WAHR", yes),
            ("Falsch", no.clone()),
            ("ä", no),
            ("{", Err(Rule::BadBool)),
            ("true", Err(Rule::BadBool)),
            ("wah", Err(Rule::BadBool)),
            ("\n".trim_end(), Err(Rule::NullNotAllowed)),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random formats, texts written in them: nearly all are accepted, so that the other random tests try what they should.
    #[test]
    fn most_plausible_texts_are_accepted(
        column_type in crate::examples::column_type(),
        mut decisions in prop::collection::vec(any::<u8>(), 40),
        seed in any::<u64>(),
    ) {
        decisions[0] = 0; // a format
        let mut layout = one_column(column_type, false, &[]);
        layout.columns[0].format = formats::format(column_type, &mut Input::new(&decisions));
        formats::settle(&mut layout);
        let Some(format) = layout.columns[0].format.clone() else { return Ok(()) };
        let is_writable = !matches!(&format, Format::Number(format) if format.negative.is_empty() || format.hex);
        let mut random = Random(seed);
        let texts: Vec<Vec<u8>> = (0..300).map(|_| plausible(column_type, &format, &mut random)).collect();
        let mut bytes = texts.join(&b'\n');
        bytes.push(b'\n');
        let expected = reference::parse(&layout, &RowEnd::Lf, &bytes, 0);
        prop_assert!(!is_writable || expected.rows.len() > 150, "{format:?} {:?}", expected.rejects.first());
        for driver in Driver::all(&[1 << 20], b"1.,:") {
            prop_assert_eq!(driver.run(&layout, &RowEnd::Lf, &bytes, 0), reference::parse(&layout, &RowEnd::Lf, &bytes, 0));
        }
    }
}
