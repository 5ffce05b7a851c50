//! Destinations in front of a join: they get rows of one side alone, in the same pass.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use headrace_engine::Window;
use headrace_engine::report::{DestinationCounts, FlowReport, SliceReport, Status};
use headrace_engine::spec::{FlowSpec, MemorySpec, RowsOf};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::beside::{Became, Said, answer, check_again, known, run, with_destinations};
use crate::joins::{Job, expected, pair};
use crate::support::join;

const PARTED: usize = 0;
const ENDS: usize = 1;
const ODD: usize = 2;
const LAST: usize = 3;

/// Left rows are asked for their ids, right ones and joined ones for their lines.
fn say(transform: usize, number: Option<i64>) -> Said {
    let number = number.unwrap_or(1);
    match transform {
        PARTED if number % 23 == 4 => Err("parted"),
        PARTED => Ok(Some(i32::from(number % 6 == 2 || (150..400).contains(&(number % 100_000))))),
        ENDS if number % 7 == 3 => Err("ends"),
        ENDS => Ok((number % 5 != 1).then_some(0)),
        // Some of them are refused behind the join, too.
        ODD if number % 17 == 3 => Err("odd"),
        ODD => Ok((number % 2 == 1).then_some(0)),
        _ if number % 11 == 3 || number % 170 == 3 => Err("last"),
        _ => Ok((number % 9 != 0).then_some(0)),
    }
}

/// The destinations in their order, and the side whose rows they get, if it is one alone.
const DESTINATIONS: [(&str, Option<usize>); 6] =
    [("odd", Some(1)), ("last", None), ("shut", Some(0)), ("ends", Some(0)), ("all", None), ("lines", Some(1))];

/// Left rows are parted: one part goes into the join, and through a query to a destination, the other one to another destination; right
/// rows go as they are into the join and to a destination, and to one through a query.
fn beside(job: &Job) -> FlowSpec {
    let mut spec = job.plan();
    let column = |name: &str, kind: &str, nullable: bool| json!({"name": name, "type": {"kind": kind}, "nullable": nullable, "from": name});
    let query = |name: &str, source: Option<usize>, input: Value, columns: &[Value]| json!({"name": name, "source": source, "inputs": [input], "query": {"number": "row", "columns": columns}});
    let of = |transform: Option<usize>, output: usize| json!({"transform": transform, "output": output});
    let lefts = [column("id", "int64", true), column("name", "string", false)];
    let rights = [column("of", "int32", true), column("line", "int64", false)];
    let joined = [column("id", "int64", true), column("name", "string", true), column("line", "int64", true)];
    spec.transforms = serde_json::from_value(json!([
        {"name": "parted", "source": 0, "inputs": [of(None, 0)], "split": {"number": "row", "outputs": 2}},
        query("ends", Some(0), of(Some(PARTED), 0), &lefts),
        query("odd", Some(1), of(None, 0), &rights),
        query("last", None, of(None, 0), &joined),
    ]))
    .unwrap();
    spec.join.as_mut().unwrap().last.inputs = vec![RowsOf { transform: Some(PARTED), output: 0 }, RowsOf::FIRST];
    let inputs =
        [of(Some(ODD), 0), of(Some(LAST), 0), of(Some(PARTED), 1), of(Some(ENDS), 0), of(None, 0), of(None, 0)];
    let mut all: Vec<Value> = DESTINATIONS
        .iter()
        .zip(inputs)
        .map(|((name, source), input)| {
            let columns: &[&str] = match source {
                None => &["id", "line"],
                Some(0) => &["id"],
                Some(_) => &["of", "line"],
            };
            let sink = json!({"kind": "arrow", "columns": columns});
            json!({"name": name, "input": input, "input_source": source, "sink": sink})
        })
        .collect();
    // A row without a key is refused by one destination of each side.
    all[3]["fit"] = json!([{"name": "id", "type": {"kind": "int64"}, "nullable": false}]);
    all[5]["routing"] = json!({"column": "of", "method": {"range": [{"minimum": null, "end": "500000"}]}});
    with_destinations(&mut spec, &all);
    spec.rejects.tell_destinations = true;
    spec
}

/// Values of the columns of a row that a destination gets.
type Row = Vec<Option<i64>>;

fn rows_of(_: usize, batch: &RecordBatch) -> Vec<Row> {
    let value = |column: usize, row: usize| {
        let own = batch.column(column);
        let wide = || own.as_primitive_opt::<Int64Type>().map(|own| own.value(row));
        own.is_valid(row).then(|| wide().unwrap_or_else(|| own.as_primitive::<Int32Type>().value(row).into()))
    };
    (0..batch.num_rows()).map(|row| (0..batch.num_columns()).map(|column| value(column, row)).collect()).collect()
}

