//! How fast batches become rows of a binary COPY: throughput in bytes of the text that the batch came from, delimiters
//! included.
//!
//!     cargo bench -p headrace-wire                 all tables
//!     cargo bench -p headrace-wire -- lineitem     those whose name holds `lineitem`
//!
//! Texts are views of that text, as the parser makes them, so that reading them costs what it costs in a load.

#![allow(missing_docs, clippy::unwrap_used)] // made by criterion's macros; a bench that cannot run has to say so

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use arrow_array::types::Decimal64Type;
use arrow_array::{
    ArrayRef, Date32Array, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringViewArray, builder::make_view,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{Field, Schema};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headrace_types::ColumnType;
use headrace_wire::postgres::{CopyEncoder, Form};

/// Rows of one block of the parser.
const ROWS: usize = 4096;
/// Bytes of one message to the server.
const FULL_BYTES: usize = 128 << 10;

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % end
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

/// A kind of column and the values it has.
#[derive(Clone, Copy)]
enum Kind {
    /// 64-bit keys, ascending.
    Key,
    /// 32-bit numbers up to this one.
    Integer(u64),
    /// decimal(15,2) between two numbers of hundredths.
    Money(u64, u64),
    /// Days of seven years.
    Day,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Words of so many bytes.
    Words(u64, u64),
}

impl Kind {
    fn column_type(self) -> (ColumnType, Form) {
        match self {
            Kind::Key => (ColumnType::Int64, Form::Int8),
            Kind::Integer(_) => (ColumnType::Int32, Form::Int4),
            Kind::Money(..) => (ColumnType::Decimal { precision: 15, scale: 2 }, Form::Numeric),
            Kind::Day => (ColumnType::Date, Form::Date),
            Kind::OneOf(_) | Kind::Words(..) => (ColumnType::Varchar { length: 200 }, Form::Text),
        }
    }

    /// Writes a value; its number is what the array of a number holds.
    fn write(self, row: usize, numbers: &mut Numbers, text: &mut String) -> i64 {
        let number = match self {
            Kind::Key => 5_000_000_000 + row as u64 / 4,
            Kind::Integer(most) => numbers.between(1, most),
            Kind::Money(low, high) => numbers.between(low, high),
            Kind::Day => numbers.between(8_035, 10_591),
            Kind::OneOf(texts) => {
                text.push_str(texts[numbers.below(texts.len() as u64) as usize]);
                return 0;
            }
            Kind::Words(least, most) => {
                for _ in 0..numbers.between(least, most) {
                    text.push(char::from(b"abcdefghijklmnopqrstuvwxyz    "[numbers.below(30) as usize]));
                }
                return 0;
            }
        };
        let written = match self {
            Kind::Money(..) => write!(text, "{}.{:02}", number / 100, number % 100),
            Kind::Day => write!(text, "1995-06-17"),
            _ => write!(text, "{number}"),
        };
        written.unwrap();
        number as i64
    }
}

const LINEITEM: [Kind; 16] = [
    Kind::Key,
    Kind::Integer(2_000_000),
    Kind::Integer(100_000),
    Kind::Integer(7),
    Kind::Money(100, 5_000),
    Kind::Money(90_000, 10_494_950),
    Kind::Money(0, 10),
    Kind::Money(0, 8),
    Kind::OneOf(&["R", "A", "N"]),
    Kind::OneOf(&["O", "F"]),
    Kind::Day,
    Kind::Day,
    Kind::Day,
    Kind::OneOf(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
    Kind::OneOf(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
    Kind::Words(10, 43),
];

const PARTSUPP: [Kind; 5] = [
    Kind::Integer(2_000_000),
    Kind::Integer(100_000),
    Kind::Integer(9_999),
    Kind::Money(100, 100_000),
    Kind::Words(49, 198),
];

/// A batch, the plan of its columns, and the bytes of its text.
fn table(kinds: &[Kind], with_nulls: bool) -> (RecordBatch, Vec<(usize, ColumnType, Form)>, usize) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut text = String::new();
    let mut values = vec![Vec::new(); kinds.len()];
    for row in 0..ROWS {
        for (kind, values) in kinds.iter().zip(&mut values) {
            let from = text.len();
            let number = kind.write(row, &mut numbers, &mut text);
            values.push((number, from..text.len()));
            text.push('|');
        }
        text.push('\n');
    }
    let text_bytes = text.len();
    // The padding behind a block.
    text.push_str(&" ".repeat(64));
    let block = Buffer::from(text.into_bytes());
    let columns = kinds.iter().zip(values).map(|(kind, values)| -> ArrayRef {
        let nulls = with_nulls.then(|| NullBuffer::from_iter((0..ROWS).map(|_| numbers.below(10) > 0)));
        let longs = values.iter().map(|(number, _)| *number);
        match kind {
            Kind::Key => Arc::new(Int64Array::new(longs.collect(), nulls)),
            Kind::Integer(_) => Arc::new(Int32Array::new(longs.map(|number| number as i32).collect(), nulls)),
            Kind::Day => Arc::new(Date32Array::new(longs.map(|number| number as i32).collect(), nulls)),
            Kind::Money(..) => {
                let array = PrimitiveArray::<Decimal64Type>::new(longs.collect(), nulls);
                Arc::new(array.with_precision_and_scale(15, 2).unwrap())
            }
            Kind::OneOf(_) | Kind::Words(..) => {
                let views = values.iter().map(|(_, range)| make_view(&block[range.clone()], 0, range.start as u32));
                Arc::new(StringViewArray::new(views.collect(), vec![block.clone()], nulls))
            }
        }
    });
    let columns: Vec<_> = columns.collect();
    let fields: Vec<_> = columns.iter().map(|array| Field::new("column", array.data_type().clone(), true)).collect();
    let plan = kinds.iter().enumerate().map(|(index, kind)| {
        let (column_type, form) = kind.column_type();
        (index, column_type, form)
    });
    (RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap(), plan.collect(), text_bytes)
}

fn benches(criterion: &mut Criterion) {
    let lone = |name, kind| (name, vec![kind; 8], false);
    let tables = [
        ("lineitem", LINEITEM.to_vec(), false),
        ("lineitem_with_nulls", LINEITEM.to_vec(), true),
        ("partsupp", PARTSUPP.to_vec(), false),
        lone("integers", Kind::Integer(2_000_000)),
        lone("money", Kind::Money(90_000, 10_494_950)),
        lone("words_to_12", Kind::Words(1, 12)),
        lone("words_to_60", Kind::Words(1, 60)),
    ];
    let mut group = criterion.benchmark_group("copy");
    for (name, kinds, with_nulls) in tables {
        let (batch, plan, text_bytes) = table(&kinds, with_nulls);
        let mut encoder = CopyEncoder::new(&plan).unwrap();
        let mut message = Vec::with_capacity(2 * FULL_BYTES);
        group.throughput(Throughput::Bytes(text_bytes as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut row = 0;
                while row < ROWS {
                    message.clear();
                    row = encoder.encode(black_box(&batch), row, FULL_BYTES, &mut message).unwrap();
                    black_box(&message);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
