//! Rows that come as batches instead of text: what a query has made of all rows of another flow. They stand in no file, so none of them
//! can be a reject: the first one that is refused ends the flow.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal64Type, Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use headrace_types::{ColumnType, CoreError, ErrorKind, RowSchema};

use super::Sending;
use super::reader::{Counts, Rows};
use crate::flow::Shared;
use crate::lookup::arriving::{Unfit, column_of};
use crate::meter::{Doing, StreamMeter, Work};
use crate::report::{DestinationCounts, SliceReport};
use crate::sink::Origin;
use crate::sink::values::render;
use crate::spec::SliceSpec;
use crate::transforms::{Refusal, Remaining};

/// Rows as they come.
pub type Arriving = Box<dyn RecordBatchReader + Send>;

/// As many rows go on at once: a query behind runs over them, in the memory that is meant for a block of text.
const ROWS_AT_ONCE: usize = 8_192;
/// What is shown of a refused row.
const SHOWN_VALUES: usize = 8;
const SHOWN_CHARACTERS: usize = 40;

/// Sends all rows. The account of their slice; none when the flow was stopped.
pub fn send(
    shared: &Shared,
    meter: &StreamMeter,
    slice: &SliceSpec,
    sending: &mut Sending<'_>,
) -> Result<Option<SliceReport>, CoreError> {
    let arriving = shared.take_arriving();
    let arriving = arriving.ok_or_else(|| failed(shared, "the rows of a stream were read already"))?;
    let mut account = SliceReport {
        stream: Some(meter.number()),
        transforms: shared.transforms.no_counts(),
        ..SliceReport::new(slice)
    };
    let mut ends = vec![DestinationCounts::default(); shared.spec.destinations()];
    let schema = shared.spec.first_schema()?;
    meter.turn_to(Doing::Read);
    for batch in arriving {
        let batch =
            batch.map_err(|error| failed(shared, "reading the rows of a query failed").found(error.to_string()))?;
        meter.turn_to(Doing::Parse);
        let batch = rows_of(shared, &schema, &batch)?;
        for first in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            if shared.outcome.stopped() {
                return Ok(None);
            }
            let part = batch.slice(first, ROWS_AT_ONCE.min(batch.num_rows() - first));
            let rows = part.num_rows() as u64;
            let mut remaining = Remaining::default();
            let counts = Counts { transforms: &mut account.transforms, destinations: &mut ends };
            let placed = sending.place(part.clone(), counts, &mut remaining)?;
            if let Some((row, refusal, _)) = remaining.into_refusals().into_iter().next() {
                let error = refused(shared, &schema, &part, row as usize, &refusal);
                // What is refused on the way is about none of the destinations.
                let guilty = ends.iter().position(|end| end.rejected > 0);
                return Err(match guilty {
                    Some(number) => shared.destinations.named(number, error),
                    None => error,
                });
            }
            let out = placed.iter().flatten().map(|placed| placed.batch.num_rows() as u64).sum::<u64>();
            let origin = Origin { slice: slice.number, first_line: account.rows, at_byte: 0, bytes: 0 };
            account.lines += rows;
            account.rows += rows;
            account.out += out;
            shared.counters.add(0, rows, 0);
            meter.add(Work { rows, bytes: 0, out, is_transformed: sending.is_transformed() });
            if out > 0 {
                meter.turn_to(Doing::Write);
                if !sending.write(placed, origin)? {
                    return Ok(None);
                }
            }
            meter.turn_to(Doing::Parse);
        }
        meter.turn_to(Doing::Read);
    }
    shared.count_ways(&mut account, &ends, 0, None);
    Ok((!shared.outcome.stopped()).then_some(account))
}

/// A batch with the columns of the layout in their own forms.
fn rows_of(shared: &Shared, schema: &RowSchema, batch: &RecordBatch) -> Result<RecordBatch, CoreError> {
    let columns = schema.columns().iter().zip(batch.columns()).map(|(own, array)| {
        column_of(array, own.column_type).map_err(|unfit| {
            let column = failed(shared, &format!("column `{}` of the query does not fit its type", own.name));
            match unfit {
                Unfit::Type(wrong) => column.found(wrong.found).expected(wrong.expected),
                Unfit::Value { shown, expected, .. } => {
                    CoreError::new(ErrorKind::Source, column.what).found(shown).expected(expected)
                }
            }
        })
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, CoreError>>()?;
    RecordBatch::try_new(schema.arrow(), columns)
        .map_err(|error| failed(shared, "the rows of a query are not those of its columns").found(error.to_string()))
}

/// A row that does not go on. It stands nowhere, so that its values are what there is to be shown of it.
fn refused(shared: &Shared, schema: &RowSchema, rows: &RecordBatch, row: usize, refusal: &Refusal) -> CoreError {
    let name = |column: &usize| schema.columns().get(*column).map(|own| format!("column `{}`", own.name));
    let what = refusal.column.as_ref().and_then(name).unwrap_or_else(|| "the row".to_owned());
    let note = refusal.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
    let values = schema.columns().iter().zip(rows.columns());
    let values = values.map(|(own, array)| format!("{} {}", own.name, value(array, row, own.column_type)));
    CoreError::new(ErrorKind::Source, format!("a row of {} is refused ({})", shared.spec.name, refusal.rule.code()))
        .found(format!("{what}{note}; {}", values.take(SHOWN_VALUES).collect::<Vec<_>>().join(", ")))
        .expected(refusal.rule.expected())
        .hint("Rows of a gathered query stand in no file and cannot be rejects: let the query leave such rows out, or mend them.")
}

fn value(array: &ArrayRef, row: usize, column_type: ColumnType) -> String {
    let number = |value: i128| render(column_type, value);
    match array.data_type() {
        _ if array.is_null(row) => "NULL".to_owned(),
        DataType::Utf8View => {
            let text = array.as_string_view().value(row);
            let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
            if shown.len() < text.len() { format!("{shown:?}...") } else { format!("{shown:?}") }
        }
        DataType::Int16 => number(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => number(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => number(array.as_primitive::<Int64Type>().value(row).into()),
        DataType::Decimal64(..) => number(array.as_primitive::<Decimal64Type>().value(row).into()),
        DataType::Decimal128(..) => number(array.as_primitive::<Decimal128Type>().value(row)),
        DataType::Date32 => number(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        other => format!("({other})"),
    }
}

fn failed(shared: &Shared, what: &str) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("{}: {what}", shared.spec.name))
}
