//! Files of two sources whose rows meet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, mpsc};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use headrace_engine::report::{DestinationCounts, FlowReport, JoinCounts, SliceReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{CommittedSlice, FlowSpec, MemorySpec, RejectSpec, RowsOf, SinkSpec, SourceSpec};
use headrace_engine::{BatchReader, Failure, FailureKind, Flow};
use headrace_types::{Column, ColumnType, CoreError, ErrorKind, Layout};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{PATIENCE, core_error, join};

/// id int64, nullable | name string.
fn left_layout() -> Layout {
    Layout {
        delimiter: "|".to_owned(),
        columns: vec![Column::new("id", ColumnType::Int64, true), Column::new("name", ColumnType::String, false)],
        ..Layout::default()
    }
}

/// of int32, nullable; line int64; of another dialect.
fn right_layout() -> Layout {
    Layout {
        delimiter: ",".to_owned(),
        comment: Some("#".to_owned()),
        skip_lines: 1,
        columns: vec![Column::new("of", ColumnType::Int32, true), Column::new("line", ColumnType::Int64, false)],
        ..Layout::default()
    }
}

/// Left ids of a text.
pub fn left(ids: impl IntoIterator<Item = Option<u64>>) -> String {
    ids.into_iter().map(|id| id.map_or("|nobody\n".to_owned(), |id| format!("{id}|name of {id}\n"))).collect()
}

/// Right rows of a text: what they are of, and their numbers.
pub fn right(rows: impl IntoIterator<Item = (Option<u64>, u64)>) -> String {
    let line = |(of, line): (Option<u64>, u64)| format!("{},{line}\n", of.map_or(String::new(), |of| of.to_string()));
    format!("of,line\n{}", rows.into_iter().map(line).collect::<String>())
}

/// Files in pairs, and what is done with them.
pub struct Job {
    pub folder: TempDir,
    pub pairs: Vec<(String, String)>,
    pub kind: &'static str,
    pub streams: usize,
    pub memory: MemorySpec,
    pub limit: u64,
    pub is_null: bool,
    pub transforms: Value,
    pub routing: Option<Value>,
    /// Rows, rejects, skipped lines and rows left out of slices that an earlier attempt has committed.
    pub committed: Vec<(u32, [u64; 4])>,
}

pub fn committed([loaded, rejected, skipped, filtered]: [u64; 4]) -> CommittedSlice {
    CommittedSlice { loaded, rejected, skipped, filtered, ..CommittedSlice::default() }
}

pub type Row = (Option<i64>, Option<String>, Option<i64>);

impl Job {
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Job {
            folder: TempDir::new().unwrap(),
            pairs,
            kind: "full",
            streams: 1,
            memory: MemorySpec { block_bytes: 4096, blocks: 4, max_row_bytes: 1 << 20 },
            limit: 0,
            is_null: false,
            transforms: json!([]),
            routing: None,
            committed: Vec::new(),
        }
    }

    fn side(&self, name: &str, texts: Vec<&String>, layout: Layout) -> SourceSpec {
        let path = |index| self.folder.path().join(format!("{name}.{index}")).to_str().unwrap().to_owned();
        texts.iter().enumerate().for_each(|(index, text)| std::fs::write(path(index), text).unwrap());
        let files = (0..texts.len()).map(path).collect();
        let slicing = SlicingSpec { files, slice_bytes: 1 << 30, layout, ..SlicingSpec::default() };
        let slicing = plan_slices(&slicing).unwrap();
        serde_json::from_value(json!({"files": slicing.files, "slices": slicing.slices})).unwrap()
    }

    pub fn plan(&self) -> FlowSpec {
        let mut source = self.side("left", self.pairs.iter().map(|pair| &pair.0).collect(), left_layout());
        let other = self.side("right", self.pairs.iter().map(|pair| &pair.1).collect(), right_layout());
        let (files, slices) = (source.files.len(), source.slices.len() as u32);
        source.files.extend(other.files);
        source.slices.extend(other.slices.into_iter().map(|mut slice| {
            slice.file += files;
            slice.number += slices;
            slice
        }));
        source.committed = self.committed.iter().map(|&(slice, counts)| (slice, committed(counts))).collect();
        let column = |side: &str, name: &str| json!({"side": side, "column": name, "name": name});
        let columns = vec!["id".to_owned(), "name".to_owned(), "line".to_owned()];
        FlowSpec {
            name: "test".to_owned(),
            layout: left_layout(),
            source,
            join: serde_json::from_value(json!({
                "name": "joined", "sides": [0, 1],
                "sources": [
                    {"name": "people", "first_file": 0},
                    {"name": "lines", "layout": right_layout(), "first_file": files},
                ],
                "kind": self.kind, "keys": [["id", "of"]],
                "columns": [column("left", "id"), column("left", "name"), column("right", "of"), column("right", "line")],
            }))
            .unwrap(),
            union: None,
            transforms: serde_json::from_value(self.transforms.clone()).unwrap(),
            routing: self.routing.clone().map(|routing| serde_json::from_value(routing).unwrap()),
            destination: String::new(),
            input: None,
            input_source: None,
            fit: Vec::new(),
            others: Vec::new(),
            sink: match self.is_null {
                true => SinkSpec::Null,
                false => SinkSpec::Arrow { columns, position: None, place_column: None },
            },
            streams: self.streams,
            affinity: vec![],
            memory: self.memory.clone(),
            rejects: RejectSpec {
                limit: Some(self.limit),
                folder: self.folder.path().to_str().unwrap().to_owned(),
                file_stem: "rejected".to_owned(),
                ..RejectSpec::default()
            },
        }
    }

    /// The joined rows in the order of batches, and how the flow went.
    fn run(&self) -> (Result<Vec<Row>, CoreError>, FlowReport) {
        let flow = Flow::new(self.plan()).unwrap();
        let reader = flow.take_reader();
        flow.start().unwrap();
        let found = std::thread::scope(|scope| {
            scope.spawn(|| answer_windows(&flow));
            reader.into_iter().flatten().try_fold(Vec::new(), |mut all, batch| {
                all.extend(rows_of(&batch.map_err(core_error)?));
                Ok(all)
            })
        });
        let report = join(&flow);
        if report.status == Status::Ok {
            check(&report);
        }
        (found, report)
    }
}

