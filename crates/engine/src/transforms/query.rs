//! A query in a stream: it computes the columns of each row anew, or leaves it out. It sees no more than one row at once, so that
//! any cut into windows gives the same rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::filter::FilterBuilder;
use arrow_select::take::take;
use headrace_types::{ColumnType, CoreError, ErrorKind, RowSchema, Rule};

use super::fit::{long_rows, null_rows};
use super::refused::{Refusal, Remaining};
use super::windows::{Failure, FailureKind, Windows};
use crate::lookup::arriving::{form_of, unfit_values};
use crate::report::TransformCounts;
use crate::spec::{ComputedColumn, QuerySpec};

/// A query, and the columns of its rows.
pub struct Query {
    name: String,
    /// Place among the transforms of its flow.
    place: usize,
    /// Of windows.
    window: SchemaRef,
    /// Of the rows behind it.
    schema: SchemaRef,
    outputs: Vec<Output>,
    /// Columns of the result in front of the number of the row.
    computed: usize,
    /// Columns with floats of the rows before it.
    floats: Vec<usize>,
    /// As many rejects do not fail the flow; none for any number.
    limit: Option<u64>,
}

/// A column of the rows behind the query.
struct Output {
    name: String,
    column_type: ColumnType,
    nullable: bool,
    from: From,
}

enum From {
    /// A column of the rows before it.
    Passed(usize),
    /// A column of the result.
    Computed(usize),
}

/// What has become of a batch.
struct Computed {
    /// Rows that came out, and their columns.
    numbers: Vec<u32>,
    columns: Vec<ArrayRef>,
    bad: Vec<Bad>,
}

/// A row that the query has no result for.
struct Bad {
    number: u32,
    refusal: Refusal,
}

impl Query {
    /// A query over rows of `before`, which are rows of `behind` then. `limit`: as many rejects do not fail the flow.
    ///
    /// # Errors
    /// A sentence about columns that do not belong together.
    pub fn new(
        (place, name): (usize, &str),
        spec: &QuerySpec,
        before: &RowSchema,
        behind: &RowSchema,
        limit: Option<u64>,
    ) -> Result<Self, String> {
        let mut computed = 0;
        let mut output = |own: &ComputedColumn| {
            let from = match &own.from {
                None => {
                    computed += 1;
                    From::Computed(computed - 1)
                }
                Some(from) => {
                    let column = before.index_of(from).ok_or_else(|| format!("no column `{from}`"))?;
                    if before.columns()[column].column_type.arrow_type() != own.column_type.arrow_type() {
                        return Err(format!("column `{}` is of another type than `{from}`", own.name));
                    }
                    From::Passed(column)
                }
            };
            Ok(Output { name: own.name.clone(), column_type: own.column_type, nullable: own.nullable, from })
        };
        let outputs = spec.columns.iter().map(&mut output).collect::<Result<Vec<_>, String>>()?;
        let arrow = before.arrow();
        let number = Field::new(&spec.number, DataType::UInt32, false);
        let columns = arrow.fields().iter().cloned().chain([Arc::new(number)]);
        let is_float = |own: &ColumnType| matches!(own, ColumnType::Float32 | ColumnType::Float64);
        let floats = before.columns().iter().enumerate().filter(|(_, own)| is_float(&own.column_type));
        Ok(Query {
            name: name.to_owned(),
            place,
            window: Arc::new(Schema::new(columns.collect::<Vec<_>>())),
            schema: behind.arrow(),
            outputs,
            computed,
            floats: floats.map(|(place, _)| place).collect(),
            limit,
        })
    }

