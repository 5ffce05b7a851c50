//! Flows whose rows have places: rows of no place are rejects like all others; flows that contradict themselves are refused.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt64Type};
use headrace_engine::Flow;
use headrace_engine::report::{LocatedReject, Status};
use headrace_engine::spec::{FlowSpec, RoutingSpec, SinkSpec};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Job, join, layout, rows, sorted};

fn routing(spec: Value) -> Option<RoutingSpec> {
    Some(serde_json::from_value(spec).unwrap())
}

/// Places of ids below 100, from 100 to 199, and from 300 on.
fn by_id() -> Option<RoutingSpec> {
    let ranges =
        json!([{"minimum": "100", "end": "200"}, {"minimum": null, "end": "100"}, {"minimum": "300", "end": null}]);
    routing(json!({"column": "id", "method": {"range": ranges}, "default": null}))
}

/// Numbers without much order.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A file with rejects of all sorts, the places of those that are expected, and the texts of the rows that are not.
struct Mixed {
    text: String,
    rejects: Vec<Expected>,
    kept: Vec<String>,
}

/// Row, byte, rule, column, value, bytes of the row.
type Expected = (u64, u64, String, Option<String>, String, String);

fn mixed(dice: &mut Dice, column: &str, qualifier: bool, row_end: &str, skip_lines: u64) -> Mixed {
    let mut mixed = Mixed { text: String::new(), rejects: vec![], kept: vec![] };
    let mut line = 0;
    for _ in 0..skip_lines {
        mixed.text += &format!("id|name|amount|day{row_end}");
        line += 1;
    }
    let count = dice.roll(800);
    for number in 0..count {
        line += 1;
        let start = mixed.text.len() as u64;
        let ends = number + 1 < count || dice.roll(2) == 0;
        let id = dice.roll(400);
        let day = if dice.roll(5) == 0 { String::new() } else { format!("2024-01-{:02}", 1 + dice.roll(30)) };
        let outside = match column {
            "id" => (200..300).contains(&id),
            _ => day.is_empty() || day.as_str() >= "2024-01-20",
        };
        let name = match dice.roll(6) {
            0 if qualifier => format!("\"a{row_end}b\"\"|\""),
            1 => "x".repeat(1 + dice.roll(3000) as usize),
            _ => format!("name {id}"),
        };
        let id = if qualifier && dice.roll(4) == 0 { format!("\"{id}\"") } else { id.to_string() };
        let fields = match dice.roll(12) {
            0 => vec![],
            1 => vec![id.clone(), name.clone()],
            2 => vec![id.clone(), name.clone(), "1.234".to_owned(), day.clone()],
            _ => vec![id.clone(), name.clone(), "1.50".to_owned(), day.clone()],
        };
        let row = fields.join("|") + if ends { row_end } else { "" };
        let at = |column: usize| start + fields[..column].iter().map(|field| field.len() as u64 + 1).sum::<u64>();
        mixed.text += &row;
        let mut reject = |byte, rule: &str, column: Option<&str>, value: &str| {
            let (rule, column) = (rule.to_owned(), column.map(str::to_owned));
            mixed.rejects.push((line, byte, rule, column, value.to_owned(), row.clone()));
        };
        match fields.len() {
            0 => {}
            2 => reject(start, "too_few_fields", None, &fields.join("|")),
            _ if fields[2] == "1.234" => reject(at(2), "would_round", Some("amount"), "1.234"),
            _ if outside && column == "id" => reject(start, "partition", Some("id"), &id),
            _ if outside => reject(at(3), "partition", Some("day"), &day),
            _ => mixed.kept.push(id.trim_matches('"').to_owned()),
        }
    }
    mixed
}

fn cut(text: &str) -> String {
    text.chars().take(1000).collect()
}

