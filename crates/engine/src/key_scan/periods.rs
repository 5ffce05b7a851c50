//! Periods of keys: of the calendar, or of a fixed step.

use headrace_transform::partition::Key;
use headrace_types::{ColumnType, CoreError};
use serde::Deserialize;

use super::counts::Counts;
use super::refusal;
use crate::key_column::KeyColumn;

const HOUR_MICROSECONDS: Key = 3_600_000_000;
const DAY_MICROSECONDS: Key = 24 * HOUR_MICROSECONDS;
/// Days from 0000-03-01, where years of four centuries begin, to 1970-01-01.
const DAYS_TO_1970: Key = 719_468;

/// How long a period is.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Every {
    /// Of the calendar, for dates and timestamps; instants count in UTC.
    Unit(Unit),
    /// That many, from 0 on: for whole numbers and decimals, as text that the column accepts.
    Step(String),
}

/// Of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Not for dates.
    Hour,
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first day.
    Month,
    /// From January, April, July, October.
    Quarter,
    /// From January.
    Year,
}

/// Which period a key lies in. Periods are numbered without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Periods {
    rule: Rule,
    /// A period may begin before the least key that its type can hold.
    least: Key,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// Keys of one period.
    Step(Key),
    /// Days of one period, the days before 1970 that one begins, keys of a day.
    Days { days: Key, before: Key, day: Key },
    /// Months of one period, keys of a day.
    Months { months: Key, day: Key },
}

impl Periods {
    /// The periods of a column.
    ///
    /// # Errors
    /// `Specification` for a period that does not fit the column's type.
    pub fn new(column: KeyColumn, every: &Every) -> Result<Self, CoreError> {
        let column_type = column.column_type();
        // Keys of a day.
        let day = match column_type {
            ColumnType::Date => Some(1),
            ColumnType::Timestamp | ColumnType::TimestampTz => Some(DAY_MICROSECONDS),
            _ => None,
        };
        let rule = match (every, day) {
            (Every::Step(step), None) => match column.parse(step)? {
                step if step > 0 => Rule::Step(step),
                _ => return Err(refusal(format!("a step of {step} leads nowhere"))),
            },
            (Every::Unit(Unit::Hour), Some(DAY_MICROSECONDS)) => Rule::Step(HOUR_MICROSECONDS),
            (Every::Unit(Unit::Hour), Some(_)) => return Err(refusal("dates have no hours")),
            (Every::Unit(unit), Some(day)) => match unit {
                Unit::Hour | Unit::Day => Rule::Days { days: 1, before: 0, day },
                // 1970-01-01 was a Thursday.
                Unit::Week => Rule::Days { days: 7, before: 3, day },
                Unit::Month => Rule::Months { months: 1, day },
                Unit::Quarter => Rule::Months { months: 3, day },
                Unit::Year => Rule::Months { months: 12, day },
            },
            (Every::Step(_), Some(_)) => {
                return Err(refusal(format!("periods of {column_type} are of the calendar, not steps")));
            }
            (Every::Unit(_), None) => {
                return Err(refusal(format!("periods of {column_type} are steps, not of the calendar")));
            }
        };
        Ok(Periods { rule, least: least(column_type) })
    }

    /// The period of a key.
    #[inline]
    pub fn of(&self, key: Key) -> Key {
        match self.rule {
            Rule::Step(step) => key.div_euclid(step),
            Rule::Days { days, before, day } => (days_of(key, day) + before).div_euclid(days),
            Rule::Months { months, day } => month_of(days_of(key, day)).div_euclid(months),
        }
    }

    /// The first keys of all periods in which keys lie, ascending.
    ///
    /// # Errors
    /// `Specification` for too many periods.
    pub fn begins(&self, counts: &Counts) -> Result<Vec<Key>, CoreError> {
        if counts.shift() > 0 {
            return Err(refusal("the keys lie in more periods than can be told apart; take longer ones"));
        }
        Ok(counts.ascending().into_iter().map(|(period, _)| self.begin(period).max(self.least)).collect())
    }

    fn begin(&self, period: Key) -> Key {
        match self.rule {
            Rule::Step(step) => period.saturating_mul(step),
            Rule::Days { days, before, day } => (period * days - before) * day,
            Rule::Months { months, day } => first_day(period * months) * day,
        }
    }
}

/// Least key of a type.
fn least(column_type: ColumnType) -> Key {
    match column_type {
        ColumnType::Int16 => i16::MIN.into(),
        ColumnType::Int32 => i32::MIN.into(),
        ColumnType::Int64 => i64::MIN.into(),
        ColumnType::Decimal { precision, .. } => 1 - Key::pow(10, precision.into()),
        // 0001-01-01 begins a year, a quarter, a month, a week, a day.
        _ => Key::MIN,
    }
}

/// Days since 1970 of a key. 64 bits hold every instant, and divide faster.
fn days_of(key: Key, day: Key) -> Key {
    if day == 1 { key } else { (key as i64).div_euclid(DAY_MICROSECONDS as i64).into() }
}

