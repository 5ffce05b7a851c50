//! A unit: a transaction on its way, and its COPY.

use std::ops::Range;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind, Location, ServerFields};
use headrace_wire::postgres::CopyEncoder;

use super::ledger::{SliceRows, commit_slices};
use super::remembered::Remembered;
use super::{Base, internal};
use crate::joined_row::{self, JoinedRow};
use crate::locate::{Counted, locate};
use crate::meter::{Doing, StreamMeter};
use crate::outcome::lock;
use crate::postgres::{Connection, CopyIn};
use crate::sink::Origin;
use crate::spec::{CopyTable, Way};

/// Text of one CopyData message. The server's cost per byte falls up to 64 KB and not beyond; larger ones save the client
/// system calls.
pub const FRAME_BYTES: usize = 128 * 1024;

/// A frame of this size holds a row that did not fit a block. It is waited for, while the flow's large-row memory is still
/// held: only one such row is on its way, however many writers there are.
pub const LONG_FRAME_BYTES: usize = 1 << 20;

/// Deferred constraints speak up here, not at a COMMIT that follows those of other writers.
const CHECK_NOW: &str = "SET CONSTRAINTS ALL IMMEDIATE";

/// Classes of SQLSTATE that can meet a COPY at any row: connection lost, deadlock, no resources, locks, shutdown and
/// cancellation, the server's system, a defect of its own.
const NOT_ABOUT_A_ROW: [&str; 8] = ["08", "40", "53", "55", "57", "58", "XX", "F0"];

/// A transaction on its way.
pub struct Unit {
    copy: CopyIn,
    frame: Vec<u8>,
    rows: u64,
    batches: Remembered,
}

/// Where rows stand.
#[derive(Clone, Copy)]
pub struct Source {
    /// Their place.
    pub place: u32,
    /// Their text, in which they are all rows of the place.
    pub origin: Origin,
}

impl Unit {
    /// Begins a transaction and the COPY into the table. `overlaps`: a thread sends, while the next rows are encoded. Places of
    /// at most `remembered` stretches of text are kept.
    pub fn open(
        mut connection: Connection,
        table: &CopyTable,
        overlaps: bool,
        remembered: usize,
    ) -> Result<Unit, CoreError> {
        connection.execute(&table.begin)?;
        let copy = &table.copy;
        let mut copy = if overlaps { connection.copy_in(copy) } else { connection.copy_in_directly(copy) }?;
        let mut frame = copy.buffer()?;
        frame.extend_from_slice(CopyEncoder::header());
        Ok(Unit { copy, frame, rows: 0, batches: Remembered::new(remembered) })
    }

    /// Encodes rows of a batch and sends every full frame.
    pub fn encode(
        &mut self,
        base: &Base,
        encoder: &mut CopyEncoder,
        batch: &RecordBatch,
        rows: Range<usize>,
        source: Source,
        meter: &StreamMeter,
    ) -> Result<(), CoreError> {
        self.batches.add(self.rows, source.place, source.origin);
        self.rows += rows.len() as u64;
        let Range { start: mut from, end } = rows;
        while from < end {
            from = encoder
                .encode_rows(batch, from..end, FRAME_BYTES, &mut self.frame)
                .map_err(|error| internal(&format!("{error}")))?;
            if self.frame.len() >= FRAME_BYTES {
                let _waiting = meter.pause(Doing::WaitDestination);
                self.send().map_err(|error| self.explained(base, error))?;
            }
        }
        Ok(())
    }

    /// Appends encoded rows, in frames of at most `frame_bytes` that take no more memory than that.
    pub fn append(
        &mut self,
        base: &Base,
        mut bytes: &[u8],
        rows: usize,
        source: Source,
        frame_bytes: usize,
        meter: &StreamMeter,
    ) -> Result<(), CoreError> {
        self.batches.add(self.rows, source.place, source.origin);
        self.rows += rows as u64;
        while !bytes.is_empty() {
            let room = frame_bytes.saturating_sub(self.frame.len());
            self.frame.reserve_exact(room);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() >= frame_bytes {
                let _waiting = meter.pause(Doing::WaitDestination);
                self.send().map_err(|error| self.explained(base, error))?;
            }
        }
        Ok(())
    }

