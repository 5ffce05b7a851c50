//! Flows whose rows find their partitions, into real servers. What is expected is found by looking at every row alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_types::{ErrorKind, Layout};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::patience::{HANG, wait_until};
use crate::server::{Server, servers};

const WRITER: &str = "headrace routed";
/// Ids that no partition takes.
const GAP: std::ops::Range<i64> = 500..600;

/// Numbers without much order.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Place of an id: below 100, from 100, from 200, from 300 to 499, from 600 on.
pub fn place(id: i64) -> Option<usize> {
    match id {
        ..100 => Some(0),
        100..200 => Some(1),
        200..300 => Some(2),
        300..500 => Some(3),
        600.. => Some(4),
        _ => None,
    }
}
pub const PLACES: usize = 5;

fn routing() -> Value {
    let range = |minimum: Option<&str>, end: Option<&str>| json!({"minimum": minimum, "end": end});
    let ranges = [
        range(None, Some("100")),
        range(Some("100"), Some("200")),
        range(Some("200"), Some("300")),
        range(Some("300"), Some("500")),
        range(Some("600"), None),
    ];
    json!({"column": "id", "method": {"range": ranges}, "default": null})
}

/// Rows of a table, or what the ledger says: by name.
pub type Sorted = Vec<Vec<String>>;

/// A load of one file into tables of its own.
pub struct Load<'a> {
    server: &'a Server,
    folder: TempDir,
    /// Prefix of its tables.
    pub name: String,
    pub spec: Value,
    /// Rows that are no rejects, by slice: id and name.
    pub rows: BTreeMap<u32, Vec<(i64, String)>>,
}

