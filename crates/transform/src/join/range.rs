//! From which to which key rows go.

use serde::{Deserialize, Serialize};

use super::codes::OwnedCode;
use crate::lookup::KeyValue;

/// The first and the last key of rows, both included. Only those of joins with the same key types can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub(super) first: RangeEnd,
    pub(super) last: RangeEnd,
}

/// A key, as it is compared and as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeEnd {
    pub code: OwnedCode,
    pub key: Vec<KeyValue>,
}

/// The same without what is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRange {
    first: OwnedCode,
    last: OwnedCode,
}

impl CodeRange {
    /// Whether all of its keys are less than all of the other one's.
    pub fn is_before(&self, other: &CodeRange) -> bool {
        self.last < other.first
    }
}

impl KeyRange {
    /// The range that holds both.
    pub fn with(self, other: KeyRange) -> KeyRange {
        let first = if other.first.code < self.first.code { other.first } else { self.first };
        let last = if other.last.code > self.last.code { other.last } else { self.last };
        KeyRange { first, last }
    }

    /// What can be compared of it.
    pub fn codes(&self) -> CodeRange {
        CodeRange { first: self.first.code.clone(), last: self.last.code.clone() }
    }

    /// The first key: a value for each key column.
    pub fn first(&self) -> &[KeyValue] {
        &self.first.key
    }

    /// The last key.
    pub fn last(&self) -> &[KeyValue] {
        &self.last.key
    }
}
