//! Formats of every kind, and texts that are written in them.

use headrace_types::{
    ColumnType, EpochFormat, EpochUnit, Format, GroupFormat, Layout, Negative, NumberFormat, PatternFormat, TruthFormat,
};

use super::input::{Input, Random};
use super::texts;

const DATES: &[&str] = &[
    "dd.MM.yyyy",
    "d.M.yyyy",
    "MM/dd/yyyy",
    "M/d/yyyy",
    "yyyyMMdd",
    "ddMMyyyy",
    "dd-MM-yy",
    "yyMMdd",
    "d MMM yyyy",
    "dd. MMMM yyyy",
    "MMM d, yyyy",
    "yyyy-MM-dd",
    "dd'/'MM'/'yyyy",
    "yyyy年M月d日",
    "yyyy/M/d",
    "d.M.yy",
    "dd MMM yy",
    "'Day 'd' of 'M' in 'yyyy",
    "MMMMyyyydd",
    "yyyy.d.M",
    "d\" of \"MMMM', 'yyyy",
    "yyyy'-'MM\"-\"dd",
];
const TIMES: &[&str] = &[
    "HH:mm:ss",
    "H:mm",
    "HHmmss",
    "h:mm tt",
    "hh:mm:ss.fff tt",
    "HH:mm:ss.FFFFFF",
    "HH.mm.ss,fffffff",
    "H:m:s",
    "HH",
    "HH:mm:ss.f",
    "HHmmssffffff",
    "tt hh.mm",
    "H'h'm",
    "HH:mm:ss,FFFFFFFFF",
    "htt",
];
const BETWEEN: &[&str] = &[" ", "'T'", "", ", ", "  'um' "];
const ZONES: &[&str] = &["zzz", " zzz", "Z", " 'UTC'zzz"];
/// Patterns of which no text has two values.
const SEVERAL: &[&[&str]] = &[
    &["dd.MM.yyyy", "yyyy-MM-dd"],
    &["d.M.yyyy", "dd.MM.yyyy", "M/d/yyyy"],
    &["d MMM yyyy", "d. MMMM yyyy", "yyyyMMdd"],
    &["dd/MM/yyyy", "dd/MM/yy"],
];
const MARKS: &[&str] = &[".", ",", " ", "'", "\u{a0}", "\u{202f}", "’", "·", "_", "٬"];
const CURRENCIES: &[&[&str]] =
    &[&["€"], &["$", "US$"], &["kr", "SEK"], &["CHF", "Fr.", "€"], &["e"], &["E", "Rs.", "a.b"]];
const WORDS: &[(&[&str], &[&str])] = &[
    (&["J"], &["N"]),
    (&["wahr", "JA"], &["falsch", "nein"]),
    (&["是"], &["否", "Ä"]),
    (&["X", "+"], &["-", "no value at all"]),
    (&["12345678"], &["1234567", "["]),
];

/// A format of the type, or none.
pub fn format(column_type: ColumnType, input: &mut Input<'_>) -> Option<Format> {
    use ColumnType::*;
    if input.flag() {
        return None;
    }
    match column_type {
        Int16 | Int32 | Int64 | Decimal { .. } | Float32 | Float64 => Some(Format::Number(number(column_type, input))),
        Bool => {
            let (yes, no) = input.pick(WORDS);
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Some(Format::Truth(TruthFormat { yes: owned(yes), no: owned(no) }))
        }
        Timestamp | TimestampTz if input.below(5) == 0 => {
            let unit = input.pick(&[EpochUnit::Seconds, EpochUnit::Milliseconds, EpochUnit::Microseconds]);
            Some(Format::Epoch(EpochFormat { unit }))
        }
        Date | Time | Timestamp | TimestampTz => Some(Format::Patterns(patterns(column_type, input))),
        _ => None,
    }
}

/// Takes formats away that the layout cannot have.
pub fn settle(layout: &mut Layout) {
    for index in 0..layout.columns.len() {
        let format = layout.columns[index].format.take();
        if layout.check().is_ok() && format.is_some() {
            layout.columns[index].format = format;
            if layout.check().is_err() {
                layout.columns[index].format = None;
            }
        }
    }
    super::dialects::leave_out_wrong_values(layout);
}

