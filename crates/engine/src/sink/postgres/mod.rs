//! Binary COPY into a PostgreSQL server, by *units*: a unit is one transaction of one connection into one table.
//!
//! | file | job |
//! | --- | --- |
//! | `unit` | a unit: rows into frames, the end of its COPY, errors with the place of their row |
//! | `remembered` | which rows of a COPY came from which text |
//! | `ledger` | commit rows of a unit's slices |
//! | `home` | a stream with a unit of its own, and one for strays (ways `plain` and `home`) |
//! | `shared` | a unit per table, fed by all streams (way `shared`) |
//! | `side_by_side` | the same for many connections, each of which mostly waits for the server |

mod home;
mod ledger;
mod remembered;
mod shared;
mod side_by_side;
mod unit;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headrace_types::{CoreError, ErrorKind};
use headrace_wire::postgres::CopyEncoder;

use self::home::HomeWriter;
use self::shared::{SharedUnits, SharedWriter};
use super::{Sink, Writer};
use crate::measure::WriterMeasure;
use crate::meter::Writers;
use crate::outcome::{Outcome, lock};
use crate::postgres::{Connection, ConnectionSpec, SeenAtWork};
use crate::queue::Group;
use crate::report::{SinkReport, SliceReport};
use crate::spec::{CommitTime, CopyTable, FlowSpec, PostgresSinkSpec, Way};
use crate::transforms::Transforms;

/// Tables of one server.
pub struct PostgresSink {
    base: Arc<Base>,
    /// Of way `shared`.
    units: Option<Arc<SharedUnits>>,
}

/// What all writers share.
struct Base {
    flow: Arc<FlowSpec>,
    sink: PostgresSinkSpec,
    transforms: Arc<Transforms>,
    /// The table of each slice; of way `shared` nothing.
    tables: HashMap<u32, usize>,
    outcome: Arc<Outcome>,
    writers: AtomicUsize,
    meters: Writers,
    /// Connections whose unit is complete and waits for [`Sink::commit`].
    complete: Mutex<Vec<Connection>>,
    /// Set when [`Sink::commit`] begins: from then on nobody may interrupt a connection.
    committing: Arc<AtomicBool>,
    seen_at_work: SeenAtWork,
    counters: Mutex<SinkReport>,
    /// Whether every stream has a thread that sends: with more streams than processors there is always somebody who encodes
    /// while others send, and a frame is sent while it is in the processor's cache (6 % of the client's time).
    overlaps: bool,
    /// Accounts of the slices that have ended: their lines need not be counted again.
    ended: Mutex<Vec<SliceReport>>,
}

impl PostgresSink {
    /// A sink for the flow's slices, whose rows have so many `places`.
    ///
    /// # Errors
    /// `Specification` for columns that the rows have not or that their forms cannot hold, slices without table, and
    /// tables that do not fit the way or the places.
    pub fn new(
        flow: &Arc<FlowSpec>,
        sink: &PostgresSinkSpec,
        transforms: Arc<Transforms>,
        places: Option<u32>,
        outcome: Arc<Outcome>,
    ) -> Result<Self, CoreError> {
        encoder(flow, sink)?;
        check_way(flow, sink, places)?;
        let base = Arc::new(Base {
            flow: flow.clone(),
            sink: sink.clone(),
            transforms,
            tables: if sink.way == Way::Shared { HashMap::new() } else { table_of_slices(flow, sink)? },
            outcome,
            writers: AtomicUsize::new(0),
            meters: Writers::default(),
            complete: Mutex::default(),
            committing: Arc::default(),
            seen_at_work: SeenAtWork::default(),
            counters: Mutex::new(SinkReport { confirmed: Some(0), ..SinkReport::default() }),
            overlaps: flow.streams <= std::thread::available_parallelism().map_or(1, usize::from),
            ended: Mutex::default(),
        });
        let units = (sink.way == Way::Shared).then(|| Arc::new(SharedUnits::new(base.clone())));
        Ok(PostgresSink { base, units })
    }
}

fn encoder(flow: &FlowSpec, sink: &PostgresSinkSpec) -> Result<CopyEncoder, CoreError> {
    let schema = flow.row_schema()?;
    let mut columns = Vec::with_capacity(sink.columns.len());
    for column in &sink.columns {
        let Some(index) = schema.index_of(&column.source) else {
            return Err(specification(format!("the rows have no column `{}`", column.source)));
        };
        columns.push((index, schema.columns()[index].column_type, column.form));
    }
    CopyEncoder::new(&columns).map_err(specification)
}

/// Whether the way, the places of the rows and the tables belong together.
fn check_way(flow: &FlowSpec, sink: &PostgresSinkSpec, places: Option<u32>) -> Result<(), CoreError> {
    let refuse = |text: String| Err(specification(text));
    let has_size = sink.commit_bytes.is_some() || sink.commit_rows.is_some();
    let has_epochs = !flow.source.epochs.is_empty();
    if (has_size || has_epochs) && sink.commit != CommitTime::Unit {
        return refuse("units that commit together cannot commit inside a load".to_owned());
    }
    if has_epochs && sink.way != Way::Shared {
        return refuse("epochs belong to way `shared`: a stream with units of its own ends them by itself".to_owned());
    }
    if has_size && sink.way == Way::Shared && !has_epochs {
        return refuse("way `shared` commits behind epochs, and there are none".to_owned());
    }
    if (sink.way == Way::Home) != sink.strays.is_some() {
        return refuse("a table of strays belongs to way `home`, and to no other".to_owned());
    }
    match (sink.way, places) {
        (Way::Plain, Some(_)) if sink.tables.len() > 1 => {
            return refuse(
                "rows that are routed need way `home` or `shared`, or one table that takes them all".to_owned(),
            );
        }
        (Way::Plain, _) => return Ok(()),
        (_, None) => return refuse("ways `home` and `shared` need rows that are routed".to_owned()),
        (_, Some(places)) if sink.tables.len() != places as usize => {
            return refuse(format!("{} tables for {places} partitions", sink.tables.len()));
        }
        _ => {}
    }
    if sink.way == Way::Shared {
        let all: HashSet<u32> = flow.source.slices.iter().map(|slice| slice.number).collect();
        let has_all = |table: &&CopyTable| table.slices.iter().copied().collect::<HashSet<_>>().is_superset(&all);
        if let Some(table) = sink.tables.iter().find(|table| !has_all(table)) {
            return refuse(format!("table {} has not all slices, as way `shared` needs it", table.name));
        }
    }
    Ok(())
}

