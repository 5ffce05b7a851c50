//! The place of a joined row that a destination has refused. It stands in several files: the unit is read and joined once more, by one
//! stream, with the places of all its rows as columns that are made. The transforms never see these: which rows pass those behind the last
//! join is asked here, and those in front of joins they go past.

use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use headrace_transform::join::Side;
use headrace_types::{CoreError, ErrorKind, Location, MadeColumn, MadeFrom};

use crate::flow::Flow;
use crate::locate::rows_that_go;
use crate::meter::StreamMeter;
use crate::outcome::{Outcome, lock};
use crate::routing::Router;
use crate::sink::{Origin, Placed, Sink, Writer};
use crate::spec::{
    FlowSpec, JoinColumn, JoinSpec, KeepRejects, MemorySpec, RejectSpec, RowsOf, SinkSpec, SliceSpec, SourceSpec,
};
use crate::transforms::Transforms;

/// What the made columns of a source hold.
const MADE: [MadeFrom; 2] = [MadeFrom::RowNumber, MadeFrom::ByteOffset];

/// Row and byte of the one of each source; none of one that is missing.
type Places = Vec<Option<[u64; 2]>>;

/// A row of a unit, as the server tells it.
#[derive(Debug, Clone, Copy)]
pub struct JoinedRow {
    /// The unit's first slice.
    pub slice: u32,
    /// Its number, from 0, among those of the unit that went to the place.
    pub row: u64,
    /// The place; none for all of them.
    pub place: Option<u32>,
}

/// Where a row stands: at its right row, if it has one, which of a joined one is that of the last source, and beside it the places of the
/// others. All files, if it is not found any more.
pub fn locate(
    spec: &FlowSpec,
    join: &JoinSpec,
    transforms: &Arc<Transforms>,
    outcome: &Outcome,
    wanted: JoinedRow,
) -> Option<Location> {
    let unit = join.units(&spec.source).into_iter().find(|unit| unit[0].number == wanted.slice)?;
    // What the error is about matters more than why its place is not known.
    let found = find(spec, &unit, transforms, outcome, wanted).ok().flatten();
    let at = |slice: &SliceSpec| {
        let path = spec.source.files[slice.file].path.clone();
        let place = match &found {
            None => [None, None],
            Some(places) => places.get(spec.source_of_file(slice.file)).copied().flatten()?.map(Some),
        };
        let [row, byte] = place;
        Some(Location { file: path, row, byte, joined_with: None })
    };
    beside(unit.iter().filter_map(at).collect())
}

/// Row and byte of the one of each source.
fn find(
    spec: &FlowSpec,
    unit: &[SliceSpec],
    transforms: &Arc<Transforms>,
    outcome: &Outcome,
    wanted: JoinedRow,
) -> Result<Option<Places>, CoreError> {
    let alone = FlowSpec {
        source: SourceSpec { slices: unit.to_vec(), committed: Default::default(), ..spec.source.clone() },
        // In front of joins they are those of the load, too.
        transforms: spec.transforms[..spec.fronts()].to_vec(),
        routing: None,
        destination: String::new(),
        input: Some(RowsOf::FIRST),
        input_source: None,
        fit: Vec::new(),
        others: Vec::new(),
        sink: SinkSpec::Null,
        streams: 1,
        affinity: Vec::new(),
        memory: MemorySpec { blocks: spec.sources_together(), ..spec.memory.clone() },
        rejects: RejectSpec { keep: KeepRejects::Examples, ..RejectSpec::default() },
        ..spec.clone()
    };
    let (alone, first) = with_places(alone)?;
    let fronts = Arc::new(transforms.fronts_alone());
    let (transforms, router) = (transforms.clone(), Router::of(spec)?);
    let sink = Arc::new(FindRow { wanted, first, transforms, router, found: Mutex::new(None) });
    let flow = Flow::with_fronts(alone, fronts, Arc::new(FindSink(sink.clone())))?;
    // Behind the row nobody reads on: what the report says then does not matter.
    flow.run("the flow was stopped", &mut || outcome.stopped() || lock(&sink.found).is_some())?;
    let found = lock(&sink.found).take();
    Ok(found)
}

