//! Column-wise conversion: one generic loop, one small converter per kind of value.
//!
//! `docs/spec/text-to-types.md` is the specification of what each converter accepts.

mod bytes;
mod digits;
mod number;
mod plan;
mod temporal;
mod text;

use headrace_types::Rule;

use crate::fields::{Field, Fields};
use crate::memory::Plain;

pub use plan::{ColumnPlan, NullRule};

/// Converts one field. Never allocates, never panics.
trait Convert {
    /// Value written to the column.
    type Value: Plain + Default;
    /// Whether an empty field may be a value of the type (text), or is NULL without asking (all others fail on it).
    const EMPTY_IS_TEXT: bool = false;
    /// Value of the field, or the rule it breaks.
    fn convert(&self, field: Field<'_>) -> Result<Self::Value, Rule>;
}

/// Rows of a block that break a rule; the first column of a row wins.
#[derive(Default)]
pub struct BadRows {
    bits: Vec<u64>,
    /// Row, column, rule; at most one per row.
    pub found: Vec<(usize, usize, Rule)>,
}

impl BadRows {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.found.clear();
    }

    /// Whether the row is bad.
    pub fn contains(&self, row: usize) -> bool {
        self.bits.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Notes a bad row, unless it is known already.
    pub fn add(&mut self, row: usize, column: usize, rule: Rule) {
        if self.contains(row) {
            return;
        }
        if self.bits.len() <= row / 64 {
            self.bits.resize(row / 64 + 1, 0);
        }
        self.bits[row / 64] |= 1 << (row % 64);
        self.found.push((row, column, rule));
    }
}

/// What the loop needs besides the converter.
struct Column<'a> {
    index: usize,
    nulls: &'a NullRule,
    /// One bit per row, all set before the loop; `None` when the column is not nullable.
    validity: Option<&'a mut [u64]>,
    bad: &'a mut BadRows,
}

impl Column<'_> {
    /// A field that did not convert: NULL, or a bad row.
    #[cold]
    fn miss(&mut self, row: usize, field: Field<'_>, rule: Rule) {
        if self.nulls.is_qualified(row) || (field.len() > 0 && !self.nulls.is_token(field.bytes())) {
            self.bad.add(row, self.index, rule);
            return;
        }
        match &mut self.validity {
            Some(words) => words[row / 64] &= !(1 << (row % 64)),
            None => self.bad.add(row, self.index, Rule::NullNotAllowed),
        }
    }
}

/// Converts a column into `out`, one value per row; NULL and bad rows hold the default value.
fn convert_column<C: Convert>(converter: &C, fields: Fields<'_>, column: &mut Column<'_>, out: &mut [C::Value]) {
    if column.nulls.has_tokens() {
        convert_rows::<C, true>(converter, fields, column, out);
    } else {
        convert_rows::<C, false>(converter, fields, column, out);
    }
}

fn convert_rows<C: Convert, const TOKENS: bool>(
    converter: &C,
    fields: Fields<'_>,
    column: &mut Column<'_>,
    out: &mut [C::Value],
) {
    for (row, (slot, field)) in std::iter::zip(out, fields.iter()).enumerate() {
        let is_null = (C::EMPTY_IS_TEXT && field.len() == 0) || (TOKENS && column.nulls.is_token(field.bytes()));
        let result = if is_null && !column.nulls.is_qualified(row) {
            Err(Rule::NullNotAllowed)
        } else {
            converter.convert(field)
        };
        *slot = match result {
            Ok(value) => value,
            Err(rule) => {
                column.miss(row, field, rule);
                C::Value::default()
            }
        };
    }
}