    /// The rows with their new columns; none if none is left.
    ///
    /// # Errors
    /// What the query fails with and no row is to blame for; `Cancelled`.
    pub fn apply(
        &self,
        batch: &RecordBatch,
        windows: &Windows,
        counts: &mut TransformCounts,
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        let Computed { numbers, columns, mut bad } = self.run(batch, windows)?;
        bad.sort_by_key(|bad| bad.number);
        bad.dedup_by_key(|bad| bad.number);
        let rows = batch.num_rows();
        counts.rows += rows as u64;
        counts.matched += numbers.len() as u64;
        counts.rejected += bad.len() as u64;
        counts.filtered += (rows - numbers.len() - bad.len()) as u64;
        for Bad { number, refusal } in &bad {
            remaining.refuse([*number], refusal);
        }
        if numbers.len() < rows {
            let mut keep = vec![false; rows];
            numbers.iter().for_each(|&number| keep[number as usize] = true);
            remaining.keep(&keep);
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        RecordBatch::try_new(self.schema.clone(), columns).map(Some).map_err(|error| self.internal(&error))
    }

    fn run(&self, batch: &RecordBatch, windows: &Windows) -> Result<Computed, CoreError> {
        let (pieces, mut bad) = self.pieces(batch, windows)?;
        let mut own = self.assembled(batch.num_rows(), &pieces)?;
        self.refuse_repeated(&mut own.0, &mut own.1, &mut bad)?;
        let (numbers, computed) = own;
        let columns = self.columns(batch, &numbers, &computed)?;
        let mut good = vec![true; numbers.len()];
        for (output, column) in std::iter::zip(&self.outputs, &columns) {
            self.check(output, column, batch, &numbers, &mut good, &mut bad);
        }
        if good.iter().all(|good| *good) {
            return Ok(Computed { numbers, columns, bad });
        }
        let keep = BooleanArray::from(good.clone());
        let filter = FilterBuilder::new(&keep).optimize().build();
        let columns = columns.iter().map(|column| filter.filter(column)).collect::<Result<Vec<_>, _>>();
        let numbers = std::iter::zip(numbers, good).filter(|(_, good)| *good).map(|(number, _)| number).collect();
        Ok(Computed { numbers, columns: columns.map_err(|error| self.internal(&error))?, bad })
    }

    /// The results of windows, in their order, and the rows that fail by themselves. A window that fails is halved until it is one
    /// row, as long as the flow can still bear rejects.
    fn pieces(&self, batch: &RecordBatch, windows: &Windows) -> Result<(Vec<RecordBatch>, Vec<Bad>), CoreError> {
        let rows = batch.num_rows();
        let (mut pieces, mut bad) = (Vec::new(), Vec::new());
        let mut waiting: Vec<Range<usize>> = std::iter::once(0..rows).collect();
        while let Some(range) = waiting.pop() {
            if self.limit.is_some_and(|limit| bad.len() as u64 > limit) {
                break; // The flow fails: nobody asks what becomes of the others.
            }
            match windows.ask(self.place, self.window_of(batch, &range)?)? {
                Ok(own) => pieces.extend(own),
                Err(Failure { kind: FailureKind::Other, text }) => return Err(self.failed(ErrorKind::Source, text)),
                Err(_) if range.len() > 1 => {
                    let middle = range.start + range.len() / 2;
                    waiting.extend([middle..range.end, range.start..middle]);
                }
                Err(Failure { kind: FailureKind::Memory, text }) => {
                    return Err(self
                        .failed(ErrorKind::Memory, text)
                        .hint("Set a larger `memory` in the package, use fewer streams, or make the values shorter."));
                }
                Err(Failure { kind: FailureKind::Row, text }) => bad.push(self.bad(range.start as u32, &text)),
            }
        }
        Ok((pieces, bad))
    }

    fn window_of(&self, batch: &RecordBatch, range: &Range<usize>) -> Result<RecordBatch, CoreError> {
        let rows = batch.slice(range.start, range.len());
        let number = UInt32Array::from_iter_values(range.start as u32..range.end as u32);
        let columns = rows.columns().iter().cloned().chain([Arc::new(number) as ArrayRef]).collect();
        RecordBatch::try_new(self.window.clone(), columns).map_err(|error| self.internal(&error))
    }

    /// Numbers and columns of all results.
    fn assembled(&self, rows: usize, pieces: &[RecordBatch]) -> Result<(Vec<u32>, Vec<ArrayRef>), CoreError> {
        let computed = self.outputs.iter().filter(|own| matches!(own.from, From::Computed(_)));
        let types: Vec<_> = computed.map(|own| own.column_type).collect();
        let mut numbers = Vec::with_capacity(rows);
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.computed];
        for piece in pieces {
            if piece.num_columns() != self.computed + 1 {
                return Err(self.internal(&format!("a result of {} columns", piece.num_columns())));
            }
            for ((parts, array), own) in parts.iter_mut().zip(piece.columns()).zip(&types) {
                parts.push(form_of(array, *own).map_err(|wrong| self.internal(&wrong))?);
            }
            for row in 0..piece.num_rows() {
                numbers.push(self.number(piece, rows, row)?);
            }
        }
        let whole = |(parts, column_type): (Vec<ArrayRef>, &ColumnType)| match <[ArrayRef; 1]>::try_from(parts) {
            Ok([only]) => Ok(only),
            Err(parts) if parts.is_empty() => Ok(arrow_array::new_empty_array(&column_type.arrow_type())),
            Err(parts) => concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
        };
        let columns = parts.into_iter().zip(&types).map(whole).collect::<Result<Vec<_>, _>>();
        Ok((numbers, columns.map_err(|error| self.internal(&error))?))
    }

    /// The number of a row of a result.
    fn number(&self, piece: &RecordBatch, rows: usize, row: usize) -> Result<u32, CoreError> {
        let numbers = piece.column(self.computed).as_primitive_opt::<UInt32Type>();
        let number = numbers.filter(|numbers| numbers.is_valid(row)).map(|numbers| numbers.value(row));
        let known = number.filter(|number| (*number as usize) < rows);
        known.ok_or_else(|| self.internal(&"a result without the number of its row"))
    }