impl<'a> Load<'a> {
    /// A file of rows `id|name` with header, blank lines and rejects; `home` gives the table of a slice of way `home`.
    pub fn new(
        server: &'a Server,
        text: &str,
        slice_bytes: u64,
        streams: usize,
        home: Option<&mut dyn FnMut(u32) -> usize>,
    ) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("routed{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let layout = json!({"delimiter": "|", "skip_lines": 1, "columns": [
            {"name": "id", "type": {"kind": "int64"}, "nullable": false},
            {"name": "name", "type": {"kind": "string"}, "nullable": false}]});
        let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
        let slicing = plan_slices(&SlicingSpec {
            files: vec![write(folder.path(), text)],
            slice_bytes,
            layout: columns,
            ..SlicingSpec::default()
        })
        .unwrap();
        let all: Vec<u32> = slicing.slices.iter().map(|slice| slice.number).collect();
        let mut rows = BTreeMap::new();
        for slice in &slicing.slices {
            let lines = &text[slice.begin_byte as usize..slice.end_byte as usize];
            let row = |line: &str| {
                let (id, name) = line.split_once('|')?;
                Some((id.parse().ok()?, name.to_owned())).filter(|(id, _)| place(*id).is_some())
            };
            rows.insert(slice.number, lines.lines().filter_map(row).collect());
        }
        let (mut way, mut homes) = ("shared", vec![all.clone(); PLACES]);
        if let Some(home) = home {
            (way, homes) = ("home", vec![vec![]; PLACES]);
            all.iter().for_each(|slice| homes[home(*slice)].push(*slice));
        }
        let table = |partition: &str, slices: &[u32], owned: bool| {
            json!({"name": format!("{name}_{partition}"), "partition": partition, "slices": slices, "owned": owned,
                "begin": "BEGIN", "copy": format!("COPY {name}_{partition} (id, name) FROM STDIN (FORMAT binary)")})
        };
        let tables: Vec<Value> = homes
            .iter()
            .enumerate()
            .map(|(place, slices)| table(&format!("p{place}"), slices, place % 2 == 0))
            .collect();
        let strays = (way == "home").then(|| table("strays", &all, false));
        let ledger = format!(
            "INSERT INTO {name}_ledger SELECT txid_current(), $1, * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[])"
        );
        let spec = json!({
            "name": "test", "layout": layout, "streams": streams, "routing": routing(),
            "source": {"files": slicing.files, "slices": slicing.slices},
            "memory": {"block_bytes": 4096, "blocks": 8, "max_row_bytes": 1 << 20},
            "rejects": {"limit": 1_000_000, "folder": folder.path(), "file_stem": "rejected"},
            "sink": {"kind": "postgres", "way": way, "commit": "unit", "commit_slices": ledger, "strays": strays,
                "connection": {"hosts": [{"host": "127.0.0.1", "port": server.port}], "database": "postgres",
                    "user": "headrace", "application_name": WRITER, "connect_timeout_seconds": 10},
                "columns": [{"source": "id", "form": "int8"}, {"source": "name", "form": "text"}],
                "tables": tables},
        });
        let load = Load { server, folder, name, spec, rows };
        for partition in load.partitions() {
            load.execute(&format!("CREATE TABLE {}_{partition} (id bigint, name text)", load.name));
        }
        load.execute(&format!(
            "CREATE TABLE {}_ledger (unit bigint, partition text, slice int, loaded bigint, rejected bigint, skipped bigint, text_bytes bigint, values_ignored bigint, rows_filtered bigint, text_hash text, \
             UNIQUE (partition, slice))",
            load.name
        ));
        load
    }

    pub fn partitions(&self) -> Vec<String> {
        let strays = self.spec["sink"]["strays"].is_object().then(|| "strays".to_owned());
        (0..PLACES).map(|place| format!("p{place}")).chain(strays).collect()
    }

    pub fn execute(&self, sql: &str) {
        self.server.connect().execute(sql).unwrap();
    }

    pub fn query(&self, sql: &str) -> Sorted {
        let rows = self.server.connect().query(sql, &[]).unwrap().rows;
        rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect()
    }

    pub fn flow(&self) -> Flow {
        let spec: FlowSpec = serde_json::from_value(self.spec.clone()).unwrap();
        Flow::new(spec).unwrap()
    }

    pub fn run(&self) -> FlowReport {
        run(&self.flow())
    }

    /// The partition that takes a row of a slice.
    fn partition_of(&self, slice: u32, id: i64) -> String {
        let place = place(id).unwrap();
        let is_home = self.spec["sink"]["tables"][place]["slices"].as_array().unwrap().contains(&json!(slice));
        if is_home { format!("p{place}") } else { "strays".to_owned() }
    }

    /// Rows by partition and slice.
    pub fn expected(&self) -> BTreeMap<(String, u32), Vec<(i64, String)>> {
        let mut expected: BTreeMap<(String, u32), Vec<(i64, String)>> = BTreeMap::new();
        for (slice, rows) in &self.rows {
            for (id, name) in rows {
                let unit = (self.partition_of(*slice, *id), *slice);
                expected.entry(unit).or_default().push((*id, name.clone()));
            }
        }
        expected
    }

    /// The tables hold what is expected of `units`, and the ledger has the rows of those that should have written them.
    pub fn check(&self, report: &FlowReport, is_sent: impl Fn(&str, u32) -> bool) {
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let expected = self.expected();
        let count = |partition: &str, slice: u32| {
            expected.get(&(partition.to_owned(), slice)).map_or(0, |rows: &Vec<_>| rows.len())
        };
        let mut ledger = Sorted::new();
        for partition in self.partitions() {
            let sent = expected.iter().filter(|((own, slice), _)| *own == partition && is_sent(own, *slice));
            let mut rows: Sorted =
                sent.flat_map(|(_, rows)| rows.iter().map(|(id, name)| vec![id.to_string(), name.clone()])).collect();
            rows.sort();
            let mut found = self.query(&format!("SELECT id, name FROM {}_{partition}", self.name));
            found.sort();
            assert!(found == rows, "{partition} has {} rows instead of {}", found.len(), rows.len());
            for slice in &report.slices {
                let table = partition
                    .strip_prefix('p')
                    .map(|place| &self.spec["sink"]["tables"][place.parse::<usize>().unwrap()]);
                let has_slice =
                    table.is_none_or(|table| table["slices"].as_array().unwrap().contains(&json!(slice.number)));
                let is_first =
                    if self.spec["sink"]["way"] == "home" { partition != "strays" } else { partition == "p0" };
                if has_slice && is_sent(&partition, slice.number) {
                    let loaded = count(&partition, slice.number);
                    let (rejected, skipped) = if is_first { (slice.rejected, slice.skipped) } else { (0, 0) };
                    let numbers = [u64::from(slice.number), loaded as u64, rejected, skipped];
                    ledger.push(
                        [partition.clone()].into_iter().chain(numbers.map(|number| number.to_string())).collect(),
                    );
                }
            }
        }
        let mut found =
            self.query(&format!("SELECT partition, slice, loaded, rejected, skipped FROM {}_ledger", self.name));
        found.sort();
        ledger.sort();
        assert_eq!(found, ledger);
        for slice in &report.slices {
            assert_eq!(slice.out, self.rows[&slice.number].len() as u64);
            assert_eq!((slice.lines, slice.rows), (slice.rows + slice.skipped, slice.out + slice.rejected));
        }
        assert_eq!(report.sink.rows, report.slices.iter().map(|slice| slice.out).sum::<u64>());
        assert_eq!(report.sink.confirmed, Some(report.sink.rows));
    }

    /// Fails if a connection of the flow is still there after a while.
    pub fn no_writer_is_left(&self) {
        wait_until("no writer keeps its locks when nobody will commit its rows", || self.writers() == 0);
    }

    fn writers(&self) -> usize {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{WRITER}%' AND query LIKE '%{}_%'",
            self.name
        );
        self.query(&sql)[0][0].parse::<usize>().unwrap()
    }

    pub fn all_rows(&self) -> usize {
        let count = |partition| format!("(SELECT count(*) FROM {}_{partition})", self.name);
        let sum: Vec<String> = self.partitions().into_iter().map(count).collect();
        self.query(&format!("SELECT {}", sum.join(" + ")))[0][0].parse().unwrap()
    }
}

