//! A stream with a unit of its own, for one table after the other; rows of other partitions go into a second unit.

use std::sync::Arc;

use headrace_types::CoreError;
use headrace_wire::postgres::CopyEncoder;

use super::ledger::{SliceRows, check_counted, missing};
use super::remembered::ENTRIES;
use super::unit::{Source, Unit};
use super::{Base, encoder, internal};
use crate::meter::{Doing, StreamMeter};
use crate::outcome::lock;
use crate::postgres::Connection;
use crate::report::SliceReport;
use crate::sink::{Origin, Placed, Writer};
use crate::spec::{CopyTable, SliceSpec};
use crate::text_hash::TextHash;

/// The writer of one stream.
pub struct HomeWriter {
    base: Arc<Base>,
    /// Made when the first slice begins.
    encoder: Option<CopyEncoder>,
    own: Lane,
    strays: Lane,
    /// Of the present unit.
    table: usize,
    /// Of the present slice: rows for its home, rows for other partitions.
    counted: (u64, u64),
    /// The slices of the present unit, and their text.
    slices: Vec<SliceCounts>,
    bytes: u64,
}

/// One of the connections of a stream.
#[derive(Default)]
struct Lane {
    /// In the name of its connections; given when the first one is made.
    number: Option<usize>,
    /// Between two units.
    connection: Option<Connection>,
    unit: Option<Unit>,
}

/// A slice that ended.
struct SliceCounts {
    number: u32,
    home: u64,
    strays: u64,
    rejected: u64,
    filtered: u64,
    skipped: u64,
    text_bytes: u64,
    values_ignored: u64,
    text_hash: Option<TextHash>,
}

impl HomeWriter {
    /// A writer that has no connection yet.
    pub fn new(base: Arc<Base>) -> Self {
        let own = Lane { number: Some(base.next_writer()), ..Lane::default() };
        HomeWriter {
            base,
            encoder: None,
            own,
            strays: Lane::default(),
            table: 0,
            counted: (0, 0),
            slices: Vec::new(),
            bytes: 0,
        }
    }

    fn open(&mut self, table: usize) -> Result<(), CoreError> {
        if self.encoder.is_none() {
            self.encoder = Some(encoder(&self.base.flow, &self.base.sink)?);
        }
        self.own.open(&self.base, &self.base.sink.tables[table])?;
        self.table = table;
        Ok(())
    }

    /// Whether enough went into the unit for a commit.
    fn is_full(&self) -> bool {
        let sink = &self.base.sink;
        let rows = || self.slices.iter().map(|slice| slice.home + slice.strays).sum::<u64>();
        sink.commit_bytes.is_some_and(|size| self.bytes >= size) || sink.commit_rows.is_some_and(|size| rows() >= size)
    }

    fn take(&mut self, rows: &Placed, origin: Origin, meter: &StreamMeter) -> Result<(), CoreError> {
        let base = &self.base;
        let table = &base.sink.tables[self.table];
        let (Some(unit), Some(encoder)) = (&mut self.own.unit, &mut self.encoder) else {
            return Err(internal("a batch comes before its slice"));
        };
        let batch = &rows.batch;
        for (place, part) in &rows.parts {
            let source = Source { place: *place, origin };
            let Some(strays) = base.sink.strays.as_ref().filter(|_| *place as usize != self.table) else {
                self.counted.0 += part.len() as u64;
                if !table.committed.contains_key(&origin.slice) {
                    unit.encode(base, encoder, batch, part.clone(), source, meter)?;
                }
                continue;
            };
            self.counted.1 += part.len() as u64;
            if strays.committed.contains_key(&origin.slice) {
                continue;
            }
            let unit = match &mut self.strays.unit {
                Some(unit) => unit,
                None => {
                    let _waiting = meter.pause(Doing::WaitDestination);
                    self.strays.open(base, strays)?
                }
            };
            unit.encode(base, encoder, batch, part.clone(), source, meter)?;
        }
        base.count(batch.num_rows());
        Ok(())
    }

