//! Patterns of dates and times: `dd.MM.yyyy HH:mm`, a closed table of letters.

/// What a run of digits of a text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Year, of four digits or of two.
    Year,
    /// Month, 1 to 12.
    Month,
    /// Day of the month.
    Day,
    /// Hour, 0 to 23.
    Hour,
    /// Hour of a half day, 1 to 12.
    HalfDayHour,
    /// Minute.
    Minute,
    /// Second.
    Second,
}

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// This text.
    Literal(String),
    /// `least` to `most` digits.
    Number {
        /// What they say.
        part: Part,
        /// Fewest digits.
        least: u8,
        /// Most digits: 4 for a year, otherwise 2.
        most: u8,
    },
    /// Name of a month: the long one, or the short one.
    MonthName {
        /// Whether it is the long one.
        is_long: bool,
    },
    /// Exactly so many digits of a fraction of a second.
    Fraction(u8),
    /// Nothing, or this mark and one to so many digits of a fraction of a second.
    OptionalFraction {
        /// Point or comma.
        mark: char,
        /// Most digits.
        most: u8,
    },
    /// AM or PM.
    HalfDay,
    /// Offset from UTC: `Z`, `+HH`, `+HHMM` or `+HH:MM`, or with a minus.
    Offset,
    /// `Z`: the time is UTC.
    Utc,
}

/// Most letters of a fraction.
pub const MAX_FRACTION_DIGITS: u8 = 9;

/// What the letters say, in the order of the table of the reference.
const LETTERS: &[(&str, Element)] = &[
    ("d", Element::Number { part: Part::Day, least: 1, most: 2 }),
    ("dd", Element::Number { part: Part::Day, least: 2, most: 2 }),
    ("M", Element::Number { part: Part::Month, least: 1, most: 2 }),
    ("MM", Element::Number { part: Part::Month, least: 2, most: 2 }),
    ("MMM", Element::MonthName { is_long: false }),
    ("MMMM", Element::MonthName { is_long: true }),
    ("yy", Element::Number { part: Part::Year, least: 2, most: 2 }),
    ("yyyy", Element::Number { part: Part::Year, least: 4, most: 4 }),
    ("H", Element::Number { part: Part::Hour, least: 1, most: 2 }),
    ("HH", Element::Number { part: Part::Hour, least: 2, most: 2 }),
    ("h", Element::Number { part: Part::HalfDayHour, least: 1, most: 2 }),
    ("hh", Element::Number { part: Part::HalfDayHour, least: 2, most: 2 }),
    ("m", Element::Number { part: Part::Minute, least: 1, most: 2 }),
    ("mm", Element::Number { part: Part::Minute, least: 2, most: 2 }),
    ("s", Element::Number { part: Part::Second, least: 1, most: 2 }),
    ("ss", Element::Number { part: Part::Second, least: 2, most: 2 }),
    ("tt", Element::HalfDay),
    ("zzz", Element::Offset),
    ("Z", Element::Utc),
];

