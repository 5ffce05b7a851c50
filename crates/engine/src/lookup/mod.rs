//! Lookups: an index of the rows of files, of a query or of a table, read before the flow whose rows look for them; files by a
//! flow of their own, other rows from streams of Arrow batches, or sessions of a server.
//!
//! | file | job |
//! | --- | --- |
//! | `spec` | what it is made of, what it has become |
//! | `sink` | the sink of the flow that reads the rows of files |
//! | `stream` | the rows of a query or table |
//! | `arriving` | columns of a stream as columns of rows |
//! | `refused_rows` | rows of a query or table that cannot be those of a lookup |
//! | `refusals` | why there is no index, with the places of rows |

pub(crate) mod arriving;
mod refusals;
mod refused_rows;
mod sink;
mod spec;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, StringViewArray};
use headrace_transform::lookup::{
    AddedColumn, BuildError, Case, Duplicates, KeyColumn, LookupBuild, LookupIndex, LookupSpec as IndexSpec,
};
use headrace_types::{ColumnType, CoreError, ErrorKind};

use crate::flow::Flow;
use crate::key_column::parse_value;
use crate::rejects;
use crate::report::{FlowReport, SliceReport};
use crate::spec::{FlowSpec, KeepRejects, NoMatch, ProbeSpec, RejectSpec, SourceSpec};
use crate::text_hash::TextHash;
pub(crate) use refusals::text as key_text;
use refusals::{Places, Refusals};
use sink::{Columns, LookupSink};
use spec::Wanted;
pub use spec::{LookupColumn, LookupKey, LookupReport, LookupSpec, StreamLookupSpec};
pub use stream::Batches;
use stream::Failure;

const CANCELLED: &str = "building a lookup was cancelled";

/// Rows that can be found by their keys. All streams of a flow share one.
pub struct Lookup {
    index: LookupIndex,
    inputs: Vec<ColumnType>,
    added: Vec<ColumnType>,
    /// Of each added column, whether its default is NULL, and whether a row of the lookup has NULL.
    nulls: Vec<(bool, bool)>,
    report: LookupReport,
}