fn write(folder: &Path, text: &str) -> String {
    let file = folder.join("data").display().to_string();
    std::fs::write(&file, text).unwrap();
    file
}

pub fn run(flow: &Flow) -> FlowReport {
    flow.start().unwrap();
    flow.join(Duration::from_secs(60)).expect("the flow hangs")
}

/// Rows in some order, with blank lines, rejects, and rows outside.
pub fn text_of(dice: &mut Dice, count: u64) -> String {
    let mut text = "id|name\n".to_owned();
    let order = dice.roll(3);
    for number in 0..count {
        match dice.roll(60) {
            0 => text.push('\n'),
            1 => text += "bad\n",
            2 => text += &format!("{}|outside\n", GAP.start + dice.roll(100) as i64),
            _ => {}
        }
        let id = match order {
            0 => number * 700 / count,          // sorted
            1 => dice.roll(720),                // no order
            _ => dice.roll(30) * dice.roll(30), // most of them in one partition
        };
        let length = if dice.roll(30) == 0 { dice.roll(9000) } else { dice.roll(30) };
        text += &format!("{id}|{}{number}\n", "x".repeat(length as usize));
    }
    text
}

#[test]
fn every_row_goes_where_it_belongs_alone_whatever_the_slices_and_streams() {
    let mut dice = Dice(31);
    for server in servers() {
        for round in 0..12 {
            let count = dice.roll(6000);
            let text = text_of(&mut dice, count);
            let (slice_bytes, streams) = ([1 << 30, 100_000, 7_000][dice.roll(3) as usize], 1 + dice.roll(4) as usize);
            let mut homes = Dice(round);
            let mut home = |slice: u32| [homes.roll(PLACES as u64) as usize, slice as usize % 2][round as usize % 2];
            let home: Option<&mut dyn FnMut(u32) -> usize> = if round % 3 == 0 { None } else { Some(&mut home) };
            let mut load = Load::new(server, &text, slice_bytes, streams, home);
            if round % 4 == 3 {
                load.spec["sink"]["commit"] = json!("together");
                let flow = load.flow();
                let report = run(&flow);
                assert_eq!(load.all_rows(), 0, "nothing is committed before it is said");
                flow.commit().unwrap();
                load.check(&report, |_, _| true);
            } else {
                load.check(&load.run(), |_, _| true);
            }
            load.no_writer_is_left();
        }
    }
}

#[test]
fn a_stream_without_strays_has_one_connection_and_one_transaction() {
    for server in servers() {
        let text = format!("id|name\n{}", (0..50).map(|id| format!("{id}|x\n")).collect::<String>());
        let load = Load::new(server, &text, 1 << 30, 1, Some(&mut |_| 0));
        load.check(&load.run(), |_, _| true);
        assert_eq!(load.query(&format!("SELECT count(DISTINCT unit) FROM {}_ledger", load.name)), [["1"]]);
        let load = Load::new(server, &format!("{text}150|stray\n"), 1 << 30, 1, Some(&mut |_| 0));
        load.check(&load.run(), |_, _| true);
        assert_eq!(load.query(&format!("SELECT count(DISTINCT unit) FROM {}_ledger", load.name)), [["2"]]);
    }
}

