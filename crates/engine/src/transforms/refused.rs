//! Rows that do not reach the destination because of what a transform, or the router, has found of them.

use std::sync::Arc;

use headrace_parse::RefusedRow;
use headrace_types::Rule;

use crate::spec::FileSpec;

/// Why rows are refused.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Index of the column in front of the transforms; none when no column of the row is to blame.
    pub column: Option<usize>,
    /// The rule.
    pub rule: Rule,
    /// What is to be said beside that.
    pub note: Option<Arc<str>>,
}

impl Refusal {
    /// The same of a row that is told of where the column does not stand, so that its name is a part of what is said.
    pub fn elsewhere(self, column: &str) -> Refusal {
        let note: Arc<str> = match (self.rule, &self.note) {
            (Rule::NullNotAllowed, Some(note)) => format!("column {column}, which {note}"),
            (Rule::TooLong, Some(note)) => format!("a value for column {column} is longer than {note}"),
            (_, Some(note)) => format!("{note} by {column}"),
            (_, None) => format!("by {column}"),
        }
        .into();
        Refusal { column: None, note: Some(note), ..self }
    }

    /// Of a row of the parser. `lacking`: the destinations that lack it; `field`: in which field of it a column stands.
    pub fn of_row(
        self,
        number: u32,
        lacking: Option<Arc<[usize]>>,
        field: impl FnOnce(usize) -> Option<usize>,
    ) -> RefusedRow {
        let Refusal { column, rule, note } = self;
        RefusedRow { number, column: column.and_then(field), rule, note, lacking }
    }
}

/// Who has refused rows, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuser {
    /// A transform.
    Transform(usize),
    /// A destination, at the end of its way.
    Destination(usize),
}

/// The rows of a batch on their remaining: which of those that the parser gave they are, and which of them were refused.
#[derive(Debug, Default)]
pub struct Remaining {
    /// Of each row that is left, its number in the batch of the parser; none as long as all are left.
    numbers: Option<Vec<u32>>,
    /// Number in the batch of the parser, place of the refusal.
    refused: Vec<(u32, u32)>,
    /// With whose they are, once somebody has said so.
    refusals: Vec<(Refusal, Option<Refuser>)>,
}

/// The rows of several parts of a batch, as they stood in it.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// No other part has rows.
    Only(usize),
    /// Of each row its part, and which row of it it is.
    Mixed(Vec<(usize, usize)>),
}

impl Remaining {
    /// Refuses rows, by their numbers among those that are left. They are left until [`Remaining::keep`] is told of them.
    pub fn refuse(&mut self, rows: impl IntoIterator<Item = u32>, refusal: &Refusal) {
        let number = |row: u32| self.numbers.as_ref().map_or(row, |numbers| numbers[row as usize]);
        let place = self.refusals.len() as u32;
        self.refused.extend(rows.into_iter().map(|row| (number(row), place)));
        self.refusals.push((refusal.clone(), None));
    }

    /// Says whose the refusals are of which that is not known yet.
    pub fn refused_by(&mut self, refuser: Refuser) {
        for (_, by) in &mut self.refusals {
            by.get_or_insert(refuser);
        }
    }

    /// Of the rows that are left only those stay of which `keep` is true.
    pub fn keep(&mut self, keep: &[bool]) {
        let kept = |numbers: &mut dyn Iterator<Item = u32>| {
            std::iter::zip(numbers, keep).filter(|(_, keep)| **keep).map(|(number, _)| number).collect()
        };
        self.numbers = Some(match self.numbers.take() {
            None => kept(&mut (0..)),
            Some(numbers) => kept(&mut numbers.into_iter()),
        });
    }

    /// Those of its rows of which `keep` is true, where they go another way; nothing is refused of them yet.
    pub fn part(&self, keep: &[bool]) -> Remaining {
        let mut part = self.fork();
        part.keep(keep);
        part
    }

    /// The same rows on another way.
    pub fn fork(&self) -> Remaining {
        Remaining { numbers: self.numbers.clone(), ..Remaining::default() }
    }

    /// Takes over what was refused on another way.
    pub fn absorb(&mut self, other: Remaining) {
        let first = self.refusals.len() as u32;
        self.refused.extend(other.refused.into_iter().map(|(number, place)| (number, first + place)));
        self.refusals.extend(other.refusals);
    }

    /// Parts of one batch that come together again, each with the number of its rows: no row is in two of them.
    pub fn together(parts: impl Iterator<Item = (Remaining, usize)>) -> (Remaining, Order) {
        let (mut whole, mut rows) = (Remaining::default(), Vec::new());
        let mut only = None;
        let mut mixed = false;
        for (part, (mut own, count)) in parts.enumerate() {
            let numbers = own.numbers.take();
            whole.absorb(own);
            if count == 0 && part > 0 {
                continue;
            }
            let number = |row: usize| numbers.as_ref().map_or(row as u32, |numbers| numbers[row]);
            mixed |= !rows.is_empty();
            rows.extend((0..count).map(|row| (number(row), part, row)));
            (only, whole.numbers) = (Some(part), numbers);
        }
        if !mixed {
            return (whole, Order::Only(only.unwrap_or_default()));
        }
        rows.sort_by_key(|(number, ..)| *number); // few runs, which are in order
        whole.numbers = Some(rows.iter().map(|(number, ..)| *number).collect());
        (whole, Order::Mixed(rows.into_iter().map(|(_, part, row)| (part, row)).collect()))
    }

