//! Text to values by simple means: character by character, standard library only.

use std::cell::Cell;

use headrace_types::{ColumnType, Rule};

use crate::json;
use crate::reference::Value;

/// Value of a field that is neither empty nor a null token.
pub fn convert(column_type: ColumnType, field: &[u8]) -> Result<Value, Rule> {
    match column_type {
        ColumnType::Int16 => integer(field, i16::MIN.into(), i16::MAX.into()),
        ColumnType::Int32 => integer(field, i32::MIN.into(), i32::MAX.into()),
        ColumnType::Int64 => integer(field, i64::MIN.into(), i64::MAX.into()),
        ColumnType::Decimal { precision, scale } => decimal(field, precision.into(), scale.into()),
        ColumnType::Float32 => float(field, |text| {
            let value: f32 = text.parse().unwrap();
            (value.is_infinite(), if value.is_nan() { u64::MAX } else { value.to_bits().into() })
        }),
        ColumnType::Float64 => float(field, |text| {
            let value: f64 = text.parse().unwrap();
            (value.is_infinite(), if value.is_nan() { u64::MAX } else { value.to_bits() })
        }),
        ColumnType::Bool => match field.to_ascii_lowercase().as_slice() {
            b"true" | b"t" | b"1" | b"yes" | b"y" => Ok(Value::Truth(true)),
            b"false" | b"f" | b"0" | b"no" | b"n" => Ok(Value::Truth(false)),
            _ => Err(Rule::BadBool),
        },
        ColumnType::Date => days(field).map(Value::Number).ok_or(Rule::BadDate),
        ColumnType::Time => time(field, Rule::BadTime).map(Value::Number),
        ColumnType::Timestamp => timestamp(field).map(Value::Number),
        ColumnType::TimestampTz => timestamp_with_offset(field).map(Value::Number),
        ColumnType::String => text(field, usize::MAX),
        ColumnType::Char { length } => {
            let mut kept = field;
            while kept.ends_with(b" ") {
                kept = &kept[..kept.len() - 1];
            }
            text(kept, length as usize).map(without_trailing_blanks)
        }
        ColumnType::Varchar { length } => text(field, length as usize),
        ColumnType::Json => {
            let value = text(field, usize::MAX)?;
            if json::is_document(field) { Ok(value) } else { Err(Rule::BadJson) }
        }
        ColumnType::Uuid => uuid(field).map(Value::Bytes).ok_or(Rule::BadUuid),
        ColumnType::Bytes => {
            let digits = if field.starts_with(b"\\x") { &field[2..] } else { field };
            hexadecimal(digits).map(Value::Bytes).ok_or(Rule::BadBytes)
        }
    }
}

thread_local! {
    static IS_CUTTING: Cell<bool> = const { Cell::new(false) };
}

/// Whether values that are too long or too exact lose what is too much, and are none the worse for it.
pub fn is_cutting() -> bool {
    IS_CUTTING.get()
}

/// Converts with cutting.
pub fn cutting<T>(convert: impl FnOnce() -> T) -> T {
    IS_CUTTING.set(true);
    let value = convert();
    IS_CUTTING.set(false);
    value
}

fn without_trailing_blanks(value: Value) -> Value {
    let Value::Text(text) = value else { return value };
    Value::Text(text.trim_end_matches(' ').to_owned())
}

