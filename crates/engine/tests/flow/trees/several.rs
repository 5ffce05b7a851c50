//! Several destinations of a flow with more than one join, in front of the joins and behind the last one, and a source apart.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use headrace_engine::report::{DestinationCounts, SliceReport, Status};
use headrace_engine::spec::{FlowSpec, RowsOf};
use serde_json::json;

use super::Case;
use super::model::{Chance, Row, SHAPES, Tree};
use crate::beside::{check_again, known, run, with_destinations};

const STRICT: usize = 0;
const ALL: usize = 1;
const RAW: usize = 2;
const APART: usize = 3;
/// The source whose rows go to a destination as they are.
const OF_RAW: usize = 1;

/// Joined rows that have one of the first source, all of them, rows of a source as they are, and rows of the source apart.
fn into_several(case: &Case, streams: usize) -> FlowSpec {
    let mut spec = case.spec(streams);
    let leaves = case.tree.leaves;
    let wanted: Vec<_> = (0..leaves).map(|leaf| format!("n{leaf}")).collect();
    let first = json!({"transform": null});
    let of_source = |name: &str, source: usize| json!({"name": name, "input": first, "input_source": source, "sink": {"kind": "arrow", "columns": [format!("n{source}")]}});
    let fit = json!([{"name": "n0", "type": {"kind": "int64"}, "nullable": false}]);
    let sink = json!({"kind": "arrow", "columns": wanted});
    with_destinations(
        &mut spec,
        &[
            json!({"name": "strict", "input": first, "fit": fit, "sink": sink}),
            json!({"name": "all", "input": first, "sink": sink}),
            of_source("raw", OF_RAW),
            of_source("apart", leaves),
        ],
    );
    spec.rejects.tell_destinations = true;
    spec.memory.blocks += 8;
    spec
}