fn number(column_type: ColumnType, input: &mut Input<'_>) -> NumberFormat {
    use ColumnType::*;
    let flags = input.byte();
    let hex = flags & 7 == 7 && matches!(column_type, Int16 | Int32 | Int64 | Decimal { .. });
    let sizes = input.pick(&[vec![3], vec![3], vec![3], vec![3, 2], vec![4], vec![1, 2, 3]]);
    let group = GroupFormat { mark: input.pick(MARKS).to_owned(), sizes, optional: flags & 8 == 0 };
    let currency = input.pick(CURRENCIES).iter().map(|text| (*text).to_owned()).collect();
    let forms = [Negative::Minus, Negative::TrailingMinus, Negative::Parentheses];
    let negative = match input.below(8) {
        0 => forms.to_vec(),
        1 => vec![forms[1], forms[2]],
        2 => vec![forms[0], forms[2]],
        3 => vec![],
        _ => vec![Negative::Minus],
    };
    NumberFormat {
        decimal: input.pick(&[",", ",", ".", "٫", "·"]).to_owned(),
        group: Some(group).filter(|_| !hex && flags & 16 == 0),
        currency: if hex || flags & 96 != 0 { vec![] } else { currency },
        negative,
        scientific: !hex && (flags & 128 != 0 || matches!(column_type, Float32 | Float64)),
        hex,
    }
}

fn patterns(column_type: ColumnType, input: &mut Input<'_>) -> PatternFormat {
    let (date, between, time) = (input.pick(DATES), input.pick(BETWEEN), input.pick(TIMES));
    let zone = input.pick(ZONES);
    let with_zone = input.flag();
    let patterns = match column_type {
        ColumnType::Time => vec![time.to_owned()],
        ColumnType::Date if input.below(3) == 0 => input.pick(SEVERAL).iter().map(|one| (*one).to_owned()).collect(),
        ColumnType::Date => vec![date.to_owned()],
        ColumnType::TimestampTz if with_zone => vec![format!("{date}{between}{time}{zone}")],
        _ => match input.below(4) {
            0 if input.flag() => input.pick(SEVERAL).iter().map(|date| format!("{date}{between}{time}")).collect(),
            0 => vec![date.to_owned(), format!("{date}{between}{time}")],
            3 => vec![format!("{time}{between}{date}")],
            _ => vec![format!("{date}{between}{time}")],
        },
    };
    let owned = |names: &[&str]| names.iter().map(|name| name.split('|').map(str::to_owned).collect()).collect();
    let is_zoned = patterns.iter().any(|pattern| ZONES.iter().any(|zone| pattern.ends_with(zone)));
    PatternFormat {
        patterns,
        pivot: Some(input.pick(&[1950, 1999, 2000, 1, 9900])),
        short_months: owned(&[
            "Jan|jan.",
            "Feb",
            "Mär|Mrz|März",
            "Apr",
            "Mai",
            "Jun",
            "Jul",
            "Aug",
            "Sep|Sept|sept.",
            "Okt",
            "Nov",
            "Dez",
        ]),
        long_months: owned(&[
            "January",
            "February",
            "März",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "décembre",
        ]),
        offset_minutes: Some(input.pick(&[0, 60, -330, 959]))
            .filter(|_| column_type == ColumnType::TimestampTz && !is_zoned),
    }
}

/// Text that the format mostly accepts.
pub fn plausible(column_type: ColumnType, format: &Format, random: &mut Random) -> Vec<u8> {
    match format {
        Format::Number(format) => number_text(column_type, format, random),
        Format::Patterns(format) => {
            let pattern = random.pick(&format.patterns);
            pattern_text(format, &pattern, random).into_bytes()
        }
        Format::Epoch(format) => {
            let seconds = random.between(0, 4_000_000_000) as i64 - 2_000_000_000;
            let text = match format.unit {
                EpochUnit::Seconds => seconds.to_string(),
                EpochUnit::Milliseconds => format!("{seconds}{:03}", random.below(1000)),
                EpochUnit::Microseconds => format!("{seconds}{:06}", random.below(1_000_000)),
            };
            if random.once_in(6) {
                format!("{text}.{}", random.below(10_000_000)).into_bytes()
            } else {
                text.into_bytes()
            }
        }
        Format::Truth(format) => {
            let text = random.pick(&[&format.yes[..], &format.no[..]].concat());
            match random.below(4) {
                0 => text.to_lowercase(),
                1 => text.to_uppercase(),
                _ => text,
            }
            .into_bytes()
        }
    }
}

