//! Messages to and from the server over a [`Channel`]. Whatever the server sends, memory stays bounded.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, BytesMut};
use headrace_types::ServerFields;
use postgres_protocol::message::backend::{Header, Message};

use super::channel::Channel;
use super::server_message::server_fields;
use super::wait::Broken;
use crate::meter::Sending;

/// Largest message from the server that is accepted.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The same before the login has ended: nobody has proved yet to be a PostgreSQL server.
const MAX_LOGIN_MESSAGE_BYTES: usize = 64 << 10;
/// Notices, and bytes of them, that are kept until somebody takes them; later ones are dropped.
const MAX_NOTICES: usize = 100;
const MAX_NOTICES_BYTES: usize = 1 << 20;
/// Reported settings that are kept, and their size; servers report about 15.
const MAX_PARAMETERS: usize = 200;
const MAX_PARAMETER_BYTES: usize = 64 << 10;
/// Messages that may wait while we write, and no more bytes than the largest message. Then the server has to wait until we
/// read.
const MAX_WAITING_MESSAGES: usize = 1000;
/// How much is read in search of the error that a server left behind.
const MAX_LAST_WORDS_BYTES: usize = 16 << 20;
const READ_BYTES: usize = 16 << 10;

/// Both directions of a session.
pub struct Link {
    /// The bytes below.
    pub channel: Channel,
    /// Read, not yet a whole message.
    bytes: BytesMut,
    /// Read and not yet asked for, with their sizes.
    messages: VecDeque<(usize, Message)>,
    /// The sum of those sizes.
    waiting_bytes: usize,
    portion: Box<[u8]>,
    max_message_bytes: usize,
    parameters: BTreeMap<String, String>,
    notices: Vec<ServerFields>,
    notices_bytes: usize,
}

impl Link {
    /// A link before the login.
    pub fn new(channel: Channel) -> Link {
        Link {
            channel,
            bytes: BytesMut::new(),
            messages: VecDeque::new(),
            waiting_bytes: 0,
            portion: vec![0; READ_BYTES].into_boxed_slice(),
            max_message_bytes: MAX_LOGIN_MESSAGE_BYTES,
            parameters: BTreeMap::new(),
            notices: Vec::new(),
            notices_bytes: 0,
        }
    }

    /// From now on messages may be as large as rows get.
    pub fn logged_in(&mut self) {
        self.max_message_bytes = MAX_MESSAGE_BYTES;
    }

    /// A setting as the server last reported it.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Notices since the last call.
    pub fn take_notices(&mut self) -> Vec<ServerFields> {
        self.notices_bytes = 0;
        std::mem::take(&mut self.notices)
    }