    /// Passes a full frame on: nearly all of that is waiting.
    fn send(&mut self) -> Result<(), CoreError> {
        let next = self.copy.buffer()?;
        let is_long = self.frame.len() > LONG_FRAME_BYTES;
        self.copy.send(std::mem::replace(&mut self.frame, next))?;
        if is_long { self.copy.wait_until_sent() } else { Ok(()) }
    }

    /// Sends the last rows, so that the server can work on them before somebody waits for [`Unit::end`].
    pub fn send_last(&mut self, base: &Base) -> Result<(), CoreError> {
        self.frame.extend_from_slice(CopyEncoder::trailer());
        self.send().map_err(|error| self.explained(base, error))
    }

    /// Ends the COPY behind [`Unit::send_last`] and writes commit rows, each for a partition. Then the transaction can be
    /// committed.
    pub fn end(
        self,
        base: &Base,
        table: &CopyTable,
        commits: &[(&str, Vec<SliceRows>)],
    ) -> Result<Connection, CoreError> {
        let Unit { copy, frame: _, rows, batches } = self;
        let (mut connection, confirmed) = copy.finish().map_err(|error| explained(base, &batches, error))?;
        if confirmed != rows {
            let what = format!("the server counted other rows of {} than it was sent", table.name);
            return Err(CoreError::new(ErrorKind::Internal, what)
                .found(confirmed.to_string())
                .expected(rows.to_string()));
        }
        connection.execute(CHECK_NOW)?;
        if let Some(statement) = &base.sink.commit_slices {
            for (partition, slices) in commits {
                commit_slices(&mut connection, statement, partition, slices)?;
            }
        }
        base.confirm(confirmed);
        Ok(connection)
    }

    /// Gives units up, side by side: how many there are makes no difference to who waits for that.
    pub fn abort_all(units: impl IntoIterator<Item = Unit>) {
        let copies = units.into_iter().map(|unit| unit.copy).collect();
        // Those that are left are closed.
        drop(CopyIn::abort_all(copies, "the load was stopped"));
    }

    fn explained(&self, base: &Base, error: CoreError) -> CoreError {
        explained(base, &self.batches, error)
    }
}

fn is_about_a_row(server: &ServerFields) -> bool {
    // What ends the session can come at any row too, whatever its class.
    let ends_session = matches!(server.severity.as_str(), "FATAL" | "PANIC");
    !ends_session && !NOT_ABOUT_A_ROW.iter().any(|class| server.sqlstate.starts_with(class))
}

/// The error of a server about a row, with the row's place.
fn explained(base: &Base, batches: &Remembered, error: CoreError) -> CoreError {
    let server = error.server.as_ref().filter(|server| is_about_a_row(server));
    let line = server.and_then(|server| server.copy_line());
    let found = line.and_then(|line| line.checked_sub(1)).and_then(|row| batches.find(row));
    let place = found.map(|(origin, place, row)| base.locate(origin, row, place));
    match place {
        Some(Ok(Some(location))) => error.at(location),
        _ => error,
    }
}

impl Base {
    /// The place in its file of a row of a text, or of a pair, only rows of one place counted; in way `plain` all rows that some
    /// place takes.
    fn locate(&self, origin: Origin, row: u64, place: u32) -> Result<Option<Location>, CoreError> {
        let place = (self.sink.way != Way::Plain).then_some(place);
        if let Some(join) = &self.flow.join {
            let wanted = JoinedRow { slice: origin.slice, row, place };
            return Ok(joined_row::locate(&self.flow, join, &self.transforms, &self.outcome, wanted));
        }
        let ended = lock(&self.ended).clone();
        locate(&self.flow, &ended, origin, row, Counted { columns: None, transforms: &self.transforms, place })
    }
}
