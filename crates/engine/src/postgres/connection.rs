//! One session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_types::{CoreError, ServerFields};
use postgres_protocol::message::backend::{ErrorResponseBody, Message};

use super::cancel::cancel;
use super::connect::{Route, connect, server_name};
use super::failure::ServerName;
use super::link::{Link, Outgoing};
use super::login::SessionKey;
use super::metered::Metered;
use super::server_message::{ends_session, server_fields};
use super::spec::ConnectionSpec;
use super::stall::{SeenAtWork, Watch};
use super::wait::{Broken, Interrupt};
use crate::meter::{Transport, WriterMeter};

/// What texts of values look like, and no limits on how long we work. Not in the startup message, where poolers refuse it.
const SETTINGS: &str = "\
    SET DateStyle TO 'ISO, MDY'; SET IntervalStyle TO 'postgres'; SET TimeZone TO 'UTC'; SET extra_float_digits TO 1; \
    SET standard_conforming_strings TO on; SET statement_timeout TO 0; SET idle_in_transaction_session_timeout TO 0";
/// English messages, if the user may choose. Asked first: a refusal would stand in the server's log.
const ENGLISH: &str = "\
    SELECT pg_catalog.set_config('lc_messages', 'C', false) WHERE pg_catalog.has_parameter_privilege('lc_messages', 'SET')";

/// An open session. After an interrupt, a lost connection or a fatal error every call fails.
pub struct Connection {
    pub(super) link: Link,
    pub(super) server: ServerName,
    key: SessionKey,
    route: Route,
    usable: bool,
}

/// How the answers to a request ended.
pub(super) type Answered = Result<(), CoreError>;

impl Connection {
    /// Connects, logs in and prepares the session. The interrupt is asked in every later wait too.
    pub fn connect(spec: &ConnectionSpec, interrupt: Interrupt) -> Result<Connection, CoreError> {
        let session = connect(spec, interrupt)?;
        let mut connection = Connection {
            link: session.link,
            server: server_name(spec),
            key: session.key,
            route: session.route,
            usable: true,
        };
        connection.execute(SETTINGS)?;
        // Fails before version 15; then messages come in the server's language.
        let english = connection.execute(ENGLISH);
        if !connection.usable {
            english?;
        }
        connection.link.channel.patience.deadline = None;
        connection.link.channel.watch = Watch::new(spec.stall_limit());
        Ok(connection)
    }

