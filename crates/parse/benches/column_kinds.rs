//! How fast each kind of value converts: blocks of one kind of column, eight columns wide, throughput in bytes of text.
//!
//!     cargo bench -p headrace-parse                       all kinds
//!     cargo bench -p headrace-parse -- decimal            those whose name holds `decimal`
//!     HEADRACE_CPU=avx2 cargo bench -p headrace-parse     on other instructions
//!
//! The structural pass is included: a kind of short values has more delimiters per byte. Compare a kind with itself before
//! and after a change, not with another kind; `string` of about the same length says what everything but the conversion costs.

#![allow(missing_docs, clippy::panic)] // made by criterion's macros; a bench that cannot run has to say so

mod support;

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use arrow_buffer::Buffer;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headrace_parse::Parser;
use headrace_types::{Column, ColumnType, Layout, RowEnd};
use support::Shelf;

const COLUMNS: usize = 8;
const BLOCK_BYTES: usize = 256 << 10;

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to `end` - 1.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As many numbers of one digit as of `digits`.
    fn digits(&mut self, digits: u32) -> u64 {
        let end = 10u64.pow(1 + self.below(digits.into()) as u32);
        self.below(end)
    }
}

/// Writes the text of one value.
type Write1 = fn(&mut Numbers, &mut String);

/// A kind of column: its name in the report, its type, whether it is nullable, its values.
struct Kind(&'static str, ColumnType, bool, Write1);

/// A kind with a format, as JSON. Its name is that of the kind without one to compare it with, and what is different.
struct Formatted(&'static str, ColumnType, &'static str, Write1);

macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let _ = write!($out, $($format)*); // a String takes everything
    }};
}

fn date(numbers: &mut Numbers, out: &mut String) {
    put!(out, "{}-{:02}-{:02}", 1992 + numbers.below(7), 1 + numbers.below(12), 1 + numbers.below(28));
}

fn time(numbers: &mut Numbers, out: &mut String) {
    put!(out, "{:02}:{:02}:{:02}", numbers.below(24), numbers.below(60), numbers.below(60));
}

fn text(numbers: &mut Numbers, out: &mut String, least: u64, most: u64) {
    for _ in 0..least + numbers.below(most - least + 1) {
        out.push(char::from(b"abcdefghijklmnopqrstuvwxyz     "[numbers.below(31) as usize]));
    }
}

