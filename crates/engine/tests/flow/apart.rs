//! A source beside a union or a join whose rows never meet others: they go through transforms of their own to their own destinations.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use headrace_engine::report::{DestinationCounts, FlowReport, LocatedReject, SliceReport, Status, TransformCounts};
use headrace_engine::spec::{CommittedSlice, FlowSource, FlowSpec, RowsOf};
use headrace_engine::{Flow, Window};
use headrace_types::{Column, ColumnType, ErrorKind, Layout};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::beside::{Became, Said, answer, check_again, known, run, with_destinations};
use crate::fronts::{column, of, passing};
use crate::joins::{Job as Joined, expected, pair};
use crate::support::{Job, join};
use crate::union::{self, FIRST, ROWS, second_rows};

const CUSTOMERS: i64 = 1500;
/// The source that stands apart, behind two that come together.
const APART: usize = 2;

/// The transforms: one of customers, one behind the union or join.
const BIG: usize = 0;
const LAST: usize = 1;

/// The destinations in their order.
const NAMES: [&str; 3] = ["big", "all", "raw"];
const ALL: usize = 1;

/// Of a customer by its key, and of a row behind the union or join by its id or line.
fn say(transform: usize, number: Option<i64>) -> Said {
    match (transform, number.unwrap_or(1)) {
        (BIG, key) if key % 50 == 9 => Err("big"),
        // Whole batches are left out.
        (BIG, key) => Ok((key % 3 == 0 && !(300..700).contains(&key)).then_some(0)),
        (_, number) if number % 100 == 13 => Err("last"),
        (_, number) => Ok((number % 4 != 0).then_some(0)),
    }
}

/// key;sales;note, of which some have no sales, and some a key that is none.
fn customer(key: i64) -> String {
    match key % 90 {
        31 => format!("x{key};1;nobody\n"),
        _ if key % 40 == 5 => format!("{key};;{}\n", "n".repeat(1 + key as usize % 19)),
        _ => format!("{key};{};{}\n", key % 977, "n".repeat(1 + key as usize % 19)),
    }
}

/// What has become of a customer on the way to a destination of customers.
fn became(destination: &str, key: i64) -> Became {
    match destination {
        _ if key % 90 == 31 => Err("the parser"),
        "big" => say(BIG, Some(key)).map(|said| said.is_some()),
        _ if key % 40 == 5 => Err("no sales"),
        _ => Ok(true),
    }
}

/// Files of customers, cut into slices if there is more than one stream.
fn customers(streams: usize) -> Job {
    let text = |keys: std::ops::Range<i64>| keys.map(customer).collect::<String>();
    let texts = [text(0..700), text(700..CUSTOMERS)];
    let column = |name: &str, column_type, nullable| Column::new(name.to_owned(), column_type, nullable);
    let columns = vec![
        column("key", ColumnType::Int64, false),
        column("sales", ColumnType::Int32, true),
        column("note", ColumnType::String, false),
    ];
    let mut job = Job::of_files(&texts.each_ref().map(|text| text.as_bytes()));
    job.layout = Layout { delimiter: ";".to_owned(), columns, ..Layout::default() };
    job.slice_bytes = if streams == 1 { 1 << 30 } else { 2500 };
    job
}

/// A flow with customers beside two sources that come together, and what to expect of these.
struct Case {
    spec: FlowSpec,
    /// Files of the sources that come together.
    files: usize,
    /// Rows behind them: the number that the last transform asks for, and how they are shown.
    together: Vec<(Option<i64>, String)>,
    /// What that number stands in.
    key: &'static str,
    /// Rejects of their parsers.
    unreadable: u64,
    /// The first one has the rejects.
    folders: Vec<TempDir>,
}

