//! The messages of a COPY.

use headrace_types::CoreError;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::postgres::connection::{Connection, unexpected};
use crate::postgres::link::Outgoing;

/// What the connection does between start and end, for messages.
pub const SENDING: &str = "sending rows";

impl Connection {
    /// Starts a COPY ... FROM STDIN.
    pub fn copy_start(&mut self, sql: &str) -> Result<(), CoreError> {
        const DOING: &str = "starting a COPY";
        let mut outgoing = Outgoing::default();
        outgoing.add(|buffer| frontend::query(sql, buffer)).map_err(|found| self.server.malformed(found))?;
        self.send(DOING, outgoing.bytes())?;
        self.copy_started(DOING)
    }

    /// Waits until the server takes data.
    fn copy_started(&mut self, doing: &str) -> Result<(), CoreError> {
        let message = self.link.receive().map_err(|broken| self.lost(doing, broken))?;
        match message {
            Message::CopyInResponse(_) => Ok(()),
            Message::ErrorResponse(_) => {
                let error = self.answer(doing, message, &mut |_, _| Err(unexpected()))?;
                self.answers(doing, |_, _| Err(unexpected()))?;
                Err(error.unwrap_or_else(|| self.server.closed(false)))
            }
            _ => Err(self.server.malformed("it is not a COPY ... FROM STDIN".to_owned())),
        }
    }

    /// Sends a complete CopyData message, and looks for an answer.
    pub fn copy_frame(&mut self, frame: &[u8]) -> Result<(), CoreError> {
        self.send(SENDING, frame)?;
        self.link.channel.metered.add_frame();
        self.copy_look()
    }

    /// Whether the server has reported an error. Then the COPY is over: what was sent behind it is ignored there.
    pub fn copy_look(&mut self) -> Result<(), CoreError> {
        let Some(message) = self.link.try_receive().map_err(|broken| self.lost(SENDING, broken))? else {
            return Ok(());
        };
        match self.answer(SENDING, message, &mut |_, _| Err(unexpected()))? {
            None => Ok(()),
            Some(error) => {
                self.answers(SENDING, |_, _| Err(unexpected()))?;
                Err(error)
            }
        }
    }

    /// Ends the data. Rows that the server counted.
    pub fn copy_done(&mut self) -> Result<u64, CoreError> {
        const DOING: &str = "ending a COPY";
        let mut outgoing = Outgoing::default();
        outgoing.put(frontend::copy_done);
        self.send(DOING, outgoing.bytes())?;
        let mut rows = None;
        self.answers(DOING, |_, message| match message {
            Message::CommandComplete(body) => {
                rows = body.tag().ok().and_then(|tag| tag.strip_prefix("COPY ")?.parse().ok());
                rows.map(|_: u64| ()).ok_or_else(unexpected)
            }
            _ => Err(unexpected()),
        })?;
        rows.ok_or_else(|| self.lost(DOING, unexpected()))
    }

    /// Lets the COPY fail. Returns the server's error, which says so.
    pub fn copy_fail(&mut self, reason: &str) -> CoreError {
        const DOING: &str = "aborting a COPY";
        let mut outgoing = Outgoing::default();
        if outgoing.add(|buffer| frontend::copy_fail(reason, buffer)).is_err() {
            return self.lost(DOING, unexpected());
        }
        let answered = self.send(DOING, outgoing.bytes()).and_then(|()| self.answers(DOING, |_, _| Err(unexpected())));
        answered.err().unwrap_or_else(|| self.lost(DOING, unexpected()))
    }
}