fn kinds() -> Vec<Kind> {
    use ColumnType::*;
    let decimal = |precision, scale| Decimal { precision, scale };
    vec![
        Kind("int16", Int16, false, |n, out| put!(out, "{}", n.digits(4))),
        Kind("int32 1 digit", Int32, false, |n, out| put!(out, "{}", n.below(10))),
        Kind("int32 1 to 9 digits", Int32, false, |n, out| put!(out, "{}", n.digits(9))),
        Kind("int32 signed", Int32, false, |n, out| put!(out, "{}", n.below(2_000_000) as i64 - 1_000_000)),
        Kind("int32 nullable, every tenth empty", Int32, true, |n, out| {
            if n.below(10) > 0 {
                put!(out, "{}", n.digits(9));
            }
        }),
        Kind("int64 6 to 10 digits", Int64, false, |n, out| put!(out, "{}", 100_000 + n.digits(10))),
        Kind("int64 18 digits", Int64, false, |n, out| put!(out, "{}", 100_000_000_000_000_000 + n.below(1 << 59))),
        Kind("decimal(15,2)", decimal(15, 2), false, |n, out| put!(out, "{}.{:02}", n.digits(6), n.below(100))),
        Kind("decimal(15,2) 0.0x", decimal(15, 2), false, |n, out| put!(out, "0.{:02}", n.below(11))),
        Kind("decimal(15,2) without point", decimal(15, 2), false, |n, out| put!(out, "{}", 1 + n.below(50))),
        Kind("decimal(18,6) signed", decimal(18, 6), false, |n, out| {
            put!(out, "{}.{:06}", n.below(2_000_000) as i64 - 1_000_000, n.below(1_000_000));
        }),
        Kind("decimal(38,10)", decimal(38, 10), false, |n, out| {
            put!(out, "{}{:09}.{:010}", n.digits(15), n.below(1_000_000_000), n.below(10_000_000_000));
        }),
        Kind("float64 6 digits", Float64, false, |n, out| put!(out, "{}.{:03}", n.below(1000), n.below(1000))),
        Kind("float64 17 digits", Float64, false, |n, out| {
            put!(out, "{}.{:016}", n.below(10), n.below(10_000_000_000_000_000));
        }),
        Kind("float64 exponent", Float64, false, |n, out| {
            put!(out, "{}.{:07}e{}", n.below(10), n.below(10_000_000), n.below(60) as i64 - 30);
        }),
        Kind("float32 6 digits", Float32, false, |n, out| put!(out, "{}.{:03}", n.below(1000), n.below(1000))),
        Kind("bool", Bool, false, |n, out| out.push_str(["true", "false"][n.below(2) as usize])),
        Kind("bool one letter", Bool, false, |n, out| out.push_str(["Y", "N"][n.below(2) as usize])),
        Kind("date", Date, false, date),
        Kind("time", Time, false, time),
        Kind("timestamp", Timestamp, false, |n, out| {
            date(n, out);
            out.push(' ');
            time(n, out);
        }),
        Kind("timestamp microseconds", Timestamp, false, |n, out| {
            date(n, out);
            out.push(' ');
            time(n, out);
            put!(out, ".{:06}", n.below(1_000_000));
        }),
        Kind("timestamptz", TimestampTz, false, |n, out| {
            date(n, out);
            out.push('T');
            time(n, out);
            out.push_str(["Z", "+01:00"][n.below(2) as usize]);
        }),
        Kind("char(1)", Char { length: 1 }, false, |n, out| out.push_str(["A", "N", "R"][n.below(3) as usize])),
        Kind("char(10) padded", Char { length: 10 }, false, |n, out| {
            let start = out.len();
            text(n, out, 3, 9);
            put!(out, "{:1$}", "", start + 10 - out.len());
        }),
        Kind("varchar(10) 4 to 10", Varchar { length: 10 }, false, |n, out| text(n, out, 4, 10)),
        Kind("varchar(44) 10 to 43", Varchar { length: 44 }, false, |n, out| text(n, out, 10, 43)),
        Kind("varchar(44) not ASCII", Varchar { length: 44 }, false, |n, out| {
            text(n, out, 10, 42);
            out.push('é');
        }),
        Kind("string 1 to 9", String, false, |n, out| text(n, out, 1, 9)),
        Kind("string 10 to 43", String, false, |n, out| text(n, out, 10, 43)),
        Kind("string 200", String, false, |n, out| text(n, out, 200, 200)),
        Kind("uuid", Uuid, false, |n, out| {
            let (high, low) = (n.next(), n.next());
            let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
            put!(out, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xFFFF_FFFF_FFFF);
        }),
        Kind("bytes", Bytes, false, |n, out| put!(out, "{:016x}", n.next())),
        Kind("json", Json, false, |n, out| put!(out, r#"{{"id":{},"tags":["a","b"]}}"#, n.digits(6))),
    ]
}

fn grouped(number: u64, mark: &str, out: &mut String) {
    if number >= 1000 {
        grouped(number / 1000, mark, out);
        put!(out, "{mark}{:03}", number % 1000);
    } else {
        put!(out, "{number}");
    }
}

fn german_date(numbers: &mut Numbers, out: &mut String) {
    put!(out, "{:02}.{:02}.{}", 1 + numbers.below(28), 1 + numbers.below(12), 1992 + numbers.below(7));
}

fn formatted_kinds() -> Vec<Formatted> {
    use ColumnType::*;
    const COMMA: &str = r#"{"kind":"number","decimal":","}"#;
    const GROUPS: &str = r#"{"kind":"number","decimal":",","group":{"mark":".","sizes":[3],"optional":true}}"#;
    const NARROW: &str = r#"{"kind":"number","decimal":",","group":{"mark":"\u202f","sizes":[3],"optional":true}}"#;
    const MONEY: &str = r#"{"kind":"number","decimal":",","group":{"mark":".","sizes":[3],"optional":true},
        "currency":["€"],"negative":["minus","parentheses"]}"#;
    const NAMES: &str = r#"{"kind":"patterns","patterns":["dd-MMM-yyyy"],"short_months":[["Jan"],["Feb"],["Mar"],["Apr"],
        ["May"],["Jun"],["Jul"],["Aug"],["Sep"],["Oct"],["Nov"],["Dec"]]}"#;
    let decimal = Decimal { precision: 15, scale: 2 };
    vec![
        Formatted("decimal(15,2), comma", decimal, COMMA, |n, out| put!(out, "{},{:02}", n.digits(6), n.below(100))),
        Formatted("decimal(15,2), groups", decimal, GROUPS, |n, out| {
            grouped(n.digits(6), ".", out);
            put!(out, ",{:02}", n.below(100));
        }),
        Formatted("decimal(15,2), groups of U+202F", decimal, NARROW, |n, out| {
            grouped(n.digits(6), "\u{202f}", out);
            put!(out, ",{:02}", n.below(100));
        }),
        Formatted("decimal(15,2), groups and currency", decimal, MONEY, |n, out| {
            grouped(n.digits(6), ".", out);
            put!(out, ",{:02} €", n.below(100));
        }),
        Formatted("int32 1 to 9 digits, groups", Int32, GROUPS, |n, out| grouped(n.digits(9), ".", out)),
        Formatted(
            "float64 6 digits, comma",
            Float64,
            r#"{"kind":"number","decimal":",","scientific":true}"#,
            |n, out| {
                put!(out, "{},{:03}", n.below(1000), n.below(1000));
            },
        ),
        Formatted("date, dd.MM.yyyy", Date, r#"{"kind":"patterns","patterns":["dd.MM.yyyy"]}"#, german_date),
        Formatted("date, d.M.yyyy", Date, r#"{"kind":"patterns","patterns":["d.M.yyyy"]}"#, |n, out| {
            put!(out, "{}.{}.{}", 1 + n.below(28), 1 + n.below(12), 1992 + n.below(7));
        }),
        Formatted("date, yyMMdd", Date, r#"{"kind":"patterns","patterns":["yyMMdd"],"pivot":1950}"#, |n, out| {
            put!(out, "{:02}{:02}{:02}", n.below(100), 1 + n.below(12), 1 + n.below(28));
        }),
        Formatted("date, dd-MMM-yyyy", Date, NAMES, |n, out| {
            let month = ["Jan", "FEB", "Mar", "Apr", "May", "Jun", "Dec"][n.below(7) as usize];
            put!(out, "{:02}-{month}-{}", 1 + n.below(28), 1992 + n.below(7));
        }),
        Formatted("time, HHmmss", Time, r#"{"kind":"patterns","patterns":["HHmmss"]}"#, |n, out| {
            put!(out, "{:02}{:02}{:02}", n.below(24), n.below(60), n.below(60));
        }),
        Formatted(
            "timestamp, dd.MM.yyyy HH:mm:ss",
            Timestamp,
            r#"{"kind":"patterns","patterns":["dd.MM.yyyy HH:mm:ss"]}"#,
            |n, out| {
                german_date(n, out);
                out.push(' ');
                time(n, out);
            },
        ),
        Formatted(
            "timestamp, M/d/yyyy h:mm:ss tt",
            Timestamp,
            r#"{"kind":"patterns","patterns":["M/d/yyyy h:mm:ss tt"]}"#,
            |n, out| {
                put!(out, "{}/{}/{} ", 1 + n.below(12), 1 + n.below(28), 1992 + n.below(7));
                put!(out, "{}:{:02}:{:02} ", 1 + n.below(12), n.below(60), n.below(60));
                out.push_str(["AM", "PM"][n.below(2) as usize]);
            },
        ),
        Formatted("timestamp, epoch", Timestamp, r#"{"kind":"epoch","unit":"s"}"#, |n, out| {
            put!(out, "{}", 700_000_000 + n.below(1_000_000_000));
        }),
        Formatted("bool, ja and nein", Bool, r#"{"kind":"truth","true":["ja"],"false":["nein"]}"#, |n, out| {
            out.push_str(["ja", "nein"][n.below(2) as usize]);
        }),
    ]
}

