//! Column-wise conversion: one generic loop, one small converter per kind of value.
//!
//! `docs/spec/text-to-types.md` is the specification of what each converter accepts.

mod bytes;
pub mod digits;
mod float;
mod format;
mod nulls;
mod number;
mod plan;
pub mod temporal;
mod text;
mod unescape;
mod ways;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use headrace_types::{Column, Disposition, Rule, StrayQualifiers};

use crate::parser::RefusedRow;
use crate::raw::cpu::{CpuPath, Task};
use crate::raw::fields::{Field, OTHER_TEXT, TILE_ROWS, Tile};
use crate::raw::memory::Plain;
use crate::reject::MOST_OTHER_VALUES;

pub use format::field_by_field;
pub use nulls::{Constant, NullRule};
pub use plan::{ColumnOutput, ColumnPlan};
pub use unescape::{MOST_GROWTH_BYTES, Rewriting, Unescaped, note_stray};

/// Converts one field. Never panics; allocates in rare paths only.
pub trait Convert {
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
    /// The part that is kept of a value that breaks [`Rule::TooLong`] or [`Rule::WouldRound`].
    fn convert_cut(&self, field: Field<'_>) -> Result<Self::Value, Rule> {
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
    /// What becomes of qualifiers in other places than around fields; none when there are none.
    pub stray: Option<StrayQualifiers>,
}

/// Rows of a block that break a rule; the first column of a row wins. And values that break one and are ignored.
#[derive(Default)]
pub struct BadRows {
    bits: Vec<u64>,
    /// At most one per row.
    pub found: Vec<BadRow>,
    /// What is to be said of rows that were refused.
    notes: Numbered<str>,
    /// Which destinations lack rows that were refused.
    lacking: Numbered<[usize]>,
    /// The same of further columns: the first ones of a row, and the first one for which the flow fails.
    pub others: Vec<OtherBad>,
    /// Values that are loaded as something else, of rows that may yet turn out to be bad.
    ignored: Vec<IgnoredValue>,
    /// What is known of the rows of the present tile.
    tile: TileNotes,
}

/// A row that is not loaded, in the block's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadRow {
    /// Row of the block.
    pub row: u32,
    /// Column of the layout; none where the row as a whole is to blame.
    pub column: Option<u32>,
    /// The rule.
    pub rule: Rule,
    /// Number of its note.
    note: Option<u32>,
    /// Number of the destinations that lack it.
    lacking: Option<u32>,
}

/// Another bad value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherBad {
    /// Row of the block, column of the layout.
    pub row: u32,
    /// The same.
    pub column: u32,
    /// The rule.
    pub rule: Rule,
    /// Whether it is there only because the flow fails for it.
    pub is_surplus: bool,
}

#[derive(Clone, Copy)]
struct IgnoredValue {
    row: u32,
    /// Of the layout.
    column: u32,
    is_cut: bool,
}

/// Of each row of a tile: the column that was noted last, and how many were beside the first.
struct TileNotes {
    first_row: usize,
    last_column: [u32; TILE_ROWS],
    others: [u8; TILE_ROWS],
}

impl Default for TileNotes {
    fn default() -> Self {
        TileNotes { first_row: 0, last_column: [u32::MAX; TILE_ROWS], others: [0; TILE_ROWS] }
    }
}

