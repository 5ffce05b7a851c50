//! Whole-number forms of column values as exact text.

use arrow_buffer::i256;
use headrace_types::ColumnType;

/// Text of `value`: an integer, an unscaled decimal, days or microseconds since 1970, as the type says.
pub fn render(column_type: ColumnType, value: i128) -> String {
    match column_type {
        ColumnType::Decimal { scale, .. } => decimal(&value.to_string(), usize::from(scale)),
        ColumnType::Date => date(value),
        ColumnType::Time => time(value),
        ColumnType::Timestamp => timestamp(value),
        ColumnType::TimestampTz => format!("{}+00:00", timestamp(value)),
        _ => value.to_string(),
    }
}

/// Text of a sum; none where a sum of values of the type means nothing.
pub fn render_sum(column_type: ColumnType, sum: i256) -> Option<String> {
    match column_type {
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => Some(sum.to_string()),
        ColumnType::Decimal { scale, .. } => Some(decimal(&sum.to_string(), usize::from(scale))),
        _ => None,
    }
}

/// Puts the point into an unscaled number.
fn decimal(unscaled: &str, scale: usize) -> String {
    if scale == 0 {
        return unscaled.to_owned();
    }
    let (sign, digits) = unscaled.strip_prefix('-').map_or(("", unscaled), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Civil date of days since 1970-01-01; the inverse of the parser's conversion.
fn date(days: i128) -> String {
    let shifted = days + 719_468; // from 0000-03-01
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(microseconds: i128) -> String {
    let seconds = microseconds / 1_000_000;
    let fraction = microseconds % 1_000_000;
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 { whole } else { format!("{whole}.{fraction:06}") }
}

fn timestamp(microseconds: i128) -> String {
    const DAY: i128 = 86_400_000_000;
    format!("{} {}", date(microseconds.div_euclid(DAY)), time(microseconds.rem_euclid(DAY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_exactly() {
        let decimal = ColumnType::Decimal { precision: 15, scale: 2 };
        for (column_type, value, text) in [
            (decimal, -5, "-0.05"),
            (decimal, 0, "0.00"),
            (decimal, 2_116_823, "21168.23"),
            (ColumnType::Date, 0, "1970-01-01"),
            (ColumnType::Date, -719_162, "0001-01-01"),
            (ColumnType::Date, 2_932_896, "9999-12-31"),
            (ColumnType::Date, 11_016, "2000-02-29"),
            (ColumnType::Time, 86_399_999_999, "23:59:59.999999"),
            (ColumnType::Timestamp, -1_000_000, "1969-12-31 23:59:59"),
            (ColumnType::TimestampTz, 0, "1970-01-01 00:00:00+00:00"),
            (ColumnType::Int64, -7, "-7"),
        ] {
            assert_eq!(render(column_type, value), text);
        }
    }
}
