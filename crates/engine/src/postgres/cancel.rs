//! Asks the server to stop what a session is doing.

use std::time::Duration;

use postgres_protocol::message::frontend;

use super::connect::Route;
use super::link::{Link, Outgoing};
use super::login::SessionKey;
use super::wait::{Broken, Patience};

/// The session is given up anyway; a dead server must not hold its user.
const LIMIT: Duration = Duration::from_millis(500);
/// A busy server needs longer than that to agree on encryption, and would go on working for nobody if it was not told.
pub const ENCRYPTED_LIMIT: Duration = Duration::from_millis(1500);

/// Sends a CancelRequest on a connection of its own, encrypted like the session. Whether it helped nobody knows: the
/// server answers by closing the connection.
pub fn cancel(route: &Route, key: SessionKey) {
    if key.process_id == 0 {
        return;
    }
    let limit = if route.encrypts() { ENCRYPTED_LIMIT } else { LIMIT };
    let patience = Patience { interrupt: std::sync::Arc::new(|| false), deadline: None }.at_most(Some(limit));
    let Ok(channel) = route.channel(&patience) else { return };
    let mut outgoing = Outgoing::default();
    outgoing.put(|buffer| frontend::cancel_request(key.process_id, key.secret, buffer));
    let mut link = Link::new(channel);
    if link.send(outgoing.bytes()).is_ok() {
        // The server has read the request when it closes; closing earlier could overtake it.
        while let Ok(None) = link.try_receive() {
            if let Err(Broken::TimedOut | Broken::Closed) = link.channel.wait(true, false) {
                break;
            }
        }
    }
}
