//! Formats by simple means: every way to read a text is tried, and texts are built anew instead of being looked at in place.
//! Shares no code with the crate, patterns included.

use std::collections::BTreeMap;

use headrace_types::{
    ColumnType, EpochUnit, Format, GroupFormat, Negative, NumberFormat, PatternFormat, Rule, TruthFormat,
};

use crate::reference::Value;
use crate::reference_values::{self as plain};

/// Value of a field that is neither empty nor a null token.
pub fn convert(column_type: ColumnType, format: &Format, field: &[u8]) -> Result<Value, Rule> {
    match format {
        Format::Number(format) => number(column_type, format, field),
        Format::Patterns(format) => moment(column_type, format, field),
        Format::Epoch(format) => {
            let scale = match format.unit {
                EpochUnit::Seconds => 6,
                EpochUnit::Milliseconds => 3,
                EpochUnit::Microseconds => 0,
            };
            let value = plain::convert(ColumnType::Decimal { precision: 18, scale }, field);
            let value = value.map_err(|rule| if rule == Rule::BadDecimal { Rule::BadTimestamp } else { rule })?;
            let Value::Number(microseconds) = value else { unreachable!() };
            let day = 86_400_000_000;
            let is_of_calendar = (-719_162 * day..2_932_897 * day).contains(&microseconds);
            if is_of_calendar { Ok(value) } else { Err(Rule::OutOfRange) }
        }
        Format::Truth(format) => truth(format, field),
    }
}

fn small(text: &str) -> String {
    text.chars().map(|character| character.to_lowercase().to_string()).collect()
}

fn truth(format: &TruthFormat, field: &[u8]) -> Result<Value, Rule> {
    let text = std::str::from_utf8(field).map_err(|_| Rule::BadBool)?;
    let is_one_of = |texts: &[String]| texts.iter().any(|one| small(one) == small(text));
    match (is_one_of(&format.yes), is_one_of(&format.no)) {
        (false, false) => Err(Rule::BadBool),
        (yes, _) => Ok(Value::Truth(yes)),
    }
}

/// A number as it is written: digits and the place of the point among them, from the end.
struct Written {
    negative: bool,
    digits: String,
    behind_point: i128,
    exponent: Option<String>,
}

fn number(column_type: ColumnType, format: &NumberFormat, field: &[u8]) -> Result<Value, Rule> {
    let bad = match column_type {
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => Rule::BadInteger,
        ColumnType::Decimal { .. } => Rule::BadDecimal,
        _ => Rule::BadFloat,
    };
    let is_floating = bad == Rule::BadFloat;
    let text = std::str::from_utf8(field).map_err(|_| bad)?;
    let word = small(text.strip_prefix(['-', '+']).unwrap_or(text));
    if is_floating && !format.hex && ["inf", "infinity", "nan"].contains(&word.as_str()) {
        return plain::convert(column_type, field);
    }
    let mut bodies = vec![];
    peelings(format, text, (None, false), &mut bodies);
    let written: Vec<Written> = bodies
        .into_iter()
        .filter_map(|(negative, body)| match format.hex {
            true => hexadecimal(negative, &body),
            false => written(format, bad == Rule::BadInteger, negative, &body),
        })
        .collect();
    let Some(written) = written.first() else { return Err(bad) };
    let sign = if written.negative { "-" } else { "" };
    if is_floating {
        let (whole, fraction) = written.digits.split_at(written.digits.len() - written.behind_point as usize);
        let exponent = written.exponent.as_ref().map_or(String::new(), |exponent| format!("e{exponent}"));
        return plain::convert(column_type, format!("{sign}{whole}.{fraction}{exponent}").as_bytes());
    }
    exact(column_type, written)
}

