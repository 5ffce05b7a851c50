//! Texts of every type: plausible ones by random numbers, and whatever the fuzz bytes ask for.

use headrace_types::{ColumnType, Format};

use super::formats;
use super::input::{Input, Random};
use crate::examples::edges;

/// Bytes that hurt: row ends, NUL, continuation bytes, neighbours of digits and of delimiters.
const HOSTILE: &[u8] = b"\r\n\0\x80\xC3\xFF\xF0|,;\t /:.-+eE09x\"'\\{}@`";
const CHARACTERS: &[&str] = &["a", "b", "z", " ", "-", "9", "0", "é", "€", "😀", "\"", "'", "\\", "\u{1}", "\u{7f}"];

/// One of the 17 kinds with any parameters that the layout allows.
pub fn column_type(input: &mut Input<'_>) -> ColumnType {
    const DECIMALS: &[(u8, u8)] =
        &[(15, 2), (18, 8), (18, 9), (19, 2), (38, 10), (9, 2), (8, 0), (17, 17), (18, 0), (38, 38)];
    match input.below(20) {
        0 => ColumnType::Int16,
        1 => ColumnType::Int32,
        2 => ColumnType::Int64,
        3 => ColumnType::Float32,
        4 => ColumnType::Float64,
        5 => ColumnType::Bool,
        6 => ColumnType::Date,
        7 => ColumnType::Time,
        8 => ColumnType::Timestamp,
        9 => ColumnType::TimestampTz,
        10 | 11 => ColumnType::String,
        12 => ColumnType::Bytes,
        13 => ColumnType::Uuid,
        14 => ColumnType::Json,
        15 => ColumnType::Char { length: 1 + input.below(40) as u32 },
        16 => ColumnType::Varchar { length: 1 + input.below(40) as u32 },
        17 | 18 => {
            let (precision, scale) = input.pick(DECIMALS);
            ColumnType::Decimal { precision, scale }
        }
        _ => {
            let precision = 1 + input.below(38) as u8;
            ColumnType::Decimal { precision, scale: input.below(usize::from(precision) + 1) as u8 }
        }
    }
}

/// A field as the next fuzz bytes want it.
pub fn field(
    column_type: ColumnType,
    format: Option<&Format>,
    null_tokens: &[String],
    input: &mut Input<'_>,
) -> Vec<u8> {
    match input.below(9) {
        0 | 1 => plausible_of(column_type, format, &mut input.random()),
        2 => input.pick(edges(column_type)).as_bytes().to_vec(),
        3 => {
            let mut text = plausible_of(column_type, format, &mut input.random());
            let at = input.below(text.len().min(255) + 1);
            let byte = input.byte();
            match input.below(3) {
                0 if at < text.len() => text[at] = byte,
                1 if at < text.len() => drop(text.remove(at)),
                _ => text.insert(at, byte),
            }
            text
        }
        4 => vec![],
        5 => null_tokens.get(input.below(4)).map_or(vec![], |token| token.as_bytes().to_vec()),
        6 => {
            // Digits around a point, of every length on both sides.
            let sign = input.pick(&["", "-", "+", "0"]);
            let mut random = input.random();
            let (whole, fraction) = (input.below(42), input.below(42));
            let point = input.pick(&[".", "", "..", ","]);
            [sign.as_bytes(), &digits(&mut random, whole), point.as_bytes(), &digits(&mut random, fraction)].concat()
        }
        7 => b"x".repeat(input.below(64)),
        _ => input.run().to_vec(),
    }
}

/// A field of random numbers: `dirt` of 256 are not what the type wants.
pub fn random_field(
    column_type: ColumnType,
    format: Option<&Format>,
    null_tokens: &[String],
    dirt: u8,
    random: &mut Random,
) -> Vec<u8> {
    if random.below(256) >= usize::from(dirt) {
        return plausible_of(column_type, format, random);
    }
    match random.below(5) {
        0 => vec![],
        1 => random.pick(edges(column_type)).as_bytes().to_vec(),
        2 if !null_tokens.is_empty() => random.pick(null_tokens).into_bytes(),
        3 => (0..random.below(14)).map(|_| random.pick(HOSTILE)).collect(),
        _ => {
            let mut text = plausible_of(column_type, format, random);
            let at = random.below(text.len() + 1);
            match random.below(3) {
                0 if at < text.len() => text[at] = random.pick(HOSTILE),
                1 if at < text.len() => drop(text.remove(at)),
                _ => text.insert(at, random.pick(HOSTILE)),
            }
            text
        }
    }
}