pub fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let [ids, lines] = [0, 2].map(|column| batch.column(column).as_primitive::<Int64Type>().clone());
    let names = batch.column(1).as_string_view();
    let row = |row: usize| {
        let name = names.is_valid(row).then(|| names.value(row).to_owned());
        let [id, line] = [&ids, &lines].map(|column| column.is_valid(row).then(|| column.value(row)));
        (id, name, line)
    };
    (0..batch.num_rows()).map(row).collect()
}

/// A query through which rows pass as they are; what becomes of them, their lines decide.
fn choosing() -> Value {
    let column = |name: &str, kind: &str| json!({"name": name, "type": {"kind": kind}, "nullable": true, "from": name});
    let columns = [column("id", "int64"), column("name", "string"), column("line", "int64")];
    json!([{"name": "chosen", "query": {"number": "row", "columns": columns}}])
}

/// Whether the query gives the row; an error if it fails with it.
fn chosen(line: Option<i64>) -> Result<bool, &'static str> {
    match line.map_or(2, |line| line % 5) {
        0 => Ok(false),
        1 => Err("a line of one"),
        _ => Ok(true),
    }
}

fn answer_windows(flow: &Flow) {
    while let Some(window) = flow.next_window() {
        let lines = window.rows.column(3).as_primitive::<Int64Type>();
        let numbers = window.rows.column(4).as_primitive::<UInt32Type>();
        let own: Result<Vec<bool>, _> = lines.iter().map(chosen).collect();
        let answer = own.map(|own| {
            let kept = numbers.values().iter().zip(own).filter(|(_, own)| *own).map(|(number, _)| *number);
            let kept: ArrayRef = Arc::new(UInt32Array::from_iter_values(kept));
            vec![RecordBatch::try_from_iter([("row", kept)]).unwrap()]
        });
        window.answer(answer.map_err(|text| Failure { kind: FailureKind::Row, text: text.to_owned() }));
    }
}

