//! What a running flow measures of itself. Each stream, connection and consumer has a meter of its own, which nobody else
//! writes; [`crate::Flow::measure`] reads them all.
//!
//! | file | job |
//! | --- | --- |
//! | `clock` | time by activity: at any moment exactly one, and what goes on is counted up to now |
//! | `stream_meter` | what a stream is at, and how far it has come |
//! | `slice_size` | how far a slice has come |
//! | `thread_times` | a thread on a CPU, and waiting for one |
//! | `writer_meter` | one connection that takes rows |
//! | `writers` | all of them |
//!
//! A change of activity, of which every block has some, costs a look at the clock and an uncontended lock; rows cost nothing.

mod clock;
mod slice_size;
mod stream_meter;
mod thread_times;
mod writer_meter;
mod writers;

pub use clock::{Activity, Clock};
pub use slice_size::SliceSize;
pub use stream_meter::{Doing, StreamMeter, Work};
pub use writer_meter::{Sending, Transport, WriterMeter};
pub use writers::Writers;