fn digits(random: &mut Random, count: usize) -> Vec<u8> {
    let same = random.once_in(4).then(|| random.pick(b"0195"));
    (0..count).map(|_| same.unwrap_or_else(|| b'0' + random.below(10) as u8)).collect()
}

/// Text that the column mostly accepts.
pub fn plausible_of(column_type: ColumnType, format: Option<&Format>, random: &mut Random) -> Vec<u8> {
    match format {
        Some(format) => formats::plausible(column_type, format, random),
        None => plausible(column_type, random),
    }
}

/// Text that the type mostly accepts, often close to its limits.
pub fn plausible(column_type: ColumnType, random: &mut Random) -> Vec<u8> {
    match column_type {
        ColumnType::Int16 => integer(random, 5, i16::MAX.into()),
        ColumnType::Int32 => integer(random, 10, i32::MAX.into()),
        ColumnType::Int64 => integer(random, 19, i64::MAX.into()),
        ColumnType::Decimal { precision, scale } => decimal(random, precision.into(), scale.into()),
        ColumnType::Float32 | ColumnType::Float64 => float(random, column_type == ColumnType::Float32),
        ColumnType::Bool => {
            random.pick(&["true", "false", "1", "0", "t", "F", "Yes", "nO", "y", "TRUE"]).as_bytes().to_vec()
        }
        ColumnType::Date => date(random).into_bytes(),
        ColumnType::Time => time(random).into_bytes(),
        ColumnType::Timestamp => (date(random) + random.pick(&[" ", "T"]) + &time(random)).into_bytes(),
        ColumnType::TimestampTz => {
            let (hours, minutes) = (random.below(16), random.below(60));
            let offset = match random.below(6) {
                0 | 1 => "Z".to_owned(),
                2 => format!("+{hours:02}"),
                3 => format!("-{hours:02}:{minutes:02}"),
                4 => format!("+{hours:02}{minutes:02}"),
                _ => "-15:59".to_owned(),
            };
            (date(random) + random.pick(&[" ", "T"]) + &time(random) + &offset).into_bytes()
        }
        ColumnType::String => {
            let length = match random.below(8) {
                0 => random.below(4),
                1..5 => random.between(9, 18),
                5 | 6 => random.below(40),
                _ => random.below(300),
            };
            characters(random, length)
        }
        ColumnType::Char { length } => {
            let length = around(random, length);
            let mut text = characters(random, length);
            text.extend(b" ".repeat(random.pick(&[0, 0, 1, 5])));
            text
        }
        ColumnType::Varchar { length } => {
            let length = around(random, length);
            characters(random, length)
        }
        ColumnType::Bytes => {
            let pairs = random.pick(&[0, 1, 4, 11, 12, 13, 16, 20]);
            let text: String = (0..pairs).map(|_| format!("{:02x}", random.below(256))).collect();
            let text = if random.once_in(3) { text.to_uppercase() } else { text };
            (random.pick(&["\\x", ""]).to_owned() + &text).into_bytes()
        }
        ColumnType::Uuid => {
            let text = format!("{:016x}{:016x}", random.bits(), random.bits());
            let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
            match random.below(4) {
                0 => text,
                1 => format!("{{{}}}", parts.join("-")),
                2 => parts.join("-").to_uppercase(),
                _ => parts.join("-"),
            }
            .into_bytes()
        }
        ColumnType::Json => json(random, 3).into_bytes(),
    }
}

fn around(random: &mut Random, length: u32) -> usize {
    let length = length as usize;
    match random.below(16) {
        0..8 => random.below(length + 1),
        8..15 => length - random.below(2).min(length),
        _ => length + 1,
    }
}

