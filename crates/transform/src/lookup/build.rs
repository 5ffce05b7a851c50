//! Building an index: threads append rows, each to a builder of its own; when all have ended, the index is filled.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef};

use super::budget::Budget;
use super::columns::{ColumnChunk, InlineColumn, StoredColumn};
use super::error::{Duplicate, WrongArray};
use super::fill::{self, Filling};
use super::fingerprint::Fingerprint;
use super::hashed::{self, HashedTable, KeyChunk, KeyStore};
use super::keys::{ByteTile, KeyBatch, KeyPlan, Side, TILE_ROWS, check_arrays};
use super::lines::{Arrival, NarrowLine, ShortLine};
use super::origins::{CHUNK_ROWS, ChunkOrigins, Conflict, Conflicts, MOST_CHUNKS, Origins, number};
use super::short::{self, ShortTable};
use super::staging::{Scatter, Staged, Staging};
use super::table::{NumberTable, ShortKey, Table, spread};
use super::team::{Team, lock};
use super::{Added, AddedColumn, BuildError, Duplicates, Form, KeyForm, LookupIndex, LookupSpec, NULL_KEY, RowPlace};
use crate::partition::Keys;

/// An index that is being built.
pub struct LookupBuild {
    shared: Arc<Shared>,
    duplicates: Duplicates,
}

/// What all builders share.
struct Shared {
    keys: KeyPlan,
    added: Vec<AddedColumn>,
    budget: Arc<Budget>,
    staging: Staging,
    /// Of hashes, another one for every build: nobody can make keys whose hashes are close together.
    seed: u64,
    next_chunk: AtomicU32,
    /// Builders that have not ended.
    open: AtomicUsize,
    ended: Mutex<Read>,
}

/// What has been read.
#[derive(Default)]
struct Read {
    /// By their numbers, in any order.
    chunks: Vec<(u32, Chunk)>,
    /// Least and greatest key that is a number.
    keys: Extremes,
    /// The same of the added column, if it is the only one.
    values: Extremes,
    /// Whether its values are such that they can stand in the table.
    no_inline: bool,
    null_keys: u64,
    fingerprint: Fingerprint,
}

/// Rows that one thread has read.
#[derive(Default)]
struct Chunk {
    origins: ChunkOrigins,
    columns: Vec<ColumnChunk>,
    keys: KeyChunk,
    counted_bytes: u64,
}

/// Least and greatest of numbers.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    least: i64,
    greatest: i64,
}

impl Default for Extremes {
    /// Of none.
    fn default() -> Self {
        Extremes { least: i64::MAX, greatest: i64::MIN }
    }
}

impl Extremes {
    #[inline(always)]
    fn add(&mut self, least: i64, greatest: i64) {
        self.least = self.least.min(least);
        self.greatest = self.greatest.max(greatest);
    }

    /// How far the greatest one is behind the least one; none of no numbers.
    fn span(self) -> Option<u64> {
        (self.least <= self.greatest).then(|| self.greatest.wrapping_sub(self.least) as u64)
    }
}

/// One thread's part of a build.
pub struct LookupBuilder {
    shared: Arc<Shared>,
    scatter: Scatter,
    chunk: Option<(u32, Chunk)>,
    read: Read,
    /// After an error.
    is_broken: bool,
    tile: ByteTile,
    kept: Vec<Range<usize>>,
    /// Scratch: a number of each row of a batch.
    hashes: Vec<u64>,
}

impl LookupBuild {
    /// Begins.
    ///
    /// # Errors
    /// `Specification` for keys that cannot be compared and defaults that are not of their column's type.
    pub fn new(spec: LookupSpec) -> Result<Self, BuildError> {
        let keys = KeyPlan::new(&spec.keys).map_err(BuildError::Specification)?;
        for column in &spec.added {
            let Some(default) = &column.default else { continue };
            if *default.data_type() != column.column_type.arrow_type() || default.len() != 1 {
                let found = format!("{} rows of {}", default.len(), default.data_type());
                return Err(BuildError::Specification(format!("a default of {found} for {}", column.column_type)));
            }
        }
        let budget = Arc::new(Budget::new(spec.budget_bytes));
        let shared = Shared {
            keys,
            added: spec.added,
            staging: Staging::new(budget.clone()),
            budget,
            seed: RandomState::new().hash_one(0),
            next_chunk: AtomicU32::new(0),
            open: AtomicUsize::new(0),
            ended: Mutex::default(),
        };
        Ok(LookupBuild { shared: Arc::new(shared), duplicates: spec.duplicates })
    }

