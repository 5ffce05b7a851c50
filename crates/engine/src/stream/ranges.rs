//! The keys of the units of files that were joined: a key that stands in two of them may have rows in the one whose others
//! are in the other one, which would never meet.

use std::collections::HashMap;
use std::sync::Mutex;

use headrace_transform::join::CodeRange;
use serde::{Deserialize, Serialize};

use crate::outcome::lock;

/// Of each join the ranges of units that do not overlap, in their order.
#[derive(Debug, Default)]
pub struct JoinedRanges(Mutex<HashMap<usize, Vec<JoinedRange>>>);

/// The keys of a unit of files in a join.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinedRange {
    /// The place of the join among all; the last one stands behind the others.
    pub join: usize,
    /// The file with the unit's first slice of which rows come into the join.
    pub file: usize,
    /// The keys of both sides.
    pub keys: CodeRange,
    /// The first and the last one, as they are shown.
    pub shown: [String; 2],
}

impl JoinedRanges {
    /// Notes the keys of a unit, unless another one has some of them: that is given back.
    pub fn add(&self, range: JoinedRange) -> Option<JoinedRange> {
        let mut all = lock(&self.0);
        let ranges = all.entry(range.join).or_default();
        let place = ranges.partition_point(|other| other.keys.is_before(&range.keys));
        let next = ranges.get(place).filter(|next| !range.keys.is_before(&next.keys)).cloned();
        if next.is_none() {
            ranges.insert(place, range);
        }
        next
    }
}