impl BadRows {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.found.clear();
        self.notes.clear();
        self.lacking.clear();
        self.others.clear();
        self.ignored.clear();
        self.tile = TileNotes::default();
    }

    /// Whether the row is bad.
    pub fn contains(&self, row: usize) -> bool {
        self.bits.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Notes a value that is loaded as something else, if its row is loaded.
    fn ignore(&mut self, row: usize, column: usize, is_cut: bool) {
        // Positions in a block are 32 bits.
        self.ignored.push(IgnoredValue { row: row as u32, column: column as u32, is_cut });
    }

    /// Values that are loaded as something else, as NULL and cut, by column of the layout: in no bad row.
    pub fn ignored(&self) -> BTreeMap<usize, (u64, u64)> {
        let mut counts: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for value in self.ignored.iter().filter(|value| !self.contains(value.row as usize)) {
            let (nulls, cut) = counts.entry(value.column as usize).or_default();
            *if value.is_cut { cut } else { nulls } += 1;
        }
        counts
    }

    /// Notes a bad value. Values of a row come in the layout's order, tile after tile. `is_fatal`: the flow fails for it.
    #[cold]
    pub fn add(&mut self, row: usize, column: usize, rule: Rule, is_fatal: bool) {
        let first_row = row - row % TILE_ROWS;
        if self.tile.first_row != first_row {
            self.tile = TileNotes { first_row, ..TileNotes::default() };
        }
        let place = row % TILE_ROWS;
        if std::mem::replace(&mut self.tile.last_column[place], column as u32) == column as u32 {
            return;
        }
        if self.contains(row) {
            let others = &mut self.tile.others[place];
            let is_surplus = usize::from(*others) >= MOST_OTHER_VALUES;
            *others = others.saturating_add(1);
            if !is_surplus || is_fatal {
                self.others.push(OtherBad { row: row as u32, column: column as u32, rule, is_surplus });
            }
            return;
        }
        self.mark(row);
        self.found.push(BadRow { row: row as u32, column: Some(column as u32), rule, note: None, lacking: None });
    }

    /// Notes a row that is not loaded although all its values convert. Rows come in their order.
    #[cold]
    pub fn refuse(&mut self, row: usize, refused: RefusedRow) {
        self.mark(row);
        let RefusedRow { column, rule, note, lacking, .. } = refused;
        let note = note.map(|note| self.notes.number(note));
        let lacking = lacking.map(|lacking| self.lacking.number(lacking));
        self.found.push(BadRow { row: row as u32, column: column.map(|column| column as u32), rule, note, lacking });
    }

    /// What is to be said of a row, if that is something.
    pub fn note(&self, bad: &BadRow) -> Option<&str> {
        self.notes.get(bad.note?).map(AsRef::as_ref)
    }

    /// Which destinations lack a row, if somebody has said so.
    pub fn lacking(&self, bad: &BadRow) -> Option<&Arc<[usize]>> {
        self.lacking.get(bad.lacking?)
    }

    fn mark(&mut self, row: usize) {
        if self.bits.len() <= row / 64 {
            self.bits.resize(row / 64 + 1, 0);
        }
        self.bits[row / 64] |= 1 << (row % 64);
    }
}

/// What is said of many rows is mostly the same, made anew for each: kept once. There may be as many as rows.
struct Numbered<T: ?Sized> {
    numbers: HashMap<Arc<T>, u32>,
    all: Vec<Arc<T>>,
}

impl<T: ?Sized> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { numbers: HashMap::new(), all: Vec::new() }
    }
}

impl<T: ?Sized + Eq + Hash> Numbered<T> {
    fn clear(&mut self) {
        self.numbers.clear();
        self.all.clear();
    }

    /// The number of what is equal to it. Rows of a block have numbers of 32 bits.
    fn number(&mut self, own: Arc<T>) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(own).or_insert_with_key(|own| {
            self.all.push(own.clone());
            next
        })
    }

    fn get(&self, number: u32) -> Option<&Arc<T>> {
        self.all.get(number as usize)
    }
}

/// What the loop needs besides the converter.
struct OneColumn<'a> {
    index: usize,
    dispositions: Dispositions,
    nulls: &'a NullRule,
    /// One bit per row, all set before the loop; `None` when the column is not nullable.
    validity: Option<&'a mut [u64]>,
    bad: &'a mut BadRows,
}

impl OneColumn<'_> {
    /// A field that did not convert: NULL, a bad row, or a value that is ignored. True if a part of it is to be its value.
    #[cold]
    fn miss(&mut self, row: usize, field: Field<'_>, rule: Rule) -> bool {
        if self.nulls.is_null(field) {
            if !self.set_null(row) {
                self.bad.add(row, self.index, Rule::NullNotAllowed, false);
            }
            return false;
        }
        let disposition = self.dispositions.of(rule);
        if disposition == Disposition::Ignore && rule.is_truncation() {
            return true;
        }
        if disposition == Disposition::Ignore && self.set_null(row) {
            self.bad.ignore(row, self.index, false);
        } else {
            self.bad.add(row, self.index, rule, disposition == Disposition::Fail);
        }
        false
    }

    /// False when the column is not nullable.
    fn set_null(&mut self, row: usize) -> bool {
        let Some(words) = &mut self.validity else { return false };
        words[row / 64] &= !(1 << (row % 64));
        true
    }
}

