//! More than one join: rows of a join come into another one.

mod columns;
mod model;
mod order;
mod several;
mod specs;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use headrace_engine::report::{FlowReport, JoinCounts, SliceReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_engine::{Failure, FailureKind, Flow, Window};
use headrace_types::{CoreError, Layout};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{core_error, join};
use model::{Chance, Fate, Numbers, Outcome, SHAPES, Tree, fate};

type Unit = Vec<Vec<(Option<i64>, i64)>>;

/// Files of sources whose rows meet, and what is done with them.
struct Case {
    tree: Tree,
    units: Vec<Unit>,
    /// Numbers of rows of a source whose rows meet no others, if there is one.
    apart: Option<Vec<i64>>,
    folder: TempDir,
}

/// What each file has beside its rows: one that is none.
const BAD: &str = "no key|7\n";

fn layout(leaf: usize) -> Layout {
    let column = |name: String, nullable: bool| json!({"name": name, "type": {"kind": "int64"}, "nullable": nullable});
    let columns = [column(format!("k{leaf}"), true), column(format!("n{leaf}"), false)];
    serde_json::from_value(json!({"delimiter": "|", "columns": columns})).unwrap()
}

/// Columns of rows of some sources; all but the keys of sources may be missing behind a join.
fn columns(leaves: &[usize]) -> Vec<String> {
    leaves.iter().flat_map(|leaf| [format!("k{leaf}"), format!("n{leaf}")]).collect()
}

fn name_of_side(side: usize) -> &'static str {
    ["left", "right"][side]
}

fn path(folder: &TempDir, leaf: usize, unit: usize) -> String {
    folder.path().join(format!("source{leaf}.{unit}")).to_str().unwrap().to_owned()
}

impl Case {
    fn of(tree: Tree, units: usize, most: usize, chance: &mut Chance) -> Self {
        let units = (0..units).map(|unit| tree.rows(unit, most, chance)).collect();
        Case { tree, units, apart: None, folder: TempDir::new().unwrap() }
    }

    fn write(&self) {
        for (number, unit) in self.units.iter().enumerate() {
            for (leaf, rows) in unit.iter().enumerate() {
                let line = |&(key, number): &(Option<i64>, i64)| {
                    format!("{}|{number:0>20}\n", key.map_or(String::new(), |key| key.to_string()))
                };
                let text: String = rows.iter().map(line).collect();
                std::fs::write(path(&self.folder, leaf, number), text + BAD).unwrap();
            }
        }
        if let Some(numbers) = &self.apart {
            let text: String = numbers.iter().map(|number| format!("1|{number}\n")).collect();
            std::fs::write(path(&self.folder, self.tree.leaves, 0), text + BAD).unwrap();
        }
    }

    /// How many sources there are.
    fn sources(&self) -> usize {
        self.tree.leaves + usize::from(self.apart.is_some())
    }

    /// The number that a feed of the model has in the flow: joins stand behind all sources.
    fn feed(&self, place: usize) -> usize {
        if place < self.tree.leaves { place } else { place + self.sources() - self.tree.leaves }
    }

    /// The number of the transform of a place among those that there are.
    fn transform(&self, place: usize) -> usize {
        self.tree.has_front[..place].iter().filter(|own| **own).count()
    }

    fn spec(&self, streams: usize) -> FlowSpec {
        serde_json::from_value(self.json(streams)).unwrap()
    }