/// What holds for every flow that ended well.
fn check(report: &FlowReport) {
    let (mut out, mut sent) = (0, 0);
    for slice in &report.slices {
        let JoinCounts { rows, unmatched, filtered, null_keys, rejected } = slice.join.unwrap();
        assert_eq!(slice.lines, slice.rows + slice.skipped, "{slice:?}");
        assert_eq!(slice.rows, slice.rejected - rejected + rows, "{slice:?}");
        assert!(null_keys <= unmatched && unmatched <= rows && (filtered == 0 || filtered == unmatched), "{slice:?}");
        out += slice.out;
        sent += if slice.committed { 0 } else { slice.out };
    }
    let filtered = report.slices.iter().flat_map(|slice| &slice.transforms).map(|own| own.filtered).sum::<u64>();
    assert_eq!(sum(report, |slice| slice.filtered), filtered);
    assert_eq!(report.sink.rows, sent);
    assert_eq!(report.streams.iter().map(|stream| stream.rows).sum::<u64>(), sum(report, |slice| slice.rows));
    assert_eq!(report.streams.iter().map(|stream| stream.bytes).sum::<u64>(), sum(report, |slice| slice.bytes));
    assert_eq!(report.streams.iter().map(|stream| stream.slices).sum::<u64>(), report.slices.len() as u64);
    assert_eq!(report.streams.iter().map(|stream| stream.stages.write.rows).sum::<u64>(), out);
}

fn sum(report: &FlowReport, value: fn(&headrace_engine::report::SliceReport) -> u64) -> u64 {
    report.slices.iter().map(value).sum()
}

/// Of all slices of a side.
pub fn counts(report: &FlowReport, pairs: usize, is_right: bool) -> JoinCounts {
    let slices = report.slices.iter().filter(|slice| (slice.file >= pairs) == is_right);
    slices.map(|slice| slice.join.unwrap()).fold(JoinCounts::default(), |sum, own| JoinCounts {
        rows: sum.rows + own.rows,
        unmatched: sum.unmatched + own.unmatched,
        filtered: sum.filtered + own.filtered,
        null_keys: sum.null_keys + own.null_keys,
        rejected: sum.rejected + own.rejected,
    })
}

/// Ids of a pair, of which each third has no right row, and right rows, of which some are of nobody.
pub fn pair(number: u64, ids: u64) -> (String, String) {
    let begin = number * 100_000;
    let lefts = (begin..begin + ids).flat_map(|id| if id % 50 == 7 { vec![None, Some(id)] } else { vec![Some(id)] });
    let rights = (begin..begin + ids + 5).filter(|id| id % 3 != 0).flat_map(|id| {
        let own = (0..id % 5).map(move |line| (Some(id), 10 * id + line));
        own.chain((id % 40 == 2).then_some((None, id)))
    });
    (left(lefts), right(rights))
}

/// The same by a map.
pub fn expected(pair: &(String, String), kind: &str) -> Vec<Row> {
    let number = |text: &str| text.parse::<i64>().ok();
    let mut lines: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut rows = Vec::new();
    let rights = pair.1.lines().skip(1).map(|line| line.split_once(',').unwrap());
    for (of, line) in rights.map(|(of, line)| (number(of), number(line))) {
        match of {
            Some(of) => lines.entry(of).or_default().extend(line),
            None if kind == "right" || kind == "full" => rows.push((None, None, line)),
            None => {}
        }
    }
    for (id, name) in pair.0.lines().map(|line| line.split_once('|').unwrap()) {
        let (id, name) = (number(id), Some(name.to_owned()));
        match id.and_then(|id| lines.remove(&id)) {
            Some(lines) => rows.extend(lines.into_iter().map(|line| (id, name.clone(), Some(line)))),
            None if kind == "left" || kind == "full" => rows.push((id, name, None)),
            None => {}
        }
    }
    if kind == "right" || kind == "full" {
        rows.extend(lines.into_values().flatten().map(|line| (None, None, Some(line))));
    }
    rows
}

pub fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

#[test]
fn rows_of_all_pairs_meet_whatever_the_streams() {
    let pairs: Vec<_> = (0..20).map(|number| pair(number, 100 * (number % 7))).collect();
    for kind in ["inner", "left", "right", "full"] {
        let wanted = sorted(pairs.iter().flat_map(|pair| expected(pair, kind)).collect());
        for (streams, block_bytes) in [(1, 4096), (16, 4096), (3, 1 << 20)] {
            let mut job = Job::of(pairs.clone());
            // As few blocks as the streams hold.
            job.memory = MemorySpec { block_bytes, blocks: 2 * streams, max_row_bytes: 1 << 20 };
            (job.kind, job.streams) = (kind, streams);
            let (found, report) = job.run();
            assert_eq!(sorted(found.unwrap()), wanted, "{kind}, {streams} streams");
            let (left, right) = (counts(&report, 20, false), counts(&report, 20, true));
            assert_eq!(left.filtered > 0, kind == "inner" || kind == "right");
            assert_eq!(right.filtered > 0, kind == "inner" || kind == "left");
            assert!(left.null_keys > 0 && right.null_keys > 0);
            let matched = right.rows - right.unmatched;
            let alone = left.unmatched - left.filtered + right.unmatched - right.filtered;
            assert_eq!(matched + alone, report.sink.rows);
        }
    }
}