/// The last place, with the others beside it.
fn beside(mut places: Vec<Location>) -> Option<Location> {
    let last = places.pop()?;
    let shown = |place: Location| match place.row {
        Some(row) => format!("{}, row {row}", place.file),
        None => place.file,
    };
    let others: Vec<String> = places.into_iter().map(shown).collect();
    Some(Location { joined_with: (!others.is_empty()).then(|| others.join("; ")), ..last })
}

/// The flow with the places of all rows behind the columns of joined rows; the index of the first of these, two of each source.
fn with_places(mut spec: FlowSpec) -> Result<(FlowSpec, usize), CoreError> {
    let first = spec.first_schema()?.columns().len();
    let FlowSpec { join: Some(join), layout, .. } = &mut spec else { return Ok((spec, first)) };
    join.beside = MADE.len();
    // Names of a package have no control characters.
    let name = |source: usize, from: &MadeFrom| format!("\u{1}{source} {from:?}");
    for source in 0..join.leaves() {
        let made = MADE.map(|from| MadeColumn { name: name(source, &from), from });
        join.layout_mut(layout, source).made.extend(made);
    }
    let internal = |text: String| CoreError::new(ErrorKind::Internal, text);
    let leaves = join.leaves_of_feeds().map_err(internal)?;
    for meeting in join.meetings_mut() {
        for (feed, side) in meeting.sides.into_iter().zip(Side::BOTH) {
            let names = leaves[feed].clone().flat_map(|source| MADE.map(|from| name(source, &from)));
            meeting.columns.extend(names.map(|name| JoinColumn { side: side.into(), column: name.clone(), name }));
        }
    }
    Ok((spec, first))
}

/// Looks at the rows that come, and drops them.
struct FindRow {
    wanted: JoinedRow,
    /// Index of the first column with places.
    first: usize,
    /// Those of the load.
    transforms: Arc<Transforms>,
    router: Option<Router>,
    found: Mutex<Option<Places>>,
}

struct FindSink(Arc<FindRow>);

impl Sink for FindSink {
    fn writer(&self) -> Box<dyn Writer> {
        Box::new(FindWriter { sink: self.0.clone(), before: 0 })
    }

    fn keeps_rejects(&self) -> bool {
        false
    }

    fn hashes_texts(&self) -> bool {
        false
    }
}

struct FindWriter {
    sink: Arc<FindRow>,
    /// Rows that have gone to the place.
    before: u64,
}

impl Writer for FindWriter {
    fn write(&mut self, rows: Placed, _origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let FindRow { wanted, first, transforms, router, found } = self.sink.as_ref();
        let internal = |error| CoreError::new(ErrorKind::Internal, format!("joined rows: {error}"));
        let joined = rows.batch.project(&(0..*first).collect::<Vec<_>>()).map_err(internal)?;
        let left = rows_that_go(joined, transforms, router.as_ref(), wanted.place)?;
        if let Some(&row) = wanted.row.checked_sub(self.before).and_then(|row| left.get(row as usize)) {
            *lock(found) = Some(places(&rows.batch, *first, row as usize));
            return Ok(false);
        }
        self.before += left.len() as u64;
        Ok(true)
    }
}