    /// Puts the rows in order. One that came out more than once is bad: it would be more rows than stand in the file.
    fn refuse_repeated(
        &self,
        numbers: &mut Vec<u32>,
        columns: &mut [ArrayRef],
        bad: &mut Vec<Bad>,
    ) -> Result<(), CoreError> {
        if numbers.is_sorted_by(|one, other| one < other) {
            return Ok(());
        }
        let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
        order.sort_by_key(|&place| numbers[place as usize]);
        let mut kept = Vec::with_capacity(order.len());
        for same in order.chunk_by(|one, other| numbers[*one as usize] == numbers[*other as usize]) {
            match same {
                [only] => kept.push(*only),
                several => {
                    let text = format!("the query makes {} rows of this one, by a join or a list", several.len());
                    bad.push(self.bad(numbers[several[0] as usize], &text));
                }
            }
        }
        *numbers = kept.iter().map(|&place| numbers[place as usize]).collect();
        let places = UInt32Array::from(kept);
        for column in columns {
            *column = take(column, &places, None).map_err(|error| self.internal(&error))?;
        }
        Ok(())
    }

    /// The columns of the rows that are left.
    fn columns(&self, batch: &RecordBatch, numbers: &[u32], computed: &[ArrayRef]) -> Result<Vec<ArrayRef>, CoreError> {
        let is_all = numbers.len() == batch.num_rows();
        let filter = (!is_all).then(|| {
            let mut keep = vec![false; batch.num_rows()];
            numbers.iter().for_each(|&number| keep[number as usize] = true);
            FilterBuilder::new(&BooleanArray::from(keep)).optimize().build()
        });
        let column = |output: &Output| match (&output.from, &filter) {
            (From::Computed(place), _) => Ok(computed[*place].clone()),
            (From::Passed(column), None) => Ok(batch.column(*column).clone()),
            (From::Passed(column), Some(filter)) => filter.filter(batch.column(*column)),
        };
        self.outputs.iter().map(column).collect::<Result<_, _>>().map_err(|error| self.internal(&error))
    }

    /// Looks for values that the column may not have.
    fn check(
        &self,
        output: &Output,
        column: &ArrayRef,
        batch: &RecordBatch,
        numbers: &[u32],
        good: &mut [bool],
        bad: &mut Vec<Bad>,
    ) {
        let Output { name, column_type, nullable, from } = output;
        let mut refuse = |row: usize, refusal: Refusal| {
            if std::mem::replace(&mut good[row], false) {
                bad.push(Bad { number: numbers[row], refusal });
            }
        };
        let whose = format!("column `{name}`: transform `{}`", self.name);
        if !nullable && column.null_count() > 0 {
            let note = format!("{whose} gives NULL");
            let refusal = Refusal { column: None, rule: Rule::NullNotAllowed, note: Some(note.into()) };
            null_rows(column).into_iter().for_each(|row| refuse(row, refusal.clone()));
        }
        if let ColumnType::Varchar { length } = column_type {
            let note = format!("a value for {whose} gives more than {length} characters");
            let refusal = Refusal { column: None, rule: Rule::TooLong, note: Some(note.into()) };
            long_rows(column, *length).into_iter().for_each(|row| refuse(row, refusal.clone()));
        }
        if matches!(from, From::Passed(_)) {
            return;
        }
        for (row, shown, expected) in unfit_values(column, *column_type) {
            refuse(row, self.bad(0, &format!("{shown} is not {expected}")).refusal);
        }
        if let ColumnType::Float32 | ColumnType::Float64 = column_type {
            for row in odd_floats(column) {
                let number = numbers[row] as usize;
                if !self.floats.iter().any(|&float| odd_float(batch.column(float), number).is_some()) {
                    let found = odd_float(column, row).unwrap_or_default();
                    let text = format!("column `{name}` becomes {found}, as by a division by zero or an overflow");
                    refuse(row, self.bad(0, &text).refusal);
                }
            }
        }
    }

    fn bad(&self, number: u32, text: &str) -> Bad {
        let note = format!("transform `{}`: {text}", self.name);
        Bad { number, refusal: Refusal { column: None, rule: Rule::Expression, note: Some(note.into()) } }
    }

    fn failed(&self, kind: ErrorKind, text: String) -> CoreError {
        CoreError::new(kind, format!("the query of transform `{}` failed", self.name)).found(text)
    }

    fn internal(&self, error: &dyn std::fmt::Display) -> CoreError {
        CoreError::new(ErrorKind::Internal, format!("transform `{}`: {error}", self.name))
    }
}

/// Rows with infinities and NaN.
fn odd_floats(column: &ArrayRef) -> Vec<usize> {
    (0..column.len()).filter(|&row| odd_float(column, row).is_some()).collect()
}

fn odd_float(column: &ArrayRef, row: usize) -> Option<String> {
    fn value<T: ArrowPrimitiveType<Native: Into<f64>>>(column: &ArrayRef, row: usize) -> Option<f64> {
        column.as_primitive_opt::<T>().filter(|own| own.is_valid(row)).map(|own| own.value(row).into())
    }
    let value = match column.data_type() {
        DataType::Float32 => value::<Float32Type>(column, row),
        _ => value::<Float64Type>(column, row),
    };
    value.filter(|value| !value.is_finite()).map(|value| value.to_string())
}
