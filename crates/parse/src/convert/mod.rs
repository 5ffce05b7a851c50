//! Column-wise conversion: one generic loop, one small converter per kind of value.
//!
//! `docs/spec/text-to-types.md` is the specification of what each converter accepts.

mod bytes;
mod digits;
mod float;
mod format;
mod nulls;
mod number;
mod plan;
pub mod temporal;
mod text;
mod unescape;

use headrace_types::Rule;

use crate::raw::cpu::CpuPath;
use crate::raw::fields::{Field, OTHER_TEXT, TILE_ROWS, Tile};
use crate::raw::memory::Plain;

pub use format::field_by_field;
pub use nulls::{Constant, NullRule};
pub use plan::{ColumnOutput, ColumnPlan};
pub use unescape::{MOST_GROWTH_BYTES, Rewriting, Unescaped, note_text_behind};

/// Converts one field. Never panics; allocates in rare paths only.
trait Convert {
    /// Value written to the column.
    type Value: Plain + Default;
    /// Whether the converter itself rewrites texts, because it keeps them.
    const IS_TEXT: bool = false;
    /// Value of the field, or the rule it breaks. It may only be empty if it is qualified.
    fn convert(&self, field: Field<'_>) -> Result<Self::Value, Rule>;
    /// Value of a text that stands in no block but in the layout.
    #[inline(always)]
    fn convert_constant(&self, field: Field<'_>) -> Result<Self::Value, Rule> {
        self.convert(field)
    }
    /// The same for a tile, by loops without branches that know the common texts only: values, and for each row whether
    /// (not 0) it needs [`Convert::convert`]. False when the type, or this tile, has no such loop.
    #[inline(always)]
    fn convert_tile(&self, _tile: Tile<'_, '_>, _values: &mut [Self::Value], _inexact: &mut [u8]) -> bool {
        false
    }
}

/// What the converters must know of the block they work on.
#[derive(Clone, Copy)]
pub struct BlockFacts<'a> {
    /// Whether it holds NUL bytes or bytes that are not UTF-8, so that every text must be looked at.
    pub suspicious: bool,
    /// Instructions of the loops of [`Convert::convert_tile`], if they pay.
    pub path: CpuPath,
    /// Where texts go that are rewritten; none when there are no such texts.
    pub unescaped: Option<&'a Unescaped<'a>>,
    /// Whether text may stand behind a closing qualifier.
    pub text_behind: bool,
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
struct OneColumn<'a> {
    index: usize,
    nulls: &'a NullRule,
    /// One bit per row, all set before the loop; `None` when the column is not nullable.
    validity: Option<&'a mut [u64]>,
    bad: &'a mut BadRows,
}

impl OneColumn<'_> {
    /// A field that did not convert: NULL, or a bad row.
    #[cold]
    fn miss(&mut self, row: usize, field: Field<'_>, rule: Rule) {
        if !self.nulls.is_null(field) {
            self.bad.add(row, self.index, rule);
            return;
        }
        match &mut self.validity {
            Some(words) => words[row / 64] &= !(1 << (row % 64)),
            None => self.bad.add(row, self.index, Rule::NullNotAllowed),
        }
    }
}

/// Converts the fields of a tile into `values`, one per row; NULL and bad rows hold the default value.
#[inline(always)]
fn convert_tile<C: Convert>(
    converter: &C,
    tile: Tile<'_, '_>,
    column: &mut OneColumn<'_>,
    values: &mut [C::Value],
    facts: BlockFacts<'_>,
) {
    let mut inexact = [0; TILE_ROWS];
    let inexact = &mut inexact[..tile.rows()];
    if !(facts.path.has_wide_vectors() && converter.convert_tile(tile, values, inexact)) {
        for (row, value) in values.iter_mut().enumerate() {
            *value = convert_field(converter, tile, row, column, facts);
        }
        return;
    }
    // What stands there is not the text of a rewritten field.
    if facts.unescaped.is_some() && !C::IS_TEXT {
        for (inexact, flags) in std::iter::zip(&mut *inexact, tile.flags()) {
            *inexact |= flags & OTHER_TEXT;
        }
    }
    // A null token that the type takes for a value looks exact: fields of its length are looked at one by one.
    if let Some(lengths) = column.nulls.lengths_of_values() {
        for (inexact, (start, end)) in inexact.iter_mut().zip(std::iter::zip(tile.starts(), tile.ends())) {
            *inexact |= lengths.contains(end - start);
        }
    }
    for first in (0..tile.rows()).step_by(8) {
        let eight = inexact[first..].first_chunk::<8>();
        if eight.is_some_and(|eight| u64::from_ne_bytes(*eight) == 0) {
            continue;
        }
        for row in (first..tile.rows().min(first + 8)).filter(|&row| inexact[row] != 0) {
            values[row] = convert_field(converter, tile, row, column, facts);
        }
    }
}

#[inline(always)]
fn convert_field<C: Convert>(
    converter: &C,
    tile: Tile<'_, '_>,
    row: usize,
    column: &mut OneColumn<'_>,
    facts: BlockFacts<'_>,
) -> C::Value {
    let field = tile.field(row);
    let constant = column.nulls.constant(field).and_then(Constant::field);
    let result = match facts.unescaped {
        _ if column.nulls.is_null_value(field) => Err(Rule::NullNotAllowed),
        _ if constant.is_some() => constant.map_or(Err(Rule::NullNotAllowed), |text| converter.convert_constant(text)),
        Some(unescaped) if !C::IS_TEXT && field.is_rewritten() => {
            unescaped.convert(field, |field| converter.convert(field))
        }
        _ => converter.convert(field),
    };
    result.unwrap_or_else(|rule| {
        column.miss(tile.first_row() + row, field, rule);
        C::Value::default()
    })
}