    fn json(&self, streams: usize) -> Value {
        self.write();
        let Tree { leaves, joins, has_front } = &self.tree;
        let (mut files, mut slices) = (Vec::new(), Vec::new());
        for leaf in 0..self.sources() {
            let units = if leaf < *leaves { self.units.len() } else { 1 };
            let own = (0..units).map(|unit| path(&self.folder, leaf, unit)).collect();
            let slicing =
                SlicingSpec { files: own, slice_bytes: 1 << 30, layout: layout(leaf), ..SlicingSpec::default() };
            let own = plan_slices(&slicing).unwrap();
            let (first_file, first) = (files.len(), slices.len() as u32);
            files.extend(own.files);
            slices.extend(own.slices.into_iter().map(|mut slice| {
                (slice.file, slice.number) = (slice.file + first_file, slice.number + first);
                slice
            }));
        }
        let input = |place: usize| match has_front[place] {
            true => json!({"transform": self.transform(place)}),
            false => json!({"transform": null}),
        };
        let meeting = |(place, own): (usize, &model::Join)| {
            let of_side = |side: usize| {
                let columns = columns(&self.tree.leaves_of(own.sides[side])).into_iter();
                columns.map(move |name| json!({"side": name_of_side(side), "column": name, "name": name}))
            };
            json!({"name": format!("join {place}"), "kind": own.kind, "sides": own.sides.map(|side| self.feed(side)),
                "keys": [own.keys.map(|leaf| format!("k{leaf}"))], "inputs": own.sides.map(input),
                "columns": of_side(0).chain(of_side(1)).collect::<Vec<_>>()})
        };
        let mut inner: Vec<Value> = joins.iter().enumerate().map(meeting).collect();
        let mut last = inner.pop().unwrap();
        let source = |leaf: usize| {
            let layout = (leaf > 0).then(|| layout(leaf));
            json!({"name": format!("source {leaf}"), "layout": layout, "first_file": leaf * self.units.len(), "apart": leaf >= *leaves})
        };
        last["sources"] = (0..self.sources()).map(source).collect();
        last["inner"] = json!(inner);
        let query = |place: usize| {
            let passing = |name: String| {
                let nullable = place >= *leaves || name.starts_with('k');
                json!({"name": name, "type": {"kind": "int64"}, "nullable": nullable, "from": name})
            };
            let source = (place + 1 < has_front.len()).then(|| self.feed(place));
            let columns: Vec<_> = columns(&self.tree.leaves_of(place)).into_iter().map(passing).collect();
            json!({"name": format!("at {place}"), "source": source, "inputs": [{"transform": null}],
                "query": {"number": "row", "columns": columns}})
        };
        let wanted: Vec<String> = (0..*leaves).map(|leaf| format!("n{leaf}")).collect();
        let folder = self.folder.path().to_str().unwrap();
        json!({
            "name": "test", "layout": layout(0), "source": {"files": files, "slices": slices}, "join": last,
            "transforms": (0..has_front.len()).filter(|place| has_front[*place]).map(query).collect::<Vec<_>>(),
            "sink": {"kind": "arrow", "columns": wanted}, "streams": streams,
            "memory": {"block_bytes": 4096, "blocks": leaves * streams, "max_row_bytes": 4096},
            "rejects": {"limit": 100_000, "folder": folder, "file_stem": "rejected"},
        })
    }

    fn answer(&self, window: Window) {
        let numbers = window.rows.column(window.rows.num_columns() - 1).as_primitive::<UInt32Type>().clone();
        let place =
            (0..self.tree.has_front.len()).filter(|own| self.tree.has_front[*own]).nth(window.transform).unwrap();
        let leaves = self.tree.leaves_of(place).len();
        let own: Vec<_> =
            (0..leaves).map(|leaf| window.rows.column(2 * leaf + 1).as_primitive::<Int64Type>()).collect();
        let mut kept = Vec::new();
        for row in 0..numbers.len() {
            let values = own.iter().filter(|own| own.is_valid(row)).map(|own| own.value(row));
            match fate(place, values) {
                Fate::GoesOn => kept.push(numbers.value(row)),
                Fate::IsLeftOut => {}
                Fate::IsRefused => {
                    let text = format!("refused at {place}");
                    return window.answer(Err(Failure { kind: FailureKind::Row, text }));
                }
            }
        }
        let kept: ArrayRef = Arc::new(UInt32Array::from(kept));
        window.answer(Ok(vec![RecordBatch::try_from_iter([("row", kept)]).unwrap()]));
    }

    /// The numbers of rows that have come, each with how often, and how the flow went.
    fn run(&self, spec: FlowSpec) -> (Result<Numbers, CoreError>, FlowReport) {
        let flow = Flow::new(spec).unwrap();
        let reader = flow.take_reader();
        flow.start().unwrap();
        let found = std::thread::scope(|scope| {
            (0..2).for_each(|_| {
                scope.spawn(|| {
                    while let Some(window) = flow.next_window() {
                        self.answer(window);
                    }
                });
            });
            reader.into_iter().flatten().try_fold(Numbers::new(), |mut all, batch| {
                let batch = batch.map_err(core_error)?;
                let columns: Vec<_> = batch.columns().iter().map(|own| own.as_primitive::<Int64Type>()).collect();
                for row in 0..batch.num_rows() {
                    let numbers: Vec<_> = columns.iter().map(|own| own.is_valid(row).then(|| own.value(row))).collect();
                    *all.entry(numbers).or_default() += 1;
                }
                Ok(all)
            })
        });
        (found, join(&flow))
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.units.iter().map(|unit| self.tree.run(unit)).collect()
    }

