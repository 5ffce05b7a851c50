//! The rows of a batch by their partition.

/// The place of a row that no partition takes.
pub const OUTSIDE: u32 = u32::MAX;

/// Where the rows of a batch go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routed {
    /// All of them to one place: the batch can stay as it is.
    Whole(u32),
    /// Row numbers by place, in ascending order of both.
    Divided(Vec<(u32, Vec<u32>)>),
}

impl Routed {
    /// Sorts rows by their places. An empty batch is `Divided` into nothing.
    pub fn of(places: &[u32]) -> Routed {
        let Some(&first) = places.first() else { return Routed::Divided(Vec::new()) };
        // The loop without an early end is vectorised.
        if !places.iter().fold(false, |differs, &place| differs | (place != first)) {
            return Routed::Whole(first);
        }
        let mut divided: Vec<(u32, Vec<u32>)> = Vec::new();
        // Rows of neighbours often go to the same place: its index is found without searching.
        let mut last = 0;
        for (row, &place) in (0_u32..).zip(places) {
            if divided.get(last).is_none_or(|(own, _)| *own != place) {
                last = divided.binary_search_by_key(&place, |(own, _)| *own).unwrap_or_else(|index| {
                    divided.insert(index, (place, Vec::new()));
                    index
                });
            }
            divided[last].1.push(row);
        }
        Routed::Divided(divided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided_in_order() {
        assert_eq!(Routed::of(&[]), Routed::Divided(vec![]));
        assert_eq!(Routed::of(&[7, 7, 7]), Routed::Whole(7));
        assert_eq!(Routed::of(&[OUTSIDE]), Routed::Whole(OUTSIDE));
        let divided = vec![(1, vec![1, 4]), (3, vec![0, 3]), (9, vec![2]), (OUTSIDE, vec![5])];
        assert_eq!(Routed::of(&[3, 1, 9, 3, 1, OUTSIDE]), Routed::Divided(divided));
    }
}