#[test]
fn rows_outside_are_rejects_in_file_order_with_everything_that_others_have() {
    let mut dice = Dice(23);
    for round in 0..60 {
        let column = ["id", "day"][dice.roll(2) as usize];
        let (qualifier, row_end) = (dice.roll(2) == 0, ["\n", "\r\n"][dice.roll(2) as usize]);
        let skip_lines = dice.roll(3);
        let mixed = mixed(&mut dice, column, qualifier, row_end, skip_lines);
        let mut job = Job::of(&mixed.text);
        job.layout.qualifier = qualifier.then_some('"');
        job.layout.skip_lines = skip_lines as u32;
        job.routing = if column == "id" {
            by_id()
        } else {
            let range = json!([{"minimum": "2024-01-01", "end": "2024-01-20"}]);
            routing(json!({"column": "day", "method": {"range": range}}))
        };
        (job.streams, job.limit) = (1 + dice.roll(3) as usize, 1_000_000);
        job.slice_bytes = [1 << 30, 20_000, 5_000][dice.roll(3) as usize];
        let report = job.run();
        assert_eq!(report.status, Status::Ok, "{round}: {:?}", report.error);
        let outside = mixed.rejects.iter().filter(|reject| reject.2 == "partition").count() as u64;
        assert_eq!(report.rejects.by_rule.get("partition").copied().unwrap_or(0), outside, "{round}");
        assert_eq!(report.sink.rows, mixed.kept.len() as u64, "{round}");
        let transform: u64 = report.streams.iter().map(|stream| stream.stages.transform.rows).sum();
        assert_eq!(transform, mixed.kept.len() as u64);

        let (bad, lines) = match report.rejects.count {
            0 => (vec![], vec![]),
            _ => (job.bad_bytes(), job.reject_lines()),
        };
        let found = |reject: &LocatedReject| {
            let row = &bad[reject.bad_byte as usize..][..reject.bad_bytes as usize];
            let row = String::from_utf8(row.to_vec()).unwrap();
            let LocatedReject { row: line, byte, rule, column, value, .. } = reject.clone();
            (line, byte, rule, column, value, row)
        };
        let expected: Vec<Expected> = mixed
            .rejects
            .iter()
            .cloned()
            .map(|reject| (reject.0, reject.1, reject.2, reject.3, cut(&reject.4), reject.5))
            .collect();
        let found: Vec<Expected> = lines.iter().map(found).collect();
        let differs = std::iter::zip(&found, &expected).find(|(found, expected)| found != expected);
        assert!(differs.is_none() && found.len() == expected.len(), "{round}: {differs:?}");
        let is_told = |reject: &&LocatedReject| {
            reject.code == "HR601" && reject.message.starts_with("no partition takes the value of column `")
        };
        let by_partition: Vec<&LocatedReject> = lines.iter().filter(|reject| reject.rule == "partition").collect();
        assert!(by_partition.iter().all(is_told), "{by_partition:?}");

        // Rows of the other sinks keep their order, and have the places that a second pass is told.
        job.null_sink = false;
        job.streams = 1;
        let (rows, _) = job.run_arrow();
        let ids: Vec<String> = rows.unwrap().iter().map(|row| row.split('|').next().unwrap().to_owned()).collect();
        if job.slice_bytes == 1 << 30 {
            assert_eq!(ids, mixed.kept, "{round}");
        } else {
            assert_eq!(sorted(ids), sorted(mixed.kept), "{round}");
        }
    }
}

#[test]
fn the_limit_counts_rows_outside() {
    let mut job = Job::of("250|a|1|\n150|b|1|\n260|c|1|\n");
    job.routing = by_id();
    job.limit = 2;
    assert_eq!(job.run().status, Status::Ok);
    job.limit = 1;
    let error = job.run().error.unwrap();
    assert_eq!(error.kind, ErrorKind::RejectLimit);
    job.limit = 0;
    let error = job.run().error.unwrap();
    let at = error.at.clone().unwrap();
    assert_eq!((at.row, at.byte), (Some(1), Some(0)), "{error:?}");
    let text = format!("{error:?}");
    assert!(text.contains("a key that one of the partitions takes") && text.contains("250"), "{text}");
    job.routing.as_mut().unwrap().default = Some(3);
    assert_eq!(job.run().sink.rows, 3, "a default takes all others");
}

