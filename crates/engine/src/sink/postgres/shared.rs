//! A unit per table, fed by all streams. A stream encodes its rows for a table outside any lock, and appends them to the
//! unit's frame under the unit's lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use headrace_types::{CoreError, ErrorKind};
use headrace_wire::postgres::CopyEncoder;

use super::ledger::{SliceRows, check_counted, missing};
use super::remembered::ENTRIES;
use super::side_by_side::side_by_side;
use super::unit::{FRAME_BYTES, LONG_FRAME_BYTES, Source, Unit};
use super::{Base, encoder, internal};
use crate::meter::{Doing, StreamMeter};
use crate::outcome::lock;
use crate::postgres::{COPY_BUFFERS, Connection};
use crate::report::SliceReport;
use crate::sink::{Origin, Placed, Writer};
use crate::spec::SliceSpec;

/// Memory of the frames of all units. With many tables frames become smaller: of 1,000 tables 32 KiB.
const ALL_FRAMES_BYTES: usize = 96 << 20;
/// Smaller frames would cost the server more than they save: more than 4,096 tables take more memory.
const LEAST_FRAME_BYTES: usize = 8 << 10;

/// The units of all tables.
pub struct SharedUnits {
    base: Arc<Base>,
    /// By place.
    units: Vec<Mutex<SharedUnit>>,
    frame_bytes: usize,
    /// Entries that a unit remembers.
    remembered: usize,
    /// Slices whose rows are to be sent.
    to_load: usize,
    /// Slices of epochs that have been ended: so many of those that have.
    ended_before: AtomicUsize,
    /// Set by the stream that ends the units.
    is_ending: AtomicBool,
}

/// The unit of a table, opened when its first row comes.
#[derive(Default)]
struct SharedUnit {
    unit: Option<Unit>,
    /// Its connection between two epochs.
    idle: Option<Connection>,
    /// Rows by slice.
    loaded: HashMap<u32, u64>,
}

fn frame_bytes(tables: usize) -> usize {
    (ALL_FRAMES_BYTES / (COPY_BUFFERS * tables.max(1))).clamp(LEAST_FRAME_BYTES, FRAME_BYTES)
}

impl SharedUnits {
    /// Units of all tables, none of them open.
    pub fn new(base: Arc<Base>) -> Self {
        let tables = base.sink.tables.len();
        SharedUnits {
            units: (0..tables).map(|_| Mutex::default()).collect(),
            frame_bytes: frame_bytes(tables),
            remembered: (ENTRIES / tables.max(1)).max(1),
            to_load: base.flow.source.to_load().count(),
            ended_before: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
            base,
        }
    }