fn run_join(spec: FlowSpec) -> (Vec<Vec<Row>>, FlowReport) {
    let answer = |window: Window| {
        let transform = window.transform;
        let key = if transform < ODD { "id" } else { "line" };
        answer(window, key, transform == PARTED, |number| say(transform, number));
    };
    run(spec, answer, rows_of)
}

/// What there is to expect.
#[derive(Default)]
struct Model {
    /// Rows of each destination.
    found: Vec<Vec<Row>>,
    /// For each row of a file that somebody has refused, by file and row, who lacks it.
    lacking: BTreeMap<(usize, usize), Vec<String>>,
    /// For each destination and side, rows left out and rejected.
    counts: Vec<[[u64; 2]; 2]>,
}

impl Model {
    fn refuse(&mut self, at: (usize, usize), destination: usize) {
        let lacking = self.lacking.entry(at).or_default();
        let name = DESTINATIONS[destination].0.to_owned();
        if !lacking.contains(&name) {
            lacking.push(name);
        }
    }

    /// Tells what has become of a row of a file on its way to a destination.
    fn tell(&mut self, destination: usize, at: (usize, usize), row: Row, became: Became, pairs: usize) {
        let side = usize::from(at.0 >= pairs);
        match became {
            Ok(true) => self.found[destination].push(row),
            Ok(false) => self.counts[destination][side][0] += 1,
            Err(_) => {
                self.counts[destination][side][1] += 1;
                self.refuse(at, destination);
            }
        }
    }

    fn of(pairs: &[(String, String)], kind: &str) -> Self {
        let mut own = Model {
            found: vec![Vec::new(); DESTINATIONS.len()],
            counts: vec![[[0; 2]; 2]; DESTINATIONS.len()],
            ..Model::default()
        };
        let number = |text: &str| text.parse::<i64>().ok();
        let goes = |said: Said| said.map(|said| said.is_some());
        for (index, (lefts, rights)) in pairs.iter().enumerate() {
            let (mut left_of_id, mut line_at) = (BTreeMap::new(), BTreeMap::new());
            let mut joins = String::new();
            for (row, text) in (1..).zip(lefts.lines()) {
                let (at, id) = ((index, row), number(text.split_once('|').unwrap().0));
                let parted = say(PARTED, id);
                let part = |output: i32| parted.map(|own| own == Some(output));
                let to_end = || match goes(say(ENDS, id))? {
                    true if id.is_none() => Err("no id"),
                    goes => Ok(goes),
                };
                own.tell(2, at, vec![id], part(1), pairs.len());
                own.tell(
                    3,
                    at,
                    vec![id],
                    part(0).and_then(|is_in| if is_in { to_end() } else { Ok(false) }),
                    pairs.len(),
                );
                match parted {
                    Err(_) => [1, 4].into_iter().for_each(|way| {
                        own.refuse(at, way);
                        own.counts[way][0][1] += 1;
                    }),
                    Ok(Some(0)) => {
                        joins += &format!("{text}\n");
                        left_of_id.insert(id, at);
                    }
                    Ok(_) => {}
                }
            }
            for (row, text) in (2..).zip(rights.lines().skip(1)) {
                let (of, line) = text.split_once(',').map(|(of, line)| (number(of), number(line))).unwrap();
                let at = (pairs.len() + index, row);
                line_at.entry((of, line)).or_insert_with(Vec::new).push(at);
                own.tell(0, at, vec![of, line], goes(say(ODD, line)), pairs.len());
                let has_place = of.is_some_and(|of| of < 500_000);
                own.tell(5, at, vec![of, line], if has_place { Ok(true) } else { Err("no partition") }, pairs.len());
            }
            // Lines are of one right row each.
            for (id, _, line) in expected(&(joins, rights.clone()), kind) {
                own.found[4].push(vec![id, line]);
                let of_line = |line| line_at.iter().find(|((of, own), _)| *own == line && (id.is_none() || *of == id));
                let at = match line {
                    Some(_) => of_line(line).unwrap().1[0],
                    None => left_of_id[&id],
                };
                match say(LAST, line) {
                    Ok(Some(_)) => own.found[1].push(vec![id, line]),
                    Ok(None) => own.counts[1][0][0] += 1,
                    Err(_) => {
                        own.counts[1][usize::from(line.is_some())][1] += 1;
                        own.refuse(at, 1);
                    }
                }
            }
        }
        own.found.iter_mut().for_each(|rows| rows.sort());
        let place = |name: &String| DESTINATIONS.iter().position(|own| own.0 == name);
        own.lacking.values_mut().for_each(|names| names.sort_by_key(place));
        own
    }
}

