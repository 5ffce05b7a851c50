//! Which rows meet.

use arrow_buffer::NullBuffer;

use super::codes::{Codes, CodesOf};
use super::input::{Input, is_null};
use super::{JoinKind, Side};

/// In the place of a row that is missing.
pub const NO_ROW: u32 = u32::MAX;

/// Rows that come out: for each its left and its right row, in the batches at hand.
#[derive(Debug, Default)]
pub struct Pairs {
    pub left: Vec<u32>,
    pub right: Vec<u32>,
    /// Whether a row of the side is missing somewhere.
    pub is_missing: [bool; 2],
}

impl Pairs {
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
        self.is_missing = [false; 2];
    }

    fn push(&mut self, left: u32, right: u32) {
        self.left.push(left);
        self.right.push(right);
    }
}

/// Lets rows go until a side has none left at hand, or there are `most_rows` pairs. `is_matched`: whether the present left row
/// has met one.
///
/// What is done next depends on the first rows of both sides only: so one of each, or the end, must be at hand.
pub fn merge(
    kind: JoinKind,
    left: &mut Input,
    right: &mut Input,
    is_matched: &mut bool,
    pairs: &mut Pairs,
    most_rows: usize,
) {
    if left.is_needed() || right.is_needed() {
        return;
    }
    if left.rows_left() > 0 && right.rows_left() > 0 {
        match (left.codes(), right.codes()) {
            (Codes::Numbers(left_codes), Codes::Numbers(right_codes)) => {
                let walk = Walk::new(kind, (left, left_codes), (right, right_codes), *is_matched, most_rows);
                walk.run(pairs).end(left, right, is_matched);
            }
            (Codes::Bytes(left_codes), Codes::Bytes(right_codes)) => {
                let walk = Walk::new(kind, (left, left_codes), (right, right_codes), *is_matched, most_rows);
                walk.run(pairs).end(left, right, is_matched);
            }
            // Both plans are of one form.
            _ => {}
        }
    }
    if left.is_needed() || right.is_needed() {
        return;
    }
    // At most one side has rows left; those meet nothing.
    if right.rows_left() == 0 && left.rows_left() > 0 && pairs.left.len() < most_rows {
        drain(kind, left, pairs, std::mem::take(is_matched));
    } else if left.rows_left() == 0 && right.rows_left() > 0 && pairs.left.len() < most_rows {
        drain(kind, right, pairs, false);
    }
}

/// The rows of a side whose other one has ended. `is_matched`: whether the first of them has met one before.
fn drain(kind: JoinKind, input: &mut Input, pairs: &mut Pairs, is_matched: bool) {
    let (first, end) = input.window();
    let first = first + usize::from(is_matched);
    let side = input.side();
    if kind.keeps(side) && first < end {
        pairs.is_missing[side.other().index()] = true;
        for row in first..end {
            match side {
                Side::Left => pairs.push(row as u32, NO_ROW),
                Side::Right => pairs.push(NO_ROW, row as u32),
            }
        }
    }
    input.advance(end, (end - first) as u64);
}

/// The way through two batches.
struct Walk<'a, C> {
    kind: JoinKind,
    codes: [&'a C; 2],
    nulls: [Option<&'a NullBuffer>; 2],
    next: [usize; 2],
    end: [usize; 2],
    most_rows: usize,
    is_matched: bool,
    unmatched: [u64; 2],
}

/// Where it has ended.
struct Walked {
    next: [usize; 2],
    unmatched: [u64; 2],
    is_matched: bool,
}

impl Walked {
    fn end(self, left: &mut Input, right: &mut Input, is_matched: &mut bool) {
        left.advance(self.next[0], self.unmatched[0]);
        right.advance(self.next[1], self.unmatched[1]);
        *is_matched = self.is_matched;
    }
}

impl<'a, C: CodesOf> Walk<'a, C> {
    fn new(
        kind: JoinKind,
        (left, left_codes): (&'a Input, &'a C),
        (right, right_codes): (&'a Input, &'a C),
        is_matched: bool,
        most_rows: usize,
    ) -> Self {
        let ((left_next, left_end), (right_next, right_end)) = (left.window(), right.window());
        Walk {
            kind,
            codes: [left_codes, right_codes],
            nulls: [left.nulls(), right.nulls()],
            next: [left_next, right_next],
            end: [left_end, right_end],
            most_rows,
            is_matched,
            unmatched: [0; 2],
        }
    }

    fn run(self, pairs: &mut Pairs) -> Walked {
        match (self.nulls, self.kind) {
            ([None, None], JoinKind::Inner) => self.walk::<false, false>(pairs),
            ([None, None], _) => self.walk::<false, true>(pairs),
            (_, JoinKind::Inner) => self.walk::<true, false>(pairs),
            (_, _) => self.walk::<true, true>(pairs),
        }
    }

    /// `NULLS`: whether rows may have no key; `OUTER`: whether rows come out that have met none.
    fn walk<const NULLS: bool, const OUTER: bool>(mut self, pairs: &mut Pairs) -> Walked {
        let [keeps_left, keeps_right] = Side::BOTH.map(|side| OUTER && self.kind.keeps(side));
        let [mut left, mut right] = self.next;
        let [left_codes, right_codes] = self.codes;
        let mut is_matched = self.is_matched;
        while left < self.end[0] && right < self.end[1] && pairs.left.len() < self.most_rows {
            // A row without a key goes before the other side's.
            let is_left_first = NULLS && is_null(self.nulls[0], left);
            let is_right_first = NULLS && !is_left_first && is_null(self.nulls[1], right);
            let (code, other) = (left_codes.at(left), right_codes.at(right));
            if !is_left_first && !is_right_first && code == other {
                pairs.push(left as u32, right as u32);
                is_matched = true;
                right += 1;
            } else if is_left_first || (!is_right_first && code < other) {
                if !is_matched {
                    self.unmatched[0] += 1;
                    if keeps_left {
                        pairs.push(left as u32, NO_ROW);
                        pairs.is_missing[1] = true;
                    }
                }
                is_matched = false;
                left += 1;
            } else {
                self.unmatched[1] += 1;
                if keeps_right {
                    pairs.push(NO_ROW, right as u32);
                    pairs.is_missing[0] = true;
                }
                right += 1;
            }
        }
        Walked { next: [left, right], unmatched: self.unmatched, is_matched }
    }
}
