//! Joins of random rows, in which whole rows are left out and refused, and the same by nested loops.
//!
//! Each source has rows of a key and a number that no other row of the flow has. All columns go through all joins.

use std::collections::BTreeMap;

use headrace_engine::report::JoinCounts;

/// A row: of each source its key and number, if it has one of it.
pub type Row = Vec<Option<(Option<i64>, i64)>>;

/// The numbers of rows, and how often each row comes.
pub type Numbers = BTreeMap<Vec<Option<i64>>, usize>;

/// A join: what stands left and right, and of which source the key is on that side.
#[derive(Debug, Clone)]
pub struct Join {
    pub kind: &'static str,
    /// Numbers of sources, or behind them those of joins.
    pub sides: [usize; 2],
    pub keys: [usize; 2],
}

/// The joins of a flow, each behind its sides, and where transforms stand.
#[derive(Debug, Clone)]
pub struct Tree {
    pub leaves: usize,
    pub joins: Vec<Join>,
    /// In front of which sources and inner joins one stands; the last one is behind the last join.
    pub has_front: Vec<bool>,
}

/// What a transform does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    GoesOn,
    IsLeftOut,
    IsRefused,
}

/// What the one at a place does with a row of these numbers.
pub fn fate(place: usize, numbers: impl Iterator<Item = i64>) -> Fate {
    match (numbers.sum::<i64>() + 3 * place as i64) % 37 {
        0 => Fate::IsRefused,
        1..=3 => Fate::IsLeftOut,
        _ => Fate::GoesOn,
    }
}

/// What has become of a unit.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: Vec<Row>,
    /// Of each source and inner join.
    pub counts: Vec<JoinCounts>,
    /// Rows before, left out and refused at each place.
    pub fronts: Vec<[u64; 3]>,
    /// The numbers of the refused rows, and how many of each source have come into a join before.
    pub refused: Vec<i64>,
    pub refused_behind: Vec<u64>,
}

/// Random numbers.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// What the leaves of the joins look like: the joins as pairs of sides, in the order in which they stand.
pub const SHAPES: [&[[usize; 2]]; 7] = [
    &[[0, 1], [3, 2]],
    &[[1, 2], [0, 3]],
    &[[0, 1], [2, 3], [4, 5]],
    &[[2, 3], [1, 4], [0, 5]],
    &[[0, 1], [4, 2], [5, 3]],
    &[[1, 2], [4, 3], [0, 5]],
    &[[1, 2], [0, 4], [5, 3]],
];

impl Tree {
    /// One of this shape, with other things by chance.
    pub fn of(shape: &[[usize; 2]], has_front: impl Fn(usize) -> bool, chance: &mut Chance) -> Self {
        let leaves = shape.len() + 1;
        let mut tree =
            Tree { leaves, joins: Vec::new(), has_front: (0..leaves + shape.len()).map(has_front).collect() };
        for sides in shape {
            let kind = ["inner", "left", "right", "full"][chance.below(4)];
            let keys = sides.map(|side| {
                let own = tree.leaves_of(side);
                own[chance.below(own.len())]
            });
            tree.joins.push(Join { kind, sides: *sides, keys });
        }
        tree
    }

    /// The sources below a side.
    pub fn leaves_of(&self, side: usize) -> Vec<usize> {
        match side.checked_sub(self.leaves) {
            None => vec![side],
            Some(join) => self.joins[join].sides.iter().flat_map(|side| self.leaves_of(*side)).collect(),
        }
    }

    /// Whether keys of a source come once: it is below a left side.
    fn is_unique(&self, leaf: usize) -> bool {
        self.joins.iter().any(|join| self.leaves_of(join.sides[0]).contains(&leaf))
    }

    /// The rows of a unit.
    pub fn rows(&self, unit: usize, most: usize, chance: &mut Chance) -> Vec<Vec<(Option<i64>, i64)>> {
        let mut of = |leaf: usize| {
            let rows = most / 2 + chance.below(most);
            let (mut key, mut number) = (10_000 * unit as i64, (100 * leaf + unit) as i64 * 100_000);
            let row = |_| {
                number += 1 + chance.below(9) as i64;
                key += chance.below(4) as i64 + i64::from(self.is_unique(leaf));
                ((chance.below(25) > 0).then_some(key), number)
            };
            (0..rows).map(row).collect::<Vec<_>>()
        };
        (0..self.leaves).map(&mut of).collect()
    }