#[test]
fn the_smallest_pool_is_enough_where_nobody_waits_for_input() {
    let mut job = Job::of((0..32).map(|number| pair(number, 900)).collect());
    (job.streams, job.is_null) = (16, true);
    job.memory.blocks = 32;
    let (_, report) = job.run();
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(report.memory.overdraft_blocks, 0);
    let columns = report.columns.unwrap();
    assert_eq!(columns.iter().map(|own| own.name.as_str()).collect::<Vec<_>>(), ["id", "name", "of", "line"]);
    assert!(columns.iter().all(|own| own.rows == report.sink.rows && own.nulls > 0));
}

#[test]
fn rows_longer_than_a_block_are_no_deadlock() {
    // Both sides of a pair need the one large memory at once.
    let long = |id: u64| format!("{id}|{}\n", "n".repeat(20_000));
    let line = |id: u64| format!("{id},{}7\n", "0".repeat(9_000));
    let pair = |ids: std::ops::Range<u64>| {
        (ids.clone().map(long).collect(), format!("of,line\n{}", ids.map(line).collect::<String>()))
    };
    let mut job = Job::of(vec![pair(0..9), pair(9..18)]);
    (job.streams, job.is_null) = (2, true);
    job.kind = "inner";
    let (_, report) = job.run();
    assert_eq!((report.status, report.sink.rows), (Status::Ok, 18), "{:?}", report.error);
}

#[test]
fn rejects_stand_in_their_own_files() {
    let lefts = "1|a\nx|b\n3|c\n".to_owned();
    let rights = "of,line\n# nothing\n1,11\n2,12\n3,no\n3,13\n".to_owned();
    let mut job = Job::of(vec![(left([Some(0)]), right([(Some(0), 1)])), (lefts, rights)]);
    (job.kind, job.limit) = ("inner", 2);
    let (found, report) = job.run();
    let row = |id, name: &str, line| (Some(id), Some(name.to_owned()), Some(line));
    assert_eq!(sorted(found.unwrap()), [row(0, "name of 0", 1), row(1, "a", 11), row(3, "c", 13)]);
    let told = report.rejects.first.iter().map(|reject| {
        let file = reject.file.rsplit('/').next().unwrap().to_owned();
        (file, reject.row, reject.column.clone().unwrap(), reject.column_number.unwrap(), reject.value.clone())
    });
    let told: Vec<_> = told.into_iter().collect();
    let reject = |file: &str, row, column: &str, number, value: &str| {
        (file.to_owned(), row, column.to_owned(), number, value.to_owned())
    };
    assert_eq!(told, [reject("left.1", 2, "id", 1, "x"), reject("right.1", 5, "line", 2, "no")]);
    let by_column: Vec<_> = report.rejects.by_column.iter().map(|kind| kind.column.clone().unwrap()).collect();
    assert_eq!(by_column, ["id", "line"]);
    job.limit = 0;
    let error = job.run().1.error.unwrap();
    assert_eq!(error.kind, ErrorKind::RejectLimit);
}

/// A place for lines from this one on alone.
fn from_line(number: u64) -> Option<Value> {
    Some(json!({"column": "line", "method": {"range": [{"minimum": number.to_string(), "end": null}]}}))
}

