//! Binary COPY into a PostgreSQL server: every stream has a connection of its own, and fills one table after the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind, Layout, Location, ServerFields};
use headrace_wire::postgres::CopyEncoder;

use super::key::{Key, KeyColumn};
use super::{Origin, Sink, Writer};
use crate::locate::locate;
use crate::outcome::{Outcome, lock};
use crate::postgres::{Connection, ConnectionSpec, CopyIn};
use crate::report::{ColumnReport, SinkReport, SliceReport, StageReport};
use crate::spec::{CommitTime, CopyTable, FlowSpec, KeyBounds, PostgresSinkSpec, SliceSpec};

/// Text of one CopyData message. The server's cost per byte falls up to 64 KB and not beyond; larger ones save the client
/// system calls.
const FRAME_BYTES: usize = 128 * 1024;

/// A frame of this size holds a row that did not fit a block. It is waited for, while the flow's large-row memory is still
/// held: only one such row is on its way, however many writers there are.
const LONG_FRAME_BYTES: usize = 1 << 20;

/// Text whose batches are remembered as one. It is read again to find a row in it.
const REMEMBERED_BYTES: u64 = 4 << 20;

/// Deferred constraints speak up here, not at a COMMIT that follows those of other writers.
const CHECK_NOW: &str = "SET CONSTRAINTS ALL IMMEDIATE";

/// Classes of SQLSTATE that can meet a COPY at any row: connection lost, deadlock, no resources, locks, shutdown and
/// cancellation, the server's system, a defect of its own.
const NOT_ABOUT_A_ROW: [&str; 8] = ["08", "40", "53", "55", "57", "58", "XX", "F0"];

/// Tables of one server.
pub struct PostgresSink(Arc<Shared>);

struct Shared {
    flow: Arc<FlowSpec>,
    sink: PostgresSinkSpec,
    tables: HashMap<u32, usize>,
    ranges: Vec<Option<Range>>,
    outcome: Arc<Outcome>,
    writers: AtomicUsize,
    /// Connections whose unit is complete and waits for [`Sink::commit`].
    complete: Mutex<Vec<Connection>>,
    /// Set when [`Sink::commit`] begins: from then on nobody may interrupt a connection.
    committing: Arc<AtomicBool>,
    counters: Mutex<SinkReport>,
    /// Accounts of the slices that have ended: their lines need not be counted again.
    ended: Mutex<Vec<SliceReport>>,
}

impl Shared {
    fn locate(&self, origin: Origin, row: u64) -> Result<Option<Location>, CoreError> {
        let ended = lock(&self.ended).clone();
        locate(&self.flow, &ended, origin, row)
    }
}

/// Keys that belong to a table.
struct Range {
    column: KeyColumn,
    minimum: Key,
    end: Key,
    bounds: KeyBounds,
}

impl PostgresSink {
    /// A sink for the flow's slices.
    ///
    /// # Errors
    /// `Specification` for columns that the layout has not or that their forms cannot hold, slices without table, and bounds
    /// that are no keys.
    pub fn new(flow: &Arc<FlowSpec>, sink: &PostgresSinkSpec, outcome: Arc<Outcome>) -> Result<Self, CoreError> {
        encoder(&flow.layout, sink)?;
        let numbers = |table: &CopyTable| table.slices.clone();
        let tables: HashMap<u32, usize> = (0..)
            .zip(&sink.tables)
            .flat_map(|(index, table)| numbers(table).into_iter().map(move |slice| (slice, index)))
            .collect();
        if let Some(slice) = flow.source.slices.iter().find(|slice| !tables.contains_key(&slice.number)) {
            return Err(specification(format!("slice {} belongs to no table", slice.number)));
        }
        let ranges = sink.tables.iter().map(|table| range(&flow.layout, table)).collect::<Result<_, _>>()?;
        Ok(PostgresSink(Arc::new(Shared {
            flow: flow.clone(),
            sink: sink.clone(),
            tables,
            ranges,
            outcome,
            writers: AtomicUsize::new(0),
            complete: Mutex::default(),
            committing: Arc::default(),
            counters: Mutex::new(SinkReport { confirmed: Some(0), ..SinkReport::default() }),
            ended: Mutex::default(),
        })))
    }
}

fn encoder(layout: &Layout, sink: &PostgresSinkSpec) -> Result<CopyEncoder, CoreError> {
    let mut columns = Vec::with_capacity(sink.columns.len());
    for column in &sink.columns {
        let Some(index) = layout.columns.iter().position(|own| own.name == column.source) else {
            return Err(specification(format!("the sink's column `{}` is not in the layout", column.source)));
        };
        columns.push((index, layout.columns[index].column_type, column.form));
    }
    CopyEncoder::new(&columns).map_err(specification)
}

