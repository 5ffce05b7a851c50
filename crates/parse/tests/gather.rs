//! Facts that loops over tiles gather are those of all values, one by one.
//!
//! Not beside the code: tests of the library that use a `Parser` would compile all converters a second time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;

use arrow_buffer::Buffer;
use headrace_types::{Column, ColumnType, Layout, RowEnd};

use headrace_parse::infer::{ColumnFacts, MOST_HASHES, TableFacts};
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, CpuPath, Parser};

/// A generator of numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

const KINDS: u64 = 20;

/// A value like others of its kind; none is null.
fn value(random: &mut Random, kind: u64) -> Option<String> {
    let digits = |random: &mut Random, most: u64| {
        let count = 1 + random.below(most);
        (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect::<String>()
    };
    Some(match kind {
        0 => random.below(70_000).to_string(),
        1 => (random.0 as i64 >> random.below(63)).to_string(),
        2 => format!("{}.{:02}", random.below(100_000), random.below(100)),
        3 => format!("-{}.{:03}", random.below(5000), random.below(1000)),
        4 => format!("{}.{:03}", random.below(1200), random.below(1000)),
        5 => format!("{}-{:02}-{:02}", 1990 + random.below(15), 1 + random.below(12), 1 + random.below(28)),
        6 => {
            let (day, hour, second) = (1 + random.below(28), random.below(24), random.below(60));
            let fraction = random.one(&["", "", ".5", ".123456"]);
            format!("2024-02-{day:02}{}{hour:02}:59:{second:02}{fraction}", random.one(&[" ", "T"]))
        }
        7 => random.one(&["N", "R", "A", "TAKE BACK RETURN", "DELIVER IN PERSON"]).to_owned(),
        8 => {
            let length = random.below(60);
            (0..=length).map(|_| random.one(&["a", "e", "T", "z", " ", "7", "-", "u"])).collect()
        }
        9 => format!("{}-URGENT", random.below(1000)),
        10 => digits(random, 40),
        11 => format!("{}.{}", digits(random, 12), digits(random, 12)),
        12 => format!("{}{}e{}", random.one(&["", "-"]), digits(random, 3), random.one(&["5", "+10", "-7", "-400"])),
        13 => format!("{},{}", digits(random, 4), digits(random, 3)),
        14 => random
            .one(&[
                "true",
                "FALSE",
                "tRue",
                "trues",
                "",
                " ",
                "\t",
                " 12 ",
                "a ",
                " a",
                "é",
                "Łódź is a town of many letters, and so on",
                "123e4567-e89b-12d3-a456-426614174000",
                "abcdefab xe89b x12d3xa456x42661417400",
                "007",
                "-007",
                "+5",
                "-0",
                "0",
                "-0.00",
                "0.00",
                "00.10",
                ".5",
                "5.",
                "1.234",
                "0.234",
                "01.234",
                "1234.567",
                "24:00",
                "12:30",
                "\"q\"",
                "2023-02-29",
                "0001-01-01",
                "9999-12-31",
                "1e5",
                "1.5e300",
                "9007199254740993",
                "123456789012345",
                "1234567890123456",
                "-",
                "9223372036854775808",
                "3/4/2024",
                "31.12.1999 9:05",
                "2024-1-2",
            ])
            .to_owned(),
        15 => format!("Customer#{:09}", random.below(3000)),
        16 => format!("{:.1$}", random.0 as f64 / 1e19, random.below(18) as usize),
        17 => random
            .one(&[
                "(12.50)",
                "12.50-",
                " (7) ",
                "12 %",
                "$12.50",
                "-$5",
                "EUR 12",
                "EUR12.5",
                "EURO 12",
                " CHF 7",
                "SEK 7  ",
                "12.50 EUR",
                "12 USD ",
                "-EUR 12",
                "12usd",
                "Room 12, 2026",
                "January 5, 2026",
                "Jan. 5, 2026 10:00",
                " Wordswords 5, 26",
                "Abcdefghijklmnopqrst 1, 2026",
                "Abcdefgh 1, 2026 is a text that is longer than others",
                "12 Jan 2026",
                "12-Jan-2026",
                "1. Januar 2026",
                "3/Sep/1999 9:05",
                "1 234 567",
                "1'234.50",
            ])
            .to_owned(),
        18 => {
            format!("{} {}, {}", random.one(&["Jan", "Words", "Supplier", "a"]), random.below(40), random.below(3000))
        }
        _ => return None,
    })
}

/// The rows of a file with one column, which changes its kind again and again.
fn column(random: &mut Random) -> Vec<Option<String>> {
    let mut found = Vec::new();
    let repeats = random.below(3);
    while found.len() < 2000 && random.below(12) > 0 {
        let (kind, rows) = (random.below(KINDS), 1 + random.below(600));
        let other = random.below(KINDS);
        let some: Vec<_> = (0..1 + random.below(20)).map(|_| value(random, kind)).collect();
        for _ in 0..rows {
            found.push(match random.below(40) {
                0 if repeats > 0 => value(random, other),
                _ if repeats == 2 => some[random.below(some.len() as u64) as usize].clone(),
                _ => value(random, kind),
            });
        }
    }
    found
}

fn told(facts: &ColumnFacts) -> String {
    let report = facts.report("c", &|(slice, line)| (slice as usize, line));
    serde_json::to_string_pretty(&report).unwrap_or_default()
}

/// The file, in slices of some rows that come in any order; `is_quoted`: every field stands between qualifiers.
fn gathered(
    columns: &[Vec<Option<String>>],
    is_quoted: bool,
    slices: &[(u32, usize, usize)],
    path: CpuPath,
) -> Vec<ColumnFacts> {
    let column = |number| Column::new(format!("c{number}"), ColumnType::String, true);
    let layout = Layout {
        delimiter: "|".to_owned(),
        qualifier: is_quoted.then_some('"'),
        columns: (0..columns.len()).map(column).collect(),
        ..Layout::default()
    };
    let mut parser = Parser::new(&layout).unwrap().with_cpu_path(path);
    let mut facts = TableFacts::new(columns.len(), MOST_HASHES, true);
    for &(slice, from, to) in slices {
        let mut text = String::new();
        for row in from..to {
            for (number, column) in columns.iter().enumerate() {
                text += if number > 0 { "|" } else { "" };
                match &column[row] {
                    None => {}
                    Some(value) if is_quoted => write!(text, "\"{}\"", value.replace('"', "\"\"")).unwrap(),
                    Some(value) => text += value,
                }
            }
            text += "\n";
        }
        let mut memory = Memory::new(text.len() + 2 * PADDING_BYTES);
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + text.len()].copy_from_slice(text.as_bytes());
        let buffer: Buffer = memory.freeze();
        parser.begin_slice(&RowEnd::Lf, 0).unwrap();
        facts.begin_slice(slice);
        let length = text.len();
        let block = Block { buffer: &buffer, from: 0, length, real_length: length, first_byte: 0, ended: true };
        let parsed = parser.parse_or_gather(block, Memory::new, Some(&mut facts)).unwrap();
        assert_eq!((parsed.consumed, parsed.rejected), (length, 0));
        assert!(parsed.batch.is_none_or(|batch| batch.num_columns() == 0), "not gathered");
    }
    facts.finish()
}