/// Every way to take a sign and a currency off.
fn peelings(
    format: &NumberFormat,
    text: &str,
    (sign, currency): (Option<bool>, bool),
    found: &mut Vec<(bool, String)>,
) {
    found.push((sign == Some(true), text.to_owned()));
    if sign.is_none() {
        let mut go = |inner: Option<&str>, negative: bool| {
            if let Some(inner) = inner {
                peelings(format, inner, (Some(negative), currency), found);
            }
        };
        go(text.strip_prefix('+'), false);
        for form in &format.negative {
            match form {
                Negative::Minus => go(text.strip_prefix('-'), true),
                Negative::TrailingMinus => go(text.strip_suffix('-'), true),
                Negative::Parentheses => go(text.strip_prefix('(').and_then(|text| text.strip_suffix(')')), true),
            }
        }
    }
    if !currency {
        let blanks = [' ', '\u{a0}', '\u{202f}'];
        for one in &format.currency {
            if let Some(inner) = text.strip_prefix(one.as_str()) {
                peelings(format, inner.trim_start_matches(blanks), (sign, true), found);
            }
            if let Some(inner) = text.strip_suffix(one.as_str()) {
                peelings(format, inner.trim_end_matches(blanks), (sign, true), found);
            }
        }
    }
}

fn hexadecimal(negative: bool, body: &str) -> Option<Written> {
    let digits = body.strip_prefix("0x").or(body.strip_prefix("0X")).unwrap_or(body);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    // More than 32 digits are out of every range, and so is this number: decimal(38) ends within the 32 digits of 10^38.
    let number = match significant.len() {
        0 => 0,
        1..=32 => u128::from_str_radix(significant, 16).unwrap(),
        _ => u128::MAX,
    };
    Some(Written { negative, digits: number.to_string(), behind_point: 0, exponent: None })
}

fn digits_only(text: &str) -> bool {
    text.chars().all(|digit| digit.is_ascii_digit())
}