/// What becomes of rows with values that break a rule.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dispositions {
    on_error: Disposition,
    on_truncation: Disposition,
}

impl Dispositions {
    /// Those of a column.
    pub fn new(column: &Column) -> Self {
        Dispositions { on_error: column.on_error, on_truncation: column.on_truncation }
    }

    fn of(self, rule: Rule) -> Disposition {
        if rule.is_truncation() { self.on_truncation } else { self.on_error }
    }
}

/// Converts the fields of a tile into `values`, one per row; NULL and bad rows hold the default value.
struct ConvertTile<'a, 'column, 'facts, C: Convert> {
    converter: &'a C,
    tile: Tile<'a, 'a>,
    column: &'a mut OneColumn<'column>,
    values: &'a mut [C::Value],
    facts: BlockFacts<'facts>,
}

impl<C: Convert> Task for ConvertTile<'_, '_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ConvertTile { converter, tile, column, values, facts } = self;
        let mut inexact = [0; TILE_ROWS];
        let inexact = &mut inexact[..tile.rows()];
        if !(facts.path.has_wide_vectors() && converter.convert_tile(tile, values, inexact)) {
            for (row, value) in values.iter_mut().enumerate() {
                *value = convert_field(converter, tile, row, column, facts);
            }
            return;
        }
        // The block does not hold the text of fields that were rewritten: they are converted one by one.
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
        let row = tile.first_row() + row;
        if column.miss(row, field, rule) { cut(converter, row, field, column, facts) } else { C::Value::default() }
    })
}

/// The part that is kept of a value that is too long or too exact.
#[cold]
#[inline(never)]
fn cut<C: Convert>(
    converter: &C,
    row: usize,
    field: Field<'_>,
    column: &mut OneColumn<'_>,
    facts: BlockFacts<'_>,
) -> C::Value {
    let value = match facts.unescaped.filter(|_| field.is_rewritten()) {
        // What was replaced in it has been counted.
        Some(unescaped) if C::IS_TEXT => unescaped.uncounted(|| converter.convert_cut(field)),
        Some(unescaped) => unescaped.uncounted(|| unescaped.convert(field, |field| converter.convert_cut(field))),
        None => converter.convert_cut(field),
    };
    match value {
        Ok(value) => {
            column.bad.ignore(row, column.index, true);
            value
        }
        // Too exact, and too large when it is cut: an error.
        Err(rule) => {
            let is_cut_again = column.miss(row, field, rule);
            debug_assert!(!is_cut_again);
            C::Value::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_made_anew_for_each_row_is_kept_once() {
        let mut bad = BadRows::default();
        let notes = ["by one", "by another", "by a third"];
        for row in 0..30 {
            let (number, note) = (row as u32, Some(notes[row % 3].into()));
            let lacking = (row % 2 == 0).then(|| [row % 4, 7].into());
            bad.refuse(row, RefusedRow { number, column: None, rule: Rule::NoMatch, note, lacking });
        }
        assert_eq!((bad.notes.all.len(), bad.lacking.all.len()), (3, 2));
        let lacking: Vec<_> = bad.found.iter().filter_map(|own| bad.lacking(own)?.first().copied()).collect();
        assert_eq!(lacking, [0, 2].repeat(8)[..15]);
        let said: Vec<_> = bad.found.iter().filter_map(|own| bad.note(own)).collect();
        assert_eq!(said, notes.repeat(10));
    }

    #[test]
    fn every_row_may_have_a_note_of_its_own() {
        let mut bad = BadRows::default();
        const ROWS: usize = 70_000;
        let note = |row: usize| format!("the value of row {row}");
        for row in 0..ROWS {
            let note = Some(note(row).into());
            bad.refuse(row, RefusedRow { number: row as u32, column: None, rule: Rule::NoMatch, note, lacking: None });
        }
        let is_told = |(row, own): (usize, &BadRow)| bad.note(own) == Some(note(row).as_str());
        assert!(bad.found.len() == ROWS && bad.found.iter().enumerate().all(is_told));
        bad.clear();
        assert!(bad.notes.all.is_empty() && bad.notes.numbers.is_empty());
    }
}