fn numbers(_: usize, batch: &RecordBatch) -> Vec<Vec<Option<i64>>> {
    let columns: Vec<_> = batch.columns().iter().map(|own| own.as_primitive::<Int64Type>()).collect();
    let row = |row: usize| columns.iter().map(|own| own.is_valid(row).then(|| own.value(row))).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn numbers_of(row: &Row) -> Vec<Option<i64>> {
    row.iter().map(|own| own.map(|own| own.1)).collect()
}

/// The source that stands for a row.
fn leaf_of(row: &Row) -> usize {
    row.iter().rposition(Option::is_some).unwrap()
}

fn check(shape: &[[usize; 2]], streams: usize, chance: &mut Chance) {
    let last = 2 * shape.len();
    let tree = Tree::of(shape, |place| place < last && place != 2, chance);
    let mut case = Case::of(tree, 2, 150, chance);
    case.apart = Some((1..700).collect());
    let (leaves, units) = (case.tree.leaves, case.units.len());
    let mut spec = into_several(&case, streams);
    let (found, report) = run(spec.clone(), |window| case.answer(window), numbers);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);

    let outcomes = case.outcomes();
    let joined = || outcomes.iter().flat_map(|own| &own.rows);
    let is_strict = |row: &&Row| row[0].is_some();
    let of_raw = case.units.iter().flat_map(|unit| &unit[OF_RAW]).map(|own| vec![Some(own.1)]);
    let mut wanted = [
        joined().filter(is_strict).map(numbers_of).collect::<Vec<_>>(),
        joined().map(numbers_of).collect(),
        of_raw.collect(),
        case.apart.iter().flatten().map(|number| vec![Some(*number)]).collect(),
    ];
    wanted.iter_mut().for_each(|own| own.sort());
    for (number, own) in found.iter().enumerate() {
        assert!(*own == wanted[number], "{number} {:?}", case.tree);
    }

    // Who lacks each row that was refused.
    let mut lacking: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    outcomes
        .iter()
        .flat_map(|own| &own.refused)
        .for_each(|number| drop(lacking.insert(*number, vec!["strict", "all"])));
    let lenient: Vec<&Row> = joined().filter(|row| !is_strict(row)).collect();
    lenient.iter().for_each(|row| drop(lacking.insert(row[leaf_of(row)].unwrap().1, vec!["strict"])));
    let rejects = case.rejects();
    let told: BTreeMap<i64, Vec<&str>> = rejects
        .iter()
        .filter(|(number, _)| *number != 7)
        .map(|(number, own)| {
            (*number, own["destinations"].as_array().unwrap().iter().filter_map(|own| own.as_str()).collect())
        })
        .collect();
    assert_eq!(told, lacking, "{:?}", case.tree);
    assert_eq!(rejects.len(), lacking.len() + leaves * units + 1);
    let text = "no value for column `n0` of `source 0`, which is NOT NULL in destination `strict`";
    let is_said = rejects.iter().any(|(_, own)| own["message"].as_str().is_some_and(|own| own.contains(text)));
    assert_eq!(is_said, !lenient.is_empty(), "{rejects:?}");

    for slice in &report.slices {
        let (leaf, unit) = (slice.file / units, slice.file % units);
        let is_apart = leaf == leaves;
        let nothing = DestinationCounts::default();
        let of = |number: usize| slice.destinations[number];
        if is_apart {
            assert_eq!([of(STRICT), of(ALL), of(RAW)], [nothing; 3]);
            assert_eq!((of(APART).out, of(APART).rejected, slice.join), (699, 1, None));
            continue;
        }
        let outcome = &outcomes[unit];
        let own_lenient = outcome.rows.iter().filter(|row| !is_strict(row) && leaf_of(row) == leaf).count() as u64;
        let refused = 1 + outcome.fronts[leaf][2] + outcome.refused_behind[leaf];
        assert_eq!([of(STRICT).rejected, of(ALL).rejected], [refused + own_lenient, refused], "{slice:?}");
        assert_eq!(slice.rejected, refused + own_lenient);
        assert_eq!(slice.join.unwrap().rejected, outcome.refused_behind[leaf] + own_lenient);
        let raw = DestinationCounts { out: slice.rows - 1, rejected: 1, ..nothing };
        assert_eq!(of(RAW), if leaf == OF_RAW { raw } else { nothing });
        let inner = if leaf == 0 { &outcome.counts[leaves..] } else { &[] };
        assert_eq!(slice.inner, inner);
    }

    // What some have committed is read again, compared, and sent to the others alone; and of all of them nothing.
    let is_together = |slice: &SliceReport| slice.file < leaves * units;
    spec.source.committed = known(&report, STRICT, is_together);
    spec.others[RAW - 1].committed = known(&report, RAW, |slice| slice.file / units == OF_RAW);
    let (again, resumed) = run(spec.clone(), |window| case.answer(window), numbers);
    check_again(&resumed, &report);
    assert!(again == [vec![], found[ALL].clone(), vec![], found[APART].clone()]);
    spec.others[ALL - 1].committed = known(&report, ALL, is_together);
    spec.others[APART - 1].committed = known(&report, APART, |slice| !is_together(slice));
    let (none, all_known) = run(spec, |window| case.answer(window), numbers);
    check_again(&all_known, &report);
    assert!(none.iter().all(Vec::is_empty));
    let joined = |slice: &SliceReport| (slice.join, slice.inner.clone());
    assert!(all_known.slices.iter().map(joined).eq(report.slices.iter().map(joined)));
}

#[test]
fn destinations_get_rows_of_sources_and_of_the_last_join() {
    let mut chance = Chance(3);
    for shape in SHAPES {
        for streams in [1, 4] {
            check(shape, streams, &mut chance);
        }
    }
}

#[test]
fn nobody_gets_rows_between_joins() {
    let mut chance = Chance(4);
    let case = Case::of(Tree::of(SHAPES[0], |_| false, &mut chance), 1, 10, &mut chance);
    let mut spec = case.spec(1);
    (spec.input, spec.input_source) = (Some(RowsOf::FIRST), Some(3));
    let error = headrace_engine::Flow::new(spec).err().unwrap();
    assert_eq!(error.what, "flow test: destination 0 reads rows of a source that is not there");
}
