//! Why there is no index, as people read it: with the places of the rows that are to blame.

use std::sync::Arc;

use headrace_transform::lookup::{BuildError, Duplicate, KeyValue, RowPlace};
use headrace_types::{ColumnType, CoreError, ErrorKind, Location};

use super::spec::Wanted;
use super::{CANCELLED, LookupSpec, flow_spec};
use crate::flow::Flow;
use crate::rejects::shown;
use crate::report::SliceReport;
use crate::row_position::RowPosition;
use crate::sink::locate::LocateSink;
use crate::sink::values::render;
use crate::spec::SinkSpec;

/// Of one lookup.
pub struct Refusals<'a> {
    pub wanted: &'a Wanted<'a>,
    pub places: Places<'a>,
}

/// Where rows stand.
pub struct Places<'a> {
    /// None for rows of a query, which stand nowhere.
    pub files: Option<&'a LookupSpec>,
    /// Indexes of the key columns among all columns of the rows.
    pub keys: &'a [usize],
}

impl Refusals<'_> {
    /// The error of the flow's user. `ended`: accounts of the slices that were read. Rows are looked for in the files, until
    /// `is_cancelled` says so.
    pub fn error(&self, error: BuildError, ended: &[SliceReport], is_cancelled: &mut dyn FnMut() -> bool) -> CoreError {
        let Wanted { name, source, .. } = self.wanted;
        let mut places = |rows: &[RowPlace]| self.places.of(rows, ended, is_cancelled);
        match error {
            BuildError::Duplicate(duplicate) => match places(&[duplicate.second, duplicate.first]) {
                Ok(places) => self.duplicate(&duplicate, &places),
                Err(error) => error,
            },
            BuildError::KeyTooLong { place, bytes } => match places(&[place]) {
                Ok(places) => located(
                    ErrorKind::Source,
                    format!("a key of lookup `{name}` is too long"),
                    places.first().and_then(Option::as_ref),
                )
                .found(format!("{bytes} bytes"))
                .expected("less than 65,536 bytes")
                .hint("Look rows up by a shorter column."),
                Err(error) => error,
            },
            BuildError::OverBudget { needed_bytes, budget_bytes } => {
                let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
                let what = format!("lookup `{name}` needs more memory than the run has for it");
                CoreError::new(ErrorKind::Memory, what)
                    .found(format!("{} MB, and more to come", megabytes(needed_bytes)))
                    .expected(format!("at most {} MB", megabytes(budget_bytes)))
                    .hint("Set a larger `memory` in the package.")
            }
            BuildError::TooManyRows => {
                CoreError::new(ErrorKind::Source, format!("lookup `{name}` has more rows than can be numbered"))
                    .expected("less than 4,294 million rows, in 4,095 parts of up to 1,048,576")
                    .hint(format!("Leave rows out of its {source}."))
            }
            BuildError::Crowded => CoreError {
                retryable: true,
                ..CoreError::new(ErrorKind::Internal, format!("lookup `{name}`: {error}"))
                    .hint("Run again: its keys are arranged otherwise each time.")
            },
            BuildError::Specification(_) => super::refused(self.wanted, error),
            BuildError::Array(_) | BuildError::KeyOutside(_) | BuildError::Unfinished | BuildError::Internal(_) => {
                CoreError::new(ErrorKind::Internal, format!("lookup `{name}`: {error}"))
            }
        }
    }

    fn duplicate(&self, duplicate: &Duplicate, places: &[Option<Location>]) -> CoreError {
        let rows = &self.wanted.rows;
        let values = self.places.keys.iter().zip(&duplicate.key).map(|(index, value)| {
            let column = &rows.columns()[*index];
            format!("{} = {}", column.name, text(column.column_type, value))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let [second, first] = [0, 1].map(|place| places.get(place).cloned().flatten());
        let row = |place: &Location| place.row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
        let earlier = first.map(|first| match second.as_ref().is_some_and(|second| second.file == first.file) {
            true => format!(", first in {}", row(&first)),
            false => format!(", first in {}, {}", first.file, row(&first)),
        });
        let more = match duplicate.rows {
            0 | 1 => String::new(),
            rows => format!("; {rows} rows repeat a key"),
        };
        located(ErrorKind::Source, format!("two rows of lookup `{}` have one key", self.wanted.name), second.as_ref())
            .found(format!("{values}{}{more}", earlier.unwrap_or_default()))
            .expected("each key once")
            .hint(format!("Leave all rows but one of each key out of the {}.", self.wanted.source))
    }
}

impl Places<'_> {
    /// Where rows stand: the files are read once more.
    fn of(
        &self,
        rows: &[RowPlace],
        ended: &[SliceReport],
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Option<Location>>, CoreError> {
        let Some(files) = self.files else { return Ok(Vec::new()) };
        let rows: Vec<_> = rows.iter().map(|place| RowPosition::first(place.slice).plus(place.row)).collect();
        let mut spec = flow_spec(files);
        spec.sink = SinkSpec::Locate { rows: rows.clone(), ended: ended.to_vec() };
        spec.leave_out_unwanted();
        let sink = LocateSink::new(&Arc::new(spec.clone()), &rows, ended, Some(self.wanted(files)), Arc::default());
        let report = Flow::into_sink(spec, Arc::new(sink))?.run(CANCELLED, is_cancelled)?;
        match report.error {
            Some(error) => Err(error),
            None => Ok(report.sink.places.unwrap_or_default()),
        }
    }

    /// The columns that were read: where another one does not convert, there was a row.
    fn wanted(&self, files: &LookupSpec) -> Vec<usize> {
        let added = files.added.iter().filter_map(|own| files.layout.index_of(&own.column));
        let mut wanted: Vec<_> = self.keys.iter().copied().chain(added).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

fn located(kind: ErrorKind, what: String, place: Option<&Location>) -> CoreError {
    place.cloned().into_iter().fold(CoreError::new(kind, what), CoreError::at)
}

/// A value of a key, as people read it.
pub fn text(column_type: ColumnType, value: &KeyValue) -> String {
    match (value, column_type) {
        (KeyValue::Number(number), ColumnType::Bool) => (*number != 0).to_string(),
        (KeyValue::Number(number), _) => render(column_type, *number),
        (KeyValue::Text(text), _) => shown(text),
        (KeyValue::Bytes(_), _) => value.to_string(),
    }
}