/// The same, of values one by one: from the row `cut` on they are those of another slice.
fn added_one_by_one(column: &[Option<String>], cut: usize) -> ColumnFacts {
    let mut facts = ColumnFacts::new(MOST_HASHES);
    for (row, value) in column.iter().enumerate() {
        let place = if row < cut { (0, row as u64) } else { (1, (row - cut) as u64) };
        match value {
            Some(value) => facts.add(value.as_bytes(), place),
            None => facts.add_nulls(1),
        }
    }
    facts
}

#[test]
fn tiles_tell_what_values_tell() {
    let mut random = Random(0x5DEE_CE66_D1CE_CAFE);
    for round in 0..150 {
        let mut columns: Vec<_> = (0..3).map(|_| column(&mut random)).collect();
        let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
        columns.iter_mut().for_each(|column| column.truncate(rows));
        // No row is blank.
        columns.push(vec![Some("x".to_owned()); rows]);
        let is_quoted = round % 3 == 1;
        if !is_quoted {
            // Without qualifiers an empty field is NULL, and the delimiter no text.
            columns.iter_mut().flatten().for_each(|value| *value = value.take().filter(|text| !text.is_empty()));
        }
        let cut = random.below(rows as u64 + 1) as usize;
        let slices = if round % 2 == 0 { [(1, cut, rows), (0, 0, cut)] } else { [(0, 0, cut), (1, cut, rows)] };
        for path in CpuPath::available() {
            let found = gathered(&columns, is_quoted, &slices, path);
            for (column, found) in columns.iter().zip(&found) {
                let expected = added_one_by_one(column, cut);
                assert_eq!(told(found), told(&expected), "round {round}, {}", path.name());
            }
        }
    }
}

#[test]
fn days_with_names_of_months_may_be_as_long_as_a_uuid() {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    for more in ["", "i"] {
        let text = |row: usize| {
            let changing = format!("{}{}", letter(row), letter(row / 26));
            match row % 8 {
                1 => format!("Abcdefgh{more}xy{changing} 1, 2026 12:30:45.123456"),
                _ => format!("abcdefgh{more}{}xy{changing}", "xyz".repeat(8)),
            }
        };
        let column: Vec<_> = (0..600).map(|row| Some(text(row))).collect();
        assert!(column.iter().flatten().all(|text| text.len() == 36 + more.len()));
        let expected = added_one_by_one(&column, column.len());
        assert!(told(&expected).contains("month_name"));
        for path in CpuPath::available() {
            let found = gathered(std::slice::from_ref(&column), false, &[(0, 0, column.len())], path);
            assert_eq!(told(&found[0]), told(&expected), "{}", path.name());
        }
    }
}
