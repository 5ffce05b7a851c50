//! Specifications of several joins that contradict themselves.

use headrace_engine::Flow;
use headrace_engine::spec::{FlowSpec, MeetingSpec, RowsOf};
use headrace_types::ErrorKind;

use super::Case;
use super::model::{Chance, SHAPES, Tree};
use crate::apart::refused_or_taken;

type Change = fn(&mut FlowSpec);

fn inner(spec: &mut FlowSpec) -> &mut MeetingSpec {
    &mut spec.join.as_mut().unwrap().inner[0]
}

fn last(spec: &mut FlowSpec) -> &mut MeetingSpec {
    &mut spec.join.as_mut().unwrap().last
}

#[test]
fn joins_that_are_no_tree_are_refused() {
    let changes: [(Change, &str); 17] = [
        (|spec| last(spec).sides = [3, 0], "join `join 1`: one of its sides is another one, too"),
        (|spec| last(spec).sides = [0, 2], "join `join 1`: one of its sides is another one, too"),
        (|spec| last(spec).sides = [2, 3], "join `join 1`: its sources do not stand in the order of the joins"),
        (|spec| last(spec).sides = [4, 2], "join `join 1`: its sides do not stand before it"),
        (|spec| last(spec).sides = [5, 2], "join `join 1`: its sides do not stand before it"),
        (|spec| last(spec).sides = [usize::MAX, 2], "join `join 1`: its sides do not stand before it"),
        (|spec| inner(spec).sides = [0, 3], "join `join 0`: its sides do not stand before it"),
        (|spec| inner(spec).sides = [0, 0], "join `join 0`: one of its sides is another one, too"),
        (|spec| inner(spec).sides = [0, 2], "join `join 0`: its sources do not stand in the order of the joins"),
        (|spec| spec.join.as_mut().unwrap().inner.clear(), "join `join 1`: 1 joins do not bring 3 sources together"),
        (
            |spec| {
                let own = inner(spec).clone();
                spec.join.as_mut().unwrap().inner.push(own);
            },
            "join `join 1`: 3 joins do not bring 3 sources together",
        ),
        (
            |spec| spec.join.as_mut().unwrap().sources[2].apart = true,
            "join `join 1`: 2 joins do not bring 2 sources together",
        ),
        (
            |spec| spec.join.as_mut().unwrap().sources[2].first_file += 1,
            "join `join 1`: its sources have not as many files each: 2, 3, 1",
        ),
        (|spec| spec.memory.blocks = 5, "join `join 1`: 5 blocks are fewer than the 6 that 2 streams hold"),
        (|spec| inner(spec).keys[0][1] = "n2".to_owned(), "join `join 0`: its right rows have no column `n2`"),
        (|spec| inner(spec).inputs = vec![RowsOf::FIRST], "1 inputs are not those of 2 sources"),
        (
            |spec| last(spec).inputs[0] = RowsOf { transform: Some(0), output: 0 },
            "the rows of transform `at 0` are read on the other side of a join or union",
        ),
    ];
    let mut chance = Chance(5);
    let case = Case::of(Tree::of(SHAPES[0], |place| place == 0 || place == 3, &mut chance), 2, 10, &mut chance);
    assert!(Flow::new(case.spec(2)).is_ok());
    for (change, text) in changes {
        let mut spec = case.spec(2);
        change(&mut spec);
        let error = Flow::new(spec).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((error.kind, error.what), (ErrorKind::Specification, format!("flow test: {text}")));
    }
}

#[test]
fn what_stands_between_joins_stands_behind_what_stands_in_front_of_them() {
    let mut chance = Chance(6);
    let case = Case::of(Tree::of(SHAPES[0], |place| place == 0 || place == 3, &mut chance), 1, 10, &mut chance);
    let mut spec = case.spec(1);
    spec.transforms.swap(0, 1);
    let join = spec.join.as_mut().unwrap();
    join.inner[0].inputs[0] = RowsOf { transform: Some(1), output: 0 };
    join.last.inputs[0] = RowsOf { transform: Some(0), output: 0 };
    let error = Flow::new(spec).err().unwrap();
    assert_eq!(error.what, "flow test: transform 1 is read before it has any rows");
}

#[test]
fn whatever_numbers_joins_have_they_are_refused_or_taken() {
    let mut chance = Chance(7);
    for shape in [SHAPES[0], SHAPES[5]] {
        let mut case = Case::of(Tree::of(shape, |place| place % 2 == 0, &mut chance), 1, 10, &mut chance);
        case.apart = Some(vec![1]);
        let is_asked = |path: &str| path.starts_with("/join") || path.starts_with("/transforms");
        refused_or_taken(&case.json(1), is_asked);
    }
}