    /// What becomes of them.
    pub fn run(&self, unit: &[Vec<(Option<i64>, i64)>]) -> Outcome {
        let places = self.leaves + self.joins.len();
        let mut outcome = Outcome { refused_behind: vec![0; self.leaves], ..Outcome::default() };
        outcome.fronts = vec![[0; 3]; places];
        outcome.counts = vec![JoinCounts::default(); places - 1];
        let mut feeds: Vec<Vec<Row>> = Vec::new();
        for place in 0..places {
            let rows = match place.checked_sub(self.leaves) {
                None => self.rows_of(place, unit),
                Some(join) => self.joined(join, &feeds, &mut outcome.counts),
            };
            let rows = self.behind(place, rows, &mut outcome);
            feeds.push(rows);
        }
        outcome.rows = feeds.pop().unwrap_or_default();
        for leaf in 0..self.leaves {
            outcome.counts[leaf].rejected = outcome.refused_behind[leaf];
        }
        for inner in self.leaves..places - 1 {
            outcome.counts[inner].rejected = outcome.fronts[inner][2];
        }
        outcome
    }

    fn rows_of(&self, leaf: usize, unit: &[Vec<(Option<i64>, i64)>]) -> Vec<Row> {
        let row = |own: &(Option<i64>, i64)| (0..self.leaves).map(|other| (other == leaf).then_some(*own)).collect();
        unit[leaf].iter().map(row).collect()
    }

    fn joined(&self, join: usize, feeds: &[Vec<Row>], counts: &mut [JoinCounts]) -> Vec<Row> {
        let Join { kind, sides, keys } = &self.joins[join];
        let [left, right] = sides.map(|side| &feeds[side]);
        let key = |row: &Row, side: usize| row[keys[side]].and_then(|own| own.0);
        let keeps = [*kind == "left" || *kind == "full", *kind == "right" || *kind == "full"];
        let mut is_matched = [vec![false; left.len()], vec![false; right.len()]];
        let mut joined = Vec::new();
        for (place, own) in left.iter().enumerate() {
            for (other_place, other) in right.iter().enumerate() {
                if key(own, 0).is_some() && key(own, 0) == key(other, 1) {
                    joined.push(own.iter().zip(other).map(|(own, other)| own.or(*other)).collect());
                    (is_matched[0][place], is_matched[1][other_place]) = (true, true);
                }
            }
        }
        for (side, rows) in [left, right].into_iter().enumerate() {
            let alone: Vec<Row> = rows
                .iter()
                .zip(&is_matched[side])
                .filter(|(_, is_matched)| !**is_matched)
                .map(|(row, _)| row.clone())
                .collect();
            counts[sides[side]] = JoinCounts {
                rows: rows.len() as u64,
                unmatched: alone.len() as u64,
                filtered: if keeps[side] { 0 } else { alone.len() as u64 },
                null_keys: rows.iter().filter(|row| key(row, side).is_none()).count() as u64,
                rejected: 0,
            };
            joined.extend(alone.into_iter().filter(|_| keeps[side]));
        }
        joined
    }

    /// The rows behind the transform of a place.
    fn behind(&self, place: usize, rows: Vec<Row>, outcome: &mut Outcome) -> Vec<Row> {
        if !self.has_front[place] {
            return rows;
        }
        let mut left = Vec::new();
        for row in rows {
            outcome.fronts[place][0] += 1;
            match fate(place, row.iter().flatten().map(|own| own.1)) {
                Fate::GoesOn => left.push(row),
                Fate::IsLeftOut => outcome.fronts[place][1] += 1,
                Fate::IsRefused => {
                    outcome.fronts[place][2] += 1;
                    // The row of the last source stands for all.
                    let found = row.iter().enumerate().rev().find_map(|(leaf, own)| Some((leaf, (*own)?.1)));
                    let (leaf, number) = found.unwrap();
                    outcome.refused.push(number);
                    outcome.refused_behind[leaf] += u64::from(place >= self.leaves);
                }
            }
        }
        left
    }

    /// The numbers of rows, in an order that does not depend on threads.
    pub fn numbers(rows: impl Iterator<Item = Row>) -> Numbers {
        let mut all = BTreeMap::new();
        for row in rows {
            *all.entry(row.iter().map(|own| own.map(|own| own.1)).collect()).or_default() += 1;
        }
        all
    }
}
