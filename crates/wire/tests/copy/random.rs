//! Random batches, read back by the plain decoder and by ours.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use headrace_types::ColumnType as C;
use headrace_wire::postgres::Form;
use proptest::prelude::*;

use crate::decode;
use crate::decoded;
use crate::plan::pairs;
use crate::values::{Text, Wanted, array, batch, stream};

/// Numbers that look random and are the same for a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// A number of up to `digits` digits; as many of one digit as of most.
    fn digits(&mut self, digits: u8) -> String {
        let count = 1 + self.below(digits.into());
        // Many zeros, so that there are groups of zeros.
        let zeros = self.below(3);
        (0..count).map(|_| if self.below(3) < zeros { '0' } else { char::from(b'0' + self.below(10) as u8) }).collect()
    }

    fn sign(&mut self) -> &'static str {
        if self.below(3) == 0 { "-" } else { "" }
    }

    fn date(&mut self) -> String {
        format!("{:04}-{:02}-{:02}", 1 + self.below(9999), 1 + self.below(12), 1 + self.below(28))
    }

    fn time(&mut self) -> String {
        let digits = self.below(1_000_000);
        format!("{:02}:{:02}:{:02}.{digits:06}", self.below(24), self.below(60), self.below(60))
    }

    /// Up to `most` characters; most texts are short.
    fn text(&mut self, most: u64) -> String {
        let most = most >> (2 * self.below(4));
        (0..self.below(most + 1)).map(|_| ['a', 'b', ' ', 'é', '€', '🦀', '\\'][self.below(7) as usize]).collect()
    }

    fn hexadecimal(&mut self, bytes: u64) -> String {
        (0..bytes).map(|_| format!("{:02x}", self.below(256))).collect()
    }

    /// A text that `values::array` understands.
    fn value(&mut self, column_type: C) -> String {
        let between = |numbers: &mut Self, low: i64, high: i64| match numbers.below(8) {
            0 => low.to_string(),
            1 => high.to_string(),
            _ => ((numbers.next() as i64 >> numbers.below(64)).clamp(low, high)).to_string(),
        };
        match column_type {
            C::Int16 => between(self, i16::MIN.into(), i16::MAX.into()),
            C::Int32 => between(self, i32::MIN.into(), i32::MAX.into()),
            C::Int64 => between(self, i64::MIN, i64::MAX),
            C::Decimal { precision, scale } => {
                let digits = format!("{:0>width$}", self.digits(precision), width = usize::from(scale) + 1);
                let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
                // With as many digits behind the point as before it, the zero in front may be one too many.
                format!("{}{whole}.{fraction}", self.sign())
            }
            C::Float32 => f32::from_bits(self.next() as u32).to_string(),
            C::Float64 => f64::from_bits(self.next()).to_string(),
            C::Bool => ["t", "f"][self.below(2) as usize].to_owned(),
            C::Date => self.date(),
            C::Time => self.time(),
            C::Timestamp => format!("{} {}", self.date(), self.time()),
            C::TimestampTz => format!("{} {}+00", self.date(), self.time()),
            C::String | C::Char { .. } | C::Varchar { .. } | C::Json => self.text(400),
            C::Bytes => {
                let bytes = self.below(90);
                format!("\\x{}", self.hexadecimal(bytes))
            }
            C::Uuid => self.hexadecimal(16),
        }
    }
}