    /// A setting as the server last reported it, such as `server_version` or `server_encoding`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.link.parameter(name)
    }

    /// Address of the server, for further sessions of the very same one; none for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.route.address()
    }

    /// Process of the server that serves this session.
    pub fn process_id(&self) -> i32 {
        self.key.process_id
    }

    /// Nothing may move on the connection as long as `seen` says that the server's process is at work.
    pub fn trust(&mut self, seen: SeenAtWork) {
        self.link.channel.watch.trust(seen, self.key.process_id);
    }

    /// How the bytes of the session travel.
    pub fn transport(&self) -> Transport {
        match self.address() {
            _ if self.link.channel.tls().is_some() => Transport::Tls,
            Some(_) => Transport::Tcp,
            None => Transport::Unix,
        }
    }

    /// From now on the meter is told what the session is at.
    pub(crate) fn measure_by(&mut self, meter: Arc<WriterMeter>) {
        self.link.channel.metered = Metered::by(meter);
    }

    /// Notices since the last call; at most 100 are kept.
    pub fn take_notices(&mut self) -> Vec<ServerFields> {
        self.link.take_notices()
    }

    /// Ends the session.
    pub fn close(mut self) {
        if self.usable {
            let mut outgoing = Outgoing::default();
            outgoing.put(postgres_protocol::message::frontend::terminate);
            // Nobody is interested any more: as much as the socket takes.
            let _ = self.link.channel.try_write(outgoing.bytes());
            let _ = self.link.channel.try_flush();
        }
    }

    /// From now on waits end as well when this is true.
    pub(super) fn interrupt_when(&mut self, must_end: Arc<AtomicBool>) {
        let interrupt = Arc::clone(&self.link.channel.patience.interrupt);
        self.link.channel.patience.interrupt = Arc::new(move || must_end.load(Ordering::Acquire) || interrupt());
    }

    /// Ends the session, and what the server is doing for it.
    pub(super) fn abandon(mut self) {
        if self.usable {
            self.give_up();
            cancel(&self.route, self.key);
        }
    }

    /// The next message.
    pub(super) fn receive(&mut self, doing: &str) -> Result<Message, CoreError> {
        if !self.usable {
            return Err(self.server.closed((self.link.channel.patience.interrupt)()));
        }
        self.link.receive().map_err(|broken| self.lost(doing, broken))
    }

    /// The error that the server has sent.
    pub(super) fn refused(&mut self, doing: &str, body: &ErrorResponseBody) -> CoreError {
        match server_fields(body.fields()) {
            Ok(fields) => {
                if ends_session(&fields) {
                    self.give_up();
                }
                self.server.refused(fields)
            }
            Err(broken) => self.lost(doing, broken),
        }
    }

    /// Sends a request.
    pub(super) fn send(&mut self, doing: &str, bytes: &[u8]) -> Answered {
        if !self.usable {
            return Err(self.server.closed((self.link.channel.patience.interrupt)()));
        }
        self.link.send(bytes).map_err(|broken| self.lost(doing, broken))
    }

    /// Gives every answer to `take` until the server is ready for the next request. The first error of the server is the
    /// result; an answer that `take` does not know, or a fatal error, ends the connection.
    pub(super) fn answers(
        &mut self,
        doing: &str,
        mut take: impl FnMut(&mut Link, Message) -> Result<(), Broken>,
    ) -> Answered {
        let mut error = None;
        loop {
            let message = self.link.receive().map_err(|broken| self.lost_after(doing, broken, error.take()))?;
            match message {
                Message::ReadyForQuery(_) => return error.map_or(Ok(()), Err),
                message => {
                    if let Some(found) = self.answer(doing, message, &mut take)? {
                        error.get_or_insert(found);
                    }
                }
            }
        }
    }

    /// One answer: the server's error if it is one that leaves the session alive.
    pub(super) fn answer(
        &mut self,
        doing: &str,
        message: Message,
        take: &mut impl FnMut(&mut Link, Message) -> Result<(), Broken>,
    ) -> Result<Option<CoreError>, CoreError> {
        let Message::ErrorResponse(body) = message else {
            return take(&mut self.link, message).map(|()| None).map_err(|broken| self.lost(doing, broken));
        };
        let error = self.refused(doing, &body);
        if self.usable { Ok(Some(error)) } else { Err(error) }
    }

    /// The connection cannot be used any more; the error says why. What the server said before it went counts most.
    pub(super) fn lost(&mut self, doing: &str, broken: Broken) -> CoreError {
        self.lost_after(doing, broken, None)
    }

    fn lost_after(&mut self, doing: &str, broken: Broken, earlier: Option<CoreError>) -> CoreError {
        let told = match broken {
            Broken::Interrupted => None,
            _ => earlier.or_else(|| self.link.last_words().map(|fields| self.server.refused(fields))),
        };
        self.give_up();
        if matches!(broken, Broken::Interrupted) {
            cancel(&self.route, self.key);
        }
        told.unwrap_or_else(|| self.server.lost(doing, &broken))
    }

    fn give_up(&mut self) {
        self.usable = false;
        self.link.channel.close();
    }

    /// Whether the session can still be used.
    pub(super) fn usable(&self) -> bool {
        self.usable
    }
}

/// What the protocol does not allow at this place.
pub(super) fn unexpected() -> Broken {
    Broken::Protocol("a message that does not belong here".to_owned())
}