impl Lookup {
    /// Reads the files. Asks `is_cancelled` every few milliseconds, on the calling thread, until the last row is read.
    ///
    /// # Errors
    /// `Specification` for columns that the files have not, and keys and defaults that do not fit them; `Source` for a row
    /// that does not conform to the layout, and a key that two rows have; `Memory` at the first byte above the budget;
    /// those of reading files; `Cancelled`.
    pub fn build(spec: &LookupSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Self, CoreError> {
        let started = Instant::now();
        let begun = Begun::new(spec.wanted())?;
        let places = Places { files: Some(spec), keys: &begun.keys };
        let refusals = Refusals { wanted: &begun.wanted, places };
        let build = begun.build().map_err(|error| refusals.error(error, &[], is_cancelled))?;
        let sink = Arc::new(LookupSink::new(Columns::new(&begun.keys, &begun.added), build));
        let report = Flow::into_sink(flow_spec(spec), sink.clone())?.run(CANCELLED, is_cancelled)?;
        let (build, failure) = sink.ended();
        let build = match (failure, read_error(spec, &report), bad_row(spec, &report), build) {
            // A bad row is to be mended first: what its file needs is not known before.
            (Some(BuildError::OverBudget { .. }), _, Some(error), _) => return Err(error),
            (Some(failure), ..) => Err(failure),
            (None, Some(error), ..) | (None, None, Some(error), _) => return Err(error),
            (None, None, None, build) => build.ok_or(BuildError::Unfinished),
        };
        let index = build.and_then(|build| begun.index(build));
        let index = index.map_err(|error| refusals.error(error, &report.slices, is_cancelled))?;
        let sum = |count: fn(&SliceReport) -> u64| report.slices.iter().map(count).sum();
        let read = Read {
            rows: sum(|slice| slice.out),
            lines: sum(|slice| slice.lines),
            skipped: sum(|slice| slice.skipped),
            values_ignored: sum(|slice| slice.values_ignored),
            bytes: sum(|slice| slice.bytes),
        };
        begun.ended(index, &read, started, is_cancelled)
    }

    /// Reads the rows of a query or table, from all sources at once. Asks `is_cancelled` every few milliseconds, on the calling
    /// thread, until the last row is read; a stream that takes its time is to be stopped by whoever answers.
    ///
    /// # Errors
    /// As `build`; `Source` also for what a stream fails with, and for a value that Headrace does not know; those of a session.
    pub fn of_batches(
        spec: &StreamLookupSpec,
        sources: Vec<Batches>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Self, CoreError> {
        let started = Instant::now();
        let begun = Begun::new(spec.wanted())?;
        let places = Places { files: None, keys: &begun.keys };
        let refusals = Refusals { wanted: &begun.wanted, places };
        let build = begun.build().map_err(|error| refusals.error(error, &[], is_cancelled))?;
        let reader = stream::Reader::new(&begun.wanted, &spec.places, [&begun.keys, &begun.added]);
        let read = reader.read(&build, sources, is_cancelled);
        let index = match read {
            Ok(rows) => begun.index(build).map(|index| (index, rows)),
            Err(Failure::Build(error)) => Err(error),
            Err(Failure::Rows(error)) => return Err(error),
        };
        let (index, rows) = index.map_err(|error| refusals.error(error, &[], is_cancelled))?;
        let read = Read { rows, lines: rows, ..Read::default() };
        begun.ended(index, &read, started, is_cancelled)
    }

    /// What it has become.
    pub fn report(&self) -> &LookupReport {
        &self.report
    }

    /// The rows.
    pub(crate) fn index(&self) -> &LookupIndex {
        &self.index
    }

    /// Whether rows with keys of these types can look for others, and get these columns; a sentence if not.
    pub(crate) fn fits(&self, keys: &[ColumnType], spec: &ProbeSpec) -> Result<(), String> {
        let added = &spec.added;
        if self.inputs != keys {
            return Err("its keys are of other types than those of the index".to_owned());
        }
        if !added.iter().map(|column| column.column_type).eq(self.added.iter().copied()) {
            return Err("it adds other columns than the index has".to_owned());
        }
        let mut columns = std::iter::zip(added, &self.nulls);
        match columns.find(|(column, (default, _))| *default && !column.nullable && spec.no_match == NoMatch::Default) {
            None => Ok(()),
            Some((column, _)) => Err(format!("column `{}` cannot be NULL, and its default is", column.name)),
        }
    }

    /// Whether a row of it has NULL in an added column, by the column's place.
    pub(crate) fn has_null(&self, place: usize) -> bool {
        self.nulls[place].1
    }
}

/// What was read.
#[derive(Debug, Default)]
struct Read {
    rows: u64,
    lines: u64,
    skipped: u64,
    values_ignored: u64,
    bytes: u64,
}

/// An index whose columns are known.
struct Begun<'a> {
    wanted: Wanted<'a>,
    /// Indexes among all columns of its rows.
    keys: Vec<usize>,
    added: Vec<usize>,
}

impl<'a> Begun<'a> {
    fn new(wanted: Wanted<'a>) -> Result<Self, CoreError> {
        let find = |name: &String| {
            let index = wanted.rows.index_of(name);
            let have = if wanted.source == "files" { "have" } else { "has" };
            index.ok_or_else(|| refused(&wanted, format!("the {} {have} no column `{name}`", wanted.source)))
        };
        let keys = wanted.keys.iter().map(|key| find(&key.column)).collect::<Result<Vec<_>, _>>()?;
        let added = wanted.added.iter().map(|own| find(&own.column)).collect::<Result<Vec<_>, _>>()?;
        Ok(Begun { keys, added, wanted })
    }

    fn type_of(&self, index: usize) -> ColumnType {
        self.wanted.rows.columns()[index].column_type
    }

    fn build(&self) -> Result<LookupBuild, BuildError> {
        let wanted = &self.wanted;
        let key_columns = wanted.keys.iter().zip(&self.keys).map(|(key, index)| KeyColumn {
            lookup: self.type_of(*index),
            input: key.input,
            case: if wanted.ignores_case { Case::Ignore } else { Case::Exact },
        });
        let added_columns = wanted.added.iter().zip(&self.added).map(|(own, index)| {
            let column_type = self.type_of(*index);
            let default = own.default.as_deref().map(|text| value_of(column_type, text)).transpose()?;
            Ok(AddedColumn { column_type, default })
        });
        LookupBuild::new(IndexSpec {
            keys: key_columns.collect(),
            added: added_columns.collect::<Result<Vec<_>, BuildError>>()?,
            duplicates: if wanted.keeps_first { Duplicates::First } else { Duplicates::Error },
            budget_bytes: wanted.budget_bytes,
        })
    }