fn number_text(column_type: ColumnType, format: &NumberFormat, random: &mut Random) -> Vec<u8> {
    let plain = String::from_utf8(texts::plausible(column_type, random)).unwrap_or_default();
    let negative = plain.starts_with('-');
    let body = plain.trim_start_matches(['-', '+']);
    let mut text = if format.hex {
        let number: u128 = body.split('.').next().unwrap_or_default().parse().unwrap_or(10);
        format!("{}{number:x}", random.pick(&["", "0x", "0X", "00"]))
    } else {
        let split = body.find(['e', 'E']).unwrap_or(body.len());
        let (mantissa, exponent) = body.split_at(split);
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(a, b)| (a, Some(b)));
        let mut text = match &format.group {
            Some(group) if !random.once_in(6) => grouped(group, whole),
            _ => whole.to_owned(),
        };
        if let Some(fraction) = fraction {
            text += &format.decimal;
            text += fraction;
        }
        text += exponent;
        if format.scientific && exponent.is_empty() && random.once_in(3) {
            text += &format!("{}{}", random.pick(&["e", "E", "e+", "E-"]), random.below(8));
        }
        text
    };
    let sign = |text: String, random: &mut Random| match (negative, random.pick(&format.negative)) {
        (false, _) if random.once_in(20) => format!("+{text}"),
        (false, _) => text,
        (true, Negative::Minus) => format!("-{text}"),
        (true, Negative::TrailingMinus) => format!("{text}-"),
        (true, Negative::Parentheses) => format!("({text})"),
    };
    let signs_first = random.once_in(2);
    if signs_first && !format.negative.is_empty() {
        text = sign(text, random);
    }
    if !format.currency.is_empty() && !random.once_in(4) {
        let (currency, blank) = (random.pick(&format.currency), random.pick(&["", "", " ", "\u{a0}", "  "]));
        text = if random.once_in(2) { format!("{currency}{blank}{text}") } else { format!("{text}{blank}{currency}") };
    }
    if !signs_first && !format.negative.is_empty() {
        text = sign(text, random);
    }
    text.into_bytes()
}

fn grouped(group: &GroupFormat, whole: &str) -> String {
    let mut groups = vec![];
    let mut rest = whole;
    for place in 0.. {
        let size = usize::from(*group.sizes.get(place).or(group.sizes.last()).unwrap_or(&3));
        if rest.len() <= size {
            break;
        }
        let (front, digits) = rest.split_at(rest.len() - size);
        groups.insert(0, digits);
        rest = front;
    }
    groups.insert(0, rest);
    groups.join(&group.mark)
}

fn pattern_text(format: &PatternFormat, pattern: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let count = rest.len() - rest.trim_start_matches(first).len();
        let mut number = |least: usize, most: usize| {
            let value = if random.once_in(60) { random.below(100) } else { random.between(least, most) };
            if count == 1 { value.to_string() } else { format!("{value:0count$}") }
        };
        let piece = match first {
            '\'' | '"' => {
                let (literal, behind) = rest[1..].split_once(first).unwrap_or_default();
                rest = behind;
                text += literal;
                continue;
            }
            'd' => number(1, 29),
            'M' if count < 3 => number(1, 12),
            'M' => {
                let months = if count == 3 { &format.short_months } else { &format.long_months };
                let month = random.below(12);
                let name = random.pick(&months[month]);
                if random.once_in(4) { name.to_uppercase() } else { name }
            }
            'y' if count == 4 => number(1900, 2100),
            'y' => number(0, 99),
            'H' => number(0, 23),
            'h' => number(1, 12),
            'm' | 's' => number(0, 59),
            'f' => {
                let kept = format!("{:06}000", random.below(1_000_000));
                kept[..count].to_owned()
            }
            'F' => {
                let digits = random.below(count + 1);
                if digits == 0 {
                    text.pop();
                }
                format!("{:06}000", random.below(1_000_000))[..digits].to_owned()
            }
            't' => random.pick(&["AM", "PM", "am", "Pm"]).to_owned(),
            'Z' => random.pick(&["Z", "z"]).to_owned(),
            'z' => {
                let (hours, minutes) = (random.below(16), random.below(60));
                match random.below(4) {
                    0 => "Z".to_owned(),
                    1 => format!("+{hours:02}"),
                    2 => format!("-{hours:02}{minutes:02}"),
                    _ => format!("+{hours:02}:{minutes:02}"),
                }
            }
            literal => literal.to_string().repeat(count / literal.len_utf8()),
        };
        text += &piece;
        rest = &rest[count..];
    }
    text
}
