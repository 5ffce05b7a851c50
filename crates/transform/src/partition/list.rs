//! Lists of values, each in one partition.

use std::collections::HashMap;

use arrow_array::{Array, BooleanArray, FixedSizeBinaryArray, StringViewArray};

use super::keys::{Key, Keys};
use super::routed::OUTSIDE;

/// Values and the numbers of their partitions.
#[derive(Debug, Clone)]
pub struct ListPartitions {
    values: Values,
    /// Of rows without a value.
    null: u32,
    /// Of rows with a value that no list holds.
    default: u32,
}

#[derive(Debug, Clone)]
enum Values {
    Keys(HashMap<Key, u32>),
    Bytes(HashMap<Vec<u8>, u32>),
}

impl ListPartitions {
    /// Lists of whole numbers, decimals, dates or timestamps; truth values are 0 and 1. `null` and `default` are numbers of
    /// partitions; rows without a value go to the default if no list holds them.
    pub fn of_keys(values: impl IntoIterator<Item = (Key, u32)>, null: Option<u32>, default: Option<u32>) -> Self {
        Self::new(Values::Keys(values.into_iter().collect()), null, default)
    }

    /// Lists of texts or identifiers, compared byte by byte.
    pub fn of_bytes(values: impl IntoIterator<Item = (Vec<u8>, u32)>, null: Option<u32>, default: Option<u32>) -> Self {
        Self::new(Values::Bytes(values.into_iter().collect()), null, default)
    }

    fn new(values: Values, null: Option<u32>, default: Option<u32>) -> Self {
        let default = default.unwrap_or(OUTSIDE);
        ListPartitions { values, null: null.unwrap_or(default), default }
    }

    pub(super) fn place(&self, column: &dyn Array, places: &mut Vec<u32>) -> bool {
        places.reserve(column.len());
        match &self.values {
            Values::Keys(values) => {
                let mut find = |key: Key| places.push(values.get(&key).copied().unwrap_or(self.default));
                if let Some(keys) = Keys::of(column) {
                    keys.for_each(find);
                } else if let Some(truths) = column.as_any().downcast_ref::<BooleanArray>() {
                    truths.values().iter().for_each(|truth| find(truth.into()));
                } else {
                    return false;
                }
            }
            Values::Bytes(values) => {
                let mut find = |bytes: &[u8]| places.push(values.get(bytes).copied().unwrap_or(self.default));
                if let Some(texts) = column.as_any().downcast_ref::<StringViewArray>() {
                    (0..texts.len()).for_each(|row| find(texts.value(row).as_bytes()));
                } else if let Some(identifiers) = column.as_any().downcast_ref::<FixedSizeBinaryArray>() {
                    (0..identifiers.len()).for_each(|row| find(identifiers.value(row)));
                } else {
                    return false;
                }
            }
        }
        if let Some(nulls) = column.nulls() {
            let missing = nulls.iter().zip(places).filter(|(is_valid, _)| !is_valid);
            missing.for_each(|(_, place)| *place = self.null);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Date32Array, Float64Array};

    use super::*;

    fn places(partitions: &ListPartitions, column: &dyn Array) -> Vec<u32> {
        let mut places = Vec::new();
        assert!(partitions.place(column, &mut places));
        places
    }

    #[test]
    fn values_find_their_lists() {
        let texts = |values: [(&str, u32); 2]| values.map(|(text, number)| (text.as_bytes().to_vec(), number));
        let column = StringViewArray::from(vec![Some("FR"), Some("CN"), Some("fr"), None, Some("")]);
        let partitions = ListPartitions::of_bytes(texts([("FR", 0), ("CN", 1)]), None, None);
        assert_eq!(places(&partitions, &column), [0, 1, OUTSIDE, OUTSIDE, OUTSIDE]);
        let partitions = ListPartitions::of_bytes(texts([("FR", 0), ("", 1)]), Some(0), Some(7));
        assert_eq!(places(&partitions, &column), [0, 7, 7, 0, 1]);
        let partitions = ListPartitions::of_keys([(-3, 2), (19_000, 5)], None, Some(1));
        assert_eq!(places(&partitions, &Date32Array::from(vec![Some(19_000), Some(-3), None])), [5, 2, 1]);
        let partitions = ListPartitions::of_keys([(1, 2), (0, 5)], None, None);
        assert_eq!(places(&partitions, &BooleanArray::from(vec![true, false])), [2, 5]);
        assert!(!partitions.place(&Float64Array::from(vec![1.0]), &mut Vec::new()));
    }
}