/// A flow into tables t0, t1, ... of a server that nobody asks.
fn into_tables(changes: &[(&str, Value)]) -> Result<Flow, headrace_types::CoreError> {
    let table = |name: &str, slices: &[u32]| json!({"name": name, "partition": name, "slices": slices, "owned": false, "begin": "BEGIN", "copy": "COPY"});
    let mut spec = json!({
        "name": "test", "layout": layout(), "streams": 1,
        "source": {"files": [{"path": "x"}], "slices": [
            {"number": 1, "file": 0, "begin_byte": 0, "end_byte": 9}, {"number": 2, "file": 0, "begin_byte": 9, "end_byte": 18}]},
        "memory": {"block_bytes": 4096, "blocks": 4, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 0, "folder": "", "file_stem": "rejected"},
        "routing": {"column": "id", "method": {"range": [{"minimum": null, "end": "5"}]}, "default": 1},
        "sink": {"kind": "postgres", "way": "shared", "commit": "unit", "commit_slices": null,
            "connection": {"hosts": [{"host": "127.0.0.1", "port": 1}], "database": "d", "user": "u",
                "application_name": "test", "connect_timeout_seconds": 1},
            "columns": [{"source": "id", "form": "int8"}],
            "tables": [table("t0", &[1, 2]), table("t1", &[1, 2])]},
    });
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value.clone());
    }
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    Flow::new(spec)
}

#[test]
fn flows_that_contradict_themselves_are_refused_before_the_first_row() {
    let refused = |changes: &[(&str, Value)], words: &str| {
        let error = into_tables(changes).err().unwrap_or_else(|| panic!("{words}"));
        assert_eq!(error.kind, ErrorKind::Specification);
        assert!(format!("{error:?}").contains(words), "{error:?}");
    };
    let table = json!({"name": "t", "partition": "t", "slices": [], "owned": false, "begin": "BEGIN", "copy": "COPY"});
    let with = |slices: &[u32]| {
        let mut table = table.clone();
        table["slices"] = json!(slices);
        table
    };
    into_tables(&[]).unwrap();
    let homes = json!([with(&[1]), with(&[2])]);
    let home = [("/sink/way", json!("home")), ("/sink/strays", with(&[])), ("/sink/tables", homes.clone())];
    into_tables(&home).unwrap();
    into_tables(&[("/sink/way", json!("plain")), ("/sink/tables", homes.clone()), ("/routing", Value::Null)]).unwrap();

    into_tables(&[("/sink/way", json!("plain")), ("/sink/tables", json!([with(&[1, 2])]))]).unwrap();
    refused(&[("/sink/way", json!("plain"))], "rows that are routed need way");
    refused(&[("/routing", Value::Null)], "need rows that are routed");
    refused(&[("/sink/tables", homes.clone())], "has not all slices");
    refused(&[("/sink/tables", json!([with(&[1, 2])]))], "1 tables for 2 partitions");
    refused(&[("/sink/strays", with(&[]))], "table of strays belongs to way `home`");
    refused(&home[..1], "table of strays belongs to way `home`");
    refused(&[home[0].clone(), home[1].clone()], "slice 1 belongs to two tables");
    refused(
        &[home[0].clone(), home[1].clone(), ("/sink/tables", json!([with(&[1]), with(&[])]))],
        "slice 2 belongs to no table",
    );
    refused(&[("/sink/commit_rows", json!(5))], "there are none");
    refused(&[("/source/epochs", json!([[1], [1]]))], "in two epochs");
    refused(&[("/source/epochs", json!([[1]]))], "in no epoch");

    let method = |column: &str, method: Value| [("/routing/column", json!(column)), ("/routing/method", method)];
    let range = |minimum: &str, end: &str| json!({"minimum": minimum, "end": end});
    refused(&method("none", json!({"list": []})), "the rows have no column `none`");
    refused(&method("id", json!({"range": [range("1", "9"), range("8", "12")]})), "overlap");
    refused(&method("id", json!({"range": [range("9", "9")]})), "range 0 is empty");
    refused(&method("id", json!({"range": [range("9", "x")]})), "not of type int64");
    refused(&method("name", json!({"range": [range("a", "b")]})), "have no ranges");
    refused(&method("amount", json!({"list": [["1.5"], ["1.50"]]})), "in two lists");
    refused(&method("day", json!({"list": [[null], [null]]})), "in two lists");
    refused(&method("id", json!({"hash": {"modulus": 2, "key": "bytes"}})), "no default");
    let mut hash = method("id", json!({"hash": {"modulus": 2, "key": "bytes"}})).to_vec();
    hash.push(("/routing/default", Value::Null));
    refused(&hash, "no hash of kind");
    hash[1].1 = json!({"hash": {"modulus": 0, "key": "integer"}});
    refused(&hash, "no partitions");
    hash[1].1 = json!({"hash": {"modulus": 4_000_000_000_u32, "key": "integer"}});
    refused(&hash, "more than");
    refused(&[("/routing/default", json!(2))], "the default is place 2");
}