fn characters(random: &mut Random, count: usize) -> Vec<u8> {
    let choices = match random.below(4) {
        0 => CHARACTERS,
        1 => &CHARACTERS[5..10],
        _ => &CHARACTERS[..5],
    };
    (0..count).flat_map(|_| random.pick(choices).as_bytes()).copied().collect()
}

fn integer(random: &mut Random, most_digits: usize, greatest: i128) -> Vec<u8> {
    let sign = random.pick(&["", "", "", "-", "-", "+"]);
    let text = match random.below(12) {
        0 => (greatest - 1 + random.below(4) as i128).to_string(),
        1 => "0".repeat(random.below(25)) + &random.below(1000).to_string(),
        2 => format!("1{}", "0".repeat(random.below(most_digits))),
        _ => {
            let most = most_digits - usize::from(!random.once_in(20));
            let count = random.between(1, most);
            return [sign.as_bytes(), &digits(random, count)].concat();
        }
    };
    (sign.to_owned() + &text).into_bytes()
}

fn decimal(random: &mut Random, precision: usize, scale: usize) -> Vec<u8> {
    let sign = random.pick(&["", "", "", "-", "-", "+"]);
    let most = precision - scale;
    let (whole, fraction) = match random.below(12) {
        0 => (b"9".repeat(most), b"9".repeat(scale)),
        1 => ([&b"1"[..], &b"0".repeat(most)].concat(), b"0".repeat(scale)),
        2 => (digits(random, most), b"0".repeat(scale + random.below(4))),
        3 => {
            let kept = random.below(scale + 1);
            (digits(random, most.min(4)), digits(random, kept))
        }
        4 => ([b"0".repeat(random.below(20)), digits(random, most)].concat(), digits(random, scale)),
        _ => {
            let count = random.between(usize::from(most > 0), most);
            (digits(random, count), digits(random, scale))
        }
    };
    let point = if fraction.is_empty() && !random.once_in(8) { "" } else { "." };
    [sign.as_bytes(), &whole, point.as_bytes(), &fraction].concat()
}

fn float(random: &mut Random, single: bool) -> Vec<u8> {
    match random.below(6) {
        0 if single => f32::from_bits(random.bits() as u32).to_string(),
        0 => format!("{:e}", f64::from_bits(random.bits())),
        1 => format!("{}e{}", random.below(100_000), random.below(80) as i32 - 40),
        2 => random.pick(&["inf", "-Infinity", "nan", "1e308", "1e-320", "3.4028235e38", "0", "-0"]).to_owned(),
        3 => (random.below(2_000_000) as f64 / 1000.0).to_string(),
        _ => {
            let (whole, fraction) = (random.below(20), random.between(1, 20));
            return [digits(random, whole), b".".to_vec(), digits(random, fraction)].concat();
        }
    }
    .into_bytes()
}

fn date(random: &mut Random) -> String {
    let year = match random.below(6) {
        0 => random.pick(&[1, 4, 100, 400, 1600, 1900, 1969, 1970, 2000, 2100, 9999]),
        1 => random.between(1, 9999),
        _ => random.between(1990, 2030),
    };
    let last_day = if random.once_in(4) { 31 } else { 28 };
    let (month, day) = (random.between(1, 12), random.between(1, last_day));
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(random: &mut Random) -> String {
    let mut text = format!("{:02}:{:02}", random.below(24), random.below(60));
    if !random.once_in(5) {
        text += &format!(":{:02}", random.below(60));
        if random.once_in(2) {
            text += &format!(".{}", random.below(1_000_000));
            text += &"0".repeat(random.below(4));
        }
    }
    text
}

fn json(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => random.pick(&["null", "true", "false", "0", "-0.5e+3", "1e400", "\"\""]).to_owned(),
        1 => random.below(1_000_000).to_string(),
        2 => {
            random.pick(&["\"é😀\"", "\"a\\u00e9\\n\"", "\"\\\\\"", "\"long enough to be no inline view\""]).to_owned()
        }
        3 => format!("\"{}\"", "k".repeat(random.below(16))),
        4 => format!("[{}, {}]", json(random, depth - 1), json(random, depth - 1)),
        _ => format!("{{\"k\":{}, \"\":{} }}", json(random, depth - 1), json(random, depth - 1)),
    }
}
