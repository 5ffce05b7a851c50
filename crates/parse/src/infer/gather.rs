//! Facts about all columns of a stream: tile by tile where rows are as most are, else value by value.

use headrace_types::Trim;

use super::alike::AlikeTexts;
use super::facts::{ColumnFacts, Place};
use super::few::{FewTexts, Met};
use super::tile_texts::TileTexts;
use crate::convert::Rewriting;
use crate::raw::cpu::Task;
use crate::raw::fields::{FieldTable, OTHER_TEXT, TILE_ROWS, Tile, TileMemory};

/// Different texts of a tile at most, if each of them is counted.
const FEW_TEXTS: usize = 12;
/// Texts of a tile that say how the next ones will look.
const SAMPLES: usize = 9;
/// Tiles that are looked at value by value before a loop is tried again.
const SLOW_TILES: u32 = 15;

/// Facts about the columns of a stream's rows.
#[derive(Debug)]
pub struct TableFacts {
    columns: Vec<ColumnGatherer>,
    slice: u32,
}

impl TableFacts {
    /// Of nothing, with so many hashes of each column. `has_memory`: whether 8 KB more per column do not matter.
    pub fn new(columns: usize, hashes: usize, has_memory: bool) -> Self {
        let column = ColumnGatherer::new(hashes, has_memory);
        TableFacts { columns: vec![column; columns], slice: 0 }
    }

    /// Rows of this slice follow. Streams take slices in any order.
    pub fn begin_slice(&mut self, slice: u32) {
        self.slice = slice;
        self.columns.iter_mut().for_each(ColumnGatherer::forget);
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Takes a value, or NULL, of a column.
    pub fn add(&mut self, column: usize, text: Option<&[u8]>, line: u64) {
        let facts = &mut self.columns[column].facts;
        match text {
            Some(text) => facts.add(text, (self.slice, line)),
            None => facts.add_nulls(1),
        }
    }

    /// What was gathered.
    pub fn finish(self) -> Vec<ColumnFacts> {
        self.columns.into_iter().map(ColumnGatherer::finish).collect()
    }
}

/// Gathers facts about the rows of a block, none of which is bad.
pub struct GatherTiles<'a> {
    /// Their fields.
    pub table: &'a FieldTable<'a>,
    /// Which blanks belong to no field, by column.
    pub trims: &'a [Trim],
    /// How texts are made of fields.
    pub rewriting: Rewriting,
    /// Line of the slice that a row is.
    pub line: &'a dyn Fn(usize) -> u64,
    /// Takes the facts.
    pub facts: &'a mut TableFacts,
}

impl Task for GatherTiles<'_> {
    /// None when the table has fewer columns (a defect).
    type Output = Option<()>;

    #[inline(always)]
    fn run(self) -> Option<()> {
        let (mut memory, mut texts) = (TileMemory::default(), TileTexts::default());
        let around = Around { rewriting: self.rewriting, line: self.line, slice: self.facts.slice };
        for first_row in (0..self.table.rows()).step_by(TILE_ROWS) {
            for (index, (column, trim)) in std::iter::zip(&mut self.facts.columns, self.trims).enumerate() {
                let tile = self.table.load(index, first_row, *trim, &mut memory)?;
                column.take(tile, &mut texts, &around);
            }
        }
        Some(())
    }
}

/// What a tile does not say.
struct Around<'a> {
    rewriting: Rewriting,
    line: &'a dyn Fn(usize) -> u64,
    slice: u32,
}

/// Facts about a column, and what its last texts were.
#[derive(Debug, Clone)]
struct ColumnGatherer {
    facts: ColumnFacts,
    last: Last,
    /// Whether this slice has shown that there are many different texts.
    has_many: bool,
    has_memory: bool,
}

/// What the last texts of this slice were.
#[derive(Debug, Clone)]
enum Last {
    Unknown,
    /// Of several classes, or one that has no loop; so many tiles more are looked at value by value.
    Mixed(u32),
    Few(FewTexts),
    Alike(Box<AlikeTexts>),
}

