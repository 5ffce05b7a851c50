//! How the texts of a column are written, where that is not what `docs/spec/text-to-types.md` says of its type.

use serde::{Deserialize, Serialize};

use crate::pattern::{Element, Part, parse_pattern};
use crate::{ColumnType, Rule};

/// Format of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Format {
    /// Of whole numbers, decimals and floating-point numbers.
    Number(NumberFormat),
    /// Of dates, times and timestamps.
    Patterns(PatternFormat),
    /// Timestamps as numbers.
    Epoch(EpochFormat),
    /// Of truth values.
    Truth(TruthFormat),
}

/// How numbers are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberFormat {
    /// Between the digits before and behind the point.
    pub decimal: String,
    /// How digits before the point are grouped.
    #[serde(default)]
    pub group: Option<GroupFormat>,
    /// Texts that may stand before or behind a number, with blanks between.
    #[serde(default)]
    pub currency: Vec<String>,
    /// How negative numbers are written.
    #[serde(default = "minus")]
    pub negative: Vec<Negative>,
    /// Whether `e` and an exponent may follow.
    #[serde(default)]
    pub scientific: bool,
    /// Whether the digits are hexadecimal.
    #[serde(default)]
    pub hex: bool,
}

fn minus() -> Vec<Negative> {
    vec![Negative::Minus]
}

/// How digits are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFormat {
    /// Between two groups.
    pub mark: String,
    /// Digits of the groups, from the point on; the last number is that of all others.
    pub sizes: Vec<u8>,
    /// Whether numbers may do without any mark.
    pub optional: bool,
}

/// How a negative number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Negative {
    /// `-5`
    Minus,
    /// `5-`
    TrailingMinus,
    /// `(5)`
    Parentheses,
}

/// Patterns, and what they need besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternFormat {
    /// The patterns. No text means two values by two of them: the model has checked that.
    pub patterns: Vec<String>,
    /// The first of the hundred years that two digits can mean.
    #[serde(default)]
    pub pivot: Option<u16>,
    /// Short names of the months from January on, each with its other spellings; any case.
    #[serde(default)]
    pub short_months: Vec<Vec<String>>,
    /// Long names of the months.
    #[serde(default)]
    pub long_months: Vec<Vec<String>>,
    /// Minutes east of UTC of times that do not say it themselves.
    #[serde(default)]
    pub offset_minutes: Option<i16>,
}

/// A count from 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochFormat {
    /// What is counted.
    pub unit: EpochUnit,
}

/// What is counted from 1970-01-01 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EpochUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
}

impl EpochUnit {
    /// Digits behind the point of a whole number of microseconds.
    pub fn scale(self) -> u8 {
        match self {
            EpochUnit::Seconds => 6,
            EpochUnit::Milliseconds => 3,
            EpochUnit::Microseconds => 0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            EpochUnit::Seconds => "seconds",
            EpochUnit::Milliseconds => "milliseconds",
            EpochUnit::Microseconds => "microseconds",
        }
    }
}

/// The texts of truth values, any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthFormat {
    /// Texts that mean true.
    #[serde(rename = "true")]
    pub yes: Vec<String>,
    /// Texts that mean false.
    #[serde(rename = "false")]
    pub no: Vec<String>,
}

