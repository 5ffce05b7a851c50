//! The meter of a writer: one connection that takes rows.

use std::sync::Mutex;

use serde::Serialize;

use super::clock::{Activity, Clock};
use crate::measure::{TcpMeasure, WriterMeasure};
use crate::outcome::lock;

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// There is nothing to send.
    WaitInput,
    /// Encrypts, and hands bytes to the system.
    Busy,
    /// The socket takes nothing.
    WaitOutput,
    /// The server has to answer.
    WaitAnswer,
    /// It is closed.
    Ended,
}

impl Activity for Sending {
    fn index(self) -> usize {
        self as usize
    }
}

/// How bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A Unix socket.
    Unix,
    /// TCP, not encrypted.
    Tcp,
    /// TCP, encrypted.
    Tls,
}

/// Of one connection; only the thread that has it writes.
pub struct WriterMeter {
    number: usize,
    process_id: i32,
    transport: Transport,
    state: Mutex<State>,
}

struct State {
    clock: Clock<Sending, { Sending::Ended as usize + 1 }>,
    bytes: u64,
    frames: u64,
    tcp: Option<TcpMeasure>,
}

impl WriterMeter {
    /// Of a connection that has just been opened.
    pub fn new(number: usize, process_id: i32, transport: Transport) -> Self {
        let state = State { clock: Clock::new(Sending::WaitInput), bytes: 0, frames: 0, tcp: None };
        WriterMeter { number, process_id, transport, state: Mutex::new(state) }
    }

    /// The connection begins something else, unless it is closed. What it was at.
    pub fn turn_to(&self, sending: Sending) -> Sending {
        let clock = &mut lock(&self.state).clock;
        if clock.at() == Sending::Ended { Sending::Ended } else { clock.turn_to(sending) }
    }

    /// The system has taken bytes.
    pub fn add_bytes(&self, bytes: u64) {
        lock(&self.state).bytes += bytes;
    }

    /// A message with rows was sent.
    pub fn add_frame(&self) {
        lock(&self.state).frames += 1;
    }

    /// What the system knows of the connection now; what it knew stays if it does not tell any more.
    pub fn set_tcp(&self, tcp: Option<TcpMeasure>) {
        let known = &mut lock(&self.state).tcp;
        *known = tcp.or(*known);
    }

    /// The connection is about to be closed: `tcp` is what the system knows at last. A second call does nothing.
    pub fn end(&self, tcp: impl FnOnce() -> Option<TcpMeasure>) {
        if self.turn_to(Sending::Ended) != Sending::Ended {
            self.set_tcp(tcp());
        }
    }

    /// Whether the connection is closed.
    pub fn has_ended(&self) -> bool {
        lock(&self.state).clock.at() == Sending::Ended
    }

    /// Everything, up to now.
    pub fn measure(&self) -> WriterMeasure {
        let state = lock(&self.state);
        let seconds = |sending| state.clock.spent(sending).as_secs_f64();
        WriterMeasure {
            destination: None,
            number: self.number,
            process_id: self.process_id,
            transport: self.transport,
            bytes: state.bytes,
            frames: state.frames,
            busy_seconds: seconds(Sending::Busy),
            wait_input_seconds: seconds(Sending::WaitInput),
            wait_output_seconds: seconds(Sending::WaitOutput),
            wait_answer_seconds: seconds(Sending::WaitAnswer),
            tcp: state.tcp,
        }
    }
}
