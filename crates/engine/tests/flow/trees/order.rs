//! Rows against the order of one of several joins, and keys that two units have.

use headrace_engine::report::Status;
use headrace_types::ErrorKind;

use super::model::{Chance, Join, Tree};
use super::{Case, Unit};

fn join(kind: &'static str, sides: [usize; 2], keys: [usize; 2]) -> Join {
    Join { kind, sides, keys }
}

/// Two joins of three sources, without anything in front.
fn case(joins: [Join; 2], units: Vec<Unit>) -> Case {
    let tree = Tree { leaves: 3, joins: joins.to_vec(), has_front: vec![false; 5] };
    Case { units, ..Case::of(tree, 0, 0, &mut Chance(0)) }
}

/// Rows with these keys, and their places as numbers.
fn rows(keys: impl IntoIterator<Item = i64>) -> Vec<(Option<i64>, i64)> {
    keys.into_iter().zip(1..).map(|(key, number)| (Some(key), number)).collect()
}

/// The place, and what is said of it.
fn error_of(case: &Case) -> (String, Option<u64>, String, String, String) {
    let (found, report) = case.run(case.spec(2));
    let error = report.error.unwrap();
    assert!(found.is_err() && report.status == Status::Failed && error.kind == ErrorKind::Source, "{error:?}");
    let at = error.at.unwrap();
    let folder = format!("{}/", case.folder.path().display());
    let shown = |text: String| text.replace(&folder, "");
    (shown(at.file), at.row, error.what, shown(error.found.unwrap()), error.hint.unwrap())
}

#[test]
fn the_row_of_a_file_is_named_in_whatever_join_it_is_against_the_order() {
    let many = || rows(0..500);
    let swapped = || rows((0..300).chain([299, 298]).chain(301..400));
    let lefts = || join("full", [0, 1], [0, 1]);
    // In the inner join.
    let inner = case([lefts(), join("full", [3, 2], [0, 2])], vec![vec![many(), swapped(), many()]]);
    let (file, row, what, found, hint) = error_of(&inner);
    assert_eq!((file.as_str(), row), ("source1.0", Some(302)));
    assert_eq!(what, "rows of `source 1` are not in the order that join `join 0` needs");
    assert_eq!(found, "k1 = 298 behind k1 = 299 of row 301");
    assert!(hint.starts_with("Sort the file"));
    // In the last one, of a source.
    let outer = case([lefts(), join("inner", [3, 2], [0, 2])], vec![vec![many(), many(), swapped()]]);
    let (file, row, what, ..) = error_of(&outer);
    assert_eq!((file.as_str(), row), ("source2.0", Some(302)));
    assert_eq!(what, "rows of `source 2` are not in the order that join `join 1` needs");
}

#[test]
fn rows_of_a_join_that_are_against_the_order_of_the_next_one_are_rows_of_files() {
    // The inner join is in the order of its key, which is another one.
    let numbered = |numbers: &dyn Fn(i64) -> i64| (0..500).map(|key| (Some(key), numbers(key))).collect::<Vec<_>>();
    let plain = || numbered(&|key| key);
    let mixed = numbered(&|key| if key == 400 { 7 } else { key });
    let other_key =
        case([join("inner", [0, 1], [0, 1]), join("inner", [3, 2], [1, 2])], vec![vec![plain(), mixed, plain()]]);
    let mut spec = other_key.spec(1);
    spec.join.as_mut().unwrap().last.keys[0][0] = "n1".to_owned();
    let error = other_key.run(spec).1.error.unwrap();
    assert_eq!(error.what, "rows of join `join 0` are not in the order that join `join 1` needs");
    assert_eq!(error.found.unwrap(), "n1 = 7 behind n1 = 399 of row 400");
    let at = error.at.unwrap();
    assert!(at.file.ends_with("source1.0") && at.row == Some(401), "{at:?}");
    assert!(error.hint.unwrap().starts_with("Rows of a join are in the order of its key"));

    // A key that repeats on the right side repeats behind the join.
    let twice = || rows((0..700).map(|key| key - i64::from(key == 650)));
    let case = case(
        [join("inner", [0, 1], [0, 1]), join("inner", [3, 2], [0, 2])],
        vec![vec![rows(0..700), twice(), rows(0..9)]],
    );
    let (file, row, what, found, hint) = error_of(&case);
    assert_eq!((file.as_str(), row), ("source1.0", Some(651)));
    assert_eq!(what, "two rows of join `join 0`, the left side of join `join 1`, have one key");
    assert_eq!(found, "k0 = 649, as row 650");
    assert!(hint.starts_with("Let the rows of the join be the right side"));
}

#[test]
fn the_row_before_may_stand_in_another_file() {
    // The first row of the inner join stands for that of the right source, the second one for that of the left source, which is alone.
    let (lefts, rights) = (vec![(Some(1), 10), (Some(2), 5)], rows([1]));
    let joins = [join("left", [0, 1], [0, 1]), join("inner", [3, 2], [0, 2])];
    let case = case(joins, vec![vec![lefts, rights, rows(0..9)]]);
    let mut spec = case.spec(1);
    spec.join.as_mut().unwrap().last.keys[0][0] = "n0".to_owned();
    let error = case.run(spec).1.error.unwrap();
    let folder = case.folder.path().display();
    assert_eq!(error.found.unwrap(), format!("n0 = 5 behind n0 = 10 of row 1 of {folder}/source1.0"));
    let at = error.at.unwrap();
    assert_eq!((at.file, at.row), (format!("{folder}/source0.0"), Some(2)));
}

#[test]
fn a_key_in_two_units_is_refused_in_each_join() {
    let unit = |keys: [std::ops::Range<i64>; 3]| keys.map(rows).to_vec();
    let joins = || [join("full", [1, 2], [1, 2]), join("full", [0, 3], [0, 2])];
    // The joins compare their own keys: those of one do not matter to the other one.
    let apart = case(joins(), vec![unit([0..50, 0..40, 10..50]), unit([50..90, 50..90, 60..70])]);
    let (found, report) = apart.run(apart.spec(2));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert!(!found.unwrap().is_empty());

    let in_inner = case(joins(), vec![unit([0..9, 0..55, 0..9]), unit([60..70, 50..90, 60..70])]);
    let (file, row, what, found, _) = error_of(&in_inner);
    assert_eq!(what, "pairs of files of join `join 0` have keys in common");
    assert_eq!(found, "k1 = 0 to k1 = 54 in source1.0, k1 = 50 to k1 = 89 in source1.1");
    assert_eq!((file.as_str(), row), ("source1.1", None));

    let in_last = case(joins(), vec![unit([0..65, 0..9, 0..9]), unit([60..70, 50..90, 60..70])]);
    let (file, _, what, found, _) = error_of(&in_last);
    assert_eq!(what, "sets of files of join `join 1` have keys in common");
    assert_eq!(found, "k0 = 0 to k0 = 64 in source0.0, k0 = 60 to k0 = 69 in source0.1");
    assert_eq!(file, "source0.1");
}
