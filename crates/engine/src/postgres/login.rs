//! The startup message and the proof of who we are.

use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;

use super::failure::Trouble;
use super::link::{Link, Outgoing};
use super::server_message::server_fields;
use super::spec::ConnectionSpec;
use super::wait::Broken;

/// What a CancelRequest needs.
#[derive(Clone, Copy)]
pub struct SessionKey {
    /// Process of the server that serves the session; 0 from servers that do not say.
    pub process_id: i32,
    /// Secret of the session.
    pub secret: i32,
}

/// How safe the way to the server is.
pub struct Privacy {
    /// Nobody between can read: TLS, or a Unix socket.
    pub private: bool,
    /// Hash of the server's certificate for channel binding, inside TLS.
    pub end_point: Option<Vec<u8>>,
}

/// Logs in and waits until the server is ready.
pub fn login(link: &mut Link, spec: &ConnectionSpec, privacy: Privacy) -> Result<SessionKey, Trouble> {
    let mut parameters = vec![
        ("user", spec.user.as_str()),
        ("database", spec.database.as_str()),
        ("application_name", spec.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    parameters.extend(spec.options.as_deref().map(|options| ("options", options)));
    send(link, |buffer| frontend::startup_message(parameters, buffer))?;
    authenticate(link, spec, privacy)?;
    link.logged_in();
    let mut key = SessionKey { process_id: 0, secret: 0 };
    loop {
        match link.receive()? {
            Message::BackendKeyData(body) => {
                key = SessionKey { process_id: body.process_id(), secret: body.secret_key() };
            }
            Message::ReadyForQuery(_) => return Ok(key),
            message => return Err(refusal(&message)),
        }
    }
}

fn authenticate(link: &mut Link, spec: &ConnectionSpec, privacy: Privacy) -> Result<(), Trouble> {
    loop {
        match link.receive()? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(spec.user.as_bytes(), password(spec)?, body.salt());
                send(link, |buffer| frontend::password_message(hash.as_bytes(), buffer))?;
            }
            Message::AuthenticationCleartextPassword if privacy.private => {
                let password = password(spec)?;
                send(link, |buffer| frontend::password_message(password, buffer))?;
            }
            Message::AuthenticationCleartextPassword => {
                return Err(Trouble::refused(
                    "the server asks for the password in clear text, and the connection is not encrypted",
                    "Use sslmode=require or higher, or let pg_hba.conf ask for scram-sha-256.",
                ));
            }
            Message::AuthenticationSasl(body) => scram(link, password(spec)?, &body, privacy.end_point.as_deref())?,
            message => return Err(refusal(&message)),
        }
    }
}

/// SCRAM-SHA-256. Ends only after the server has proved that it knows the password too.
fn scram(
    link: &mut Link,
    password: &[u8],
    offer: &AuthenticationSaslBody,
    end_point: Option<&[u8]>,
) -> Result<(), Trouble> {
    let offered: Vec<&str> = offer.mechanisms().collect().map_err(protocol)?;
    let (mechanism, binding) = match end_point {
        Some(hash) if offered.contains(&SCRAM_SHA_256_PLUS) => {
            (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash.to_vec()))
        }
        // Tells the server that we could have: it refuses if somebody between has removed its offer.
        Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
        None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
    };
    if !offered.contains(&mechanism) {
        return Err(Trouble::refused(
            format!("the server asks for authentication by {}", offered.join(" or ")),
            "Headrace knows SCRAM-SHA-256, md5 and passwords; change the server's pg_hba.conf.",
        ));
    }
    let mut scram = ScramSha256::new(password, binding);
    send(link, |buffer| frontend::sasl_initial_response(mechanism, scram.message(), buffer))?;
    match link.receive()? {
        Message::AuthenticationSaslContinue(body) => scram.update(body.data()).map_err(protocol)?,
        message => return Err(refusal(&message)),
    }
    send(link, |buffer| frontend::sasl_response(scram.message(), buffer))?;
    match link.receive()? {
        Message::AuthenticationSaslFinal(body) => scram.finish(body.data()).map_err(protocol)?,
        message => return Err(refusal(&message)),
    }
    Ok(())
}

fn password(spec: &ConnectionSpec) -> Result<&[u8], Trouble> {
    spec.password.as_ref().map(String::as_bytes).filter(|password| !password.is_empty()).ok_or_else(|| {
        Trouble::refused(
            "the server asks for a password, and none is given",
            "Give it in the connection's URL by ${env:NAME}, in PGPASSWORD, or in ~/.pgpass.",
        )
    })
}

fn send(link: &mut Link, message: impl FnOnce(&mut bytes::BytesMut) -> std::io::Result<()>) -> Result<(), Trouble> {
    let mut outgoing = Outgoing::default();
    outgoing.add(message).map_err(|_| {
        Trouble::refused("user, database, password or options hold a NUL byte", "Check the connection's settings.")
    })?;
    Ok(link.send(outgoing.bytes())?)
}

/// Why a message ends the login.
fn refusal(message: &Message) -> Trouble {
    let method = match message {
        Message::ErrorResponse(body) => {
            return match server_fields(body.fields()) {
                Ok(fields) => Trouble::Server(Box::new(fields)),
                Err(broken) => Trouble::Broken(broken),
            };
        }
        Message::AuthenticationGss | Message::AuthenticationKerberosV5 => "Kerberos (GSSAPI)",
        Message::AuthenticationSspi => "SSPI",
        Message::AuthenticationScmCredential => "SCM credentials",
        _ => return Trouble::Broken(Broken::Protocol("a message that does not belong to a login".to_owned())),
    };
    Trouble::refused(
        format!("the server asks for authentication by {method}"),
        "Headrace knows SCRAM-SHA-256, md5, passwords and client certificates; change the server's pg_hba.conf.",
    )
}

fn protocol(error: std::io::Error) -> Trouble {
    Trouble::Broken(Broken::Protocol(format!("SCRAM: {error}")))
}
