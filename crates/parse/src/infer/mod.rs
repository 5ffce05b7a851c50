//! Facts about the texts of columns, from which a layout is inferred: the core tells, Python decides.
//!
//! The class of a text depends on nothing but the text, so that neither order nor streams change what is told. A class takes
//! only what the converter of its type takes.

mod alike;
mod bounds;
mod class;
mod distinct;
mod extremes;
mod facts;
mod few;
mod front;
mod gather;
mod hash;
mod kin;
mod moment;
mod number;
mod reals;
mod row_ends;
mod rows;
mod seen_numbers;
mod shapes;
mod tile_texts;

pub use class::Class;
pub use distinct::MOST_HASHES;
pub use facts::{ClassReport, ColumnFacts, ColumnReport, DateReport, FirstReport, Place};
pub use front::Front;
pub(crate) use gather::GatherTiles;
pub use gather::TableFacts;
pub use row_ends::end_clearly;
pub use rows::Candidate;
pub use shapes::{SampleShape, shape_of};