impl Format {
    /// Whether the format is one of the type, and means something; the text says what is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, column_type: ColumnType) -> Result<(), String> {
        use ColumnType::*;
        match (self, column_type) {
            (Format::Number(format), Float32 | Float64) if format.hex => {
                Err("hexadecimal numbers are whole numbers or decimals".to_owned())
            }
            (Format::Number(format), Int16 | Int32 | Int64 | Decimal { .. } | Float32 | Float64) => format.check(),
            (Format::Patterns(format), Date | Time | Timestamp | TimestampTz) => format.check(column_type),
            (Format::Epoch(_), Timestamp | TimestampTz) => Ok(()),
            (Format::Truth(format), Bool) => format.check(),
            _ => Err(format!("{column_type} has no such format")),
        }
    }

    /// Texts that stand in fields as they are: where a delimiter is in one of them, the field has to be qualified.
    pub fn texts(&self, column_type: ColumnType) -> Vec<String> {
        let literals = |pattern: &String| -> Vec<String> {
            let elements = parse_pattern(pattern).unwrap_or_default().into_iter();
            elements
                .filter_map(|element| match element {
                    Element::Literal(text) => Some(text),
                    Element::OptionalFraction { mark, .. } => Some(mark.to_string()),
                    _ => None,
                })
                .collect()
        };
        match self {
            Format::Number(format) if format.hex => vec![],
            Format::Number(format) => {
                let is_whole = matches!(column_type, ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64);
                let decimal = Some(&format.decimal).filter(|_| !is_whole || format.scientific);
                let group = format.group.iter().map(|group| &group.mark);
                group.chain(decimal).chain(&format.currency).cloned().collect()
            }
            Format::Patterns(format) => format.patterns.iter().flat_map(literals).collect(),
            Format::Epoch(_) => vec![],
            Format::Truth(format) => format.yes.iter().chain(&format.no).cloned().collect(),
        }
    }

    /// What a text of the column must be that broke the rule; none where the format does not say it better than the rule.
    pub fn expected(&self, rule: Rule) -> Option<String> {
        use Rule::*;
        if !matches!(rule, BadInteger | BadDecimal | BadFloat | BadBool | BadDate | BadTime | BadTimestamp) {
            return None;
        }
        Some(match self {
            Format::Number(format) => format.expected(rule == BadInteger),
            Format::Patterns(format) => one_of("a text as", &format.patterns),
            Format::Epoch(format) => format!("{} since 1970-01-01 UTC", format.unit.name()),
            Format::Truth(format) => one_of("", &[&format.yes[..], &format.no[..]].concat()),
        })
    }
}

/// `before a, b or c`
fn one_of(before: &str, texts: &[String]) -> String {
    let texts = match texts {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        texts => texts.concat(),
    };
    if before.is_empty() { texts } else { format!("{before} {texts}") }
}

impl NumberFormat {
    fn check(&self) -> Result<(), String> {
        let marks = [Some(&self.decimal), self.group.as_ref().map(|group| &group.mark)];
        for mark in marks.iter().flatten() {
            let is_part = |character: char| character.is_ascii_alphanumeric() || "+-()\0\r\n".contains(character);
            if mark.is_empty() || mark.contains(is_part) {
                return Err(format!("mark {mark:?} is empty or could be a part of a number"));
            }
        }
        if let Some(group) = &self.group {
            if group.mark.contains(&self.decimal) || self.decimal.contains(&group.mark) {
                return Err(format!("marks {:?} and {:?} are alike", self.decimal, group.mark));
            }
            if group.sizes.is_empty() || group.sizes.iter().any(|size| !(1..=9).contains(size)) {
                return Err("groups have 1 to 9 digits".to_owned());
            }
        }
        let could_be_a_number = |text: &str| {
            let marks = marks.iter().flatten().map(|mark| mark.as_str());
            text.chars().all(|one| is_blank(one) || marks.clone().any(|mark| mark.contains(one)))
        };
        for (index, currency) in self.currency.iter().enumerate() {
            let is_part = |one: char| one.is_ascii_digit() || one.is_control() || "+-()".contains(one);
            if currency.contains(is_part) || currency.trim() != currency || could_be_a_number(currency) {
                return Err(format!("currency {currency:?} could be a part of a number"));
            }
            for other in self.currency.iter().skip(index + 1) {
                let (short, long) = if currency.len() < other.len() { (currency, other) } else { (other, currency) };
                let rests = [long.strip_prefix(short.as_str()), long.strip_suffix(short.as_str())];
                if rests.iter().flatten().any(|rest| could_be_a_number(rest)) {
                    return Err(format!("currencies {short:?} and {long:?} cannot be told apart"));
                }
            }
        }
        if self.hex && (self.scientific || self.group.is_some() || !self.currency.is_empty()) {
            return Err("hexadecimal numbers have no groups, currencies and exponents".to_owned());
        }
        Ok(())
    }

