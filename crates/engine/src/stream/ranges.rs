//! The keys of the pairs of files that were joined: a key that stands in two of them may have rows in the one whose others
//! are in the other one, which would never meet.

use std::sync::Mutex;

use headrace_transform::join::CodeRange;
use serde::{Deserialize, Serialize};

use crate::outcome::lock;

/// Ranges of pairs that do not overlap, in their order.
#[derive(Debug, Default)]
pub struct JoinedRanges(Mutex<Vec<JoinedRange>>);

/// The keys of a pair of files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinedRange {
    /// The file with the pair's first slice.
    pub file: usize,
    /// The keys of both.
    pub keys: CodeRange,
    /// The first and the last one, as they are shown.
    pub shown: [String; 2],
}

impl JoinedRanges {
    /// Notes the keys of a pair, unless another one has some of them: that is given back.
    pub fn add(&self, range: JoinedRange) -> Option<JoinedRange> {
        let mut ranges = lock(&self.0);
        let place = ranges.partition_point(|other| other.keys.is_before(&range.keys));
        let next = ranges.get(place).filter(|next| !range.keys.is_before(&next.keys)).cloned();
        if next.is_none() {
            ranges.insert(place, range);
        }
        next
    }
}