fn range(layout: &Layout, table: &CopyTable) -> Result<Option<Range>, CoreError> {
    let Some(bounds) = &table.bounds else { return Ok(None) };
    let Some(column) = KeyColumn::of(layout, &bounds.column) else {
        return Err(specification(format!("`{}` is not a column whose values can be keys", bounds.column)));
    };
    let minimum = column.parse(&bounds.minimum)?;
    // No type has a key of that size.
    let end = bounds.end.as_ref().map_or(Ok(Key::MAX), |end| column.parse(end))?;
    Ok(Some(Range { column, minimum, end, bounds: bounds.clone() }))
}

fn specification(text: String) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("postgres sink: {text}"))
}

impl Sink for PostgresSink {
    fn writer(&self) -> Box<dyn Writer> {
        let number = self.0.writers.fetch_add(1, Ordering::Relaxed) + 1;
        Box::new(PostgresWriter { shared: self.0.clone(), number, encoder: None, connection: None, unit: None })
    }

    fn groups(&self, slices: &[SliceSpec]) -> Vec<Vec<SliceSpec>> {
        let shared = &self.0;
        let mut owned: Vec<Vec<SliceSpec>> = vec![Vec::new(); shared.sink.tables.len()];
        let mut groups = Vec::new();
        for slice in slices {
            let table = shared.tables[&slice.number];
            if shared.sink.tables[table].owned {
                owned[table].push(slice.clone());
            } else {
                groups.push(vec![slice.clone()]);
            }
        }
        groups.extend(owned.into_iter().filter(|group| !group.is_empty()));
        groups
    }

    fn starved(&self) -> bool {
        false // a batch is encoded while it is written: nobody keeps a block
    }

    fn close(&self) {}

    fn report(&self) -> SinkReport {
        lock(&self.0.counters).clone()
    }

    fn columns(&self) -> Option<Vec<ColumnReport>> {
        None
    }

    fn commit(&self) -> Result<(), CoreError> {
        // Taken at once: who abandons them meanwhile finds none, and waits for nothing.
        let complete = {
            let mut complete = lock(&self.0.complete);
            if let Some(error) = self.0.outcome.error() {
                return Err(error);
            }
            self.0.committing.store(true, Ordering::Release);
            std::mem::take(&mut *complete)
        };
        for mut connection in complete {
            connection.commit()?;
            connection.close();
        }
        Ok(())
    }

    fn abandon(&self) {
        // The server rolls back and frees their locks, for which the caller's next statement might wait.
        std::mem::take(&mut *lock(&self.0.complete)).into_iter().for_each(Connection::close);
    }
}

/// The writer of one stream.
struct PostgresWriter {
    shared: Arc<Shared>,
    number: usize,
    /// Made when the first slice begins.
    encoder: Option<CopyEncoder>,
    /// Between two units.
    connection: Option<Connection>,
    unit: Option<Unit>,
}

/// A transaction on its way.
struct Unit {
    table: usize,
    copy: CopyIn,
    frame: Vec<u8>,
    rows: u64,
    /// Row of the COPY, from 0, at which each batch starts, or several that follow one another.
    batches: Vec<(u64, Origin)>,
    slices: Vec<SliceRows>,
}

struct SliceRows {
    number: u32,
    loaded: u64,
    rejected: u64,
    skipped: u64,
}

impl Writer for PostgresWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, stage: &mut StageReport) -> Result<bool, CoreError> {
        let table = self.shared.tables[&slice.number];
        if self.unit.as_ref().is_some_and(|unit| unit.table == table) {
            return Ok(true);
        }
        if !self.finish(stage)? {
            return Ok(false);
        }
        let start = Instant::now();
        let opened = self.open(table);
        stage.wait_output_seconds += start.elapsed().as_secs_f64();
        self.or_stopped(opened)
    }

    fn write(&mut self, batch: RecordBatch, origin: Origin, stage: &mut StageReport) -> Result<bool, CoreError> {
        let (Some(unit), Some(encoder)) = (&mut self.unit, &mut self.encoder) else {
            return Err(internal("a batch comes before its slice"));
        };
        let start = Instant::now();
        let waited = unit.copy.waited();
        let sent = unit.take(&self.shared, encoder, &batch, origin);
        let waited = unit.copy.waited() - waited;
        stage.wait_output_seconds += waited.as_secs_f64();
        stage.busy_seconds += start.elapsed().saturating_sub(waited).as_secs_f64();
        self.or_stopped(sent)
    }

    fn end_slice(&mut self, account: &SliceReport) {
        if let Some(unit) = &mut self.unit {
            let &SliceReport { number, out: loaded, rejected, skipped, .. } = account;
            unit.slices.push(SliceRows { number, loaded, rejected, skipped });
        }
        lock(&self.shared.ended).push(account.clone());
    }

    fn finish(&mut self, stage: &mut StageReport) -> Result<bool, CoreError> {
        let Some(unit) = self.unit.take() else { return Ok(true) };
        let start = Instant::now();
        let finished = unit.finish(&self.shared);
        stage.wait_output_seconds += start.elapsed().as_secs_f64();
        let kept = finished.map(|connection| self.connection = connection);
        self.or_stopped(kept)
    }
}

