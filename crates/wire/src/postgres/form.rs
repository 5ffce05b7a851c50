//! What the receive functions of the server's types expect.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Form of a value that a server type receives. Types with the same receive format share one: [`Form::Text`] serves text,
/// varchar, bpchar, name, citext and enums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Whole number, 2 bytes.
    Int2,
    /// Whole number, 4 bytes.
    Int4,
    /// Whole number, 8 bytes.
    Int8,
    /// Exact decimal number: digits in base 10000.
    Numeric,
    /// IEEE 754, 4 bytes.
    Float4,
    /// IEEE 754, 8 bytes.
    Float8,
    /// One byte, 0 or 1.
    Bool,
    /// Days since 2000-01-01, 4 bytes.
    Date,
    /// Microseconds since midnight, 8 bytes.
    Time,
    /// Microseconds since 2000-01-01 00:00, 8 bytes.
    Timestamp,
    /// Microseconds since 2000-01-01 00:00 UTC, 8 bytes.
    Timestamptz,
    /// Text in the client encoding, which is UTF-8 here.
    Text,
    /// Bytes as they are.
    Bytea,
    /// 16 bytes.
    Uuid,
    /// The document's text.
    Json,
    /// A version byte, 1, and the document's text.
    Jsonb,
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Form::Int2 => "int2",
            Form::Int4 => "int4",
            Form::Int8 => "int8",
            Form::Numeric => "numeric",
            Form::Float4 => "float4",
            Form::Float8 => "float8",
            Form::Bool => "bool",
            Form::Date => "date",
            Form::Time => "time",
            Form::Timestamp => "timestamp",
            Form::Timestamptz => "timestamptz",
            Form::Text => "text",
            Form::Bytea => "bytea",
            Form::Uuid => "uuid",
            Form::Json => "json",
            Form::Jsonb => "jsonb",
        })
    }
}