fn check(report: &FlowReport, model: &Model, job: &Job) {
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let pairs = job.pairs.len();
    let side = |slice: &SliceReport| usize::from(slice.file >= pairs);
    for (number, (name, source)) in DESTINATIONS.iter().enumerate() {
        let (mut out, mut counts) = (0, [[0; 2]; 2]);
        for slice in &report.slices {
            let own = slice.destinations[number];
            if source.is_some_and(|source| source != side(slice)) {
                assert_eq!(own, DestinationCounts::default(), "{name}: {slice:?}");
            } else if source.is_some() {
                assert_eq!(slice.rows, own.out + own.filtered + own.rejected, "{name}: {slice:?}");
            }
            out += own.out;
            let place = if source.is_none() { [0, side(slice)] } else { [side(slice); 2] };
            counts[place[0]][0] += own.filtered;
            counts[place[1]][1] += own.rejected;
        }
        assert_eq!((out, counts), (model.found[number].len() as u64, model.counts[number]), "{name}");
    }
    let mut behind = [0; 2];
    for slice in &report.slices {
        let (joined, in_front) = (slice.join.unwrap(), &slice.transforms[PARTED]);
        let elsewhere = if side(slice) == 0 { in_front.outputs.iter().sum() } else { 0 };
        // A row that is refused past the join alone comes to it all the same.
        let before = slice.rows - joined.rows - elsewhere;
        assert!(before <= slice.rejected - joined.rejected, "{slice:?}");
        behind[side(slice)] += joined.rejected;
    }
    // What does not come to the join lacks in all that stands behind it.
    let lacks = |names: &[String], own: &str| names.iter().any(|name| name == own);
    let is_behind = |names: &[String]| lacks(names, "last") && !lacks(names, "all");
    let wanted = |side: usize| {
        let of_side = |at: &(usize, usize)| usize::from(at.0 >= pairs) == side;
        model.lacking.iter().filter(|(at, names)| of_side(at) && is_behind(names)).count() as u64
    };
    assert_eq!(behind, [wanted(0), wanted(1)]);
    let path = job.folder.path().join("rejected.jsonl");
    let rejects = std::fs::read_to_string(path).unwrap();
    let mut told = BTreeMap::new();
    for reject in rejects.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let text = std::fs::read_to_string(reject["file"].as_str().unwrap()).unwrap();
        let row = reject["row"].as_u64().unwrap() as usize;
        let own = text.lines().nth(row - 1).unwrap();
        assert!(text[reject["row_byte"].as_u64().unwrap() as usize..].starts_with(own), "{reject}");
        let names = reject["destinations"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let file = reject["file_number"].as_u64().unwrap() as usize - 1;
        assert!(told.insert((file, row), names.collect::<Vec<_>>()).is_none(), "twice: {reject}");
    }
    assert_eq!(told, model.lacking);
    assert_eq!(report.rejects.count, model.lacking.len() as u64);
}

fn pairs() -> Vec<(String, String)> {
    (0..6).map(|number| pair(number, 60 + 120 * number)).collect()
}

#[test]
fn rows_of_sides_go_past_a_join_to_destinations_of_their_own() {
    for (kind, streams, block_bytes) in [("inner", 1, 4096), ("full", 16, 4096), ("right", 2, 1 << 20)] {
        let mut job = Job::of(pairs());
        (job.kind, job.streams, job.limit) = (kind, streams, 100_000);
        job.memory = MemorySpec { block_bytes, blocks: 2 * streams + 8, max_row_bytes: 1 << 20 };
        let model = Model::of(&job.pairs, kind);
        let spec = beside(&job);
        let (found, report) = run_join(spec.clone());
        check(&report, &model, &job);
        for (number, own) in found.iter().enumerate() {
            assert!(*own == model.found[number], "{}: {kind}, {streams} streams", DESTINATIONS[number].0);
        }
        assert!(model.lacking.values().any(|names| names[..] == ["odd", "last"]));

        // What some have committed is read again, compared, and sent to the others alone.
        let mut again = spec;
        let is_right = |slice: &SliceReport| slice.file >= job.pairs.len();
        again.source.committed = known(&report, 0, is_right);
        again.others[1].committed = known(&report, 2, |slice| !is_right(slice));
        again.others[3].committed = known(&report, 4, |_| true);
        let (resent, resumed) = run_join(again.clone());
        check_again(&resumed, &report);
        for (number, own) in resent.iter().enumerate() {
            let expected = if [0, 2, 4].contains(&number) { Vec::new() } else { found[number].clone() };
            assert!(*own == expected, "{}", DESTINATIONS[number].0);
        }
        // All of them: nothing is sent, and all is told as before.
        again.others[0].committed = known(&report, 1, |_| true);
        again.others[2].committed = known(&report, 3, |slice| !is_right(slice));
        again.others[4].committed = known(&report, 5, is_right);
        let (none, all_known) = run_join(again);
        check_again(&all_known, &report);
        assert!(none.iter().all(Vec::is_empty));
    }
}