/// Months from January 0000 to the month of a day since 1970.
fn month_of(days: Key) -> Key {
    let days = (days + DAYS_TO_1970) as i64;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    Key::from((era * 400 + year_of_era) * 12 + month_from_march + 2)
}

/// The first day of a month, since 1970; the inverse of [`month_of`].
fn first_day(month: Key) -> Key {
    let from_march = month - 2;
    let (year, month_from_march) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month_from_march + 2) / 5 - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{Column, Layout};

    fn column(column_type: ColumnType) -> KeyColumn {
        let layout = Layout {
            delimiter: "|".to_owned(),
            columns: vec![Column::new("key", column_type, false)],
            ..Layout::default()
        };
        KeyColumn::of(&layout, "key").unwrap()
    }

    /// The first key of the period of a key, as text.
    fn begin(column_type: ColumnType, every: &Every, key: &str) -> String {
        let column = column(column_type);
        let periods = Periods::new(column, every).unwrap();
        let mut counts = Counts::default();
        counts.add(periods.of(column.parse(key).unwrap()));
        column.text(periods.begins(&counts).unwrap()[0])
    }

    #[test]
    fn periods_of_the_calendar_begin_where_it_says() {
        use Unit::*;
        for (unit, key, expected) in [
            (Day, "2024-02-29", "2024-02-29"),
            (Week, "2024-02-29", "2024-02-26"),
            (Week, "1970-01-04", "1969-12-29"),
            (Week, "1970-01-05", "1970-01-05"),
            (Week, "0001-01-01", "0001-01-01"),
            (Month, "2024-02-29", "2024-02-01"),
            (Month, "0001-01-31", "0001-01-01"),
            (Month, "9999-12-31", "9999-12-01"),
            (Quarter, "2024-03-31", "2024-01-01"),
            (Quarter, "2024-04-01", "2024-04-01"),
            (Year, "2024-12-31", "2024-01-01"),
            (Year, "0001-12-31", "0001-01-01"),
        ] {
            assert_eq!(begin(ColumnType::Date, &Every::Unit(unit), key), expected, "{unit:?} of {key}");
            let (early, late) = (format!("{key} 00:00:00"), format!("{key} 23:59:59.999999"));
            for instant in [early, late] {
                let text = begin(ColumnType::Timestamp, &Every::Unit(unit), &instant);
                assert_eq!(text, format!("{expected} 00:00:00"), "{unit:?} of {instant}");
            }
        }
        let hour = Every::Unit(Hour);
        assert_eq!(begin(ColumnType::Timestamp, &hour, "1969-12-31 23:59:59.5"), "1969-12-31 23:00:00");
        let offset = "2024-01-01 00:30:00+01:00";
        assert_eq!(begin(ColumnType::TimestampTz, &hour, offset), "2023-12-31 23:00:00+00:00", "in UTC");
    }

    #[test]
    fn every_day_lies_in_the_month_that_its_text_names() {
        let date = column(ColumnType::Date);
        let (first, last) = (date.parse("0001-01-01").unwrap(), date.parse("9999-12-31").unwrap());
        for day in first..=last {
            let month = month_of(day);
            let begin = first_day(month);
            assert!(begin <= day && day < first_day(month + 1));
            // Not for all of them: texts are slow to make.
            if day - begin < 1 || day % 11 == 0 {
                assert_eq!(date.text(begin), format!("{}-01", &date.text(day)[..7]));
            }
        }
    }

    #[test]
    fn steps_begin_at_0_and_stay_inside_the_type() {
        let step = |text: &str| Every::Step(text.to_owned());
        let decimal = ColumnType::Decimal { precision: 5, scale: 2 };
        for (column_type, every, key, expected) in [
            (ColumnType::Int32, step("1000"), "1999", "1000"),
            (ColumnType::Int32, step("1000"), "-1", "-1000"),
            (ColumnType::Int16, step("1000"), "-32768", "-32768"),
            (ColumnType::Int64, step("9223372036854775807"), "-9223372036854775808", "-9223372036854775808"),
            (decimal, step("0.25"), "1.30", "1.25"),
            (decimal, step("100"), "-999.99", "-999.99"),
            (
                ColumnType::Decimal { precision: 38, scale: 0 },
                step(&"9".repeat(38)),
                &format!("-1{}", "0".repeat(37)),
                &format!("-{}", "9".repeat(38)),
            ),
        ] {
            assert_eq!(begin(column_type, &every, key), expected, "{every:?} of {key}");
        }
    }

    #[test]
    fn periods_that_do_not_fit_the_type_are_refused() {
        let refused = |column_type, every: Every| Periods::new(column(column_type), &every).is_err();
        assert!(refused(ColumnType::Int32, Every::Unit(Unit::Day)));
        assert!(refused(ColumnType::Date, Every::Unit(Unit::Hour)));
        assert!(refused(ColumnType::Date, Every::Step("7".to_owned())));
        for step in ["0", "-1", "1.5", "", "x"] {
            assert!(refused(ColumnType::Int32, Every::Step(step.to_owned())), "{step}");
        }
    }
}
