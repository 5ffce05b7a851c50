//! What a flow measures while it runs: the members of a `flow` line of docs/spec/metrics.md. Numbers that count never fall from
//! one measure to the next; what the system does not tell is none, never 0.

use serde::Serialize;

pub use crate::meter::{Doing, Transport};
use crate::report::{Snapshot, Stages};

/// A flow at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Measure {
    /// How far it is.
    #[serde(flatten)]
    pub progress: Snapshot,
    /// Streams, by number; none before the flow has started.
    pub streams: Vec<StreamMeasure>,
    /// Connections that take rows, in the order in which they were opened; none of other sinks.
    pub writers: Vec<WriterMeasure>,
    /// The consumer of a merged stream; none of other sinks. Of several: rows of all, and times of the one that has worked most.
    pub sink: Option<ConsumerMeasure>,
    /// Of a flow with several destinations the consumer of each that has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<ConsumerMeasure>,
    /// Blocks of text in use.
    pub blocks_used: usize,
    /// Blocks that there are, but for overdrafts.
    pub blocks_total: usize,
}

/// A stream at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct StreamMeasure {
    /// Number, from 1.
    pub number: usize,
    /// Whether it takes no more slices.
    pub ended: bool,
    /// Number of the slice that it works on; none between two.
    pub slice: Option<u32>,
    /// Index of the file of the slice.
    pub file: Option<usize>,
    /// How much of the slice is parsed; bytes of text, or of the file if only the decoder can tell how long its text is.
    pub slice_bytes: Option<u64>,
    /// All of it, in the same unit; none if nobody knows, as of a pipe.
    pub slice_bytes_total: Option<u64>,
    /// Slices that ended.
    pub slices: u64,
    /// Rows it parsed.
    pub rows: u64,
    /// Bytes of text it parsed.
    pub bytes: u64,
    /// Its thread was on a CPU.
    pub cpu_seconds: Option<f64>,
    /// Its thread could have been on a CPU, and waited for one.
    pub run_queue_seconds: Option<f64>,
    /// Of the waiting of `stages.write`, what was waiting for a slice: that is nobody's limit.
    pub wait_slice_seconds: f64,
    /// What it is at.
    pub doing: Doing,
    /// Its stages; what it is at is counted up to now.
    pub stages: Stages,
}

/// The consumer of a merged stream at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct ConsumerMeasure {
    /// Whose it is, if it is that of one of several destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Time it waited for batches, up to now.
    pub wait_input_seconds: f64,
    /// Time it was not asking for batches, up to now.
    pub busy_seconds: f64,
    /// Batches handed over.
    pub batches: u64,
    /// Rows handed over.
    pub rows: u64,
}

/// A connection that takes rows at one moment. Its times are those since it was opened.
#[derive(Debug, Clone, Serialize)]
pub struct WriterMeasure {
    /// Which destination it is of, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// As in its application name; each destination has a number 1.
    pub number: usize,
    /// The server's process.
    pub process_id: i32,
    /// How bytes travel.
    pub transport: Transport,
    /// Bytes handed to the system, encrypted ones if they are.
    pub bytes: u64,
    /// Messages with rows.
    pub frames: u64,
    /// Time in system calls that send, and encrypting.
    pub busy_seconds: f64,
    /// Time with nothing to send.
    pub wait_input_seconds: f64,
    /// Time in which the socket took nothing.
    pub wait_output_seconds: f64,
    /// Time waited for answers: to a statement, at the end of a COPY, to a commit.
    pub wait_answer_seconds: f64,
    /// What the system knows of it, at most a quarter of a second old while something is sent; none of a Unix socket.
    pub tcp: Option<TcpMeasure>,
}

/// TCP_INFO of a connection; what an older system does not tell is none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TcpMeasure {
    /// Time in which data were on their way or waiting.
    pub busy_seconds: Option<f64>,
    /// Time of that in which the peer had no room.
    pub receive_window_limited_seconds: Option<f64>,
    /// Time of that in which our own buffer was too small.
    pub send_buffer_limited_seconds: Option<f64>,
    /// Segments that were sent once more.
    pub retransmits: Option<u32>,
    /// Round trip, smoothed.
    pub rtt_seconds: Option<f64>,
    /// Shortest round trip of late.
    pub least_rtt_seconds: Option<f64>,
    /// Bytes per second that the peer has acknowledged of late.
    pub delivery_rate_bytes: Option<u64>,
    /// Bytes that the system has and has not sent yet.
    pub not_sent_bytes: Option<u32>,
    /// Segments that are on their way.
    pub unacknowledged: Option<u32>,
    /// Segments that may be on their way.
    pub congestion_window: Option<u32>,
    /// Most bytes of a segment.
    pub segment_bytes: Option<u32>,
}