fn written(format: &NumberFormat, is_whole: bool, negative: bool, body: &str) -> Option<Written> {
    let mut parts = body.splitn(2, ['e', 'E']);
    let mut mantissa = parts.next().unwrap();
    let mut exponent = parts.next();
    if !format.scientific {
        (mantissa, exponent) = (body, None);
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if digits.is_empty() || !digits_only(digits) {
            return None;
        }
    }
    let (whole, fraction) = match mantissa.split_once(&format.decimal) {
        Some(_) if is_whole && exponent.is_none() => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let whole = match &format.group {
        Some(group) => without_groups(group, whole)?,
        None => whole.to_owned(),
    };
    if whole.len() + fraction.len() == 0 || !digits_only(&whole) || !digits_only(fraction) {
        return None;
    }
    let behind_point = fraction.len() as i128;
    Some(Written { negative, digits: whole + fraction, behind_point, exponent: exponent.map(str::to_owned) })
}

fn without_groups(group: &GroupFormat, whole: &str) -> Option<String> {
    let groups: Vec<&str> = whole.split(&group.mark).collect();
    let size = |place: usize| usize::from(*group.sizes.get(place).unwrap_or(group.sizes.last().unwrap()));
    if groups.len() == 1 && (group.optional || whole.is_empty()) {
        return Some(whole.to_owned());
    }
    for (place, digits) in groups.iter().rev().enumerate() {
        let is_first = place == groups.len() - 1;
        let fits = if is_first { (1..=size(place)).contains(&digits.len()) } else { digits.len() == size(place) };
        if !fits || !digits_only(digits) {
            return None;
        }
    }
    Some(groups.concat())
}

/// Whole numbers and decimals.
fn exact(column_type: ColumnType, written: &Written) -> Result<Value, Rule> {
    let scale: i128 = if let ColumnType::Decimal { scale, .. } = column_type { scale.into() } else { 0 };
    let exponent: i128 = written.exponent.as_ref().map_or(0, |exponent| {
        let is_negative = exponent.starts_with('-');
        let digits = exponent.trim_start_matches(['-', '+', '0']);
        let number: i128 = if digits.len() > 30 { 10_i128.pow(30) } else { digits.parse().unwrap_or(0) };
        if is_negative { -number } else { number }
    });
    let digits = written.digits.trim_start_matches('0');
    // Places to move the point to the right, so that a whole number of units is before it.
    let shift = if digits.is_empty() { 0 } else { scale + exponent - written.behind_point };
    let (kept, surplus) = match shift {
        0.. => (digits.to_owned() + &"0".repeat(shift.min(1000) as usize), ""),
        _ => {
            let kept = (digits.len() as i128 + shift).max(0) as usize;
            (digits[..kept].to_owned(), &digits[kept..])
        }
    };
    let negated = |number: &str| if written.negative { format!("-{number}") } else { number.to_owned() };
    let value = match column_type {
        ColumnType::Decimal { precision, scale } => {
            let unit = ColumnType::Decimal { precision, scale: 0 };
            let _ = scale;
            plain::convert(unit, negated(&format!("0{kept}")).as_bytes())?
        }
        _ => plain::convert(column_type, negated(&format!("0{kept}")).as_bytes())?,
    };
    if surplus.chars().any(|digit| digit != '0') && !plain::is_cutting() { Err(Rule::WouldRound) } else { Ok(value) }
}

/// What a text says, by name.
type Said = BTreeMap<&'static str, i128>;

fn moment(column_type: ColumnType, format: &PatternFormat, field: &[u8]) -> Result<Value, Rule> {
    let bad = match column_type {
        ColumnType::Date => Rule::BadDate,
        ColumnType::Time => Rule::BadTime,
        _ => Rule::BadTimestamp,
    };
    let text = std::str::from_utf8(field).map_err(|_| bad)?;
    let mut rounds = false;
    for pattern in &format.patterns {
        let mut all = vec![];
        readings(format, pattern, text, &Said::new(), &mut all);
        for said in all {
            let Some(value) = value_of(column_type, format, &said) else { continue };
            if said.get("surplus").is_some_and(|surplus| *surplus != 0) && !plain::is_cutting() {
                rounds = true;
                continue;
            }
            return Ok(Value::Number(value));
        }
    }
    Err(if rounds { Rule::WouldRound } else { bad })
}

fn value_of(column_type: ColumnType, format: &PatternFormat, said: &Said) -> Option<i128> {
    let get = |name: &str| said.get(name).copied().unwrap_or(0);
    let mut days = 0;
    if column_type != ColumnType::Time {
        let text = format!("{:04}-{:02}-{:02}", get("year"), get("month"), get("day"));
        let Ok(Value::Number(found)) = plain::convert(ColumnType::Date, text.as_bytes()) else { return None };
        days = found;
    }
    let mut hour = get("hour");
    if let Some(half) = said.get("half day hour") {
        if *half < 1 || *half > 12 {
            return None;
        }
        hour = if *half == 12 { 0 } else { *half } + 12 * get("afternoon");
    }
    if hour > 23 || get("minute") > 59 || get("second") > 59 {
        return None;
    }
    let east = said.get("offset").copied().unwrap_or(format.offset_minutes.unwrap_or(0).into());
    let minutes = 60 * hour + get("minute") - east;
    let microseconds = (60 * minutes + get("second")) * 1_000_000 + get("fraction");
    if column_type == ColumnType::Date { Some(days) } else { Some(days * 86_400_000_000 + microseconds) }
}

/// Every way to read the whole text by the pattern.
fn readings(format: &PatternFormat, pattern: &str, text: &str, said: &Said, found: &mut Vec<Said>) {
    let Some(first) = pattern.chars().next() else {
        if text.is_empty() {
            found.push(said.clone());
        }
        return;
    };
    let same: String = pattern.chars().take_while(|letter| *letter == first).collect();
    let behind = &pattern[same.len()..];
    let with = |name: &'static str, value: i128| {
        let mut more = said.clone();
        more.insert(name, value);
        more
    };
    let digits = |count: usize| text.get(..count).filter(|digits| digits_only(digits));
    let number = |digits: &str| digits.parse::<i128>().unwrap();
    match same.as_str() {
        "'" | "\"" | "''" | "\"\"" => {
            let (literal, behind) = pattern[1..].split_once(first).unwrap();
            if let Some(rest) = text.strip_prefix(literal) {
                readings(format, behind, rest, said, found);
            }
        }
        "d" | "dd" | "M" | "MM" | "H" | "HH" | "h" | "hh" | "m" | "mm" | "s" | "ss" => {
            let name = match first {
                'd' => "day",
                'M' => "month",
                'H' => "hour",
                'h' => "half day hour",
                'm' => "minute",
                _ => "second",
            };
            for count in same.len()..=2 {
                if let Some(digits) = digits(count) {
                    readings(format, behind, &text[count..], &with(name, number(digits)), found);
                }
            }
        }
        "yyyy" => {
            if let Some(digits) = digits(4) {
                readings(format, behind, &text[4..], &with("year", number(digits)), found);
            }
        }
        "yy" => {
            if let Some(digits) = digits(2) {
                let pivot = i128::from(format.pivot.unwrap());
                let year = (pivot..pivot + 100).find(|year| year % 100 == number(digits)).unwrap();
                readings(format, behind, &text[2..], &with("year", year), found);
            }
        }
        "MMM" | "MMMM" => {
            let months = if same.len() == 3 { &format.short_months } else { &format.long_months };
            for (index, names) in months.iter().enumerate() {
                for (end, _) in text.char_indices().chain([(text.len(), ' ')]) {
                    if names.iter().any(|name| small(name) == small(&text[..end])) {
                        readings(format, behind, &text[end..], &with("month", index as i128 + 1), found);
                    }
                }
            }
        }
        "tt" => {
            let half = text.get(..2).map(small);
            if let Some("am" | "pm") = half.as_deref() {
                let is_afternoon = half.as_deref() == Some("pm");
                readings(format, behind, &text[2..], &with("afternoon", is_afternoon.into()), found);
            }
        }
        "Z" | "zzz" => {
            if text.starts_with(['Z', 'z']) {
                readings(format, behind, &text[1..], &with("offset", 0), found);
            }
            for count in [3, 5, 6] {
                if let Some(offset) = text.get(..count).filter(|_| same == "zzz")
                    && let Some(minutes) = offset_minutes(offset)
                {
                    readings(format, behind, &text[count..], &with("offset", minutes), found);
                }
            }
        }
        letters if first == 'f' => {
            if let Some(digits) = digits(letters.len()) {
                readings(format, behind, &text[letters.len()..], &with_fraction(said, digits), found);
            }
        }
        mark @ ("." | ",") if behind.starts_with('F') => {
            let most = behind.len() - behind.trim_start_matches('F').len();
            readings(format, &behind[most..], text, said, found);
            for count in 1..=most {
                let Some(digits) = text.strip_prefix(mark).and_then(|text| text.get(..count)) else { continue };
                if digits_only(digits) {
                    readings(format, &behind[most..], &text[1 + count..], &with_fraction(said, digits), found);
                }
            }
        }
        _ => {
            let length = first.len_utf8();
            if let Some(rest) = text.strip_prefix(first) {
                readings(format, &pattern[length..], rest, said, found);
            }
        }
    }
}

fn with_fraction(said: &Said, digits: &str) -> Said {
    let padded = format!("{digits:0<12}");
    let mut more = said.clone();
    more.insert("fraction", padded[..6].parse().unwrap());
    more.insert("surplus", padded[6..].parse().unwrap());
    more
}

fn offset_minutes(offset: &str) -> Option<i128> {
    let sign = match offset.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits = match offset.len() {
        3 => offset[1..].to_owned() + "00",
        5 => offset[1..].to_owned(),
        _ => format!("{}{}", &offset.get(1..3)?, offset.get(3..)?.strip_prefix(':')?),
    };
    if !digits_only(&digits) {
        return None;
    }
    let (hours, minutes): (i128, i128) = (digits[..2].parse().ok()?, digits[2..].parse().ok()?);
    (hours <= 15 && minutes <= 59).then_some(sign * (60 * hours + minutes))
}