#[test]
fn rows_refused_behind_a_join_are_rejects_of_the_rows_that_they_stand_for() {
    let pairs: Vec<_> = (0..6).map(|number| pair(number, 90 * number)).collect();
    let rows: Vec<_> = pairs.iter().flat_map(|pair| expected(pair, "full")).collect();
    let (wanted, refused): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.2.is_some_and(|n| n >= 1000));
    assert!(refused.iter().any(|row| row.2.is_some()) && refused.iter().any(|row| row.2.is_none()));
    for (streams, block_bytes) in [(1, 4096), (16, 4096), (2, 1 << 20)] {
        let mut job = Job::of(pairs.clone());
        job.memory = MemorySpec { block_bytes, blocks: 2 * streams, max_row_bytes: 1 << 20 };
        (job.streams, job.routing, job.limit) = (streams, from_line(1000), 100_000);
        let (found, report) = job.run();
        assert_eq!(sorted(found.unwrap()), sorted(wanted.clone()));
        let (left, right) = (counts(&report, 6, false), counts(&report, 6, true));
        assert_eq!((left.rejected + right.rejected) as usize, refused.len());
        assert_eq!(left.rejected as usize, refused.iter().filter(|row| row.2.is_none()).count());
        assert_eq!(report.rejects.by_rule["partition"] as usize, refused.len());
        // Each is a row of its own, whose bytes are kept; the field is to blame where there is one.
        let lines = std::fs::read_to_string(job.folder.path().join("rejected.jsonl")).unwrap();
        let rejects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut numbers = Vec::new();
        for reject in &rejects {
            let text = std::fs::read_to_string(reject["file"].as_str().unwrap()).unwrap();
            let row = text.lines().nth(reject["row"].as_u64().unwrap() as usize - 1).unwrap();
            assert!(text[reject["row_byte"].as_u64().unwrap() as usize..].starts_with(row));
            let is_left = row.contains('|');
            assert_eq!(reject["column"].as_str(), if is_left { None } else { Some("line") });
            if is_left {
                assert_eq!(reject["message"].as_str().unwrap().matches("by `line` of `lines`").count(), 1, "{reject}");
            }
            numbers.push(row.to_owned());
        }
        let shown = |(id, name, line): &Row| match line {
            Some(line) => line.to_string(),
            None => format!("{}|{}", id.map_or(String::new(), |id| id.to_string()), name.clone().unwrap()),
        };
        let last =
            |row: &String| if row.contains('|') { row.clone() } else { row.split(',').nth(1).unwrap().to_owned() };
        let mut told: Vec<_> = numbers.iter().map(last).collect();
        let mut asked: Vec<_> = refused.iter().map(shown).collect();
        told.sort();
        asked.sort();
        assert_eq!(told, asked);
        job.limit = 0;
        assert_eq!(job.run().1.error.unwrap().kind, ErrorKind::RejectLimit);
    }
}

#[test]
fn rows_pass_a_query_behind_a_join_or_are_left_out_or_rejected() {
    let pairs: Vec<_> = (0..6).map(|number| pair(number, 90 * number)).collect();
    let rows: Vec<_> = pairs.iter().flat_map(|pair| expected(pair, "full")).collect();
    let (wanted, others): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(|row| chosen(row.2) == Ok(true));
    let failed: Vec<i64> = others.iter().filter(|row| chosen(row.2).is_err()).filter_map(|row| row.2).collect();
    for (streams, block_bytes) in [(1, 4096), (16, 4096), (2, 1 << 20)] {
        let mut job = Job::of(pairs.clone());
        job.memory = MemorySpec { block_bytes, blocks: 2 * streams, max_row_bytes: 1 << 20 };
        (job.streams, job.transforms, job.limit) = (streams, choosing(), 100_000);
        let (found, report) = job.run();
        assert_eq!(sorted(found.unwrap()), sorted(wanted.clone()));
        assert_eq!(counts(&report, 6, false).rejected, 0);
        assert_eq!(counts(&report, 6, true).rejected as usize, failed.len());
        assert_eq!(sum(&report, |slice| slice.filtered) as usize, rows.len() - wanted.len() - failed.len());
        // The reject is the right row, which has the line.
        let lines = std::fs::read_to_string(job.folder.path().join("rejected.jsonl")).unwrap();
        let line = |reject: &str| {
            let reject: Value = serde_json::from_str(reject).unwrap();
            assert_eq!((&reject["code"], &reject["column"]), (&json!("HR603"), &Value::Null));
            assert!(reject["message"].as_str().unwrap().ends_with("transform `chosen`: a line of one"), "{reject}");
            let text = std::fs::read_to_string(reject["file"].as_str().unwrap()).unwrap();
            let row = text.lines().nth(reject["row"].as_u64().unwrap() as usize - 1).unwrap();
            row.split_once(',').unwrap().1.parse::<i64>().unwrap()
        };
        let mut told: Vec<_> = lines.lines().map(line).collect();
        let mut asked = failed.clone();
        told.sort_unstable();
        asked.sort_unstable();
        assert_eq!(told, asked);
        job.limit = 0;
        assert_eq!(job.run().1.error.unwrap().kind, ErrorKind::RejectLimit);
    }
}

