//! Values of every column type, as arrays and as texts that can be compared.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, TimeUnit};
use headrace_types::ColumnType;

/// A value that is not NULL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// As the column's type says; the bits of a float.
    Number(i128),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    pub fn number(&self) -> i128 {
        match self {
            Value::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            other => panic!("{other:?} is not bytes"),
        }
    }
}

/// The array of a column.
pub fn array(column_type: ColumnType, values: &[Option<Value>]) -> ArrayRef {
    let numbers = || values.iter().map(|value| value.as_ref().map(Value::number));
    fn primitive<T: ArrowPrimitiveType>(
        values: impl Iterator<Item = Option<T::Native>>,
        data_type: DataType,
    ) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter(values).with_data_type(data_type))
    }
    let data_type = column_type.arrow_type();
    match &data_type {
        DataType::Int16 => {
            primitive::<Int16Type>(numbers().map(|number| number.map(|number| number as i16)), data_type)
        }
        DataType::Int32 => {
            primitive::<Int32Type>(numbers().map(|number| number.map(|number| number as i32)), data_type)
        }
        DataType::Date32 => {
            primitive::<Date32Type>(numbers().map(|number| number.map(|number| number as i32)), data_type)
        }
        DataType::Int64 => {
            primitive::<Int64Type>(numbers().map(|number| number.map(|number| number as i64)), data_type)
        }
        DataType::Decimal64(..) => {
            primitive::<Decimal64Type>(numbers().map(|number| number.map(|number| number as i64)), data_type)
        }
        DataType::Decimal128(..) => primitive::<Decimal128Type>(numbers(), data_type),
        DataType::Time64(_) => {
            primitive::<Time64MicrosecondType>(numbers().map(|number| number.map(|number| number as i64)), data_type)
        }
        DataType::Timestamp(..) => {
            primitive::<TimestampMicrosecondType>(numbers().map(|number| number.map(|number| number as i64)), data_type)
        }
        DataType::Float64 => {
            primitive::<Float64Type>(numbers().map(|number| number.map(|bits| f64::from_bits(bits as u64))), data_type)
        }
        DataType::Boolean => {
            Arc::new(numbers().map(|number| number.map(|number| number != 0)).collect::<BooleanArray>())
        }
        DataType::Utf8View => {
            Arc::new(StringViewArray::from_iter(values.iter().map(|value| value.as_ref().map(Value::text))))
        }
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::new();
            values.iter().for_each(|value| builder.append_option(value.as_ref().map(Value::bytes)));
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(16) => {
            let mut builder = FixedSizeBinaryBuilder::new(16);
            for value in values {
                match value {
                    Some(value) => builder.append_value(value.bytes()).unwrap(),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        other => panic!("no column is of type {other}"),
    }
}

/// The value of a row.
pub fn value(array: &dyn Array, row: usize) -> Option<Value> {
    macro_rules! number {
        ($type:ty) => {
            Value::Number(array.as_primitive::<$type>().value(row).into())
        };
    }
    array.is_valid(row).then(|| match array.data_type() {
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Date32 => number!(Date32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Decimal64(..) => number!(Decimal64Type),
        DataType::Decimal128(..) => number!(Decimal128Type),
        DataType::Time64(TimeUnit::Microsecond) => number!(Time64MicrosecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Float64 => Value::Number(array.as_primitive::<Float64Type>().value(row).to_bits().into()),
        DataType::Boolean => Value::Number(array.as_boolean().value(row).into()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        other => panic!("no column is of type {other}"),
    })
}

/// Numbers that look random and are the same for a seed (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 11) % end as u64) as usize
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn between(&mut self, least: i128, greatest: i128) -> i128 {
        let near = self.below(5) as i128;
        let far = (i128::from(self.next()) << 63 | i128::from(self.next() >> 1)) >> self.below(110);
        let sign = self.of(&[1, -1]);
        self.of(&[least + near, greatest - near, near - 2, sign * far]).clamp(least, greatest)
    }

    /// A value of the type; often one that is near the ends of its range, or like another one.
    pub fn value(&mut self, column_type: ColumnType) -> Value {
        use ColumnType::*;
        match column_type {
            Int16 => Value::Number(self.between(i16::MIN.into(), i16::MAX.into())),
            Int32 | Date => Value::Number(self.between(i32::MIN.into(), i32::MAX.into())),
            Int64 | Timestamp | TimestampTz => Value::Number(self.between(i64::MIN.into(), i64::MAX.into())),
            Decimal { precision, .. } => {
                let end = 10_i128.pow(precision.into());
                Value::Number(self.between(1 - end, end - 1))
            }
            Time => Value::Number(self.between(0, 86_400_000_000)),
            Bool => Value::Number(self.below(2) as i128),
            Float64 => Value::Number(self.next().into()),
            String | Char { .. } | Varchar { .. } | Json => {
                let long = "long enough for a piece of its own ".repeat(self.below(3));
                let words = ["", "a", "A", "ä", "Ä", "ß", "İ", "i", "ς", "Σ", "b ", " b"];
                let text = format!("{}{long}{}", self.of(&words), self.of(&words));
                Value::Text(text + self.of(&["", "", " ", "   ", "\u{a0}"]))
            }
            Bytes => {
                let length = self.below(20);
                Value::Bytes((0..length).map(|_| self.of(&[0, 1, 255])).collect())
            }
            Uuid => Value::Bytes((0..16).map(|place| if place % 8 == 0 { self.below(3) as u8 } else { 7 }).collect()),
            Float32 => panic!("no test has floats of 32 bits"),
        }
    }
}