fn place_sink(columns: &[&str], position: Option<&str>, place_column: &str) -> SinkSpec {
    SinkSpec::Arrow {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        position: position.map(str::to_owned),
        place_column: Some(place_column.to_owned()),
    }
}

/// Where `by_id` with default 3 puts a row.
fn place_or_default(id: i64) -> u16 {
    match id {
        100..200 => 0,
        ..100 => 1,
        300.. => 2,
        _ => 3,
    }
}

#[test]
fn the_merged_stream_says_the_place_of_every_row() {
    let mut job = Job::of(rows(0, 1000));
    job.routing = by_id();
    job.routing.as_mut().unwrap().default = Some(3);
    let sink = |columns: &[&str], place_column: &str| place_sink(columns, None, place_column);
    let mut spec = job.plan().unwrap();
    spec.sink = sink(&["amount", "id"], "place");
    let flow = Flow::new(spec.clone()).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut seen = Vec::new();
    for batch in reader.map(Result::unwrap) {
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["amount", "id", "place"]);
        let ids = batch.column(1).as_primitive::<Int64Type>();
        let places = batch.column(2).as_primitive::<UInt16Type>();
        assert!(places.values().is_sorted(), "rows of one place stand together");
        seen.extend(ids.values().iter().copied().zip(places.values().iter().copied()));
    }
    let report = join(&flow);
    assert_eq!((report.status, report.sink.rows_by_place), (Status::Ok, vec![100, 100, 700, 100]));
    seen.sort_unstable();
    assert_eq!(seen, (0..1000).map(|id| (id, place_or_default(id))).collect::<Vec<_>>());
    let refused = |sink: SinkSpec, with_routing: bool| {
        let mut spec = spec.clone();
        spec.sink = sink;
        spec.routing = spec.routing.filter(|_| with_routing);
        Flow::new(spec).err().map(|error| error.kind)
    };
    assert_eq!(refused(sink(&["id"], "name"), true), Some(ErrorKind::Specification), "a column of the layout");
    assert_eq!(refused(sink(&["id"], "place"), false), Some(ErrorKind::Specification), "no routing, no places");
    let same_name = place_sink(&["id"], Some("place"), "place");
    assert_eq!(refused(same_name, true), Some(ErrorKind::Specification), "one name for two columns");
}

#[test]
fn rows_with_positions_and_places_keep_their_order() {
    let id = |index: u64| index * 7 % 1000;
    let lines: String = (0..1000).map(|index| rows(id(index), id(index) + 1)).collect();
    let mut job = Job::of(lines);
    job.streams = 1;
    job.routing = by_id();
    job.limit = 100; // no default: rows from 200 to 300 are outside
    let mut spec = job.plan().unwrap();
    spec.sink = place_sink(&["id"], Some("position"), "place");
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut seen = Vec::new();
    for batch in reader.map(Result::unwrap) {
        let positions = batch.column(1).as_primitive::<UInt64Type>().values().to_vec();
        assert_eq!(batch.schema().field(1).name(), "position");
        let ids = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let places = batch.column(2).as_primitive::<UInt16Type>().values().to_vec();
        seen.extend(ids.into_iter().zip(positions).zip(places));
    }
    let report = join(&flow);
    assert_eq!((report.status, report.sink.rows_by_place), (Status::Ok, vec![]));
    let inside = (0..1000).map(|index| id(index) as i64).filter(|id| !(200..300).contains(id));
    let expected = inside.zip(0..).map(|(id, number)| ((id, (1 << 40) + number), place_or_default(id)));
    assert_eq!(seen, expected.collect::<Vec<_>>());
}