    /// Each reject, and the number of its row.
    fn rejects(&self) -> Vec<(i64, Value)> {
        let lines = std::fs::read_to_string(self.folder.path().join("rejected.jsonl")).unwrap_or_default();
        let read = |line: &str| {
            let reject: Value = serde_json::from_str(line).unwrap();
            let text = std::fs::read_to_string(reject["file"].as_str().unwrap()).unwrap();
            let row = text.lines().nth(reject["row"].as_u64().unwrap() as usize - 1).unwrap();
            assert!(text[reject["row_byte"].as_u64().unwrap() as usize..].starts_with(row));
            (row.split_once('|').unwrap().1.parse().unwrap(), reject)
        };
        lines.lines().map(read).collect()
    }

    /// The accounts are those of the model.
    fn check_accounts(&self, report: &FlowReport) {
        let Tree { leaves, has_front, .. } = &self.tree;
        for (number, outcome) in self.outcomes().into_iter().enumerate() {
            let slices: Vec<&SliceReport> =
                report.slices.iter().filter(|slice| slice.file % self.units.len() == number).collect();
            assert_eq!(slices.len(), *leaves);
            for (leaf, slice) in slices.iter().enumerate() {
                let rows = self.units[number][leaf].len() as u64 + 1;
                let [_, left_out, refused] = outcome.fronts[leaf];
                assert_eq!(slice.join.unwrap(), outcome.counts[leaf], "{slice:?}");
                assert_eq!((slice.rows, slice.rejected), (rows, 1 + refused + outcome.refused_behind[leaf]));
                let JoinCounts { rows: met, rejected, .. } = outcome.counts[leaf];
                assert_eq!(rows, met + (slice.rejected - rejected) + left_out);
                let inner = if leaf == 0 { &outcome.counts[*leaves..] } else { &[] };
                assert_eq!(slice.inner, inner);
                let fronts = (0..has_front.len()).filter(|place| has_front[*place]);
                let told =
                    fronts.zip(&slice.transforms).filter(|(place, _)| *place == leaf || leaf == 0 && place >= leaves);
                for (place, own) in told {
                    assert_eq!([own.rows, own.filtered, own.rejected], outcome.fronts[place], "{place} {slice:?}");
                }
            }
            // What comes out of an inner join comes into the next one, is left out, or refused.
            let out = |join: usize| {
                let [left, right] = self.tree.joins[join].sides.map(|side| outcome.counts[side]);
                let alone = |own: JoinCounts| own.unmatched - own.filtered;
                right.rows - right.unmatched + alone(left) + alone(right)
            };
            let (inner, last) = (0..leaves - 2, leaves - 2);
            for join in inner {
                let own = slices[0].inner[join];
                assert_eq!(out(join), own.rows + outcome.fronts[leaves + join][1] + own.rejected);
            }
            let refused = slices.iter().map(|slice| slice.join.unwrap().rejected).sum::<u64>()
                - slices[0].inner.iter().map(|own| own.rejected).sum::<u64>();
            assert_eq!(out(last) - refused, slices.iter().map(|slice| slice.out + slice.filtered).sum::<u64>());
        }
    }

    /// Runs it, and compares all with the model.
    fn check(&self, spec: FlowSpec) -> FlowReport {
        let (found, report) = self.run(spec);
        assert_eq!(report.status, Status::Ok, "{:?} {:?}", report.error, self.tree);
        let outcomes = self.outcomes();
        let rows = outcomes.iter().flat_map(|own| own.rows.iter().cloned());
        assert!(found.unwrap() == Tree::numbers(rows), "{:?}", self.tree);
        let mut told: Vec<i64> = self.rejects().into_iter().map(|(number, _)| number).filter(|own| *own != 7).collect();
        let mut wanted: Vec<i64> = outcomes.iter().flat_map(|own| own.refused.iter().copied()).collect();
        told.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(told, wanted, "{:?}", self.tree);
        self.check_accounts(&report);
        report
    }
}

#[test]
fn rows_of_joins_meet_as_in_nested_loops() {
    let mut chance = Chance(1);
    for round in 0..6 {
        for shape in SHAPES {
            let tree = Tree::of(shape, |_| false, &mut chance);
            let case = Case::of(tree, 1 + round % 3, 40 + 80 * round, &mut chance);
            for streams in [1, 4] {
                case.check(case.spec(streams));
            }
        }
    }
}

#[test]
fn rows_are_left_out_and_refused_in_front_of_all_joins_between_and_behind() {
    let mut chance = Chance(2);
    for round in 0..6 {
        for shape in SHAPES {
            let fronts = chance.below(1 << 7) | if round == 0 { usize::MAX } else { 0 };
            let tree = Tree::of(shape, |place| fronts >> place & 1 == 1, &mut chance);
            let case = Case::of(tree, 1 + round % 3, 40 + 60 * round, &mut chance);
            for streams in [1, 4] {
                case.check(case.spec(streams));
            }
        }
    }
}