impl Drop for PostgresWriter {
    fn drop(&mut self) {
        if let Some(unit) = self.unit.take() {
            unit.copy.abort("the load was stopped");
        }
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

impl PostgresWriter {
    fn open(&mut self, table: usize) -> Result<(), CoreError> {
        let shared = &self.shared;
        if self.encoder.is_none() {
            self.encoder = Some(encoder(&shared.flow.layout, &shared.sink)?);
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let own = &shared.sink.connection;
                let application_name = format!("{} w{}", own.application_name, self.number);
                let (outcome, committing) = (shared.outcome.clone(), shared.committing.clone());
                let interrupt = move || outcome.stopped() && !committing.load(Ordering::Acquire);
                let spec = ConnectionSpec { application_name, ..own.clone() };
                Connection::connect(&spec, Arc::new(interrupt))?
            }
        };
        let table_spec = &shared.sink.tables[table];
        connection.execute(&table_spec.begin)?;
        let mut copy = connection.copy_in(&table_spec.copy)?;
        let mut frame = copy.buffer()?;
        frame.extend_from_slice(CopyEncoder::header());
        self.unit = Some(Unit { table, copy, frame, rows: 0, batches: Vec::new(), slices: Vec::new() });
        Ok(())
    }

    /// What fails after the flow was stopped is a consequence of that.
    fn or_stopped(&self, result: Result<(), CoreError>) -> Result<bool, CoreError> {
        match result {
            Ok(()) => Ok(true),
            Err(_) if self.shared.outcome.stopped() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Unit {
    /// Encodes a batch and sends every full frame.
    fn take(
        &mut self,
        shared: &Shared,
        encoder: &mut CopyEncoder,
        batch: &RecordBatch,
        origin: Origin,
    ) -> Result<(), CoreError> {
        let rows = batch.num_rows();
        remember(&mut self.batches, self.rows, origin);
        if let Some(range) = &shared.ranges[self.table] {
            let keys = range.column.keys(batch).ok_or_else(|| internal("a key of another type than its column"))?;
            if let Some(row) = keys.first_outside(range.minimum, range.end) {
                return Err(outside(shared, range, origin, row, keys.at(row)));
            }
        }
        self.rows += rows as u64;
        let mut from = 0;
        while from < rows {
            from = encoder
                .encode(batch, from, FRAME_BYTES, &mut self.frame)
                .map_err(|error| internal(&format!("{error}")))?;
            if self.frame.len() >= FRAME_BYTES {
                self.send().map_err(|error| self.explained(shared, error))?;
            }
        }
        let mut counters = lock(&shared.counters);
        counters.batches += 1;
        counters.rows += rows as u64;
        Ok(())
    }

    fn send(&mut self) -> Result<(), CoreError> {
        let next = self.copy.buffer()?;
        let is_long = self.frame.len() > LONG_FRAME_BYTES;
        self.copy.send(std::mem::replace(&mut self.frame, next))?;
        if is_long { self.copy.wait_until_sent() } else { Ok(()) }
    }

    /// Ends the COPY, writes the ledger, commits. The connection, unless it waits for [`Sink::commit`].
    fn finish(mut self, shared: &Shared) -> Result<Option<Connection>, CoreError> {
        self.frame.extend_from_slice(CopyEncoder::trailer());
        self.send().map_err(|error| self.explained(shared, error))?;
        let Unit { table, copy, frame: _, rows, batches, slices } = self;
        let (mut connection, confirmed) = copy.finish().map_err(|error| explained(shared, &batches, error))?;
        let spec = &shared.sink.tables[table];
        if confirmed != rows {
            let what = format!("the server counted other rows of {} than it was sent", spec.name);
            return Err(CoreError::new(ErrorKind::Internal, what)
                .found(confirmed.to_string())
                .expected(rows.to_string()));
        }
        connection.execute(CHECK_NOW)?;
        if let Some(statement) = &shared.sink.commit_slices {
            commit_slices(&mut connection, statement, spec, &slices)?;
        }
        *lock(&shared.counters).confirmed.get_or_insert(0) += confirmed;
        match shared.sink.commit {
            CommitTime::Unit => {
                connection.commit()?;
                Ok(Some(connection))
            }
            CommitTime::Together => {
                lock(&shared.complete).push(connection);
                Ok(None)
            }
        }
    }

    fn explained(&self, shared: &Shared, error: CoreError) -> CoreError {
        explained(shared, &self.batches, error)
    }
}

/// Adds a batch whose first row is row `first` of the COPY.
fn remember(batches: &mut Vec<(u64, Origin)>, first: u64, origin: Origin) {
    match batches.last_mut() {
        Some((_, last))
            if last.slice == origin.slice
                && last.at_byte + last.bytes == origin.at_byte
                && last.bytes + origin.bytes <= REMEMBERED_BYTES =>
        {
            last.bytes += origin.bytes;
        }
        _ => batches.push((first, origin)),
    }
}

/// The unit's commit rows, behind the fence of the run.
fn commit_slices(
    connection: &mut Connection,
    statement: &str,
    table: &CopyTable,
    slices: &[SliceRows],
) -> Result<(), CoreError> {
    let array = |value: fn(&SliceRows) -> u64| {
        let values: Vec<String> = slices.iter().map(|slice| value(slice).to_string()).collect();
        format!("{{{}}}", values.join(","))
    };
    let (numbers, loaded) = (array(|slice| u64::from(slice.number)), array(|slice| slice.loaded));
    let (rejected, skipped) = (array(|slice| slice.rejected), array(|slice| slice.skipped));
    let parameters = [Some(table.partition.as_str()), Some(&numbers), Some(&loaded), Some(&rejected), Some(&skipped)];
    let result = connection.query(statement, &parameters)?;
    let written = result.tag.rsplit(' ').next().and_then(|count| count.parse().ok());
    if written == Some(slices.len()) {
        return Ok(());
    }
    Err(CoreError::new(ErrorKind::Target, "the run no longer owns this load")
        .found("another run or a resumed one has taken the target over")
        .hint("Nothing of this writer was committed. Look at `headrace.run`, and resume or run again."))
}

fn is_about_a_row(server: &ServerFields) -> bool {
    // What ends the session can come at any row too, whatever its class.
    let ends_session = matches!(server.severity.as_str(), "FATAL" | "PANIC");
    !ends_session && !NOT_ABOUT_A_ROW.iter().any(|class| server.sqlstate.starts_with(class))
}

/// The error of a server about a row, with the row's place.
fn explained(shared: &Shared, batches: &[(u64, Origin)], error: CoreError) -> CoreError {
    let server = error.server.as_ref().filter(|server| is_about_a_row(server));
    let line = server.and_then(|server| server.copy_line());
    let Some(row) = line.and_then(|line| line.checked_sub(1)) else { return error };
    let batch = batches.partition_point(|&(first, _)| first <= row).checked_sub(1).map(|index| batches[index]);
    let place = batch.map(|(first, origin)| shared.locate(origin, row - first));
    match place {
        Some(Ok(Some(location))) => error.at(location),
        _ => error,
    }
}

fn outside(shared: &Shared, range: &Range, origin: Origin, row: usize, key: Key) -> CoreError {
    let KeyBounds { column, minimum, end } = &range.bounds;
    let what = format!("a row does not belong to the partition of its file: `{column}`");
    let error = CoreError::new(ErrorKind::Target, what)
        .found(range.column.text(key))
        .expected(match end {
            Some(end) => format!("from {minimum} to below {end}"),
            None => format!("{minimum} or more"),
        })
        .hint("Partitions by file need files that do not overlap, each between the keys of its first and last row.");
    match shared.locate(origin, row as u64) {
        Ok(Some(location)) => error.at(location),
        _ => error,
    }
}

fn internal(text: &str) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("postgres sink: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_long_copy_take_little_memory() {
        let mut batches = Vec::new();
        let block = 512 << 10;
        for number in 0..1000 {
            let origin = Origin { slice: 1, first_line: 10 * number, at_byte: block * number, bytes: block };
            remember(&mut batches, 9 * number, origin);
        }
        assert_eq!(batches.len(), 125);
        let (first, origin) = batches[1];
        assert_eq!((first, origin.first_line, origin.at_byte, origin.bytes), (72, 80, 8 * block, 8 * block));

        // Another slice; a row between two blocks that was too long; a large row.
        let other = Origin { slice: 2, first_line: 0, at_byte: 1000 * block, bytes: 10 };
        remember(&mut batches, 9000, other);
        remember(&mut batches, 9001, Origin { first_line: 2, at_byte: other.at_byte + 99, ..other });
        remember(&mut batches, 9002, Origin { first_line: 3, at_byte: other.at_byte + 109, bytes: 60 << 20, ..other });
        assert_eq!(batches.len(), 128);
    }
}