fn all_digits(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// Takes off one sign.
fn unsigned(field: &[u8]) -> (i128, &[u8]) {
    match field.first() {
        Some(b'-') => (-1, &field[1..]),
        Some(b'+') => (1, &field[1..]),
        _ => (1, field),
    }
}

/// Number of ASCII digits; `None` when it has more than 38 digits without leading zeros.
fn number(digits: &[u8]) -> Option<i128> {
    let mut significant = digits;
    while significant.first() == Some(&b'0') {
        significant = &significant[1..];
    }
    if significant.len() > 38 {
        return None;
    }
    Some(significant.iter().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0')))
}

fn integer(field: &[u8], least: i128, greatest: i128) -> Result<Value, Rule> {
    let (sign, digits) = unsigned(field);
    if digits.is_empty() || !all_digits(digits) {
        return Err(Rule::BadInteger);
    }
    let value = sign * number(digits).ok_or(Rule::OutOfRange)?;
    if value < least || value > greatest { Err(Rule::OutOfRange) } else { Ok(Value::Number(value)) }
}

fn decimal(field: &[u8], precision: usize, scale: usize) -> Result<Value, Rule> {
    let (sign, rest) = unsigned(field);
    let mut parts = rest.splitn(2, |&character| character == b'.');
    let whole = parts.next().unwrap();
    let fraction = parts.next().unwrap_or_default();
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return Err(Rule::BadDecimal);
    }
    let mut digits = whole.to_vec();
    for place in 0..scale {
        digits.push(fraction.get(place).copied().unwrap_or(b'0'));
    }
    let unscaled = number(&digits).filter(|&value| value < 10_i128.pow(precision as u32)).ok_or(Rule::OutOfRange)?;
    if fraction.iter().skip(scale).any(|&digit| digit != b'0') && !is_cutting() {
        return Err(Rule::WouldRound);
    }
    Ok(Value::Number(sign * unscaled))
}

fn float(field: &[u8], parse: impl Fn(&str) -> (bool, u64)) -> Result<Value, Rule> {
    let (_, rest) = unsigned(field);
    let is_word = [&b"inf"[..], b"infinity", b"nan"].iter().any(|word| rest.eq_ignore_ascii_case(word));
    if !is_word && !is_float_literal(rest) {
        return Err(Rule::BadFloat);
    }
    let (infinite, bits) = parse(std::str::from_utf8(field).unwrap());
    if infinite && !is_word { Err(Rule::OutOfRange) } else { Ok(Value::Float(bits)) }
}

/// `digits[.digits][e[+-]digits]` with a digit on at least one side of the point.
fn is_float_literal(rest: &[u8]) -> bool {
    let mantissa = match rest.iter().position(|character| matches!(character, b'e' | b'E')) {
        None => rest,
        Some(at) => {
            let (_, exponent) = unsigned(&rest[at + 1..]);
            if exponent.is_empty() || !all_digits(exponent) {
                return false;
            }
            &rest[..at]
        }
    };
    let points = mantissa.iter().filter(|&&character| character == b'.').count();
    let digits = mantissa.iter().filter(|character| character.is_ascii_digit()).count();
    digits > 0 && points < 2 && points + digits == mantissa.len()
}

fn small_number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !all_digits(text) {
        return None;
    }
    std::str::from_utf8(text).unwrap().parse().ok()
}

/// Days since 1970-01-01.
fn days(field: &[u8]) -> Option<i128> {
    if field.len() != 10 || field[4] != b'-' || field[7] != b'-' {
        return None;
    }
    let year = small_number(&field[..4])?;
    let month = small_number(&field[5..7])?;
    let day = small_number(&field[8..])?;
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if year < 1 || !(1..=12).contains(&month) || day < 1 || day > lengths[month as usize - 1] {
        return None;
    }
    let years = year - 1;
    let before_year = 365 * years + years / 4 - years / 100 + years / 400;
    let before_month: i64 = lengths[..month as usize - 1].iter().sum();
    Some(i128::from(before_year + before_month + day - 1 - 719_162))
}