fn layout(kind: &Kind, format: Option<&str>) -> Layout {
    let format = format.map(|text| match serde_json::from_str(text) {
        Ok(format) => format,
        Err(error) => panic!("{text}: {error}"),
    });
    let column = |number| Column { format: format.clone(), ..Column::new(format!("c{number}"), kind.1, kind.2) };
    Layout { delimiter: "|".to_owned(), columns: (0..COLUMNS).map(column).collect(), ..Layout::default() }
}

/// Rows that fill a block.
fn rows(kind: &Kind) -> Vec<u8> {
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let mut all = String::new();
    loop {
        let start = all.len();
        for column in 0..COLUMNS {
            if column > 0 {
                all.push('|');
            }
            (kind.3)(&mut numbers, &mut all);
        }
        all.push('\n');
        if all.len() > BLOCK_BYTES {
            all.truncate(start);
            return all.into_bytes();
        }
    }
}

fn column_kinds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("column kinds");
    let plain = kinds().into_iter().map(|kind| (kind, None));
    let formatted = formatted_kinds().into_iter();
    let formatted = formatted.map(|Formatted(name, of, format, write)| (Kind(name, of, false, write), Some(format)));
    for (kind, format) in plain.chain(formatted) {
        let text = rows(&kind);
        let mut parser = match Parser::new(&layout(&kind, format)) {
            Ok(parser) => parser,
            Err(error) => panic!("{error:?}"),
        };
        let slabs = Arc::new(Shelf::default());
        let memory = slabs.take(support::block_bytes(text.len()));
        let block: Buffer = support::block(memory, text.len(), |place| place.copy_from_slice(&text));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(kind.0, |bencher| {
            bencher.iter(|| {
                if let Err(error) = parser.begin_slice(&RowEnd::Lf, 0) {
                    panic!("{error:?}");
                }
                black_box(support::parse(&mut parser, &block, text.len(), &slabs))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, column_kinds);
criterion_main!(benches);
