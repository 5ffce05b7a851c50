//! Ranges of keys, the lower bound included, the upper one not: RANGE RIGHT, as PostgreSQL has it.

use arrow_array::Array;

use super::keys::{Key, Keys};
use super::routed::OUTSIDE;

/// The keys of a partition. `None` is an open end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The least key.
    pub minimum: Option<Key>,
    /// The first key behind.
    pub end: Option<Key>,
}

/// Ranges that do not overlap.
#[derive(Debug, Clone)]
pub struct RangePartitions {
    /// By their least keys: bounds, and number in the declaration.
    sorted: Vec<(Bounds, u32)>,
    /// Of rows without a key, or with one that no range holds.
    default: u32,
}

/// A range; an open end is the end of all keys. The greatest `i128` itself is no key of any type.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    minimum: Key,
    end: Key,
}

impl Bounds {
    fn hold(&self, key: Key) -> bool {
        self.minimum <= key && key < self.end
    }
}

impl RangePartitions {
    /// `default`: number of the partition that takes all other rows, also those without a key.
    ///
    /// # Errors
    /// Says which two ranges overlap, or which one is empty, by their numbers.
    pub fn new(ranges: &[Range], default: Option<u32>) -> Result<Self, String> {
        let bounds =
            |range: &Range| Bounds { minimum: range.minimum.unwrap_or(Key::MIN), end: range.end.unwrap_or(Key::MAX) };
        let mut sorted: Vec<(Bounds, u32)> = ranges.iter().map(bounds).zip(0..).collect();
        if let Some((_, number)) = sorted.iter().find(|(own, _)| own.minimum >= own.end) {
            return Err(format!("range {number} is empty"));
        }
        sorted.sort_by_key(|(own, _)| own.minimum);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0.end > pair[1].0.minimum) {
            return Err(format!("ranges {} and {} overlap", pair[0].1, pair[1].1));
        }
        Ok(RangePartitions { sorted, default: default.unwrap_or(OUTSIDE) })
    }

    pub(super) fn place(&self, column: &dyn Array, places: &mut Vec<u32>) -> bool {
        let Some(keys) = Keys::of(column) else { return false };
        places.reserve(column.len());
        // Rows often come in the order of their keys: the range of the one before is tried first.
        let mut last = (Bounds { minimum: 0, end: 0 }, self.default);
        keys.for_each(|key| {
            if !last.0.hold(key) {
                last = self.find(key);
            }
            places.push(last.1);
        });
        if let Some(nulls) = column.nulls() {
            let missing = nulls.iter().zip(places).filter(|(is_valid, _)| !is_valid);
            missing.for_each(|(_, place)| *place = self.default);
        }
        true
    }

    /// The range that holds the key and its number; the default's number, with the gap around the key, if none does.
    fn find(&self, key: Key) -> (Bounds, u32) {
        let behind = self.sorted.partition_point(|(own, _)| own.minimum <= key);
        let before = behind.checked_sub(1).map(|index| self.sorted[index]);
        match before {
            Some(found) if found.0.hold(key) => found,
            _ => {
                let minimum = before.map_or(Key::MIN, |(own, _)| own.end);
                let end = self.sorted.get(behind).map_or(Key::MAX, |(own, _)| own.minimum);
                (Bounds { minimum, end }, self.default)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Int16Array, Int32Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn range(minimum: impl Into<Option<Key>>, end: impl Into<Option<Key>>) -> Range {
        Range { minimum: minimum.into(), end: end.into() }
    }

    fn places(partitions: &RangePartitions, column: &dyn Array) -> Vec<u32> {
        let mut places = Vec::new();
        assert!(partitions.place(column, &mut places));
        places
    }

    #[test]
    fn bounds_belong_to_the_right() {
        let partitions = RangePartitions::new(&[range(10, 20), range(None, 0), range(20, None)], None).unwrap();
        let keys = Int32Array::from(vec![
            Some(10),
            Some(9),
            Some(20),
            Some(19),
            None,
            Some(i32::MIN),
            Some(0),
            Some(i32::MAX),
        ]);
        assert_eq!(places(&partitions, &keys), [0, OUTSIDE, 2, 0, OUTSIDE, 1, OUTSIDE, 2]);
        let partitions = RangePartitions::new(&[range(10, 20)], Some(4)).unwrap();
        assert_eq!(places(&partitions, &Int16Array::from(vec![None, Some(3), Some(15)])), [4, 4, 0]);
        let greatest = Decimal128Array::from(vec![10_i128.pow(38) - 1, -10_i128.pow(38) + 1]);
        assert_eq!(places(&RangePartitions::new(&[range(None, None)], None).unwrap(), &greatest), [0, 0]);
    }

    #[test]
    fn wrong_ranges_are_refused() {
        let error = |ranges: &[Range]| RangePartitions::new(ranges, None).unwrap_err();
        assert_eq!(error(&[range(0, 5), range(7, 7)]), "range 1 is empty");
        assert_eq!(error(&[range(4, None), range(0, 5)]), "ranges 1 and 0 overlap");
        assert_eq!(error(&[range(None, 4), range(None, 5)]), "ranges 0 and 1 overlap");
        assert!(!RangePartitions::new(&[], None).unwrap().place(&StringArray::from(vec!["1"]), &mut Vec::new()));
    }

    proptest! {
        #[test]
        fn the_search_equals_a_look_at_every_range(
            mut bounds in prop::collection::vec(-50_i32..50, 0..8),
            keys in prop::collection::vec(prop::option::weighted(0.9, -60_i32..60), 0..200),
        ) {
            bounds.sort_unstable();
            bounds.dedup();
            let ranges: Vec<Range> =
                bounds.chunks_exact(2).map(|pair| range(Key::from(pair[0]), Key::from(pair[1]))).rev().collect();
            let expected: Vec<u32> = keys
                .iter()
                .map(|key| {
                    let holds = |own: &Range| key.is_some_and(|key| {
                        own.minimum.is_some_and(|least| least <= key.into()) && own.end.is_some_and(|end| end > key.into())
                    });
                    ranges.iter().position(holds).map_or(OUTSIDE, |number| number as u32)
                })
                .collect();
            prop_assert_eq!(places(&RangePartitions::new(&ranges, None).unwrap(), &Int32Array::from(keys)), expected);
        }
    }
}