/// Slices that one unit committed and another did not.
#[test]
fn rows_that_a_unit_has_committed_are_counted_and_not_sent() {
    let mut dice = Dice(5);
    for server in servers() {
        for home in [false, true] {
            let text = text_of(&mut dice, 3000);
            let mut by_number = |slice: u32| slice as usize % 2;
            let home: Option<&mut dyn FnMut(u32) -> usize> = if home { Some(&mut by_number) } else { None };
            let mut load = Load::new(server, &text, 7_000, 3, home);
            let expected = load.expected();
            let rows = |partition: &str, slice: u32| expected.get(&(partition.to_owned(), slice)).map_or(0, Vec::len);
            // Of way `home` the strays may be there alone; of way `shared` any part of the units.
            let is_sent = |partition: &str, slice: u32| match home_of(partition) {
                None => slice.is_multiple_of(2),
                Some(place) => load.spec["sink"]["way"] == "home" || !(place + slice as usize).is_multiple_of(3),
            };
            let mut spec = load.spec.clone();
            for partition in load.partitions() {
                let known = load.rows.keys().filter(|slice| !is_sent(&partition, **slice));
                let known: BTreeMap<String, usize> =
                    known.map(|slice| (slice.to_string(), rows(&partition, *slice))).collect();
                let table = match home_of(&partition) {
                    None => &mut spec["sink"]["strays"],
                    Some(place) => &mut spec["sink"]["tables"][place],
                };
                table["committed"] = json!(known);
            }
            let report = run(&Flow::new(serde_json::from_value(spec.clone()).unwrap()).unwrap());
            load.check(&report, is_sent);

            // Another count: its rows would be lost or doubled.
            load.execute(&format!("DELETE FROM {}_ledger", load.name));
            let table = if load.spec["sink"]["way"] == "home" {
                &mut spec["sink"]["strays"]
            } else {
                &mut spec["sink"]["tables"][0]
            };
            let known = table["committed"].as_object_mut().unwrap();
            let (slice, count) =
                known.iter().next().map(|(slice, count)| (slice.clone(), count.as_u64().unwrap())).unwrap();
            known.insert(slice.clone(), json!(count + 1));
            load.spec = spec;
            let error = load.run().error.unwrap();
            assert_eq!(error.kind, ErrorKind::Internal);
            let text = format!("{error:?}");
            assert!(
                text.contains(&format!("slice {slice} has other rows")) && text.contains(&format!("{count} rows")),
                "{text}"
            );
            load.no_writer_is_left();
        }
    }
}

/// Place of a partition; none of the strays.
fn home_of(partition: &str) -> Option<usize> {
    partition.strip_prefix('p').map(|place| place.parse().unwrap())
}

#[test]
fn a_row_that_the_server_refuses_is_named_in_whatever_unit_it_is() {
    let mut dice = Dice(17);
    for server in servers() {
        for round in 0..24 {
            let count = 500 + dice.roll(3000);
            let mut text = text_of(&mut dice, count);
            // The refused row takes the place of another one.
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let is_row = |line: &&str| line.split_once('|').is_some_and(|(id, _)| id.parse::<i64>().is_ok());
            let candidates: Vec<usize> = (1..lines.len()).filter(|line| is_row(&lines[*line])).collect();
            let line = candidates[dice.roll(candidates.len() as u64) as usize];
            let byte: usize = lines[..line].iter().map(|line| line.len()).sum();
            let id = [7, 150, 250, 450, 650][dice.roll(5) as usize];
            let new = format!("{id}|refused\n");
            text.replace_range(byte..byte + lines[line].len(), &new);
            let streams = 1 + dice.roll(3) as usize;
            let mut by_number = |slice: u32| slice as usize % PLACES;
            let home: Option<&mut dyn FnMut(u32) -> usize> = if round % 2 == 0 { None } else { Some(&mut by_number) };
            let load = Load::new(server, &text, 20_000, streams, home);
            for partition in load.partitions() {
                load.execute(&format!("ALTER TABLE {}_{partition} ADD CHECK (name <> 'refused')", load.name));
            }
            let error = load.run().error.expect("the row was not refused");
            assert_eq!(error.server.as_ref().map(|server| server.sqlstate.as_str()), Some("23514"), "{error:?}");
            let at = error.at.as_ref().unwrap();
            assert_eq!((at.row, at.byte), (Some(line as u64 + 1), Some(byte as u64)), "{round}: {error:?}");
            load.no_writer_is_left();
            if load.spec["sink"]["way"] == "shared" {
                assert_eq!(load.all_rows(), 0, "units were committed although the flow failed");
            }
        }
    }
}

#[test]
fn units_of_a_flow_that_is_cancelled_end_soon() {
    for server in servers() {
        let text: String = (0..20_000).map(|id| format!("{}|x\n", id % 450)).collect();
        for home in [false, true] {
            let mut first = |_| 0;
            let home: Option<&mut dyn FnMut(u32) -> usize> = if home { Some(&mut first) } else { None };
            let load = Load::new(server, &format!("id|name\n{text}"), 50_000, 2, home);
            let slow = "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN PERFORM pg_sleep(0.05); RETURN new; END $$";
            load.execute(slow);
            for partition in load.partitions() {
                let name = &load.name;
                load.execute(&format!(
                    "CREATE TRIGGER slow BEFORE INSERT ON {name}_{partition} FOR EACH ROW EXECUTE FUNCTION slow()"
                ));
            }
            let flow = load.flow();
            flow.start().unwrap();
            wait_until("two writers are at work", || load.writers() >= 2);
            flow.cancel("enough");
            let report = flow.join(HANG).expect("the flow hangs");
            assert_eq!(report.status, Status::Cancelled);
            load.no_writer_is_left();
            assert_eq!(load.all_rows(), 0);
            assert!(load.folder.path().exists());
        }
    }
}
