//! The column types of a layout and their Arrow form.

use std::collections::HashMap;
use std::fmt;

use arrow_schema::{DataType, Field, TimeUnit};
use serde::{Deserialize, Serialize};

/// Largest decimal precision whose unscaled value always fits 64 bits.
pub const MAX_DECIMAL64_PRECISION: u8 = 18;

/// Type of one column, as declared in a layout. `docs/spec/text-to-types.md` lists the text each type accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ColumnType {
    /// Whole number, 16 bits.
    Int16,
    /// Whole number, 32 bits.
    Int32,
    /// Whole number, 64 bits.
    Int64,
    /// Exact decimal number: `precision` digits in all (1 to 38), `scale` of them after the point.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the decimal point, 0 to `precision`.
        scale: u8,
    },
    /// Binary floating point, 32 bits.
    Float32,
    /// Binary floating point, 64 bits.
    Float64,
    /// Truth value.
    Bool,
    /// Day, 0001-01-01 to 9999-12-31.
    Date,
    /// Time of day, microseconds.
    Time,
    /// Date and time without zone, microseconds.
    Timestamp,
    /// Instant, microseconds; text must carry its offset from UTC.
    TimestampTz,
    /// Text of any length.
    String,
    /// Text of `length` code points; trailing blanks mean nothing and are dropped.
    Char {
        /// Code points, 1 or more.
        length: u32,
    },
    /// Text of at most `length` code points.
    Varchar {
        /// Code points, 1 or more.
        length: u32,
    },
    /// Bytes, written as hexadecimal text.
    Bytes,
    /// 128-bit identifier.
    Uuid,
    /// JSON document, kept as its text.
    Json,
}

impl ColumnType {
    /// Whether values are texts.
    pub fn is_text(self) -> bool {
        matches!(self, ColumnType::String | ColumnType::Char { .. } | ColumnType::Varchar { .. })
    }

    /// Arrow type of the parsed column. Text is a string view, so that values need not be copied.
    pub fn arrow_type(&self) -> DataType {
        match *self {
            ColumnType::Int16 => DataType::Int16,
            ColumnType::Int32 => DataType::Int32,
            ColumnType::Int64 => DataType::Int64,
            ColumnType::Decimal { precision, scale } if precision <= MAX_DECIMAL64_PRECISION => {
                DataType::Decimal64(precision, scale as i8)
            }
            ColumnType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
            ColumnType::Float32 => DataType::Float32,
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Bool => DataType::Boolean,
            ColumnType::Date => DataType::Date32,
            ColumnType::Time => DataType::Time64(TimeUnit::Microsecond),
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            ColumnType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            ColumnType::String | ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Json => {
                DataType::Utf8View
            }
            ColumnType::Bytes => DataType::BinaryView,
            ColumnType::Uuid => DataType::FixedSizeBinary(16),
        }
    }

    /// Arrow field, with the canonical extension name where Arrow's type alone does not say it (uuid, json).
    pub fn arrow_field(&self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.arrow_type(), nullable);
        let extension = match self {
            ColumnType::Uuid => "arrow.uuid",
            ColumnType::Json => "arrow.json",
            _ => return field,
        };
        field.with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), extension.to_owned())]))
    }

    /// Whether precision, scale and length are inside their ranges; the text says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            ColumnType::Decimal { precision, scale } if precision == 0 || precision > 38 || scale > precision => {
                Err(format!("{self} is outside decimal(1..38, 0..precision)"))
            }
            ColumnType::Char { length: 0 } | ColumnType::Varchar { length: 0 } => {
                Err(format!("{self} has a length of 0"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match *self {
            ColumnType::Decimal { precision, scale } => return write!(formatter, "decimal({precision},{scale})"),
            ColumnType::Char { length } => return write!(formatter, "char({length})"),
            ColumnType::Varchar { length } => return write!(formatter, "varchar({length})"),
            ColumnType::Int16 => "int16",
            ColumnType::Int32 => "int32",
            ColumnType::Int64 => "int64",
            ColumnType::Float32 => "float32",
            ColumnType::Float64 => "float64",
            ColumnType::Bool => "bool",
            ColumnType::Date => "date",
            ColumnType::Time => "time",
            ColumnType::Timestamp => "timestamp",
            ColumnType::TimestampTz => "timestamptz",
            ColumnType::String => "string",
            ColumnType::Bytes => "bytes",
            ColumnType::Uuid => "uuid",
            ColumnType::Json => "json",
        };
        formatter.write_str(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_decimals_are_64_bits_and_large_ones_128() {
        let arrow = |precision| ColumnType::Decimal { precision, scale: 2 }.arrow_type();
        assert_eq!(arrow(18), DataType::Decimal64(18, 2));
        assert_eq!(arrow(19), DataType::Decimal128(19, 2));
    }

    #[test]
    fn ranges_are_checked() {
        assert!(ColumnType::Decimal { precision: 38, scale: 38 }.check().is_ok());
        for bad in [
            ColumnType::Decimal { precision: 0, scale: 0 },
            ColumnType::Decimal { precision: 39, scale: 0 },
            ColumnType::Decimal { precision: 5, scale: 6 },
            ColumnType::Char { length: 0 },
            ColumnType::Varchar { length: 0 },
        ] {
            assert!(bad.check().is_err(), "{bad}");
        }
    }

    #[test]
    fn json_form_is_the_kind_with_its_members() {
        let text = r#"{"kind":"decimal","precision":15,"scale":2}"#;
        let parsed: ColumnType = serde_json::from_str(text).unwrap();
        assert_eq!(parsed, ColumnType::Decimal { precision: 15, scale: 2 });
        assert_eq!(serde_json::to_string(&parsed).unwrap(), text);
        assert_eq!(serde_json::from_str::<ColumnType>(r#"{"kind":"timestamptz"}"#).unwrap(), ColumnType::TimestampTz);
    }
}