/// A value as the decoder must find it, from the array itself.
fn expected(array: &dyn Array, row: usize, form: Form) -> Text {
    if array.is_null(row) {
        return None;
    }
    let decimal = |unscaled: i128, scale: i8| {
        let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let sign = if unscaled < 0 { "-" } else { "" };
        let point = if scale > 0 { "." } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    };
    macro_rules! plain {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row).to_string()
        };
    }
    Some(match array.data_type() {
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::Decimal64(_, scale) => decimal(array.as_primitive::<Decimal64Type>().value(row).into(), *scale),
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Float32 if form == Form::Float8 => {
            f64::from(array.as_primitive::<Float32Type>().value(row)).to_string()
        }
        DataType::Float32 => plain!(Float32Type),
        DataType::Float64 => plain!(Float64Type),
        DataType::Boolean => (if array.as_boolean().value(row) { "t" } else { "f" }).to_owned(),
        DataType::Date32 if form == Form::Timestamp => {
            (i64::from(array.as_primitive::<Date32Type>().value(row)) * 86_400_000_000).to_string()
        }
        DataType::Date32 => plain!(Date32Type),
        DataType::Time64(TimeUnit::Microsecond) => plain!(Time64MicrosecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => plain!(TimestampMicrosecondType),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::BinaryView => format!("{:02x?}", array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(16) => format!("{:02x?}", array.as_fixed_size_binary().value(row)),
        other => panic!("no column has type {other}"),
    })
}

fn check(wanted: &[Wanted], batch: &RecordBatch, full: usize) {
    let forms: Vec<_> = wanted.iter().map(|wanted| wanted.form).collect();
    let stream = stream(wanted, batch, full);
    decoded::check(wanted, batch, &stream);
    let found = decode::rows(&stream, &forms);
    assert_eq!(found.len(), batch.num_rows());
    for (row, found) in found.into_iter().enumerate() {
        let columns = batch.columns().iter().zip(&forms);
        let expected: Vec<_> = columns.map(|(array, form)| expected(array, row, *form)).collect();
        assert_eq!(found, expected, "row {row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_encoded_is_decoded(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..4), 0..20),
        rows in 0usize..200,
        seed in 1u64..,
        slice in (0usize..200, 0usize..200),
        full in prop_oneof![Just(0), 1usize..2000, Just(usize::MAX)],
    ) {
        let mut numbers = Numbers(seed);
        let pairs = pairs();
        let picked: Vec<_> = picks.iter().map(|(index, nulls)| (index.get(&pairs), *nulls)).collect();
        let columns = picked.iter().map(|(wanted, nulls)| {
            let texts: Vec<_> = (0..rows)
                .map(|_| (numbers.below(8) >= nulls * 2).then(|| numbers.value(wanted.column_type)))
                .collect();
            array(wanted.column_type, &texts)
        });
        let columns: Vec<_> = columns.collect();
        prop_assume!(!columns.is_empty());
        let whole = batch(columns);
        let wanted: Vec<_> = picked.iter().map(|(wanted, _)| (*wanted).clone()).collect();
        check(&wanted, &whole, full);
        let from = slice.0.min(rows);
        check(&wanted, &whole.slice(from, slice.1.min(rows - from)), full);
    }
}

#[test]
fn rows_may_be_wider_than_all_slots_together() {
    let mut numbers = Numbers(7);
    let wanted = vec![Wanted { column_type: C::Int32, form: Form::Numeric }; 1600];
    let columns = wanted.iter().map(|wanted| {
        let texts: Vec<_> = (0..70).map(|_| Some(numbers.value(wanted.column_type))).collect();
        array(wanted.column_type, &texts)
    });
    let batch = batch(columns.collect());
    check(&wanted, &batch, usize::MAX);
    check(&wanted, &batch, 50_000);
}

#[test]
fn texts_may_be_longer_than_messages() {
    let wanted = [(C::String, Form::Text), (C::Json, Form::Jsonb), (C::Int16, Form::Int2), (C::Bytes, Form::Bytea)];
    let wanted = wanted.map(|(column_type, form)| Wanted { column_type, form });
    let texts = |text: &str| vec![Some(text.to_owned()), None, Some(text.repeat(100_000)), Some(String::new())];
    let integers = ["1", "2", "3", "4"].map(|text| Some(text.to_owned()));
    let bytes = texts("ab").into_iter().map(|text| text.map(|text| format!("\\x{text}")));
    let columns = vec![
        array(C::String, &texts("long")),
        array(C::Json, &texts("é")),
        array(C::Int16, &integers),
        array(C::Bytes, &bytes.collect::<Vec<_>>()),
    ];
    let batch = batch(columns);
    check(&wanted, &batch, usize::MAX);
    check(&wanted, &batch, 1000);
}