impl ColumnGatherer {
    fn new(hashes: usize, has_memory: bool) -> Self {
        ColumnGatherer { facts: ColumnFacts::new(hashes), last: Last::Unknown, has_many: false, has_memory }
    }

    fn tell(&mut self) {
        if let Last::Few(few) = &mut self.last {
            few.tell(&mut self.facts);
        }
    }

    /// The first texts of each class stand elsewhere from now on.
    fn forget(&mut self) {
        self.tell();
        (self.last, self.has_many) = (Last::Unknown, false);
    }

    fn finish(mut self) -> ColumnFacts {
        self.tell();
        self.facts
    }

    #[inline(always)]
    fn take(&mut self, tile: Tile<'_, '_>, texts: &mut TileTexts, around: &Around<'_>) {
        let longest = texts.measure(tile);
        match &mut self.last {
            Last::Few(few) => few.count(tile, texts, longest),
            Last::Alike(alike) => alike.take(tile, texts, longest, &mut self.facts),
            Last::Unknown | Last::Mixed(_) => texts.unsure[..tile.rows()].fill(1),
        }
        let missed = self.take_unsure(tile, texts, around);
        let is_other = match &mut self.last {
            Last::Unknown => true,
            Last::Mixed(left) => std::mem::replace(left, left.saturating_sub(1)) == 0,
            Last::Few(_) => missed > 0 && self.has_many,
            Last::Alike(_) => missed > tile.rows() / 4,
        };
        if is_other {
            self.learn(tile);
        }
    }

    /// Takes the values of which the loops were not sure, one by one; how many there were that are not null.
    #[inline(always)]
    fn take_unsure(&mut self, tile: Tile<'_, '_>, texts: &TileTexts, around: &Around<'_>) -> usize {
        let rows = tile.rows();
        let unsure = &texts.unsure[..rows];
        let mut missed = 0;
        for first in (0..rows).step_by(8) {
            let eight = unsure[first..].first_chunk::<8>();
            if eight.is_some_and(|eight| u64::from_ne_bytes(*eight) == 0) {
                continue;
            }
            for row in (first..rows.min(first + 8)).filter(|&row| unsure[row] != 0) {
                let field = tile.field(row);
                if field.len() == 0 && !field.is_qualified() {
                    self.facts.add_nulls(1);
                    continue;
                }
                missed += 1;
                let place = (around.slice, (around.line)(tile.first_row() + row));
                if tile.flags()[row] & OTHER_TEXT == 0 {
                    self.take_value(field.bytes(), place);
                } else {
                    let mut text = Vec::with_capacity(field.len());
                    around.rewriting.bytes(field, |byte| text.push(byte));
                    self.take_value(&text, place);
                }
            }
        }
        missed
    }

    #[inline(never)]
    fn take_value(&mut self, text: &[u8], place: Place) {
        if let Last::Few(few) = &mut self.last {
            match few.meet(text) {
                Met::Counted => return,
                Met::New => {}
                Met::TooMany => self.has_many = true,
            }
        }
        self.facts.add(text, place);
    }

    /// Chooses a loop for texts like those of a tile, all of which the facts have taken.
    #[inline(never)]
    fn learn(&mut self, tile: Tile<'_, '_>) {
        self.tell();
        let rows = tile.rows();
        let is_plain = |row: usize| tile.field(row).len() > 0 && tile.flags()[row] & OTHER_TEXT == 0;
        let plain: Vec<usize> = (0..rows).filter(|&row| is_plain(row)).collect();
        if plain.is_empty() {
            self.last = Last::Unknown;
            return;
        }
        if !self.has_many {
            let all = plain.iter().map(|&row| tile.field(row).bytes());
            if let Some(few) = FewTexts::of(all, FEW_TEXTS) {
                self.last = Last::Few(few);
                return;
            }
            self.has_many = true;
        }
        let samples = (0..SAMPLES).map(|sample| plain[sample * (plain.len() - 1) / (SAMPLES - 1)]);
        let samples = samples.map(|row| tile.field(row).bytes());
        self.last = match AlikeTexts::of(samples, &self.facts, self.has_memory) {
            Some(alike) => Last::Alike(Box::new(alike)),
            None => Last::Mixed(SLOW_TILES),
        };
    }
}