/// Microseconds since midnight.
fn time(field: &[u8], bad: Rule) -> Result<i128, Rule> {
    let parts: Vec<&[u8]> = field.split(|&character| character == b':').collect();
    if parts.len() < 2 || parts.len() > 3 {
        return Err(bad);
    }
    let two = |part: &[u8], limit: i64| {
        let value = if part.len() == 2 { small_number(part) } else { None };
        value.filter(|&value| value < limit).ok_or(bad)
    };
    let (hours, minutes) = (two(parts[0], 24)?, two(parts[1], 60)?);
    let mut microseconds = i128::from((hours * 60 + minutes) * 60_000_000);
    let Some(last) = parts.get(2) else { return Ok(microseconds) };
    if last.len() < 2 {
        return Err(bad);
    }
    let (seconds, fraction) = last.split_at(2);
    microseconds += i128::from(two(seconds, 60)? * 1_000_000);
    if fraction.is_empty() {
        return Ok(microseconds);
    }
    if fraction[0] != b'.' || fraction.len() < 2 || !all_digits(&fraction[1..]) {
        return Err(bad);
    }
    let mut digits = fraction[1..].to_vec();
    while digits.len() < 6 {
        digits.push(b'0');
    }
    if digits[6..].iter().any(|&digit| digit != b'0') && !is_cutting() {
        return Err(Rule::WouldRound);
    }
    Ok(microseconds + i128::from(small_number(&digits[..6]).unwrap()))
}

fn timestamp(field: &[u8]) -> Result<i128, Rule> {
    if field.len() < 11 || !matches!(field[10], b' ' | b'T') {
        return Err(Rule::BadTimestamp);
    }
    let days = days(&field[..10]).ok_or(Rule::BadTimestamp)?;
    Ok(days * 86_400_000_000 + time(&field[11..], Rule::BadTimestamp)?)
}

fn timestamp_with_offset(field: &[u8]) -> Result<i128, Rule> {
    let from = field.len().min(11);
    let sign = field[from..].iter().position(|character| matches!(character, b'+' | b'-' | b'Z' | b'z'));
    let (local, offset) = field.split_at(from + sign.ok_or(Rule::BadTimestamp)?);
    let minutes = offset_minutes(offset).ok_or(Rule::BadTimestamp)?;
    Ok(timestamp(local)? - i128::from(minutes) * 60_000_000)
}

/// `Z` or `+HH`, `+HHMM`, `+HH:MM`.
fn offset_minutes(offset: &[u8]) -> Option<i64> {
    if offset.eq_ignore_ascii_case(b"z") {
        return Some(0);
    }
    let sign = match offset[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: Vec<u8> = match offset.len() {
        3 => [&offset[1..], b"00"].concat(),
        5 => offset[1..].to_vec(),
        6 if offset[3] == b':' => [&offset[1..3], &offset[4..]].concat(),
        _ => return None,
    };
    let (hours, minutes) = (small_number(&digits[..2])?, small_number(&digits[2..])?);
    (hours <= 15 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

fn text(field: &[u8], length: usize) -> Result<Value, Rule> {
    let text = std::str::from_utf8(field).map_err(|_| Rule::InvalidUtf8)?;
    if text.contains('\0') {
        Err(Rule::NulByte)
    } else if text.chars().count() > length {
        if is_cutting() { Ok(Value::Text(text.chars().take(length).collect())) } else { Err(Rule::TooLong) }
    } else {
        Ok(Value::Text(text.to_owned()))
    }
}

fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let text = std::str::from_utf8(digits).unwrap();
    Some((0..digits.len() / 2).map(|pair| u8::from_str_radix(&text[2 * pair..2 * pair + 2], 16).unwrap()).collect())
}

fn uuid(field: &[u8]) -> Option<Vec<u8>> {
    let braced = field.starts_with(b"{") && field.ends_with(b"}") && field.len() > 1;
    let inner = if braced { &field[1..field.len() - 1] } else { field };
    let digits = if inner.len() == 36 {
        let groups: Vec<&[u8]> = inner.split(|&character| character == b'-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        if lengths != [8, 4, 4, 4, 12] {
            return None;
        }
        groups.concat()
    } else {
        inner.to_vec()
    };
    if digits.len() == 32 { hexadecimal(&digits) } else { None }
}