    /// A builder for one thread. It has to be [ended](LookupBuilder::end).
    ///
    /// # Errors
    /// `OverBudget`.
    pub fn builder(&self) -> Result<LookupBuilder, BuildError> {
        self.shared.budget.take(Scatter::BYTES)?;
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        Ok(LookupBuilder {
            shared: self.shared.clone(),
            scatter: Scatter::new(),
            chunk: None,
            read: Read::default(),
            is_broken: false,
            tile: ByteTile::default(),
            kept: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// The index of all rows that were appended, filled by the threads of the team.
    ///
    /// # Errors
    /// `Duplicate` and `OverBudget`; `Crowded`; `Unfinished` if a builder has not ended.
    pub fn finish(self, team: &Team<'_>) -> Result<LookupIndex, BuildError> {
        let shared = Arc::into_inner(self.shared).ok_or(BuildError::Unfinished)?;
        let Shared { keys, added, budget, staging, seed, open, ended, .. } = shared;
        if open.into_inner() > 0 {
            return Err(BuildError::Unfinished);
        }
        let mut read = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        read.chunks.sort_unstable_by_key(|(number, _)| *number);
        let mut chunks = Chunks::default();
        for (_, Chunk { origins, columns, keys, .. }) in read.chunks.drain(..) {
            chunks.origins.push(origins);
            chunks.columns.push(columns);
            chunks.keys.push(keys);
        }
        let origins = Origins::new(chunks.origins);
        let columns = merge_columns(&added, chunks.columns, &origins, &budget)?;
        let conflicts = Conflicts::new(&origins, self.duplicates == Duplicates::Error);
        let filling = Filling::new(team, &budget, &origins, conflicts);
        let staged = staging.into_partitions();
        let table = match keys.form() {
            KeyForm::Number => number_table(&filling, staged, read.keys, seed)?,
            KeyForm::Bytes(width) => {
                let store = KeyStore::merge(chunks.keys, width, &budget)?;
                let inline_bytes = if may_be_inline(&columns, &read) { columns[0].bytes() } else { 0 };
                bytes_table(&filling, staged, store, inline_bytes)?
            }
        };
        let Filling { conflicts, keys: found_keys, .. } = filling;
        let rows = found_keys.into_inner();
        let duplicates = u64::from(origins.rows()) - rows;
        if let Some(conflict) = conflicts.found() {
            return Err(duplicate(conflict, duplicates, &keys, &table, &origins));
        }
        let (table, added) = place_inline(table, team, columns, &added, &read)?;
        let Read { null_keys, fingerprint, .. } = read;
        Ok(LookupIndex {
            keys,
            table,
            seed,
            added,
            rows,
            duplicates,
            null_keys,
            fingerprint,
            peak_bytes: budget.peak(),
        })
    }
}

/// Parts of all chunks.
#[derive(Default)]
struct Chunks {
    origins: Vec<ChunkOrigins>,
    columns: Vec<Vec<ColumnChunk>>,
    keys: Vec<KeyChunk>,
}

fn merge_columns(
    added: &[AddedColumn],
    chunks: Vec<Vec<ColumnChunk>>,
    origins: &Origins,
    budget: &Budget,
) -> Result<Vec<StoredColumn>, BuildError> {
    let mut chunks: Vec<_> = chunks.into_iter().map(Vec::into_iter).collect();
    let merge = |column| {
        let of_column = chunks.iter_mut().filter_map(Iterator::next).collect();
        StoredColumn::merge(column, of_column, origins.rows() as usize, budget)
    };
    added.iter().map(merge).collect()
}

fn number_table(filling: &Filling<'_>, staged: Vec<Staged>, keys: Extremes, seed: u64) -> Result<Table, BuildError> {
    let Extremes { least, .. } = keys;
    let Some(span) = keys.span() else { return Ok(Table::Direct(filling.direct(staged, 0, 0)?)) };
    // At most 2.5 slots of 4 bytes for a row: not more than lines take.
    if 2 * (u128::from(span) + 1) <= 5 * u128::from(filling.origins.rows()) {
        return Ok(Table::Direct(filling.direct(staged, least, span + 1)?));
    }
    Ok(match span <= u32::MAX.into() {
        true => Table::Narrow(lines_of_numbers(filling, staged, least, seed)?),
        false => Table::Wide(lines_of_numbers(filling, staged, least, seed)?),
    })
}

fn lines_of_numbers<L: ShortKey>(
    filling: &Filling<'_>,
    staged: Vec<Staged>,
    least: i64,
    seed: u64,
) -> Result<NumberTable<L>, BuildError> {
    let arrive = |key: u64, row| {
        let key = key as i64;
        Arrival { hash: spread(key, seed), key: L::short(key, least).0, row }
    };
    Ok(NumberTable { least, lines: filling.lines(staged, arrive, |_, _| true)? })
}

/// `inline_bytes`: memory of an added column that the lines may have instead of rows, if they need no rows for keys.
fn bytes_table(
    filling: &Filling<'_>,
    staged: Vec<Staged>,
    keys: KeyStore,
    inline_bytes: u64,
) -> Result<Table, BuildError> {
    // Short lines read memory once where hashes read it three times; where keys are few bytes they need more of it.
    let short_bytes = filling.bytes_of_lines::<ShortLine>();
    let are_short = keys.greatest_length() <= short::MOST_BYTES
        && short_bytes <= filling.bytes_of_lines::<NarrowLine>() + keys.bytes() + inline_bytes;
    // What is staged is the hash.
    if are_short {
        let key = |row| keys.key(row).and_then(short::pack).unwrap_or_default();
        let lines = filling.lines(staged, |hash, row| Arrival { hash, key: key(row), row }, |_, _| true)?;
        filling.budget.give_back(keys.bytes());
        return Ok(Table::Short(ShortTable { lines }));
    }
    let arrive = |hash, row| Arrival { hash, key: hash as u32, row };
    let lines = filling.lines(staged, arrive, |one, other| keys.key(one) == keys.key(other))?;
    Ok(Table::Hashed(HashedTable { lines, keys }))
}

/// Whether there is a single added column, whose values fit into the place of rows.
fn may_be_inline(columns: &[StoredColumn], read: &Read) -> bool {
    // All payloads are below the numbers that mean something else.
    columns.len() == 1 && !read.no_inline && read.values.span().is_some_and(|span| span < NULL_KEY.into())
}

/// The values of a single added column, in the table instead of rows, if they fit.
fn place_inline(
    mut table: Table,
    team: &Team<'_>,
    columns: Vec<StoredColumn>,
    added: &[AddedColumn],
    read: &Read,
) -> Result<(Table, Added), BuildError> {
    // The keys of hashed tables are found by row.
    let may_be = may_be_inline(&columns, read) && table.form() != Form::Hashed;
    let ([column], [stored], true) = (added, &columns[..], may_be) else { return Ok((table, Added::Stored(columns))) };
    let Some(values) = Keys::of(stored.rows()) else { return Ok((table, Added::Stored(columns))) };
    let least = read.values.least;
    fill::replace(&mut table, team, |row| (values.at(row as usize) - i128::from(least)) as u32)?;
    let default = column.default.as_ref().filter(|default| default.is_valid(0));
    let default = default.and_then(|default| Keys::of(default.as_ref()).map(|keys| keys.at(0) as i64));
    Ok((table, Added::Inline(InlineColumn::new(column.column_type, least, default))))
}

fn duplicate(conflict: Conflict, rows: u64, keys: &KeyPlan, table: &Table, origins: &Origins) -> BuildError {
    let key = match table {
        Table::Hashed(table) => table.keys.key(conflict.first).map(|key| keys.values_of_bytes(key)),
        Table::Direct(table) => table.key(conflict.first).map(|key| keys.values_of_number(key)),
        Table::Narrow(table) => table.key(conflict.first).map(|key| keys.values_of_number(key)),
        Table::Wide(table) => table.key(conflict.first).map(|key| keys.values_of_number(key)),
        Table::Short(table) => table.key(conflict.first).map(|key| keys.values_of_bytes(&key)),
    };
    let [first, second] = [conflict.first, conflict.second].map(|row| origins.place(row));
    BuildError::Duplicate(Box::new(Duplicate { key: key.unwrap_or_default(), first, second, rows }))
}

impl LookupBuilder {
    /// Takes rows that follow each other in the source, from that place on.
    ///
    /// # Errors
    /// `OverBudget`, `TooManyRows`, keys that cannot be, arrays that are not what the specification says. The builder is
    /// of no use then.
    pub fn append(&mut self, first: RowPlace, keys: &[ArrayRef], added: &[ArrayRef]) -> Result<(), BuildError> {
        self.is_broken = true;
        let shared = self.shared.clone();
        let batch = shared.keys.read(Side::Lookup, keys)?;
        check_arrays(shared.added.iter().map(|column| column.column_type), added)?;
        if let Some(other) = added.iter().find(|array| array.len() != batch.rows()) {
            let [found, expected] = [other.len(), batch.rows()].map(|count| format!("{count} rows"));
            return Err(WrongArray { found, expected }.into());
        }
        self.read.fingerprint.add(&[keys, added], &mut self.hashes);
        let mut next = 0;
        while next < batch.rows() {
            let (number, mut chunk) = self.chunk.take().map_or_else(|| shared.new_chunk(), Ok)?;
            let end = batch.rows().min(next + CHUNK_ROWS - chunk.origins.rows());
            let into = (number, &mut chunk);
            match shared.keys.form() {
                KeyForm::Number => self.append_keys(KeyForm::Number, &shared, &batch, next..end, first, into)?,
                bytes => self.append_keys(bytes, &shared, &batch, next..end, first, into)?,
            }
            self.append_added(added, first, &mut chunk);
            let bytes = chunk.bytes();
            shared.budget.grow(&mut chunk.counted_bytes, bytes)?;
            match chunk.origins.rows() {
                CHUNK_ROWS => self.read.chunks.push((number, chunk)),
                _ => self.chunk = Some((number, chunk)),
            }
            next = end;
        }
        self.is_broken = false;
        Ok(())
    }

    /// Keys of rows of the batch, for which the chunk has room. Those that have one are in `kept` then.
    #[inline(always)]
    fn append_keys(
        &mut self,
        form: KeyForm,
        shared: &Shared,
        batch: &KeyBatch<'_>,
        rows: Range<usize>,
        first: RowPlace,
        (chunk_number, chunk): (u32, &mut Chunk),
    ) -> Result<(), BuildError> {
        self.kept.clear();
        let mut place = chunk.origins.rows();
        let mut numbers = [0; TILE_ROWS];
        let place_of = |row: usize| RowPlace { row: first.row + row as u64, ..first };
        for begin in rows.clone().step_by(TILE_ROWS) {
            let tile = begin..rows.end.min(begin + TILE_ROWS);
            let nulls = batch.nulls(begin, tile.len());
            let outside = match form {
                KeyForm::Number => batch.numbers(begin, &mut numbers[..tile.len()]),
                KeyForm::Bytes(_) => batch.bytes(begin, tile.len(), &mut self.tile),
            };
            if outside & !nulls != 0 {
                return Err(BuildError::KeyOutside(place_of(begin + (outside & !nulls).trailing_zeros() as usize)));
            }
            self.read.null_keys += u64::from(nulls.count_ones());
            for row in (0..tile.len()).filter(|row| nulls >> row & 1 == 0) {
                let (hash, key) = match form {
                    KeyForm::Number => {
                        self.read.keys.add(numbers[row], numbers[row]);
                        (spread(numbers[row], shared.seed), numbers[row] as u64)
                    }
                    KeyForm::Bytes(width) => {
                        let key = self.tile.key(row);
                        if !chunk.keys.push(key, width) {
                            return Err(BuildError::KeyTooLong { place: place_of(begin + row), bytes: key.len() });
                        }
                        let hash = hashed::hash(key, shared.seed);
                        (hash, hash)
                    }
                };
                self.scatter.push(hash, key, number(chunk_number, place), &shared.staging)?;
                place += 1;
            }
            keep(&mut self.kept, tile, nulls);
        }
        Ok(())
    }

    /// Origins and added columns of the rows that are kept.
    fn append_added(&mut self, added: &[ArrayRef], first: RowPlace, chunk: &mut Chunk) {
        for rows in &self.kept {
            chunk.origins.append(RowPlace { row: first.row + rows.start as u64, ..first }, rows.len());
        }
        for (column, array) in chunk.columns.iter_mut().zip(added) {
            column.append(array.as_ref(), &self.kept);
        }
        let [array] = added else { return };
        let read = &mut self.read;
        read.no_inline |= array.null_count() > 0 || matches!(Keys::of(array), None | Some(Keys::Bits128(_)));
        if read.no_inline {
            return;
        }
        for rows in &self.kept {
            let range = Keys::of(&array.slice(rows.start, rows.len())).and_then(Keys::range);
            // Of at most 64 bits.
            range.into_iter().for_each(|(least, greatest)| read.values.add(least as i64, greatest as i64));
        }
    }

    /// Hands over what was appended.
    ///
    /// # Errors
    /// `OverBudget`; `Unfinished` after an error.
    pub fn end(mut self) -> Result<(), BuildError> {
        if self.is_broken {
            return Err(BuildError::Unfinished);
        }
        self.scatter.end(&self.shared.staging)?;
        self.shared.budget.give_back(Scatter::BYTES);
        let mut read = self.read;
        read.chunks.extend(self.chunk);
        lock(&self.shared.ended).merge(read);
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Notes rows of a tile that have a key, those that follow each other as one range.
fn keep(kept: &mut Vec<Range<usize>>, rows: Range<usize>, nulls: u64) {
    let mut extend = |rows: Range<usize>| match kept.last_mut().filter(|last| last.end == rows.start) {
        Some(last) => last.end = rows.end,
        None => kept.push(rows),
    };
    match nulls {
        0 => extend(rows),
        _ => rows.enumerate().filter(|(bit, _)| nulls >> bit & 1 == 0).for_each(|(_, row)| extend(row..row + 1)),
    }
}

impl Shared {
    fn new_chunk(&self) -> Result<(u32, Chunk), BuildError> {
        let number = self.next_chunk.fetch_add(1, Ordering::Relaxed);
        if number >= MOST_CHUNKS {
            return Err(BuildError::TooManyRows);
        }
        let columns = self.added.iter().map(|column| ColumnChunk::new(&column.column_type.arrow_type()));
        Ok((number, Chunk { columns: columns.collect::<Result<_, _>>()?, ..Chunk::default() }))
    }
}

impl Chunk {
    fn bytes(&self) -> u64 {
        self.columns.iter().map(ColumnChunk::bytes).sum::<u64>() + self.keys.bytes() + self.origins.bytes()
    }
}

impl Read {
    fn merge(&mut self, other: Read) {
        self.chunks.extend(other.chunks);
        self.keys.add(other.keys.least, other.keys.greatest);
        self.values.add(other.values.least, other.values.greatest);
        self.no_inline |= other.no_inline;
        self.null_keys += other.null_keys;
        self.fingerprint.merge(other.fingerprint);
    }
}