/// Those of a row of the batch.
fn places(batch: &RecordBatch, first: usize, row: usize) -> Places {
    let value = |column: usize| {
        let values = batch.column(column).as_primitive_opt::<Int64Type>()?;
        values.is_valid(row).then(|| values.value(row) as u64)
    };
    let columns = (first..batch.num_columns()).step_by(MADE.len());
    columns.map(|column| Some([value(column)?, value(column + 1)?])).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use arrow_array::{ArrayRef, Int64Array, UInt32Array};
    use serde_json::{Value, json};

    use super::*;
    use crate::transforms::Window;

    fn file(folder: &Path, name: &str, text: &str) -> Value {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        json!({
            "path": path.to_str().unwrap(),
            "size_bytes": text.len(),
            "modified_ns": crate::source::modified_ns(&metadata),
            "inode": std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }

    fn column(name: &str, from: Option<&str>) -> Value {
        json!({"name": name, "type": {"kind": "int64"}, "nullable": true, "from": from})
    }

    fn query(name: &str, source: Option<usize>, columns: &[Value]) -> Value {
        let query = json!({"number": "row", "columns": columns});
        json!({"name": name, "source": source, "inputs": [{"transform": null}], "query": query})
    }

    fn layout(names: [&str; 2]) -> Value {
        let column = |name: &str| json!({"name": name, "type": {"kind": "int64"}, "nullable": false});
        json!({"delimiter": "|", "columns": names.map(column)})
    }

    fn joined(side: &str, name: &str) -> Value {
        json!({"side": side, "column": name, "name": name})
    }

    /// Ids from 1, and lines from 1, of which three each are of one id.
    fn people_and_lines() -> [(&'static str, String); 2] {
        let lefts = (1..=6).map(|id| format!("{id}|{}\n", 10 * id)).collect();
        let rights = (1..=18).map(|line| format!("{}|{line}\n", 2 * ((line + 2) / 3))).collect();
        [("left", lefts), ("right", rights)]
    }

    /// A flow of one unit of these files into nothing.
    fn flow(folder: &Path, texts: &[(&str, String)], layout: &Value, join: &Value, transforms: &[Value]) -> FlowSpec {
        let slice = |(index, (_, text)): (usize, &(&str, String))| json!({"number": index + 1, "file": index, "begin_byte": 0, "end_byte": text.len()});
        let files: Vec<_> = texts.iter().map(|(name, text)| file(folder, name, text)).collect();
        let slices: Vec<_> = texts.iter().enumerate().map(slice).collect();
        serde_json::from_value(json!({
            "name": "load",
            "layout": layout,
            "source": {"files": files, "slices": slices},
            "join": join,
            "transforms": transforms,
            "sink": {"kind": "null"},
            "streams": 1,
            "memory": {"block_bytes": 4096, "blocks": texts.len(), "max_row_bytes": 4096},
            "rejects": {"limit": 0},
        }))
        .unwrap()
    }

    /// Queries on both sides, and behind the join.
    fn spec(folder: &Path) -> FlowSpec {
        let sources = [
            json!({"name": "people", "first_file": 0}),
            json!({"name": "lines", "layout": layout(["of", "line"]), "first_file": 1}),
        ];
        let join = json!({
            "name": "joined", "sides": [0, 1], "sources": sources, "inputs": [{"transform": 0}, {"transform": 1}],
            "kind": "inner", "keys": [["key", "of"]], "columns": [joined("left", "size"), joined("right", "line")],
        });
        let transforms = [
            query("keyed", Some(0), &[column("key", None), column("size", Some("size"))]),
            query("odd", Some(1), &[column("of", Some("of")), column("line", Some("line"))]),
            query("last", None, &[column("line", Some("line"))]),
        ];
        flow(folder, &people_and_lines(), &layout(["id", "size"]), &join, &transforms)
    }

    /// The same, joined with owners of some sizes: the last query stands between both joins.
    fn spec_of_two_joins(folder: &Path) -> FlowSpec {
        let sources = [
            json!({"name": "owners", "first_file": 0}),
            json!({"name": "people", "layout": layout(["id", "size"]), "first_file": 1}),
            json!({"name": "lines", "layout": layout(["of", "line"]), "first_file": 2}),
        ];
        let inner = json!({
            "name": "joined", "sides": [1, 2], "inputs": [{"transform": 0}, {"transform": 1}],
            "kind": "inner", "keys": [["key", "of"]], "columns": [joined("left", "size"), joined("right", "line")],
        });
        let join = json!({
            "name": "owned", "sides": [0, 3], "inputs": [{"transform": null}, {"transform": 2}], "sources": sources,
            "inner": [inner], "kind": "right", "keys": [["of", "size"]], "columns": [joined("left", "owner"), joined("right", "line")],
        });
        let transforms = [
            query("keyed", Some(1), &[column("key", None), column("size", Some("size"))]),
            query("odd", Some(2), &[column("of", Some("of")), column("line", Some("line"))]),
            query("last", Some(3), &[column("line", Some("line")), column("size", Some("size"))]),
        ];
        let owners = ("owners", "5|1\n10|2\n40|3\n".to_owned());
        let texts: Vec<_> = std::iter::once(owners).chain(people_and_lines()).collect();
        flow(folder, &texts, &layout(["of", "owner"]), &join, &transforms)
    }

    /// Ids that three does not divide go on with another key; of lines the odd ones, and behind the join those that five does not divide.
    fn answer(window: Window) {
        let value = |column: usize, row: usize| window.rows.column(column).as_primitive::<Int64Type>().value(row);
        let goes = |row: &usize| match window.transform {
            0 => value(0, *row) % 3 != 0,
            1 => value(1, *row) % 2 != 0,
            _ => value(1, *row) % 5 != 0,
        };
        let kept: Vec<usize> = (0..window.rows.num_rows()).filter(goes).collect();
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(kept.iter().map(|row| *row as u32)));
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(kept.iter().map(|row| 2 * value(0, *row))));
        let columns =
            if window.transform == 0 { vec![("key", keys), ("row", numbers)] } else { vec![("row", numbers)] };
        window.answer(Ok(vec![RecordBatch::try_from_iter(columns).unwrap()]));
    }

    /// The lines that are left behind the queries, and where rows of the join are found, more of them than there are.
    fn found(spec: &FlowSpec) -> (Vec<u64>, Vec<Location>) {
        spec.check().unwrap();
        let outcome = Arc::new(Outcome::default());
        let transforms = Arc::new(Transforms::new(spec, Vec::new(), outcome.clone()).unwrap());
        let place = |row: u64| {
            let wanted = JoinedRow { slice: 1, row, place: None };
            locate(spec, spec.join.as_ref().unwrap(), &transforms, &outcome, wanted).unwrap()
        };
        let has_ended = AtomicBool::new(false);
        let found: Vec<Location> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(window) = transforms.windows().next(|| has_ended.load(Ordering::Relaxed)) {
                    answer(window);
                }
            });
            let found = (0..7).map(place).collect();
            has_ended.store(true, Ordering::Relaxed);
            found
        });
        let divided = |line: u64, by: u64| line.is_multiple_of(by);
        let goes = |line: &u64| !divided(*line, 2) && !divided(*line, 5) && !divided(line.div_ceil(3), 3);
        let lines: Vec<u64> = (1..=18).filter(goes).collect();
        assert_eq!(lines, [1, 3, 11, 13]);
        // There are no more of them: the files are all that is known.
        assert!(found[lines.len()..].iter().all(|own| own.row.is_none()));
        (lines, found)
    }

    /// Where a row of a file stands, and its first byte.
    fn check(folder: &Path, line: u64, own: &Location, others: String) {
        let text = std::fs::read_to_string(folder.join("right")).unwrap();
        let bytes = text.lines().take(line as usize - 1).map(|own| own.len() as u64 + 1).sum();
        assert!(own.file.ends_with("right"));
        assert_eq!((own.row, own.byte), (Some(line), Some(bytes)));
        assert_eq!(own.joined_with, Some(others));
    }

    #[test]
    fn a_row_is_found_behind_queries_in_front_of_its_sides() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, found) = found(&spec(folder.path()));
        let left = folder.path().join("left").display().to_string();
        for (line, own) in lines.iter().zip(&found) {
            check(folder.path(), *line, own, format!("{left}, row {}", line.div_ceil(3)));
        }
        assert_eq!(found[lines.len()].joined_with, Some(left));
    }

    #[test]
    fn a_row_of_two_joins_is_found_in_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, found) = found(&spec_of_two_joins(folder.path()));
        let [owners, left] = ["owners", "left"].map(|name| folder.path().join(name).display().to_string());
        for (line, own) in lines.iter().zip(&found) {
            let row = line.div_ceil(3);
            let owner = match row {
                1 => format!("{owners}, row 2; "),
                4 => format!("{owners}, row 3; "),
                _ => String::new(), // it has none
            };
            check(folder.path(), *line, own, format!("{owner}{left}, row {row}"));
        }
        assert_eq!(found[lines.len()].joined_with, Some(format!("{owners}; {left}")));
    }
}