    /// Ends both units, and commits that of the strays before the other: with the slice's home it is known to be whole.
    fn end_units(&mut self) -> Result<(), CoreError> {
        let Some(mut unit) = self.own.unit.take() else { return Ok(()) };
        let base = &self.base;
        let table = &base.sink.tables[self.table];
        let slices = std::mem::take(&mut self.slices);
        self.bytes = 0;
        let mut commits = Vec::new();
        let mut strays_ended = None;
        if let Some(strays) = &base.sink.strays {
            let stray_rows = slices.iter().map(|slice| SliceRows {
                number: slice.number,
                loaded: slice.strays,
                rejected: 0,
                filtered: 0,
                skipped: 0,
                text_bytes: 0,
                values_ignored: 0,
                text_hash: None,
            });
            let stray_rows = (strays.partition.as_str(), missing(strays, stray_rows));
            match self.strays.unit.take() {
                None => commits.push(stray_rows),
                Some(mut unit) => {
                    unit.send_last(base)?;
                    strays_ended = Some(unit.end(base, strays, &[stray_rows])?);
                }
            }
        }
        let home_rows = slices.iter().map(|slice| {
            let &SliceCounts {
                number,
                home: loaded,
                rejected,
                filtered,
                skipped,
                text_bytes,
                values_ignored,
                text_hash,
                ..
            } = slice;
            SliceRows { number, loaded, rejected, filtered, skipped, text_bytes, values_ignored, text_hash }
        });
        commits.push((table.partition.as_str(), missing(table, home_rows)));
        unit.send_last(base)?;
        let home_ended = unit.end(base, table, &commits)?;
        self.strays.connection = strays_ended.map(|ended| base.commit(ended)).transpose()?.flatten();
        self.own.connection = base.commit(home_ended)?;
        Ok(())
    }
}

impl Lane {
    fn open(&mut self, base: &Base, table: &CopyTable) -> Result<&mut Unit, CoreError> {
        let number = *self.number.get_or_insert_with(|| base.next_writer());
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => base.connect(number)?,
        };
        Ok(self.unit.insert(Unit::open(connection, table, base.overlaps, ENTRIES)?))
    }
}

impl Writer for HomeWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, meter: &StreamMeter) -> Result<bool, CoreError> {
        self.counted = (0, 0);
        let table = self.base.tables[&slice.number];
        if self.own.unit.is_some() && self.table == table && !self.is_full() {
            return Ok(true);
        }
        let _waiting = meter.pause(Doing::WaitDestination);
        if !self.finish(meter)? {
            return Ok(false);
        }
        let opened = self.open(table);
        self.base.or_stopped(opened)
    }

    fn write(&mut self, rows: Placed, origin: Origin, meter: &StreamMeter) -> Result<bool, CoreError> {
        let taken = self.take(&rows, origin, meter);
        self.base.or_stopped(taken)
    }

    fn end_slice(&mut self, account: &SliceReport) -> Result<(), CoreError> {
        let base = &self.base;
        // The second slice of a pair follows at once: what came out was that of the first.
        let (home, strays) = std::mem::take(&mut self.counted);
        let tables = [(Some(&base.sink.tables[self.table]), home), (base.sink.strays.as_ref(), strays)];
        for (table, rows) in tables {
            let known = table.map(|table| check_counted(table, account.number, rows)).transpose()?;
            base.confirm(known.flatten().unwrap_or(0));
        }
        let &SliceReport { number, rejected, filtered, skipped, bytes: text_bytes, values_ignored, text_hash, .. } =
            account;
        self.bytes += text_bytes;
        self.slices.push(SliceCounts {
            number,
            home,
            strays,
            rejected,
            filtered,
            skipped,
            text_bytes,
            values_ignored,
            text_hash,
        });
        lock(&base.ended).push(account.clone());
        Ok(())
    }

    fn finish(&mut self, meter: &StreamMeter) -> Result<bool, CoreError> {
        let _waiting = meter.pause(Doing::WaitDestination);
        let ended = self.end_units();
        self.base.or_stopped(ended)
    }
}

impl Drop for HomeWriter {
    fn drop(&mut self) {
        Unit::abort_all([&mut self.own, &mut self.strays].into_iter().filter_map(|lane| lane.unit.take()));
        for lane in [&mut self.own, &mut self.strays] {
            if let Some(connection) = lane.connection.take() {
                connection.close();
            }
        }
    }
}