    /// Gives up all units that nobody works on. Streams that still do are asked to stop, and this is called again behind them.
    pub fn abort(&self) {
        let taken = self.units.iter().filter_map(|unit| match unit.try_lock() {
            Ok(mut own) => Some(std::mem::take(&mut *own)),
            Err(TryLockError::Poisoned(poisoned)) => Some(std::mem::take(&mut *poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        });
        let (units, idle): (Vec<_>, Vec<_>) = taken.map(|own| (own.unit, own.idle)).unzip();
        Unit::abort_all(units.into_iter().flatten());
        idle.into_iter().flatten().for_each(Connection::close);
    }

    /// Appends encoded rows to the unit of their place. Waits for other streams, and for the server.
    fn append(&self, bytes: &[u8], rows: usize, source: Source, meter: &StreamMeter) -> Result<(), CoreError> {
        let waiting = meter.pause(Doing::WaitDestination);
        let mut own = lock(&self.units[source.place as usize]);
        let unit = own.opened(self, source.place as usize)?;
        drop(waiting);
        unit.append(&self.base, bytes, rows, source, self.frame_bytes, meter)?;
        *own.loaded.entry(source.origin.slice).or_default() += rows as u64;
        Ok(())
    }

    /// Ends the units of all tables, and commits them when all of them are complete. Tables that no row has met need their
    /// commit rows too. Their connections, by place.
    fn end(&self) -> Result<Vec<Option<Connection>>, CoreError> {
        let base = &self.base;
        let before = self.ended_before.load(Ordering::Acquire);
        let mut ended = lock(&base.ended)[before..].to_vec();
        self.ended_before.store(before + ended.len(), Ordering::Release);
        ended.sort_by_key(|slice| slice.number);
        side_by_side(0..self.units.len(), |place| lock(&self.units[place]).opened(self, place)?.send_last(base))?;
        let complete = side_by_side(0..self.units.len(), |place| self.end_unit(place, &ended))?;
        side_by_side(complete, |connection| base.commit(connection))
    }

    /// Ends the COPY of one table, and writes the commit rows of these slices.
    fn end_unit(&self, place: usize, ended: &[SliceReport]) -> Result<Connection, CoreError> {
        let table = &self.base.sink.tables[place];
        let SharedUnit { unit, loaded, idle: _ } = std::mem::take(&mut *lock(&self.units[place]));
        let unit = unit.ok_or_else(|| self.stopped())?;
        let rows = ended.iter().map(|slice| {
            let of_one = |count| if place == 0 { count } else { 0 };
            SliceRows {
                number: slice.number,
                loaded: loaded.get(&slice.number).copied().unwrap_or(0),
                rejected: of_one(slice.rejected),
                filtered: of_one(slice.filtered),
                skipped: of_one(slice.skipped),
                text_bytes: of_one(slice.bytes),
                values_ignored: of_one(slice.values_ignored),
                text_hash: slice.text_hash.filter(|_| place == 0),
            }
        });
        unit.end(&self.base, table, &[(table.partition.as_str(), missing(table, rows))])
    }

    /// The end of an epoch: the units of the next one go on in the same connections. They are opened at once, because every
    /// table needs its commit rows.
    fn end_epoch(&self) -> Result<(), CoreError> {
        let connections = self.end()?;
        side_by_side(connections.into_iter().enumerate(), |(place, connection)| {
            let mut own = lock(&self.units[place]);
            own.idle = connection;
            own.opened(self, place).map(|_| ())
        })?;
        Ok(())
    }

    /// The end of the last epoch, or of all slices.
    fn end_all(&self) -> Result<(), CoreError> {
        self.end()?.into_iter().flatten().for_each(Connection::close);
        Ok(())
    }

    fn stopped(&self) -> CoreError {
        let error = self.base.outcome.error();
        error.unwrap_or_else(|| CoreError::new(ErrorKind::Cancelled, "the units of the flow were given up"))
    }
}

impl SharedUnit {
    fn opened(&mut self, units: &SharedUnits, place: usize) -> Result<&mut Unit, CoreError> {
        match &mut self.unit {
            Some(unit) => Ok(unit),
            // What is opened now nobody would end.
            None if units.base.outcome.stopped() => Err(units.stopped()),
            unopened => {
                let connection = match self.idle.take() {
                    Some(connection) => connection,
                    None => units.base.connect(place + 1)?,
                };
                let table = &units.base.sink.tables[place];
                // Whoever sends keeps the other streams from their rows for this table.
                Ok(unopened.insert(Unit::open(connection, table, true, units.remembered)?))
            }
        }
    }
}

/// The writer of one stream.
pub struct SharedWriter {
    units: Arc<SharedUnits>,
    encoder: Option<CopyEncoder>,
    /// Encoded rows of a batch for one table.
    encoded: Vec<u8>,
    /// Of the present slice: rows by place, where an earlier attempt has committed them.
    counted: HashMap<u32, u64>,
}

impl SharedWriter {
    /// A writer into these units.
    pub fn new(units: Arc<SharedUnits>) -> Self {
        SharedWriter { units, encoder: None, encoded: Vec::new(), counted: HashMap::new() }
    }

    fn take(&mut self, rows: &Placed, origin: Origin, meter: &StreamMeter) -> Result<(), CoreError> {
        let base = &self.units.base;
        let Some(encoder) = &mut self.encoder else { return Err(internal("a batch comes before its slice")) };
        for (place, part) in &rows.parts {
            if base.sink.tables[*place as usize].committed.contains_key(&origin.slice) {
                *self.counted.entry(*place).or_default() += part.len() as u64;
                continue;
            }
            self.encoded.clear();
            encoder
                .encode_rows(&rows.batch, part.clone(), usize::MAX, &mut self.encoded)
                .map_err(|error| internal(&format!("{error}")))?;
            self.units.append(&self.encoded, part.len(), Source { place: *place, origin }, meter)?;
            if self.encoded.capacity() > LONG_FRAME_BYTES {
                self.encoded = Vec::new();
            }
        }
        base.count(rows.batch.num_rows());
        Ok(())
    }
}

impl Writer for SharedWriter {
    fn begin_slice(&mut self, _slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        self.counted.clear();
        if self.encoder.is_none() {
            self.encoder = Some(encoder(&self.units.base.flow, &self.units.base.sink)?);
        }
        Ok(true)
    }

    fn write(&mut self, rows: Placed, origin: Origin, meter: &StreamMeter) -> Result<bool, CoreError> {
        let taken = self.take(&rows, origin, meter);
        self.units.base.or_stopped(taken)
    }

    fn end_slice(&mut self, account: &SliceReport) -> Result<(), CoreError> {
        let base = &self.units.base;
        for (place, table) in (0..).zip(&base.sink.tables) {
            let rows = self.counted.get(&place).copied().unwrap_or(0);
            if let Some(known) = check_counted(table, account.number, rows)? {
                base.confirm(known);
            }
        }
        // The second slice of a pair follows at once: what came out was that of the first.
        self.counted.clear();
        lock(&base.ended).push(account.clone());
        Ok(())
    }

    fn end_epoch(&mut self, meter: &StreamMeter) -> Result<bool, CoreError> {
        let _waiting = meter.pause(Doing::WaitDestination);
        let ended = self.units.end_epoch();
        self.units.base.or_stopped(ended)
    }

    /// The stream that comes last ends all units.
    fn finish(&mut self, meter: &StreamMeter) -> Result<bool, CoreError> {
        let units = &self.units;
        let all_ended = units.to_load > 0 && lock(&units.base.ended).len() == units.to_load;
        if !all_ended || units.is_ending.swap(true, Ordering::AcqRel) {
            return Ok(true);
        }
        let _waiting = meter.pause(Doing::WaitDestination);
        let ended = units.end_all();
        units.base.or_stopped(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_many_tables_stay_in_their_memory() {
        assert_eq!(frame_bytes(1), FRAME_BYTES);
        assert_eq!(frame_bytes(256), FRAME_BYTES);
        for tables in [257, 1000, 4096] {
            assert!(tables * COPY_BUFFERS * frame_bytes(tables) <= ALL_FRAMES_BYTES);
        }
        assert!(frame_bytes(1000) > 32_000);
        assert_eq!(frame_bytes(0), FRAME_BYTES);
    }
}