/// The flow with customers and the destinations; `columns`: those that `all` has, behind a query that passes `passed`.
fn with_customers(mut spec: FlowSpec, streams: usize, columns: &[&str], passed: &[Value]) -> (FlowSpec, usize, Job) {
    let customers = customers(streams);
    let own = customers.plan().unwrap();
    let (files, slices) = (spec.source.files.len(), spec.source.slices.len() as u32);
    spec.source.files.extend(own.source.files);
    spec.source.slices.extend(own.source.slices.into_iter().map(|mut slice| {
        slice.number += slices;
        slice.file += files;
        slice
    }));
    let query = |name: &str, source: Option<usize>, columns: &[Value]| json!({"name": name, "source": source, "inputs": [of(None, 0)], "query": {"number": "row", "columns": columns}});
    let big = [passing("key", "int64", false), passing("note", "string", false)];
    spec.transforms =
        serde_json::from_value(json!([query("big", Some(APART), &big), query("last", None, passed)])).unwrap();
    let arrow = |columns: &[&str]| json!({"kind": "arrow", "columns": columns});
    let sales = json!([column("sales", "int32", false)]);
    with_destinations(
        &mut spec,
        &[
            json!({"name": "big", "input": of(BIG, 0), "input_source": APART, "sink": arrow(&["key", "note"])}),
            json!({"name": "all", "input": of(LAST, 0), "sink": arrow(columns)}),
            json!({"name": "raw", "input": of(None, 0), "input_source": APART, "sink": arrow(&["key", "sales"]), "fit": sales}),
        ],
    );
    spec.rejects.tell_destinations = true;
    spec.rejects.limit = Some(10_000);
    spec.memory.blocks = 4 * streams + 8;
    (spec, files, customers)
}

/// Those of the join or union.
fn sources_of(spec: &mut FlowSpec) -> &mut Vec<FlowSource> {
    let of_union = spec.union.as_mut().map(|union| &mut union.sources);
    spec.join.as_mut().map(|join| &mut join.sources).or(of_union).unwrap()
}

impl Case {
    fn union(streams: usize) -> Self {
        let unreadable = "a;1;no number;7\n";
        let jobs = union::jobs(&[&second_rows(FIRST, 1500), &(second_rows(1500, ROWS) + unreadable)], streams);
        let passed = [passing("id", "int64", false), passing("name", "string", true)];
        let (mut spec, files, customers) = with_customers(union::spec(&jobs), streams, &["id", "name"], &passed);
        let union = spec.union.as_mut().unwrap();
        let apart =
            json!({"name": "customers", "layout": customers.layout, "first_file": files, "places": [], "apart": true});
        union.sources.push(serde_json::from_value(apart).unwrap());
        let shown = |id: u64| (Some(id as i64), format!("{id}|name {}", "n".repeat(id as usize % 23)));
        let together = (0..ROWS).map(shown).collect();
        let folders = jobs.into_iter().chain([customers]).map(|job| job.folder).collect();
        Case { spec, files, together, key: "id", unreadable: 1, folders }
    }

    fn join(streams: usize) -> Self {
        let pairs: Vec<_> = (0..5).map(|number| pair(number, 60 + 120 * number)).collect();
        let mut job = Joined::of(pairs.clone());
        (job.kind, job.streams) = ("full", streams);
        job.pairs[3].1.push_str("no id,7\n");
        let passed = [passing("id", "int64", true), passing("line", "int64", true)];
        let (mut spec, files, customers) = with_customers(job.plan(), streams, &["id", "line"], &passed);
        let apart = json!({"name": "customers", "layout": customers.layout, "first_file": files, "apart": true});
        spec.join.as_mut().unwrap().sources.push(serde_json::from_value(apart).unwrap());
        let text = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        let rows = pairs.iter().flat_map(|pair| expected(pair, "full"));
        let together = rows.map(|(id, _, line)| (line, format!("{}|{}", text(id), text(line)))).collect();
        let folders = vec![job.folder, customers.folder];
        Case { spec, files, together, key: "line", unreadable: 1, folders }
    }

    /// Both kinds, each with one and with several streams.
    fn all() -> impl Iterator<Item = Case> {
        [1, 4, 16].into_iter().flat_map(|streams| [Case::union(streams), Case::join(streams)])
    }

    fn run(&self, spec: FlowSpec) -> (Vec<Vec<String>>, FlowReport) {
        let answer = |window: Window| {
            let transform = window.transform;
            let key = if transform == BIG { "key" } else { self.key };
            answer(window, key, false, |number| say(transform, number));
        };
        run(spec, answer, |_, batch| shown(batch))
    }

