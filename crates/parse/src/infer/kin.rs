//! Texts that a reader takes for a number or a day, though no type takes them as they are: classes of their own, so that
//! what could be done about them can be said.

use super::class::{Class, Seen};
use super::moment;
use super::number;

/// No longer text is looked at, bytes: the others cost nothing.
pub const LONGEST: u32 = 40;
const CURRENCIES: [&str; 17] =
    ["$", "€", "£", "¥", "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "CAD", "AUD"];
/// Those that are letters, as numbers of which the first letter is the lowest byte.
pub const CODES: [u32; 13] = {
    let (mut codes, mut index) = ([0; 13], 0);
    while index < codes.len() {
        let [first, second, third] = *CURRENCIES[index + 4].as_bytes() else { panic!() };
        codes[index] = u32::from_le_bytes([first, second, third, 0]);
        index += 1;
    }
    codes
};
/// Marks between groups of three digits that are neither points nor commas.
const GROUP_MARKS: [&str; 5] = [" ", "'", "\u{2019}", "\u{a0}", "\u{202f}"];

/// What a trimmed text is that is of no other class.
pub fn kin(text: &[u8]) -> Option<Seen> {
    if text.len() > LONGEST as usize || !may_be_kin(text) {
        return None;
    }
    let text = str::from_utf8(text).ok()?;
    percent(text)
        .or_else(|| currency(text))
        .or_else(|| other_groups(text))
        .or_else(|| accounting(text))
        .or_else(|| is_month_name(text).then_some(Seen::Class(Class::MonthName)))
}

/// By the bytes at the ends, so that ordinary words are passed over.
fn may_be_kin(text: &[u8]) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    is_digit(text.last()) || matches!(text.first(), Some(b'0'..=b'9' | b'(' | b'+' | b'-' | b'.' | b','))
}

/// A number that is no more than digits, marks and a sign.
fn plain(text: &str, class: Class) -> Option<Seen> {
    match number::number(text.as_bytes())? {
        Seen::Number(Class::Exponent | Class::BareExponent, _) => None,
        Seen::Number(_, number) => Some(Seen::Number(class, number)),
        _ => None,
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\u{a0}', '\u{202f}'])
}

fn percent(text: &str) -> Option<Seen> {
    plain(trim(text.strip_suffix('%')?), Class::Percent)
}

fn currency(text: &str) -> Option<Seen> {
    if let Some(rest) = CURRENCIES.iter().find_map(|own| text.strip_prefix(own)) {
        return plain(trim(rest), Class::Currency);
    }
    if let Some(rest) = CURRENCIES.iter().find_map(|own| text.strip_prefix('-')?.strip_prefix(own)) {
        let rest = trim(rest);
        return plain(rest, Class::Currency).filter(|_| rest.starts_with(|first: char| first.is_ascii_digit()));
    }
    let rest = CURRENCIES.iter().find_map(|own| text.strip_suffix(own))?;
    plain(trim(rest), Class::Currency)
}

/// `1 234 567,5`, `1'234.50`: one mark, between all groups.
fn other_groups(text: &str) -> Option<Seen> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = &body[..body.find(['.', ',']).unwrap_or(body.len())];
    let first = whole.find(|other: char| !other.is_ascii_digit())?;
    let mark = GROUP_MARKS.into_iter().find(|mark| whole[first..].starts_with(mark))?;
    let mut groups = whole.split(mark);
    let is_first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
    if !is_first || !groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    plain(&text.replace(mark, ""), Class::OtherGroups)
}

/// `(12.50)` and `12.50-`.
fn accounting(text: &str) -> Option<Seen> {
    let in_parentheses = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let inner = in_parentheses.or_else(|| text.strip_suffix('-'))?;
    if inner.starts_with(['-', '+']) {
        return None;
    }
    plain(inner, Class::Accounting)
}

/// `1-Jan-2026`, `1. Januar 2026`, `Jan 1, 2026`, with or without a time. Which words are months is not looked at.
fn is_month_name(text: &str) -> bool {
    let is_word = |text: &str| text.chars().count() >= 3 && text.chars().all(char::is_alphabetic);
    let (day, rest) = split_digits(text);
    if day.is_empty() {
        // Jan 1, 2026
        let Some((word, rest)) = text.split_once(' ') else { return false };
        let (day, rest) = split_digits(rest);
        let Some(rest) = rest.strip_prefix(", ") else { return false };
        return is_word(word.trim_end_matches('.')) && is_day(day) && is_year(rest);
    }
    let Some((separator, rest)) = ["-", "/", ". ", ".", " "]
        .into_iter()
        .find_map(|separator| rest.strip_prefix(separator).map(|rest| (separator, rest)))
    else {
        return false;
    };
    let separator = if separator == ". " { " " } else { separator };
    let Some((word, rest)) = rest.split_once(separator) else { return false };
    is_word(word.trim_end_matches('.')) && is_day(day) && is_year(rest)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|other: char| !other.is_ascii_digit()).unwrap_or(text.len()))
}

fn is_day(digits: &str) -> bool {
    digits.len() <= 2 && digits.parse::<u32>().is_ok_and(|day| (1..=31).contains(&day))
}

/// Four digits or two, and perhaps a time.
fn is_year(text: &str) -> bool {
    let (year, rest) = split_digits(text);
    matches!(year.len(), 2 | 4) && moment::is_clock(rest.as_bytes())
}