    fn expected(&self, is_whole: bool) -> String {
        if self.hex {
            return "hexadecimal digits, 0x in front optional".to_owned();
        }
        let mut expected = if is_whole { "a whole number".to_owned() } else { "a number".to_owned() };
        let mut details = vec![];
        if !is_whole || self.scientific {
            details.push(format!("decimal mark {:?}", self.decimal));
        }
        if let Some(group) = &self.group {
            let sizes: Vec<_> = group.sizes.iter().map(u8::to_string).collect();
            let optional = if group.optional { "" } else { " (required)" };
            details.push(format!("groups of {} with {:?}{optional}", sizes.join(", "), group.mark));
        }
        if !self.currency.is_empty() {
            details.push(format!("currency {} optional", self.currency.join(", ")));
        }
        let negative = |wanted| self.negative.contains(&wanted);
        let forms = [(Negative::Minus, "-5"), (Negative::TrailingMinus, "5-"), (Negative::Parentheses, "(5)")];
        if self.negative != minus() {
            let forms: Vec<_> = forms.iter().filter(|(form, _)| negative(*form)).map(|(_, text)| *text).collect();
            details.push(if forms.is_empty() {
                "not negative".to_owned()
            } else {
                format!("negative {}", forms.join(", "))
            });
        }
        if self.scientific {
            details.push("exponent allowed".to_owned());
        }
        if !details.is_empty() {
            expected += ": ";
            expected += &details.join("; ");
        }
        expected
    }
}

/// Blanks that may stand between a currency and a number.
pub fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\u{a0}' | '\u{202f}')
}

impl PatternFormat {
    fn check(&self, column_type: ColumnType) -> Result<(), String> {
        if self.patterns.is_empty() {
            return Err("no pattern".to_owned());
        }
        self.patterns.iter().try_for_each(|pattern| {
            let elements = parse_pattern(pattern)?;
            self.check_pattern(&elements, column_type)
        })?;
        if self.pivot.is_some_and(|pivot| !(1..=9900).contains(&pivot)) {
            return Err("the pivot is not a year from 1 to 9900".to_owned());
        }
        if self.offset_minutes.is_some_and(|minutes| minutes.unsigned_abs() >= 16 * 60) {
            return Err("the offset is 16 hours or more".to_owned());
        }
        Ok(())
    }

    fn check_pattern(&self, elements: &[Element], column_type: ColumnType) -> Result<(), String> {
        let has = |is: &dyn Fn(&Element) -> bool| elements.iter().any(is);
        let part = |wanted: Part| has(&|element| matches!(element, Element::Number { part, .. } if *part == wanted));
        let has_date = part(Part::Year);
        let has_time = part(Part::Hour) || part(Part::HalfDayHour);
        let has_zone = has(&|element| matches!(element, Element::Offset | Element::Utc));
        let fits = match column_type {
            ColumnType::Date => has_date && !has_time && !has_zone,
            ColumnType::Time => !has_date && has_time && !has_zone,
            ColumnType::Timestamp => has_date && !has_zone,
            _ => has_date && has_zone != self.offset_minutes.is_some(),
        };
        if !fits || (column_type != ColumnType::TimestampTz && self.offset_minutes.is_some()) {
            return Err(format!("the pattern does not give what {column_type} has"));
        }
        let has_two_digits = has(&|element| matches!(element, Element::Number { part: Part::Year, most: 2, .. }));
        if has_two_digits && self.pivot.is_none() {
            return Err("yy needs a pivot".to_owned());
        }
        for (is_long, names) in [(false, &self.short_months), (true, &self.long_months)] {
            if has(&|element| *element == Element::MonthName { is_long }) {
                check_names(names)?;
            }
        }
        Ok(())
    }
}

/// Names of twelve months of which none of one month begins a name of another.
fn check_names(months: &[Vec<String>]) -> Result<(), String> {
    if months.len() != 12 || months.iter().any(Vec::is_empty) {
        return Err("names of months are missing".to_owned());
    }
    let all =
        || months.iter().enumerate().flat_map(|(month, names)| names.iter().map(move |name| (month, folded(name))));
    for (month, name) in all() {
        if name.is_empty() || name.contains(|one: char| one.is_ascii_digit() || one.is_control()) {
            return Err("names of months are texts without digits".to_owned());
        }
        if let Some((_, other)) = all().find(|(other, text)| *other != month && text.starts_with(&name)) {
            return Err(format!("{name:?} and {other:?} are names of two months and begin alike"));
        }
    }
    Ok(())
}