    /// What has become of the rows that are left, which went on as a batch of their own; `of`: what is said of them here.
    pub fn behind(mut self, behind: Remaining, of: impl Fn(Refusal) -> Refusal) -> Remaining {
        let place = |row: u32| self.numbers.as_ref().map_or(row, |numbers| numbers[row as usize]);
        let refused = behind.refused.iter().map(|&(row, refusal)| (place(row), refusal)).collect();
        let numbers = match behind.numbers {
            Some(rows) => Some(rows.into_iter().map(place).collect()),
            None => self.numbers.take(),
        };
        let refusals = behind.refusals.into_iter().map(|(refusal, by)| (of(refusal), by)).collect();
        self.absorb(Remaining { numbers: None, refused, refusals });
        Remaining { numbers, ..self }
    }

    /// How many rows were refused, on any of its ways.
    pub fn refused(&self) -> u64 {
        self.refused.len() as u64
    }

    /// The numbers of the refused rows, and who has refused each: one that several ways have refused comes several times.
    pub fn refusers(&self) -> impl Iterator<Item = (u32, Refuser)> {
        self.refused.iter().filter_map(|&(number, place)| Some((number, self.refusals[place as usize].1?)))
    }

    /// Of each row that is left, its number in the batch of the parser; none as long as all are left.
    pub fn numbers(&self) -> Option<&[u32]> {
        self.numbers.as_deref()
    }

    /// The numbers of the refused rows, in the order of the batch, why they were refused, and by whom. One that several ways have
    /// refused is one, with what was found first.
    pub fn into_refusals(mut self) -> Vec<(u32, Refusal, Vec<Refuser>)> {
        self.refused.sort_unstable();
        let rows = self.refused.chunk_by(|one, other| one.0 == other.0);
        let row = |own: &[(u32, u32)]| {
            let by = own.iter().filter_map(|&(_, place)| self.refusals[place as usize].1).collect();
            own.first().map(|&(number, place)| (number, self.refusals[place as usize].0.clone(), by))
        };
        rows.filter_map(row).collect()
    }

    /// The refused rows, in the order of the batch, as the parser of a file wants them: the columns are those of its layout. `lacking`:
    /// which destinations lack what these have refused.
    pub fn into_refused(
        self,
        file: &FileSpec,
        lacking: impl Fn(&[Refuser]) -> Option<Arc<[usize]>>,
    ) -> Vec<RefusedRow> {
        let field = |own: usize| Some(file.field(own));
        let rows = self.into_refusals().into_iter();
        rows.map(|(number, refusal, by)| refusal.of_row(number, lacking(&by), field)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_numbers_through_several_refusals() {
        let refusal = |column| Refusal { column: Some(column), rule: Rule::NoMatch, note: None };
        let mut remaining = Remaining::default();
        remaining.refuse([1], &refusal(7));
        remaining.keep(&[true, false, true, true]);
        remaining.refuse([2], &refusal(8)); // the fourth
        remaining.refuse([0], &refusal(9));
        remaining.keep(&[false, true, false]);
        assert_eq!((remaining.refused.len(), remaining.numbers.clone()), (3, Some(vec![2])));
        let refused: Vec<_> =
            remaining.into_refused(&FileSpec::default(), |_| None).iter().map(|row| (row.number, row.column)).collect();
        assert_eq!(refused, [(0, Some(9)), (1, Some(7)), (3, Some(8))]);
    }

    #[test]
    fn a_row_that_two_ways_refuse_is_one_reject() {
        let refusal = |column| Refusal { column: Some(column), rule: Rule::NoMatch, note: None };
        let mut remaining = Remaining::default();
        remaining.keep(&[false, true, true, true]);
        let mut part = remaining.part(&[true, false, true]);
        part.refuse([1], &refusal(7)); // the last of four
        part.refused_by(Refuser::Transform(3));
        let mut other = remaining.fork();
        other.refuse([1, 2], &refusal(8));
        other.refused_by(Refuser::Destination(1));
        remaining.absorb(part);
        remaining.absorb(other);
        remaining.refused_by(Refuser::Destination(0)); // what is known stays
        let refusers: Vec<_> = remaining.refusers().collect();
        let [transform, destination] = [Refuser::Transform(3), Refuser::Destination(1)];
        assert_eq!(refusers, [(3, transform), (2, destination), (3, destination)]);
        assert_eq!((remaining.refused(), remaining.numbers()), (3, Some(&[1, 2, 3][..])));
        let rows = remaining.into_refusals().into_iter();
        let refused: Vec<_> = rows.map(|(number, refusal, by)| (number, refusal.column, by)).collect();
        assert_eq!(refused, [(2, Some(8), vec![destination]), (3, Some(7), vec![transform, destination])]);
    }
}