    fn index(&self, build: LookupBuild) -> Result<LookupIndex, BuildError> {
        build.finish(&|work: &(dyn Fn() + Sync)| side_by_side(self.wanted.streams, work))
    }

    fn ended(
        &self,
        index: LookupIndex,
        read: &Read,
        started: Instant,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Lookup, CoreError> {
        if is_cancelled() {
            return Err(CoreError::new(ErrorKind::Cancelled, CANCELLED));
        }
        check_rows(&self.wanted, read.rows, &index)?;
        let wanted = &self.wanted;
        let nulls = |(place, own): (usize, &LookupColumn)| (own.default.is_none(), index.added_nulls(place) > 0);
        Ok(Lookup {
            inputs: wanted.keys.iter().map(|key| key.input).collect(),
            added: self.added.iter().map(|index| self.type_of(*index)).collect(),
            nulls: wanted.added.iter().enumerate().map(nulls).collect(),
            report: LookupReport {
                rows: index.rows(),
                null_keys: index.null_keys(),
                duplicates: index.duplicates(),
                fingerprint: TextHash(index.fingerprint().0),
                lines: read.lines,
                skipped: read.skipped,
                values_ignored: read.values_ignored,
                bytes_read: read.bytes,
                form: index.form().to_string(),
                bytes: index.bytes(),
                peak_bytes: index.peak_bytes(),
                seconds: started.elapsed().as_secs_f64(),
            },
            index,
        })
    }
}

/// An array with the one value that a text means.
fn value_of(column_type: ColumnType, text: &str) -> Result<ArrayRef, BuildError> {
    // In a file the empty text would be NULL, and row ends those of rows.
    match column_type.is_text() {
        true => Ok(Arc::new(StringViewArray::from_iter_values([text]))),
        false => parse_value(column_type, text)
            .map_err(|_| BuildError::Specification(format!("the default {text:?} is no value of type {column_type}"))),
    }
}

fn flow_spec(spec: &LookupSpec) -> FlowSpec {
    let source = SourceSpec::of_files(&spec.files, &spec.slices);
    FlowSpec {
        rejects: RejectSpec { keep: KeepRejects::Examples, ..RejectSpec::default() },
        ..FlowSpec::plain(&spec.name, spec.layout.clone(), source, spec.streams, spec.memory.clone())
    }
}

/// Why not all rows were read.
fn read_error(spec: &LookupSpec, report: &FlowReport) -> Option<CoreError> {
    let error = report.error.clone()?;
    let what = match error.kind {
        ErrorKind::Cancelled => error.what,
        _ => format!("reading lookup `{}`: {}", spec.name, error.what),
    };
    Some(CoreError { what, ..error })
}

/// The first row that does not conform to the layout.
fn bad_row(spec: &LookupSpec, report: &FlowReport) -> Option<CoreError> {
    let error = rejects::error_of(&spec.layout, report.rejects.first.first()?);
    let what = format!("a row of lookup `{}` cannot be read: {}", spec.name, error.what);
    Some(CoreError { kind: ErrorKind::Source, what, ..error })
}

/// Every row that was read can be found, or has no key.
fn check_rows(wanted: &Wanted<'_>, read: u64, index: &LookupIndex) -> Result<(), CoreError> {
    let known = index.rows() + index.duplicates() + index.null_keys();
    if read == known {
        return Ok(());
    }
    let what = format!("the accounts of lookup `{}` do not balance", wanted.name);
    Err(CoreError::new(ErrorKind::Internal, what).found(format!("{read} rows were read, the index knows {known}")))
}

/// Calls the work on so many threads, or fewer if the system gives none: the caller does what they leave.
fn side_by_side(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for number in 1..threads {
            let thread = std::thread::Builder::new().name(format!("headrace-fill-{number}"));
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

fn refused(wanted: &Wanted<'_>, text: impl std::fmt::Display) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("lookup `{}`: {text}", wanted.name))
}