/// The text in small letters, character by character: what texts of any case are compared by.
pub fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl TruthFormat {
    fn check(&self) -> Result<(), String> {
        let all: Vec<String> = self.yes.iter().chain(&self.no).map(|text| folded(text)).collect();
        if self.yes.is_empty() || self.no.is_empty() {
            return Err("texts for true or for false are missing".to_owned());
        }
        for (index, text) in all.iter().enumerate() {
            if text.is_empty() || all[..index].contains(text) {
                return Err(format!("text {text:?} is empty or stands twice"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &str) -> Format {
        serde_json::from_str(&format!(r#"{{"kind":"number",{json}}}"#)).unwrap()
    }

    #[test]
    fn formats_that_mean_two_things_are_refused() {
        let decimal = ColumnType::Decimal { precision: 9, scale: 2 };
        for good in [
            r#""decimal":",""#,
            r#""decimal":",","group":{"mark":".","sizes":[3],"optional":true}"#,
            r#""decimal":",","group":{"mark":"\u00a0","sizes":[3,2],"optional":false},"currency":["€","kr.","kr"]"#,
        ] {
            assert_eq!(number(good).check(decimal), Ok(()), "{good}");
            assert!(number(good).check(ColumnType::Date).is_err());
        }
        for bad in [
            r#""decimal":"""#,
            r#""decimal":"1""#,
            r#""decimal":"-""#,
            r#""decimal":",","group":{"mark":",","sizes":[3],"optional":true}"#,
            r#""decimal":",","group":{"mark":".","sizes":[],"optional":true}"#,
            r#""decimal":",","group":{"mark":".","sizes":[0],"optional":true}"#,
            r#""decimal":".","currency":["kr.","kr"]"#,
            r#""decimal":".","currency":["€ "]"#,
            r#""decimal":".","currency":[""]"#,
            r#""decimal":".","currency":["C$1"]"#,
            r#""decimal":".","hex":true,"scientific":true"#,
        ] {
            assert!(number(bad).check(decimal).is_err(), "{bad}");
        }
        let hexadecimal = number(r#""decimal":".","hex":true"#);
        assert_eq!([ColumnType::Int16, decimal].map(|own| hexadecimal.check(own)), [Ok(()), Ok(())]);
        assert!([ColumnType::Float32, ColumnType::Float64].iter().all(|own| hexadecimal.check(*own).is_err()));
    }

    #[test]
    fn patterns_give_what_the_type_has() {
        let check = |pattern: &str, column_type, offset_minutes| {
            let patterns = vec![pattern.to_owned()];
            Format::Patterns(PatternFormat { patterns, offset_minutes, ..PatternFormat::default() }).check(column_type)
        };
        use ColumnType::*;
        for (pattern, column_type, offset) in [
            ("dd.MM.yyyy", Date, None),
            ("dd.MM.yyyy", Timestamp, None),
            ("HH:mm", Time, None),
            ("dd.MM.yyyy HH:mm", TimestampTz, Some(60)),
            ("dd.MM.yyyy HH:mm zzz", TimestampTz, None),
        ] {
            assert_eq!(check(pattern, column_type, offset), Ok(()), "{pattern}");
        }
        for (pattern, column_type, offset) in [
            ("dd.MM.yyyy HH:mm", Date, None),
            ("dd.MM.yyyy", Time, None),
            ("HH:mm", Timestamp, None),
            ("HH:mm", Date, None),
            ("dd.MM.yyyy zzz", Timestamp, None),
            ("dd.MM.yyyy HH:mm", TimestampTz, None),
            ("dd.MM.yyyy HH:mmZ", TimestampTz, Some(0)),
            ("dd.MM.yyyy", Date, Some(0)),
            ("dd.MM.yy", Date, None),
            ("dd MMM yyyy", Date, None),
            ("", Date, None),
        ] {
            assert!(check(pattern, column_type, offset).is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_is_expected() {
        let format = number(
            r#""decimal":",","group":{"mark":".","sizes":[3],"optional":true},"currency":["€"],"negative":["parentheses"]"#,
        );
        let expected = format.expected(Rule::BadDecimal).unwrap();
        assert_eq!(expected, "a number: decimal mark \",\"; groups of 3 with \".\"; currency € optional; negative (5)");
        assert_eq!(format.expected(Rule::OutOfRange), None);
        let truth = TruthFormat { yes: vec!["J".to_owned(), "ja".to_owned()], no: vec!["N".to_owned()] };
        assert_eq!(Format::Truth(truth).expected(Rule::BadBool).unwrap(), "J, ja or N");
    }
}
