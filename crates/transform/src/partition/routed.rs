//! The rows of a batch by their partition.

use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;

/// The place of a row that no partition takes.
pub const OUTSIDE: u32 = u32::MAX;

/// Where the rows of a batch go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routed {
    /// All of them to one place: the batch can stay as it is.
    Whole(u32),
    /// To several places, or to none.
    Divided(Division),
}

/// The rows of a batch in the order of their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Division {
    /// Row numbers: by place, and within a place in their own order. Those that no partition takes are left out.
    pub order: Vec<u32>,
    /// The places that have rows, ascending, and their parts of `order`.
    pub parts: Vec<(u32, Range<usize>)>,
    /// Row numbers that no partition takes, ascending.
    pub outside: Vec<u32>,
}

impl Routed {
    /// Sorts rows by their places, each below `count` or [`OUTSIDE`]. An empty batch is divided into nothing.
    pub fn of(places: &[u32], count: u32) -> Routed {
        let first = places.first().copied().unwrap_or(OUTSIDE);
        // The loop without an early end is vectorised.
        if first != OUTSIDE && !places.iter().fold(false, |differs, &place| differs | (place != first)) {
            return Routed::Whole(first);
        }
        let slot = |place: u32| place.min(count) as usize;
        // Where the next row of each place stands; those of no place come last.
        let mut next = vec![0_u32; count as usize + 1];
        for &place in places {
            next[slot(place)] += 1;
        }
        let (mut parts, mut end) = (Vec::new(), 0);
        for (place, next) in (0..).zip(&mut next) {
            let begin = end;
            end += *next;
            *next = begin;
            if begin < end && place < count {
                parts.push((place, begin as usize..end as usize));
            }
        }
        let mut order = vec![0; places.len()];
        for (row, &place) in (0..).zip(places) {
            let next = &mut next[slot(place)];
            order[*next as usize] = row;
            *next += 1;
        }
        let outside = order.split_off(parts.last().map_or(0, |(_, part)| part.end));
        Routed::Divided(Division { order, parts, outside })
    }
}

impl Division {
    /// The rows of the batch in this order.
    ///
    /// # Errors
    /// An array of a type that has no such operation; no array of a layout's columns is of one.
    pub fn gather(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        // Rows that come in the order of their partitions stay where they are.
        if self.order.len() == batch.num_rows() && self.order.is_sorted() {
            return Ok(batch);
        }
        take_record_batch(&batch, &UInt32Array::from(self.order.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringViewArray;
    use arrow_array::cast::AsArray;
    use arrow_schema::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_are_divided_in_order() {
        assert_eq!(Routed::of(&[], 3), Routed::Divided(Division::default()));
        assert_eq!(Routed::of(&[7, 7, 7], 8), Routed::Whole(7));
        let outside = Division { outside: vec![0, 1], ..Division::default() };
        assert_eq!(Routed::of(&[OUTSIDE, OUTSIDE], 0), Routed::Divided(outside));
        let divided =
            Division { order: vec![1, 4, 0, 3, 2], parts: vec![(1, 0..2), (3, 2..4), (9, 4..5)], outside: vec![5] };
        assert_eq!(Routed::of(&[3, 1, 9, 3, 1, OUTSIDE], 10), Routed::Divided(divided));
    }

    proptest! {
        #[test]
        fn every_row_is_gathered_once_at_its_place(places in prop::collection::vec(prop_oneof![0_u32..5, Just(OUTSIDE)], 0..80)) {
            let texts: Vec<String> = (0..places.len()).map(|row| format!("a text of row {row}")).collect();
            let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8View, false)]));
            let batch = RecordBatch::try_new(schema, vec![Arc::new(StringViewArray::from_iter_values(&texts))]).unwrap();
            let Routed::Divided(division) = Routed::of(&places, 5) else {
                prop_assert!(places.iter().all(|place| *place == places[0]) && places[0] != OUTSIDE);
                return Ok(());
            };
            let gathered = division.gather(batch).unwrap();
            let found = gathered.column(0).as_string_view();
            let mut end = 0;
            for (place, part) in &division.parts {
                prop_assert_eq!(part.start, end);
                end = part.end;
                let rows = (0..places.len()).filter(|row| places[*row] == *place);
                let expected: Vec<&str> = rows.map(|row| texts[row].as_str()).collect();
                prop_assert_eq!(part.clone().map(|row| found.value(row)).collect::<Vec<_>>(), expected);
            }
            prop_assert_eq!(end, gathered.num_rows());
            let outside: Vec<u32> = (0..).zip(&places).filter(|(_, place)| **place == OUTSIDE).map(|(row, _)| row).collect();
            prop_assert_eq!(&division.outside, &outside);
            prop_assert_eq!(end + outside.len(), places.len());
        }
    }
}
