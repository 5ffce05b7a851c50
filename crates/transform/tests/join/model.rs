//! Rows of both sides, a join by nested loops, and the rows that the merge join gives.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use headrace_transform::join::{
    InputCounts, JoinError, JoinKey, JoinKind, JoinSpec, MergeJoin, OutputColumn, Side, Step,
};
use headrace_types::ColumnType;

pub const KINDS: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full];

/// The column types of one side's keys.
pub type Types = Vec<ColumnType>;

/// The rows of a side: an array for each key column. A row's number is its place.
#[derive(Debug, Clone)]
pub struct Rows {
    pub types: Types,
    pub keys: Vec<ArrayRef>,
}

/// Numbers of a left and a right row that have met; none if a row has met none.
pub type Pair = (Option<i64>, Option<i64>);

impl Rows {
    pub fn count(&self) -> usize {
        self.keys[0].len()
    }

    fn schema(&self) -> SchemaRef {
        let key = |(place, column_type): (usize, &ColumnType)| column_type.arrow_field(&format!("k{place}"), true);
        let number = ColumnType::Int64.arrow_field("number", false);
        Arc::new(Schema::new(self.types.iter().enumerate().map(key).chain([number]).collect::<Vec<Field>>()))
    }

    /// Batches that end before these rows.
    pub fn batches(&self, cuts: &[usize]) -> Vec<RecordBatch> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..self.count() as i64));
        let columns = self.keys.iter().cloned().chain([numbers]).collect();
        let whole = RecordBatch::try_new(self.schema(), columns).unwrap();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (self.count() + 1)).chain([self.count()]).collect();
        ends.sort_unstable();
        let mut begin = 0;
        let batch = |end: usize| {
            let from = std::mem::replace(&mut begin, end);
            whole.slice(from, end - from)
        };
        ends.into_iter().map(batch).collect()
    }
}

pub fn join(kind: JoinKind, left: &Rows, right: &Rows) -> MergeJoin {
    let keys = (0..left.types.len()).map(|place| JoinKey {
        left: place,
        left_type: left.types[place],
        right: place,
        right_type: right.types[place],
    });
    let number = |side, rows: &Rows| OutputColumn { side, column: rows.types.len() };
    let schema = ["left", "right"].map(|name| ColumnType::Int64.arrow_field(name, true));
    MergeJoin::new(JoinSpec {
        kind,
        keys: keys.collect(),
        columns: vec![number(Side::Left, left), number(Side::Right, right)],
        schema: Arc::new(Schema::new(schema.to_vec())),
    })
    .unwrap()
}

/// All that comes out, and the counts of both sides.
pub fn joined(
    kind: JoinKind,
    left: &Rows,
    right: &Rows,
    cuts: [&[usize]; 2],
) -> Result<(Vec<Pair>, [InputCounts; 2]), JoinError> {
    let mut join = join(kind, left, right);
    let pairs = run(&mut join, left, right, cuts)?;
    Ok((pairs, Side::BOTH.map(|side| join.counts(side))))
}

/// All that comes out of a join.
pub fn run(join: &mut MergeJoin, left: &Rows, right: &Rows, cuts: [&[usize]; 2]) -> Result<Vec<Pair>, JoinError> {
    let mut inputs = [left.batches(cuts[0]).into_iter(), right.batches(cuts[1]).into_iter()];
    let mut pairs = Vec::new();
    loop {
        match join.step().unwrap() {
            Step::Needs(side) => match inputs[side.index()].next() {
                Some(batch) => join.push(side, batch)?,
                None => join.end(side),
            },
            Step::Rows(batch) => {
                assert!(batch.num_rows() > 0);
                let [lefts, rights] = [0, 1].map(|place| batch.column(place).as_primitive::<Int64Type>().clone());
                pairs.extend(lefts.iter().zip(rights.iter()));
            }
            Step::Ended => return Ok(pairs),
        }
    }
}

/// The same by nested loops over keys, of which none matches nothing; without an order.
pub fn expected<K: PartialEq>(kind: JoinKind, left: &[Option<K>], right: &[Option<K>]) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let meet = |one: &Option<K>, other: &Option<K>| one.is_some() && one == other;
    for (row, key) in left.iter().enumerate() {
        let met: Vec<usize> = (0..right.len()).filter(|other| meet(key, &right[*other])).collect();
        pairs.extend(met.iter().map(|other| (Some(row as i64), Some(*other as i64))));
        if met.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full) {
            pairs.push((Some(row as i64), None));
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let alone = (0..right.len()).filter(|row| !left.iter().any(|key| meet(key, &right[*row])));
        pairs.extend(alone.map(|row| (None, Some(row as i64))));
    }
    pairs.sort_unstable();
    pairs
}