#[test]
fn committed_pairs_are_read_for_their_rejects_and_nothing_of_them_is_sent() {
    let pairs: Vec<_> = (0..3).map(|number| pair(number, 200)).collect();
    let mut job = Job::of(pairs.clone());
    (job.routing, job.limit, job.is_null, job.transforms) = (from_line(1000), 100_000, true, choosing());
    let whole = job.run().1;
    assert!(whole.slices[1].filtered > 0);
    let known = |slice: &headrace_engine::report::SliceReport| {
        (slice.number, [slice.out, slice.rejected, slice.skipped, slice.filtered])
    };
    job.committed = whole.slices.iter().filter(|slice| slice.file % 3 == 1).map(known).collect();
    let again = job.run().1;
    assert_eq!(again.status, Status::Ok, "{:?}", again.error);
    assert_eq!((again.rejects.count, again.slices.len()), (whole.rejects.count, 6));
    assert_eq!(again.sink.rows, whole.sink.rows - whole.slices[1].out);
    for (then, now) in whole.slices.iter().zip(&again.slices) {
        assert_eq!((then.join, then.out, then.rejected, then.lines), (now.join, now.out, now.rejected, now.lines));
        assert_eq!(now.committed, now.file % 3 == 1);
    }
    // Another number than then.
    for place in [0, 3] {
        job.committed[0].1[place] += 1;
        let error = job.run().1.error.unwrap();
        assert_eq!(error.what, "slice 2 has other rows than when an earlier attempt committed it");
        job.committed[0].1[place] -= 1;
    }
}

