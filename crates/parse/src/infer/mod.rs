//! Facts about the texts of columns, from which a layout is inferred: the core tells, Python decides.
//!
//! The class of a text depends on nothing but the text, so that neither order nor streams change what is told. A class takes
//! only what the converter of its type takes.

mod class;
mod distinct;
mod facts;
mod kin;
mod moment;
mod number;
mod shapes;

pub use class::Class;
pub use distinct::MOST_HASHES;
pub use facts::{ClassReport, ColumnFacts, ColumnReport, DateReport, FirstReport, Place};
pub use shapes::{Candidate, SampleShape, shape_of};