    fn wanted(&self) -> [Vec<String>; 3] {
        let keys = |name: &'static str| (0..CUSTOMERS).filter(move |key| became(name, *key) == Ok(true));
        let goes = |number: &Option<i64>| say(LAST, *number).is_ok_and(|said| said.is_some());
        let mut wanted = [
            keys("big").map(|key| format!("{key}|{}", "n".repeat(1 + key as usize % 19))).collect::<Vec<_>>(),
            self.together.iter().filter(|(number, _)| goes(number)).map(|(_, shown)| shown.clone()).collect(),
            keys("raw").map(|key| format!("{key}|{}", key % 977)).collect(),
        ];
        wanted.iter_mut().for_each(|rows| rows.sort());
        wanted
    }

    fn is_apart(&self, slice: &SliceReport) -> bool {
        slice.file >= self.files
    }

    fn numbers(&self, is_apart: bool) -> HashSet<u32> {
        let slices = self.spec.source.slices.iter();
        slices.filter(|own| (own.file >= self.files) == is_apart).map(|own| own.number).collect()
    }

    fn rejects(&self) -> Vec<LocatedReject> {
        let text = std::fs::read_to_string(self.folders[0].path().join("rejected.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Accounts of each slice, and rejects with who lacks their rows.
    fn check(&self, report: &FlowReport) {
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let mut sums = [[0; 3]; 3];
        let none = TransformCounts::default();
        for slice in &report.slices {
            let is_apart = self.is_apart(slice);
            assert_eq!(slice.lines, slice.rows + slice.skipped);
            assert_eq!(slice.join.is_some(), self.spec.join.is_some() && !is_apart, "{slice:?}");
            // Nothing is told of the transforms of slices that nobody had to read.
            let [big, last] = &slice.transforms[..] else {
                assert_eq!((slice.transforms.len(), slice.stream), (0, None));
                continue;
            };
            assert_eq!(big.rows > 0, is_apart, "{slice:?}");
            assert!(!is_apart || *last == none, "{slice:?}");
        }
        for slice in &report.slices {
            let is_apart = self.is_apart(slice);
            for (number, own) in slice.destinations.iter().enumerate() {
                if (number == ALL) == is_apart {
                    assert_eq!(*own, DestinationCounts::default(), "{}: {slice:?}", NAMES[number]);
                } else if is_apart {
                    assert_eq!(slice.rows, own.out + own.filtered + own.rejected, "{}: {slice:?}", NAMES[number]);
                }
                let counts = [own.out, own.filtered, own.rejected];
                sums[number].iter_mut().zip(counts).for_each(|(sum, own)| *sum += own);
            }
        }
        for number in [0, 2] {
            let count = |is_it: fn(&Became) -> bool| {
                (0..CUSTOMERS).map(|key| became(NAMES[number], key)).filter(is_it).count() as u64
            };
            let expected = [count(|own| *own == Ok(true)), count(|own| *own == Ok(false)), count(Result::is_err)];
            assert_eq!(sums[number], expected, "{}", NAMES[number]);
        }
        let refused = self.together.iter().filter(|own| say(LAST, own.0).is_err()).count() as u64;
        let left_out = self.together.iter().filter(|own| say(LAST, own.0) == Ok(None)).count() as u64;
        assert_eq!(sums[ALL][1..], [left_out, refused + self.unreadable]);

        let mut told = BTreeMap::new();
        let mut of_others = 0;
        for reject in self.rejects() {
            let text = std::fs::read_to_string(&reject.file).unwrap();
            let row = text.lines().nth(reject.row as usize - 1).unwrap();
            assert!(text[reject.row_byte as usize..].starts_with(row), "{reject:?}");
            let lacking = reject.destinations.clone().unwrap();
            if reject.file_number <= self.files {
                assert_eq!(lacking, ["all"], "{reject:?}");
                of_others += 1;
                continue;
            }
            let key: i64 = row.split(';').next().unwrap().trim_start_matches('x').parse().unwrap();
            if lacking == ["raw"] {
                assert_eq!((reject.column.as_deref(), reject.column_number), (Some("sales"), Some(2)), "{reject:?}");
            }
            assert!(told.insert(key, lacking).is_none(), "twice: {reject:?}");
        }
        let lacking = |key: i64| {
            let lacks = |name: &&str| became(name, key).is_err();
            let names: Vec<String> =
                ["big", "raw"].iter().filter(|name| lacks(name)).map(ToString::to_string).collect();
            (!names.is_empty()).then_some((key, names))
        };
        assert_eq!(told, (0..CUSTOMERS).filter_map(lacking).collect());
        assert_eq!(of_others, refused + self.unreadable);
    }
}

/// The two columns of each row.
fn shown(batch: &RecordBatch) -> Vec<String> {
    let text = |column: usize, row: usize| {
        let own = batch.column(column);
        if own.is_null(row) {
            return "-".to_owned();
        }
        let narrow = || own.as_primitive_opt::<Int32Type>().map(|own| own.value(row).to_string());
        let wide = own.as_primitive_opt::<Int64Type>().map(|own| own.value(row).to_string());
        wide.or_else(narrow).unwrap_or_else(|| own.as_string_view().value(row).to_owned())
    };
    (0..batch.num_rows()).map(|row| format!("{}|{}", text(0, row), text(1, row))).collect()
}

#[test]
fn rows_of_a_source_apart_meet_nothing() {
    for case in Case::all() {
        let (found, report) = case.run(case.spec.clone());
        case.check(&report);
        let wanted = case.wanted();
        for (number, own) in found.iter().enumerate() {
            assert!(*own == wanted[number], "{}, {} streams", NAMES[number], case.spec.streams);
        }
    }
}

#[test]
fn what_an_attempt_has_committed_is_sent_to_the_others_alone() {
    type Known = HashMap<u32, CommittedSlice>;
    for case in Case::all() {
        let (found, report) = case.run(case.spec.clone());
        let [big, all, raw] = [0, 1, 2].map(|own| known(&report, own, |slice| case.is_apart(slice) == (own != ALL)));
        let half =
            |known: &Known| known.iter().filter(|own| own.0 % 2 == 0).map(|(slice, own)| (*slice, *own)).collect();
        let none = Known::new();
        let attempts = [
            [big.clone(), none.clone(), raw.clone()],
            [none.clone(), all.clone(), none.clone()],
            [big.clone(), all.clone(), none.clone()],
            [half(&big), none.clone(), raw.clone()],
            [big, all, raw],
        ];
        for committed in attempts {
            let mut again = case.spec.clone();
            again.source.committed = committed[0].clone();
            again.others[0].committed = committed[1].clone();
            again.others[1].committed = committed[2].clone();
            let (resent, resumed) = case.run(again.clone());
            case.check(&resumed);
            for now in &resumed.slices {
                let is_known = |number: usize| committed[number].contains_key(&now.number);
                let takers: &[usize] = if case.is_apart(now) { &[0, 2] } else { &[ALL] };
                assert!(now.stream.is_some() || takers.iter().all(|number| is_known(*number)));
                assert!(takers.iter().all(|number| now.destinations[*number].committed == is_known(*number)));
            }
            let read = |report: &FlowReport| {
                let is_read = |own: &&SliceReport| {
                    resumed.slices.iter().any(|now| now.number == own.number && now.stream.is_some())
                };
                FlowReport { slices: report.slices.iter().filter(is_read).cloned().collect(), ..report.clone() }
            };
            check_again(&read(&resumed), &read(&report));
            for number in 0..NAMES.len() {
                let lacking = report.slices.iter().filter(|slice| !committed[number].contains_key(&slice.number));
                let lacking: u64 = lacking.map(|slice| slice.destinations[number].out).sum();
                assert_eq!(resent[number].len() as u64, lacking, "{}", NAMES[number]);
                assert!(!committed[number].is_empty() || resent[number] == found[number], "{}", NAMES[number]);
            }
            // Other rows than before are told.
            let Some(own) = again.source.committed.values_mut().next() else { continue };
            own.loaded += 1;
            let error = case.run(again).1.error.unwrap();
            assert!(error.what.contains("has other rows than when an earlier attempt committed it"), "{error:?}");
        }
    }
}

#[test]
fn a_source_apart_that_nobody_wants_gives_no_rows() {
    for case in Case::all() {
        let mut spec = case.spec.clone();
        // Somebody may have wanted them before, and lacks nothing now.
        (spec.source.left_out, spec.others[1].left_out) = (case.numbers(true), case.numbers(true));
        let (found, report) = case.run(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let wanted = case.wanted();
        assert!(found == [Vec::new(), wanted[ALL].clone(), Vec::new()]);

        // Nobody is left who would.
        let all = spec.others[0].clone();
        (spec.destination, spec.input, spec.input_source) = (all.name, Some(all.input), None);
        (spec.sink, spec.source.left_out) = (all.sink, HashSet::new());
        (spec.others, spec.fit) = (Vec::new(), Vec::new());
        let (found, report) = case.run(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert!(found[0] == wanted[ALL]);
        assert!(report.slices.iter().filter(|own| case.is_apart(own)).all(|own| own.out == 0));
        // Nor any transform, nor does the destination say which rows it gets.
        (spec.transforms, spec.input) = (Vec::new(), None);
        let (found, report) = case.run(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert_eq!(found[0].len(), case.together.len());
        // What was committed is not read.
        let together: Vec<u32> = case.numbers(false).into_iter().collect();
        spec.source.committed = together.iter().map(|slice| (*slice, CommittedSlice::default())).collect();
        if spec.join.is_none() {
            let (found, report) = case.run(spec);
            assert_eq!(report.status, Status::Ok, "{:?}", report.error);
            assert!(found[0].is_empty() && report.slices.iter().all(|own| own.stream.is_none()));
        }
    }
}

#[test]
fn one_destination_apart_is_enough_for_a_flow() {
    for case in Case::all() {
        let mut spec = case.spec.clone();
        spec.others.clear();
        let (found, report) = case.run(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert!(found[0] == case.wanted()[0]);
        for slice in report.slices.iter().filter(|own| case.is_apart(own)) {
            assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected, "{slice:?}");
        }
        (spec.input, spec.transforms) = (Some(RowsOf::FIRST), Vec::new());
        let (found, report) = case.run(spec);
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert_eq!(found[0].len(), (0..CUSTOMERS).filter(|key| key % 90 != 31).count());
    }
}

#[test]
fn a_source_apart_without_files_and_one_behind_it() {
    for case in [Case::union(4), Case::join(4)] {
        let mut spec = case.spec.clone();
        let is_of_first =
            |number: u32| spec.source.slices.iter().any(|own| own.number == number && own.file < case.files);
        assert!(is_of_first(1));
        // Nothing of it: its transforms and destinations are those of another source now.
        let sources = sources_of(&mut spec);
        let none = FlowSource { name: "none".to_owned(), ..sources[APART].clone() };
        sources.insert(APART, none);
        let (found, report) = case.run(spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert!(found == [Vec::new(), case.wanted()[ALL].clone(), Vec::new()]);
        (spec.input_source, spec.others[1].input_source, spec.transforms[BIG].source) =
            (Some(APART + 1), Some(APART + 1), Some(APART + 1));
        let (found, report) = case.run(spec);
        case.check(&report);
        assert!(found == case.wanted());
    }
}

#[test]
fn rows_of_a_source_apart_have_numbers_and_places() {
    for mut case in [Case::union(4), Case::join(4)] {
        let made = json!([{"name": "line", "from": "row_number"}]);
        let made: Vec<_> = serde_json::from_value(made).unwrap();
        sources_of(&mut case.spec)[APART].layout.as_mut().unwrap().made.clone_from(&made);
        case.spec.others[1].sink =
            serde_json::from_value(json!({"kind": "arrow", "columns": ["key", "line"]})).unwrap();
        let (found, report) = case.run(case.spec.clone());
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let line = |key: i64| if key < 700 { key + 1 } else { key - 699 };
        let keys = (0..CUSTOMERS).filter(|key| became("raw", *key) == Ok(true));
        let mut wanted: Vec<_> = keys.map(|key| format!("{key}|{}", line(key))).collect();
        wanted.sort();
        assert!(found[2] == wanted);
    }
}

#[test]
fn the_smallest_pool_is_enough_beside_a_join_and_a_source_apart() {
    let case = Case::join(8);
    let mut spec = case.spec.clone();
    (spec.transforms, spec.memory.blocks) = (Vec::new(), 16);
    let null = |name: &str, source: Option<usize>| json!({"name": name, "input": of(None, 0), "input_source": source, "sink": {"kind": "null"}});
    with_destinations(&mut spec, &[null("raw", Some(APART)), null("all", None)]);
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!((report.status, report.memory.overdraft_blocks), (Status::Ok, 0), "{:?}", report.error);
    assert_eq!(report.destinations[1].sink.rows, case.together.len() as u64);
}

#[test]
fn sources_apart_that_do_not_fit_are_refused() {
    type Change = fn(&mut FlowSpec);
    fn rows(transform: impl Into<Option<usize>>) -> RowsOf {
        RowsOf { transform: transform.into(), output: 0 }
    }
    let other_side = "the rows of transform `big` are read on the other side of a join or union";
    let of_both: [(Change, &str); 6] = [
        (|spec| spec.transforms[BIG].source = Some(3), "`big` stands in front of a source that is not there"),
        (|spec| spec.transforms[BIG].source = Some(1), "transform `big`: its rows have no column `key`"),
        (|spec| spec.others[1].input_source = Some(3), "destination 2 reads rows of a source that is not there"),
        (|spec| spec.input = None, "nothing says which rows of its source destination 0 reads"),
        (|spec| spec.others[0].input = rows(BIG), other_side),
        (|spec| spec.transforms[LAST].inputs = vec![rows(BIG)], other_side),
    ];
    let of_union: [(Change, &str); 7] = [
        (|spec| spec.union.as_mut().unwrap().sources[APART].layout = None, "every other one its own"),
        (|spec| spec.union.as_mut().unwrap().sources[APART].places = vec![Some(0); 4], "stands apart, and has places"),
        (|spec| spec.union.as_mut().unwrap().sources[APART].apart = false, "has not a place for each column"),
        (|spec| spec.union.as_mut().unwrap().sources[APART].first_file = 0, "do not follow one another"),
        (|spec| spec.union.as_mut().unwrap().sources.swap(1, APART), "do not follow one another"),
        (|spec| spec.union.as_mut().unwrap().inputs = vec![RowsOf::FIRST; 2], "2 inputs are not those of 3 sources"),
        (
            |spec| spec.union.as_mut().unwrap().inputs = vec![RowsOf::FIRST, RowsOf::FIRST, rows(BIG)],
            "source 2 stands apart, and has rows that meet others",
        ),
    ];
    let before_others: Change = |spec| {
        let sources = &mut spec.union.as_mut().unwrap().sources;
        sources[1].apart = true;
        (sources[1].places, sources[APART].apart) = (Vec::new(), false);
    };
    let of_join: [(Change, &str); 5] = [
        (|spec| drop(sources_of(spec).pop()), "have not as many files each"),
        (|spec| sources_of(spec)[APART].first_file += 1, "have not as many files each"),
        (|spec| sources_of(spec)[1].first_file = usize::MAX, "do not follow one another"),
        (|spec| sources_of(spec)[APART].places = vec![None], "its sources have no places for columns"),
        (
            |spec| spec.join.as_mut().unwrap().last.inputs = vec![RowsOf::FIRST; 3],
            "3 inputs are not those of 2 sources",
        ),
    ];
    let unsorted: Change = |spec| {
        let sources = sources_of(spec);
        sources.push(sources[APART].clone());
        sources[APART + 1].first_file -= 1;
    };
    let union = of_both.into_iter().chain(of_union).chain([(before_others, "a source apart stands before others")]);
    let join = of_both.into_iter().chain(of_join).chain([(unsorted, "do not follow one another")]);
    let cases = [Case::union(1), Case::join(1)];
    let changes = union.map(|own| (&cases[0], own)).chain(join.map(|own| (&cases[1], own)));
    for (number, (case, (change, expected))) in changes.enumerate() {
        let mut spec = case.spec.clone();
        change(&mut spec);
        let error = Flow::new(spec).err().unwrap_or_else(|| panic!("{number}: {expected}"));
        assert!(error.kind == ErrorKind::Specification && error.what.contains(expected), "{number}: {error:?}");
    }
}

/// Paths of all numbers and nulls in a value.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(all) => all.iter().for_each(|(name, own)| leaves(own, &format!("{path}/{name}"), found)),
        Value::Array(all) => all.iter().enumerate().for_each(|(at, own)| leaves(own, &format!("{path}/{at}"), found)),
        Value::Number(_) | Value::Null => found.push(path.to_owned()),
        _ => {}
    }
}

/// Puts other numbers into a plan, at the paths that are asked for: it is refused then, or taken.
pub fn refused_or_taken(spec: &Value, is_asked: impl Fn(&str) -> bool) {
    let taken = |spec: Value| serde_json::from_value::<FlowSpec>(spec).ok().map(|spec| Flow::new(spec).map(drop));
    assert!(taken(spec.clone()).unwrap().is_ok(), "{:?}", taken(spec.clone()));
    let mut paths = Vec::new();
    leaves(spec, "", &mut paths);
    paths.retain(|path| is_asked(path));
    let (mut refused, mut fits) = (0, 0);
    for path in paths {
        for value in [json!(null), json!(0), json!(1), json!(2), json!(3), json!(u64::MAX)] {
            let mut changed = spec.clone();
            *changed.pointer_mut(&path).unwrap() = value;
            match taken(changed) {
                Some(Ok(())) => fits += 1,
                Some(Err(error)) if error.kind == ErrorKind::Specification => refused += 1,
                Some(Err(error)) => panic!("{path}: {error:?}"),
                None => {}
            }
        }
    }
    assert!(fits > 0 && refused > 0);
}

#[test]
fn whatever_numbers_a_plan_has_it_is_refused_or_taken() {
    let layout = json!({"delimiter": "|", "columns": [{"name": "id", "type": {"kind": "int64"}, "nullable": false}]});
    let of_join = |name: &str, file: usize, layout: Option<&Value>| json!({"name": name, "layout": layout, "first_file": file, "apart": file == APART});
    let sources = [of_join("one", 0, None), of_join("two", 1, Some(&layout)), of_join("apart", 2, Some(&layout))];
    let join = json!({"name": "joined", "sides": [0, 1], "sources": sources,
        "inputs": [of(None, 0), of(None, 0)], "kind": "full", "keys": [["id", "id"]],
        "columns": [{"side": "left", "column": "id", "name": "id"}]});
    let of_union = |name: &str, file: usize, layout: Option<&Value>| json!({"name": name, "layout": layout, "first_file": file, "places": [0], "apart": false});
    let mut last = of_union("apart", 2, Some(&layout));
    (last["places"], last["apart"]) = (json!([]), json!(true));
    let sources = [of_union("one", 0, None), of_union("two", 1, Some(&layout)), last];
    let inputs = [of(None, 0), of(None, 0), of(None, 0)];
    let union = json!({"name": "all", "sources": sources, "inputs": inputs, "columns": [column("id", "int64", false)]});
    let query = |name: &str, source: Option<usize>| {
        json!({"name": name, "source": source, "inputs": [of(None, 0)],
        "query": {"number": "row", "columns": [passing("id", "int64", false)]}})
    };
    let slice = |file: usize| json!({"number": file + 1, "file": file, "begin_byte": 0, "end_byte": 9});
    for (kind, own) in [("join", join), ("union", union)] {
        let spec = json!({
            "name": "flow", "layout": layout, kind: own,
            "source": {"files": [{"path": "a"}, {"path": "b"}, {"path": "c"}], "slices": [slice(0), slice(1), slice(2)]},
            "transforms": [query("big", Some(APART)), query("last", None)],
            "destination": "big", "input": of(BIG, 0), "input_source": APART, "sink": {"kind": "null"},
            "others": [{"name": "all", "input": of(LAST, 0), "input_source": null, "sink": {"kind": "null"}}],
            "streams": 1, "memory": {"block_bytes": 4096, "blocks": 2, "max_row_bytes": 4096}, "rejects": {"limit": 0},
        });
        // Sizes are of files that there are.
        refused_or_taken(&spec, |path| !path.starts_with("/memory") && path != "/streams" && !path.ends_with("_byte"));
    }
}