#[test]
fn the_first_row_against_the_order_is_named() {
    let many = |end: u64| (0..end).map(Some).collect::<Vec<_>>();
    // Rows before it that are rejected, comments, a header; the row before it is in another block.
    let lines = |last: u64| {
        let mut text = right((0..2000).map(|id| (Some(id), id)));
        text.push_str(&format!("1999,x\n# nothing\n,5\n{last},7\n"));
        text
    };
    let mut repeated = left(many(1500));
    repeated.push_str("x|bad\n|nobody\n1499|again\n");
    for (pair, row, before, file, what, found) in [
        (
            (left(many(10)), lines(1998)),
            2005,
            2001,
            "right.0",
            "rows of `lines` are not in the order that join `joined` needs",
            "of = 1998 behind of = 1999 of row 2001",
        ),
        (
            (repeated, right([])),
            1503,
            1500,
            "left.0",
            "two rows of `people`, the left side of join `joined`, have one key",
            "id = 1499, as row 1500",
        ),
    ] {
        let mut job = Job::of(vec![pair]);
        (job.kind, job.limit, job.routing) = ("inner", 9, from_line(0));
        let (failed, report) = job.run();
        let error = report.error.unwrap();
        assert_eq!(failed.unwrap_err(), error);
        assert_eq!((error.kind, error.what.as_str(), error.found.as_deref()), (ErrorKind::Source, what, Some(found)));
        let at = error.at.unwrap();
        assert!(at.file.ends_with(file), "{}", at.file);
        assert_eq!(at.row, Some(row), "behind {before}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn a_key_in_two_pairs_is_refused() {
    let ids = |from: u64, to: u64| left((from..to).map(Some));
    let of = |from: u64, to: u64| right((from..to).map(|id| (Some(id), id)));
    let job =
        |pairs: [(String, String); 3]| Job { kind: "inner", streams: 2, is_null: true, ..Job::of(pairs.to_vec()) };
    // The order of pairs, pairs without a key and those with one side only do not matter.
    let apart = job([(ids(50, 90), of(40, 60)), (left([None]), String::new()), (ids(0, 40), of(0, 30))]);
    assert_eq!(apart.run().1.status, Status::Ok);
    // Row 40 of the right side stands in the last pair, its left row in the first one: they would not meet.
    let torn = job([(ids(40, 90), of(41, 60)), (left([None]), String::new()), (ids(0, 40), of(0, 41))]);
    let error = torn.run().1.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Source);
    assert_eq!(error.what, "pairs of files of join `joined` have keys in common");
    let found = error.found.unwrap();
    let folder = torn.folder.path().display();
    assert_eq!(found, format!("id = 40 to id = 89 in {folder}/left.0, id = 0 to id = 40 in {folder}/left.2"));
    assert!(error.at.unwrap().file.ends_with("left.2"));
}

#[test]
fn what_cannot_be_together_with_a_join_is_refused() {
    type Change = fn(&mut FlowSpec);
    let changes: [(Change, &str); 9] = [
        (|flow| flow.streams = 3, "join `joined`: 4 blocks are fewer than the 6 that 3 streams hold"),
        (|flow| drop(flow.source.files.pop()), "join `joined`: its sources have not as many files each: 1, 0"),
        (
            |flow| {
                let mut second = flow.source.slices[0].clone();
                second.number = 3;
                flow.source.slices.push(second);
            },
            "join `joined`: a file of a pair cannot be cut",
        ),
        (
            |flow| flow.source.files[1].stream = Some(serde_json::from_value(json!({"wait_seconds": 1})).unwrap()),
            "join `joined`: a pipe cannot be in a pair",
        ),
        (|flow| flow.source.epochs = vec![vec![1, 2]], "join `joined`: generated rows and epochs cannot be in pairs"),
        (
            |flow| flow.source.committed = [(1, Default::default())].into(),
            "join `joined`: of the pair with slice 1 one slice was committed and one was not",
        ),
        (
            |flow| {
                flow.sink = SinkSpec::Arrow { columns: vec![], position: Some("at".to_owned()), place_column: None };
            },
            "join `joined`: joined rows have no positions",
        ),
        (
            |flow| flow.join.as_mut().unwrap().last.keys[0][1] = "nothing".to_owned(),
            "join `joined`: its right rows have no column `nothing`",
        ),
        (
            |flow| flow.join.as_mut().unwrap().last.columns[1].name = "id".to_owned(),
            "join `joined`: column name `id` stands twice",
        ),
    ];
    for (change, text) in changes {
        let job = Job::of(vec![pair(1, 10)]);
        let mut plan = job.plan();
        change(&mut plan);
        let error = Flow::new(plan).err().expect(text);
        assert_eq!((error.kind, error.what), (ErrorKind::Specification, format!("flow test: {text}")));
    }
}

#[test]
fn keys_of_unlike_types_are_refused() {
    let job = Job::of(vec![pair(1, 10)]);
    let mut plan = job.plan();
    plan.join.as_mut().unwrap().last.keys[0][0] = "name".to_owned();
    let error = Flow::new(plan).err().unwrap();
    assert_eq!(error.what, "flow test: join `joined`: keys of the types string and int32 cannot be compared");
}

#[test]
fn a_flow_that_joins_can_be_cancelled() {
    let mut job = Job::of((0..4).map(|number| pair(number, 3000)).collect());
    job.streams = 2;
    let flow = Flow::new(job.plan()).unwrap();
    let reader = flow.take_reader().unwrap();
    let (sender, first) = mpsc::channel();
    // Until it was cancelled nobody reads on, so that it cannot have ended before.
    let (cancelled, go_on) = mpsc::channel();
    flow.start().unwrap();
    let consumer = std::thread::spawn(move || {
        let mut reader = reader;
        let _ = sender.send(reader.next().map(|batch| batch.is_ok()));
        go_on.recv_timeout(PATIENCE).unwrap();
        // Behind an error it goes on with errors.
        reader.find(Result::is_err).is_some()
    });
    assert_eq!(first.recv_timeout(PATIENCE).unwrap(), Some(true));
    flow.cancel("enough");
    cancelled.send(()).unwrap();
    let report = flow.join(PATIENCE).expect("the flow hangs");
    assert!(consumer.join().unwrap());
    assert_eq!(report.status, Status::Cancelled);
}

/// A flow whose rows go through the query to the first destination, and as they are to others, which cannot hold all of them.
fn into_several(job: &Job) -> FlowSpec {
    let mut spec = job.plan();
    spec.transforms = serde_json::from_value(choosing()).unwrap();
    (spec.destination, spec.input) = ("chosen".to_owned(), Some(RowsOf { transform: Some(0), output: 0 }));
    let not_null = |name: &str, kind: &str| json!([{"name": name, "type": {"kind": kind}, "nullable": false}]);
    let other = |name: &str, fit: Value| {
        let sink = json!({"kind": "arrow", "columns": ["id", "name", "line"]});
        serde_json::from_value(json!({"name": name, "input": {"transform": null}, "fit": fit, "sink": sink})).unwrap()
    };
    spec.others = vec![
        other("all", json!([])),
        other("named", not_null("name", "string")),
        other("with lines", not_null("line", "int64")),
    ];
    spec
}

/// What each destination has got, sorted, and how the flow went.
fn run_into_several(spec: FlowSpec) -> (Vec<Vec<Row>>, FlowReport) {
    let destinations = spec.destinations();
    let flow = Flow::new(spec).unwrap();
    let readers: Vec<_> = (0..destinations).map(|own| flow.take_reader_of(own).unwrap()).collect();
    let found = std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| answer_windows(&flow))));
        let consume =
            |reader: BatchReader| sorted(reader.map_while(Result::ok).flat_map(|batch| rows_of(&batch)).collect());
        let consumers: Vec<_> = readers.into_iter().map(|reader| scope.spawn(move || consume(reader))).collect();
        flow.start().unwrap();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    (found, join(&flow))
}