/// The pieces of a pattern.
///
/// # Errors
/// The text says what is wrong: letters that mean nothing, digits, a quote that is not closed, pieces that cannot be told apart
/// in a text, or that contradict each other.
pub fn parse_pattern(pattern: &str) -> Result<Vec<Element>, String> {
    let mut elements = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let length = rest.len() - rest.trim_start_matches(first).len();
        match first {
            '\'' | '"' => {
                let (text, behind) =
                    rest[1..].split_once(first).ok_or_else(|| format!("the quote {first} is not closed"))?;
                literal(&mut elements, text)?;
                rest = behind;
            }
            'f' | 'F' => {
                let digits = u8::try_from(length).ok().filter(|&digits| digits <= MAX_FRACTION_DIGITS);
                let digits = digits.ok_or_else(|| format!("more than {MAX_FRACTION_DIGITS} letters {first}"))?;
                let element = match first {
                    'f' => Element::Fraction(digits),
                    _ => Element::OptionalFraction { mark: take_mark(&mut elements)?, most: digits },
                };
                elements.push(element);
                rest = &rest[length..];
            }
            'a'..='z' | 'A'..='Z' => {
                let letters = &rest[..length];
                let element = LETTERS.iter().find(|(known, _)| *known == letters);
                elements.push(element.ok_or_else(|| format!("{letters} means nothing"))?.1.clone());
                rest = &rest[length..];
            }
            _ => {
                literal(&mut elements, &rest[..first.len_utf8()])?;
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    check_neighbours(&elements)?;
    check_together(&elements)?;
    Ok(elements)
}

fn literal(elements: &mut Vec<Element>, text: &str) -> Result<(), String> {
    if text.is_empty() {
        // It would stand between two numbers and keep nothing apart.
        return Ok(());
    }
    if text.chars().any(|character| character.is_ascii_digit() || character.is_control()) {
        return Err(format!("{text:?} holds a digit or a control character, and is to be taken literally"));
    }
    match elements.last_mut() {
        Some(Element::Literal(before)) => before.push_str(text),
        _ => elements.push(Element::Literal(text.to_owned())),
    }
    Ok(())
}

/// The point or comma before an optional fraction, which is there only if the fraction is.
fn take_mark(elements: &mut Vec<Element>) -> Result<char, String> {
    let mark = match elements.last_mut() {
        Some(Element::Literal(before)) if before.ends_with(['.', ',']) => before.pop(),
        _ => None,
    };
    if matches!(elements.last(), Some(Element::Literal(before)) if before.is_empty()) {
        elements.pop();
    }
    mark.ok_or_else(|| "no point or comma stands before F".to_owned())
}

/// Pieces of which nobody could say where one ends and the next begins.
fn check_neighbours(elements: &[Element]) -> Result<(), String> {
    for pair in elements.windows(2) {
        let is_digit = matches!(pair[1], Element::Number { .. } | Element::Fraction(_));
        let is_open = match &pair[0] {
            Element::Number { least, most, .. } => least < most && is_digit,
            Element::OptionalFraction { .. } => is_digit,
            Element::Offset => is_digit || matches!(&pair[1], Element::Literal(text) if text.starts_with(':')),
            _ => false,
        };
        if is_open {
            return Err("a piece of changing length is followed by digits".to_owned());
        }
    }
    Ok(())
}

fn check_together(elements: &[Element]) -> Result<(), String> {
    let count = |is: &dyn Fn(&Element) -> bool| elements.iter().filter(|element| is(element)).count();
    let of = |wanted: Part| count(&|element| matches!(element, Element::Number { part, .. } if *part == wanted));
    let names = count(&|element| matches!(element, Element::MonthName { .. }));
    let fractions = count(&|element| matches!(element, Element::Fraction(_) | Element::OptionalFraction { .. }));
    let half_days = count(&|element| *element == Element::HalfDay);
    let zones = count(&|element| matches!(element, Element::Offset | Element::Utc));
    let (hours, half_day_hours) = (of(Part::Hour), of(Part::HalfDayHour));
    let all = [
        ("the year", of(Part::Year)),
        ("the month", of(Part::Month) + names),
        ("the day", of(Part::Day)),
        ("the hour", hours + half_day_hours),
        ("the minute", of(Part::Minute)),
        ("the second", of(Part::Second)),
        ("the fraction", fractions),
        ("tt", half_days),
        ("the offset", zones),
    ];
    if let Some((name, _)) = all.iter().find(|(_, count)| *count > 1) {
        return Err(format!("it gives {name} twice"));
    }
    if half_days != half_day_hours {
        return Err(if half_days > 0 { "tt without h or hh" } else { "h or hh without tt" }.to_owned());
    }
    for pair in all[3..7].windows(2) {
        if pair[1].1 > pair[0].1 {
            return Err(format!("it gives {} without {}", pair[1].0, pair[0].0));
        }
    }
    // Nobody writes minutes before hours, but many write `mm` for months.
    let clock = |element: &Element| match element {
        Element::Number { part, .. } => match part {
            Part::Hour | Part::HalfDayHour => Some(0),
            Part::Minute => Some(1),
            Part::Second => Some(2),
            _ => None,
        },
        Element::Fraction(_) | Element::OptionalFraction { .. } => Some(3),
        _ => None,
    };
    if !elements.iter().filter_map(clock).is_sorted() {
        return Err("hour, minute, second and fraction do not stand in this order".to_owned());
    }
    let days = [of(Part::Year), of(Part::Month) + names, of(Part::Day)];
    if days.iter().sum::<usize>() % 3 != 0 {
        return Err("it gives a part of a date".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        let number = |part, least, most| Element::Number { part, least, most };
        let literal = |text: &str| Element::Literal(text.to_owned());
        let (day, month) = (number(Part::Day, 2, 2), number(Part::Month, 1, 2));
        let year = number(Part::Year, 4, 4);
        assert_eq!(
            parse_pattern("dd.M'. a'yyyy"),
            Ok(vec![day.clone(), literal("."), month, literal(". a"), year.clone()])
        );
        let elements = parse_pattern("yyyyMMdd HH:mm:ss.FFFzzz").unwrap();
        assert_eq!(elements[..3], [year, number(Part::Month, 2, 2), day]);
        assert_eq!(
            elements[8..],
            [number(Part::Second, 2, 2), Element::OptionalFraction { mark: '.', most: 3 }, Element::Offset]
        );
    }

    #[test]
    fn patterns_that_mean_nothing_or_two_things_are_refused() {
        for good in ["", "h:mm tt", "HH", "d MMMM yy", "yyyy年MM月dd日", "HHmmssffffff", "d/M/yyyy Z"] {
            assert!(parse_pattern(good).is_ok(), "{good}");
        }
        for bad in [
            "ddd",
            "yyy",
            "'a",
            "d''M''yyyy",
            "DD.MM.YYYY",
            "dd.MM",
            "dMyyyy",
            "yyyy-MM-dd dd",
            "HH:mm tt",
            "hh:mm",
            "mm:ss",
            "HH:ss",
            "HH:mm:ssF",
            "HH.FF",
            "HH:mm:ss.ffffffffff",
            "yyyy-MM-dd'1'",
            "HH:mmzzz:ss",
            "yyMMddyyyy",
            "M MMM yyyy d",
            "HH:mm:ss.FFFf",
            "zzzZ",
            "n",
            "dd.mm.yyyy HH:MM",
            "HH h tt",
        ] {
            assert!(parse_pattern(bad).is_err(), "{bad}");
        }
    }
}