    /// Writes all of it. Meanwhile it reads: a server that waits until its notices are read would not read either.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.channel.metered.turn_to(Sending::Busy);
        let sent = self.write_all(bytes);
        self.channel.metered.turn_to(Sending::WaitInput);
        sent
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        // Nobody wants it any more: then it must not happen either, above all if it is COMMIT.
        self.channel.patience.check()?;
        let mut rest = bytes;
        loop {
            let written = if rest.is_empty() { 0 } else { self.channel.try_write(rest)? };
            rest = &rest[written..];
            if rest.is_empty() && self.channel.try_flush()? {
                return Ok(());
            }
            if written == 0 {
                let ready = self.channel.wait(self.has_room(), true)?;
                if ready.readable && self.has_room() {
                    self.fill()?;
                }
            } else {
                self.channel.patience.check()?;
            }
        }
    }

    /// The next message; waits for it.
    pub fn receive(&mut self) -> Result<Message, Broken> {
        self.channel.metered.turn_to(Sending::WaitAnswer);
        let received = self.wait_for_message();
        self.channel.metered.turn_to(Sending::WaitInput);
        received
    }

    fn wait_for_message(&mut self) -> Result<Message, Broken> {
        loop {
            if let Some(message) = self.try_receive()? {
                return Ok(message);
            }
            let flushed = self.channel.try_flush()?;
            self.channel.wait(true, !flushed)?;
        }
    }

    /// The next message if it is here already.
    pub fn try_receive(&mut self) -> Result<Option<Message>, Broken> {
        loop {
            if let Some((bytes, message)) = self.messages.pop_front() {
                self.waiting_bytes -= bytes;
                return Ok(Some(message));
            }
            self.channel.check(false)?;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The error that the server left behind before it closed the connection.
    pub fn last_words(&mut self) -> Option<ServerFields> {
        // Whatever there is, at once, without an end to wait for: a server that goes on talking has left nothing behind.
        for _ in 0..MAX_LAST_WORDS_BYTES / READ_BYTES {
            if !self.has_room() || !matches!(self.fill(), Ok(true)) {
                break;
            }
        }
        self.messages.iter().find_map(|(_, message)| match message {
            Message::ErrorResponse(body) => server_fields(body.fields()).ok(),
            _ => None,
        })
    }

    /// One byte that is not part of a message: the answer to the wish for TLS. Nothing behind it is read.
    pub fn receive_byte(&mut self) -> Result<u8, Broken> {
        let mut byte = [0];
        while self.channel.try_read(&mut byte)?.is_none() {
            self.channel.wait(true, false)?;
        }
        Ok(byte[0])
    }

    fn has_room(&self) -> bool {
        let bytes = self.waiting_bytes + self.bytes.len();
        self.messages.len() < MAX_WAITING_MESSAGES && bytes < self.max_message_bytes
    }

    /// Reads one portion and cuts it into messages; false if nothing was there.
    fn fill(&mut self) -> Result<bool, Broken> {
        let Some(count) = self.channel.try_read(&mut self.portion)? else { return Ok(false) };
        self.bytes.extend_from_slice(&self.portion[..count]);
        while let Some((bytes, message)) = self.cut()? {
            match message {
                Message::NoticeResponse(body) => {
                    let fields = server_fields(body.fields())?;
                    if self.notices.len() < MAX_NOTICES && self.notices_bytes + bytes <= MAX_NOTICES_BYTES {
                        self.notices.push(fields);
                        self.notices_bytes += bytes;
                    }
                }
                Message::ParameterStatus(body) => {
                    let name = body.name().map_err(protocol)?.to_owned();
                    let value = body.value().map_err(protocol)?.to_owned();
                    let is_known = self.parameters.contains_key(&name);
                    if bytes <= MAX_PARAMETER_BYTES && (is_known || self.parameters.len() < MAX_PARAMETERS) {
                        self.parameters.insert(name, value);
                    }
                }
                Message::NotificationResponse(_) => {}
                message => {
                    self.messages.push_back((bytes, message));
                    self.waiting_bytes += bytes;
                }
            }
        }
        Ok(true)
    }

    /// The next message among the bytes, with its size.
    fn cut(&mut self) -> Result<Option<(usize, Message)>, Broken> {
        let Some(header) = Header::parse(&self.bytes).map_err(protocol)? else { return Ok(None) };
        let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
        if length > self.max_message_bytes {
            let kind = char::from(header.tag()).escape_default();
            let found = format!("a message of kind '{kind}' with {length} bytes");
            // Before the login has ended something else than PostgreSQL may talk.
            let is_login = self.max_message_bytes == MAX_LOGIN_MESSAGE_BYTES;
            return Err(if is_login { Broken::Protocol(found) } else { Broken::TooLarge(found) });
        }
        let message = Message::parse(&mut self.bytes).map_err(protocol)?;
        if self.bytes.is_empty() && self.bytes.capacity() > 1 << 20 {
            self.bytes = BytesMut::new(); // gives the memory of a large message back
        }
        Ok(message.map(|message| (length, message)))
    }
}

fn protocol(error: std::io::Error) -> Broken {
    Broken::Protocol(error.to_string())
}

/// Messages to be sent, made by `postgres_protocol`.
#[derive(Default)]
pub struct Outgoing(BytesMut);

impl Outgoing {
    /// Appends a message whose parts may contain what the protocol cannot carry (a NUL byte).
    pub fn add(&mut self, write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<(), String> {
        write(&mut self.0).map_err(|error| error.to_string())
    }

    /// Appends a message that cannot fail.
    pub fn put(&mut self, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.0);
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        self.0.chunk()
    }
}
