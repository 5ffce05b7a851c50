//! Converters of columns whose texts have a format of their own.
//!
//! What a format accepts is decided by the `convert` of each; the loops over tiles know the common texts only.

mod epoch;
mod grouped;
mod names;
mod number;
mod pattern;
mod pattern_tile;
mod truth;

use std::sync::Arc;

use headrace_types::{Column, Format, Layout};

pub use epoch::Epoch;
pub use grouped::{Grouping, grouped_numbers};
pub use number::{Base, NumberRules, Numbers};
pub use pattern::{PatternDate, PatternMoment, Patterns};
pub use truth::Words;

/// A format, ready for conversion.
#[derive(Debug, Clone)]
pub enum Compiled {
    /// Of numbers.
    Number(Arc<NumberRules>),
    /// Of dates and times.
    Patterns(Arc<Patterns>),
    /// Counts from 1970 on.
    Epoch(Epoch),
    /// Of truth values.
    Truth(Arc<Words>),
}

impl Compiled {
    /// Of a format that [`Format::check`] has passed.
    pub fn new(format: &Format) -> Self {
        match format {
            Format::Number(format) => Compiled::Number(Arc::new(NumberRules::new(format))),
            Format::Patterns(format) => Compiled::Patterns(Arc::new(Patterns::new(format))),
            Format::Epoch(format) => Compiled::Epoch(Epoch::new(format.unit)),
            Format::Truth(format) => Compiled::Truth(Arc::new(Words::new(format))),
        }
    }
}

/// Columns whose texts are converted field by field, because of their formats, and what in them is to blame.
pub fn field_by_field(layout: &Layout) -> Vec<(String, String)> {
    let reason = |column: &Column| match Compiled::new(column.format.as_ref()?) {
        Compiled::Number(rules) => rules.field_by_field(column.column_type),
        Compiled::Patterns(patterns) => patterns.field_by_field(),
        Compiled::Epoch(_) => None,
        Compiled::Truth(words) => words.field_by_field(),
    };
    let columns = layout.columns.iter();
    columns.filter_map(|column| Some((column.name.clone(), reason(column)?.to_owned()))).collect()
}