#[test]
fn rows_of_a_join_go_to_several_destinations() {
    let pairs: Vec<_> = (0..9).map(|number| pair(number, 100 * (number % 5))).collect();
    let all: Vec<Row> = sorted(pairs.iter().flat_map(|pair| expected(pair, "full")).collect());
    let goes: [&dyn Fn(&Row) -> bool; 4] =
        [&|row| chosen(row.2) == Ok(true), &|_| true, &|row| row.1.is_some(), &|row| row.2.is_some()];
    let refuses: [&dyn Fn(&Row) -> bool; 4] =
        [&|row| chosen(row.2).is_err(), &|_| false, &|row| row.1.is_none(), &|row| row.2.is_none()];
    for streams in [1, 16] {
        let job = Job { streams, limit: 100_000, ..Job::of(pairs.clone()) };
        let mut spec = into_several(&job);
        spec.memory.blocks = 2 * streams + 8;
        let (found, report) = run_into_several(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        for (number, own) in found.iter().enumerate() {
            let wanted: Vec<Row> = all.iter().filter(|row| goes[number](row)).cloned().collect();
            assert_eq!(own, &wanted, "destination {number}");
            let mut sum = [0; 4];
            for slice in &report.slices {
                let (counts, side) = (slice.destinations[number], usize::from(slice.file >= pairs.len()));
                let before = slice.rejected - slice.join.unwrap().rejected;
                assert_eq!((before, counts.committed), (0, false));
                [sum[0], sum[1]] = [sum[0] + counts.out, sum[1] + counts.filtered];
                sum[2 + side] += counts.rejected;
            }
            // A joined row stands at its line, or at the left row that has none.
            let refused = |is_right: bool| {
                all.iter().filter(|row| refuses[number](row) && row.2.is_some() == is_right).count() as u64
            };
            let [left, right] = [refused(false), refused(true)];
            let out = wanted.len() as u64;
            assert_eq!(sum, [out, all.len() as u64 - out - left - right, left, right], "destination {number}");
        }
        // A row is one reject, whoever refuses it.
        let rejected = |side: bool| {
            let refused = all.iter().filter(|row| refuses.iter().any(|refuses| refuses(row)));
            refused.filter(|row| row.2.is_some() == side).count() as u64
        };
        assert_eq!(counts(&report, 9, false).rejected, rejected(false));
        assert_eq!(counts(&report, 9, true).rejected, rejected(true));
        assert_eq!(report.rejects.count, rejected(false) + rejected(true));

        let said: BTreeSet<_> = report.rejects.by_column.iter().map(|kind| kind.first[0].message.as_str()).collect();
        let of_lines = "no value for column `line` of `lines`, which is NOT NULL in destination `with lines`";
        let of_people = "no value for column `name` of `people`, which is NOT NULL in destination `named`";
        assert!(said.contains(of_lines) || said.contains(of_people), "{said:?}");

        // What two of them have committed is read again, compared, and sent to the others alone.
        let known = |number: usize| {
            let of = |slice: &SliceReport| {
                let own = slice.destinations[number];
                (slice.number, committed([own.out, own.rejected, slice.skipped, own.filtered]))
            };
            report.slices.iter().map(of).collect::<HashMap<_, _>>()
        };
        spec.source.committed = known(0);
        spec.others[2].committed = known(3);
        let (again, resumed) = run_into_several(spec.clone());
        assert_eq!(resumed.status, Status::Ok, "{:?}", resumed.error);
        assert_eq!(again, [vec![], found[1].clone(), found[2].clone(), vec![]]);
        for (slice, before) in resumed.slices.iter().zip(&report.slices) {
            let own: Vec<_> = slice.destinations.iter().map(|own| own.committed).collect();
            assert_eq!((own, slice.committed), (vec![true, false, false, true], false));
            let counts = |own: &DestinationCounts| DestinationCounts { committed: false, ..*own };
            assert!(slice.destinations.iter().map(counts).eq(before.destinations.iter().copied()));
        }
        spec.others[2].committed.remove(&1);
        let refused = Flow::new(spec).err().unwrap().what;
        assert_eq!(
            refused,
            "flow test: join `joined`: of the pair with slice 1 one slice was committed and one was not"
        );
    }
}
