//! Columns of several joins that are to blame for rejects: they stand in the file of the row, in that of another one, or in none.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use headrace_engine::report::Status;
use headrace_engine::{Flow, Window};
use serde_json::{Value, json};

use super::Case;
use super::model::{Chance, Join, Tree};
use crate::support::join;

/// Gives all rows, with one more column: NULL of those whose first key is 1.
fn answer(window: Window) {
    let keys = window.rows.column(0).as_primitive::<Int64Type>().iter();
    let made: ArrayRef = Arc::new(keys.map(|key| (key != Some(1)).then_some(5)).collect::<Int64Array>());
    let rows = window.rows.column(window.rows.num_columns() - 1).clone();
    window.answer(Ok(vec![RecordBatch::try_from_iter([("made", made), ("row", rows)]).unwrap()]));
}

/// Of each reject the source and the place of its row in there, the column, and what is said.
fn rejects_of(column: &str) -> Vec<(u64, i64, Option<String>, String)> {
    let own = |kind, sides, keys| Join { kind, sides, keys };
    let joins = vec![own("full", [0, 1], [0, 1]), own("full", [3, 2], [0, 2])];
    let tree = Tree { leaves: 3, joins, has_front: vec![false, false, false, true, false] };
    let mut case = Case::of(tree, 0, 0, &mut Chance(0));
    let rows = |keys: [Option<i64>; 2]| keys.into_iter().zip(1..).collect();
    case.units = vec![vec![rows([Some(1), Some(2)]), rows([Some(1), None]), rows([Some(2), None])]];
    let mut spec = case.json(1);
    let made = json!({"name": "made", "type": {"kind": "int64"}, "nullable": true, "from": null});
    spec["transforms"][0]["query"]["columns"].as_array_mut().unwrap().push(made);
    let behind = json!({"side": "left", "column": "made", "name": "made"});
    spec["join"]["columns"].as_array_mut().unwrap().push(behind);
    spec["destination"] = json!("facts");
    spec["fit"] = json!([{"name": column, "type": {"kind": "int64"}, "nullable": false}]);
    let flow = Flow::new(serde_json::from_value(spec).unwrap()).unwrap();
    let reader = flow.take_reader();
    flow.start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(window) = flow.next_window() {
                answer(window);
            }
        });
        reader.into_iter().flatten().for_each(|batch| drop(batch.unwrap()));
    });
    assert_eq!(join(&flow).status, Status::Ok);
    let told = |(number, reject): (i64, Value)| {
        let text = |name: &str| reject[name].as_str().map(str::to_owned);
        (reject["file_number"].as_u64().unwrap() - 1, number, text("column"), text("message").unwrap())
    };
    case.rejects().into_iter().filter(|(number, _)| *number != 7).map(told).collect()
}

#[test]
fn a_reject_names_the_column_and_whose_it_is() {
    let own =
        |column: &str| (Some(column.to_owned()), format!("no value for column `{column}` (1), which is NOT NULL"));
    let other = |of: &str| (None, format!("no value for column {of}, which is NOT NULL in destination `facts`"));
    let (of_1, of_2, made) =
        (other("`k1` of `source 1`"), other("`k2` of `source 2`"), other("`made` of join `join 0`"));
    for (column, wanted) in [
        // Through two joins it is the column of the own file; of another file where that row is missing, or has none.
        ("k1", vec![(1, 2, own("k1")), (2, 1, of_1.clone()), (2, 2, of_1)]),
        ("k2", vec![(1, 1, of_2.clone()), (1, 2, of_2), (2, 2, own("k2"))]),
        // What was made between the joins stands in no file.
        ("made", vec![(1, 1, made.clone()), (2, 2, made)]),
    ] {
        let found = rejects_of(column);
        let places: Vec<_> = found.iter().map(|own| (own.0, own.1)).collect();
        assert_eq!(places, wanted.iter().map(|own| (own.0, own.1)).collect::<Vec<_>>(), "{found:?}");
        for (found, (.., (column, text))) in found.iter().zip(&wanted) {
            assert_eq!(found.2, *column, "{found:?}");
            assert!(found.3.contains(text.as_str()), "{found:?}: {text}");
        }
    }
}