#[test]
fn a_pair_that_one_destination_of_a_side_lacks_is_read_again() {
    let mut job = Job::of(pairs());
    (job.kind, job.streams, job.limit) = ("inner", 3, 100_000);
    job.memory.blocks = 14;
    let mut spec = beside(&job);
    // Nothing is refused, so that committed pairs need no look.
    (spec.transforms, spec.source.committed) = (Vec::new(), Default::default());
    spec.join.as_mut().unwrap().last.inputs = Vec::new();
    let columns = |names: &[&str]| json!({"kind": "arrow", "columns": names});
    with_destinations(
        &mut spec,
        &[
            json!({"name": "all", "input": {"transform": null}, "sink": columns(&["id", "line"])}),
            json!({"name": "lines", "input": {"transform": null}, "input_source": 1, "sink": columns(&["of", "line"])}),
        ],
    );
    let (found, report) = run_join(spec.clone());
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let lines = job.pairs.iter().map(|pair| pair.1.lines().count() - 1).sum::<usize>();
    assert_eq!(found[1].len(), lines);
    spec.source.committed = known(&report, 0, |_| true);
    spec.others[0].committed = known(&report, 1, |slice| slice.file >= 6 && slice.file != 9);
    let (again, resumed) = run_join(spec);
    assert_eq!(resumed.status, Status::Ok, "{:?}", resumed.error);
    assert!(again[0].is_empty());
    assert_eq!(again[1].len(), job.pairs[3].1.lines().count() - 1);
}

#[test]
fn one_destination_in_front_is_enough_for_a_join() {
    let mut job = Job::of(pairs());
    (job.streams, job.limit) = (2, 100_000);
    job.memory.blocks = 8;
    let mut spec = beside(&job);
    spec.others.clear();
    let (found, report) = run_join(spec.clone());
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let model = Model::of(&job.pairs, "full");
    assert!(found[0] == model.found[0]);
    assert!(report.slices.iter().all(|slice| slice.file >= 6 || slice.out == 0));

    (spec.input, spec.transforms) = (Some(RowsOf::FIRST), Vec::new());
    spec.join.as_mut().unwrap().last.inputs = Vec::new();
    let (found, report) = run_join(spec);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found[0].len(), job.pairs.iter().map(|pair| pair.1.lines().count() - 1).sum::<usize>());
}

#[test]
fn disorder_is_found_where_the_first_destination_stands_in_front() {
    let (lefts, rights) = pair(0, 50);
    let lines: Vec<&str> = rights.lines().collect();
    let swapped = [&lines[..1], &lines[20..], &lines[1..20]].concat().join("\n") + "\n";
    let mut job = Job::of(vec![(lefts, swapped)]);
    (job.limit, job.is_null) = (100_000, true);
    let mut spec = beside(&job);
    // Slices of the left side are none of its own.
    spec.source.left_out = std::iter::once(1).collect();
    let (_, report) = run_join(spec);
    let error = report.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Source);
    assert!(error.at.as_ref().is_some_and(|at| at.file.ends_with("right.0") && at.row.is_some()), "{error:?}");
}

#[test]
fn the_smallest_pool_is_enough_beside_a_join() {
    let mut job = Job::of((0..16).map(|number| pair(number, 700)).collect());
    (job.streams, job.limit, job.is_null) = (8, 100_000, true);
    job.memory.blocks = 16;
    let mut spec = job.plan();
    let sink = json!({"kind": "null"});
    let source = |own: usize| json!({"name": format!("of {own}"), "input": {"transform": null}, "input_source": own, "sink": sink});
    with_destinations(
        &mut spec,
        &[source(0), json!({"name": "all", "input": {"transform": null}, "sink": sink}), source(1)],
    );
    let flow = headrace_engine::Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(report.memory.overdraft_blocks, 0);
    let rows = |number: usize| report.destinations[number].sink.rows;
    let of_side =
        |side: fn(&SliceReport) -> bool| report.slices.iter().filter(|own| side(own)).map(|own| own.rows).sum::<u64>();
    assert_eq!([rows(0), rows(2)], [of_side(|own| own.file < 16), of_side(|own| own.file >= 16)]);
}