/// The one table that has each slice.
fn table_of_slices(flow: &FlowSpec, sink: &PostgresSinkSpec) -> Result<HashMap<u32, usize>, CoreError> {
    let mut tables = HashMap::new();
    for (index, table) in sink.tables.iter().enumerate() {
        if let Some(slice) = table.slices.iter().find(|slice| tables.insert(**slice, index).is_some()) {
            return Err(specification(format!("slice {slice} belongs to two tables")));
        }
    }
    if let Some(slice) = flow.source.slices.iter().find(|slice| !tables.contains_key(&slice.number)) {
        return Err(specification(format!("slice {} belongs to no table", slice.number)));
    }
    let is_torn = |unit: &&Group| unit.iter().any(|slice| tables[&slice.number] != tables[&unit[0].number]);
    match flow.units().iter().find(is_torn) {
        Some(unit) => Err(specification(format!("the pair of slice {} belongs to two tables", unit[0].number))),
        None => Ok(tables),
    }
}

fn specification(text: String) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("postgres sink: {text}"))
}

fn internal(text: &str) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("postgres sink: {text}"))
}

impl Sink for PostgresSink {
    fn writer(&self) -> Box<dyn Writer> {
        match &self.units {
            None => Box::new(HomeWriter::new(self.base.clone())),
            Some(units) => Box::new(SharedWriter::new(units.clone())),
        }
    }

    fn groups(&self, units: Vec<Group>) -> Vec<Group> {
        let base = &self.base;
        let mut owned: Vec<Group> = vec![Vec::new(); base.sink.tables.len()];
        let mut groups = Vec::new();
        for unit in units {
            let table = unit.first().and_then(|slice| base.tables.get(&slice.number));
            match table.filter(|table| base.sink.tables[**table].owned) {
                Some(table) => owned[*table].extend(unit),
                None => groups.push(unit),
            }
        }
        groups.extend(owned.into_iter().filter(|group| !group.is_empty()));
        groups
    }

    fn by_place(&self) -> bool {
        self.base.sink.way != Way::Plain
    }

    fn report(&self) -> SinkReport {
        lock(&self.base.counters).clone()
    }

    fn writers(&self) -> Vec<WriterMeasure> {
        self.base.meters.measure()
    }

    fn commit(&self) -> Result<(), CoreError> {
        // Taken at once: who abandons them meanwhile finds none, and waits for nothing.
        let complete = {
            let mut complete = lock(&self.base.complete);
            if let Some(error) = self.base.outcome.error() {
                return Err(error);
            }
            self.base.committing.store(true, Ordering::Release);
            std::mem::take(&mut *complete)
        };
        for mut connection in complete {
            connection.commit()?;
            connection.close();
        }
        Ok(())
    }

    fn seen_at_work(&self, processes: &[i32]) {
        self.base.seen_at_work.add(processes);
    }

    fn abandon(&self) {
        if let Some(units) = &self.units {
            units.abort();
        }
        // The server rolls back and frees their locks, for which the caller's next statement might wait.
        std::mem::take(&mut *lock(&self.base.complete)).into_iter().for_each(Connection::close);
    }
}

impl Base {
    /// A number for the connections of a writer.
    fn next_writer(&self) -> usize {
        self.writers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A connection of the writer with that number.
    fn connect(&self, number: usize) -> Result<Connection, CoreError> {
        let own = &self.sink.connection;
        let application_name = format!("{} w{number}", own.application_name);
        let (outcome, committing) = (self.outcome.clone(), self.committing.clone());
        let interrupt = move || outcome.stopped() && !committing.load(Ordering::Acquire);
        let spec = ConnectionSpec { application_name, ..own.clone() };
        let mut connection = Connection::connect(&spec, Arc::new(interrupt))?;
        connection.trust(self.seen_at_work.clone());
        let meter = self.meters.add(number, connection.process_id(), connection.transport());
        connection.measure_by(meter);
        Ok(connection)
    }

    /// Commits a complete unit, unless that waits for [`Sink::commit`]. The connection, if it is free.
    fn commit(&self, mut connection: Connection) -> Result<Option<Connection>, CoreError> {
        match self.sink.commit {
            CommitTime::Unit => {
                connection.commit()?;
                Ok(Some(connection))
            }
            CommitTime::Together => {
                lock(&self.complete).push(connection);
                Ok(None)
            }
        }
    }

    /// What fails after the flow was stopped is a consequence of that.
    fn or_stopped(&self, result: Result<(), CoreError>) -> Result<bool, CoreError> {
        match result {
            Ok(()) => Ok(true),
            Err(_) if self.outcome.stopped() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Counts a batch of `rows` rows.
    fn count(&self, rows: usize) {
        let mut counters = lock(&self.counters);
        counters.batches += 1;
        counters.rows += rows as u64;
    }

    /// Counts rows that the server has confirmed, now or in an earlier attempt.
    fn confirm(&self, rows: u64) {
        *lock(&self.counters).confirmed.get_or_insert(0) += rows;
    }
}
