//! Hosts, addresses and TLS in libpq's order, until a session is open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use headrace_types::CoreError;
use postgres_protocol::message::frontend;

use super::address::{Address, resolve};
use super::channel::Channel;
use super::failure::{ServerName, Trouble, more_telling};
use super::link::{Link, Outgoing};
use super::login::{Privacy, SessionKey, login};
use super::socket::Socket;
use super::spec::{ConnectionSpec, HostSpec, TlsMode};
use super::tls::{Trust, end_point};
use super::wait::{Broken, Interrupt, Patience};

/// An open session.
pub struct Session {
    /// Its messages.
    pub link: Link,
    /// Its key.
    pub key: SessionKey,
    /// How it was reached.
    pub route: Route,
}

/// The way to a server that has been gone once.
#[derive(Clone)]
pub struct Route {
    spec: Arc<ConnectionSpec>,
    trust: Option<Arc<Trust>>,
    host: String,
    address: Address,
    encryption: Encryption,
}

/// What to try on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// None.
    Plain,
    /// TLS if the server has it, else none.
    Offered,
    /// TLS or nothing.
    Required,
}

/// Connects to the first host that lets us in.
pub fn connect(spec: &ConnectionSpec, interrupt: Interrupt) -> Result<Session, CoreError> {
    let name = server_name(spec);
    let patience = Patience { interrupt, deadline: None }.at_most(spec.connect_limit());
    let spec = Arc::new(spec.clone());
    let needs_tls = spec.tls.mode != TlsMode::Disable && !spec.hosts.iter().all(HostSpec::is_unix);
    let trust = if needs_tls { Some(Trust::new(&spec.tls)) } else { None };
    let trust = trust.transpose().map_err(|trouble| name.unreachable(vec![("TLS".to_owned(), trouble)]))?;
    let trust = trust.map(Arc::new);

    let mut attempts = Vec::new();
    for (index, host) in spec.hosts.iter().enumerate() {
        let hosts_left = spec.hosts.len() - index;
        let addresses = match resolve(host, &share(&patience, hosts_left)) {
            Ok(addresses) => addresses,
            Err(broken) => {
                attempts.push((host.to_string(), Trouble::Broken(broken)));
                continue;
            }
        };
        for (index, address) in addresses.iter().enumerate() {
            let patience = share(&patience, hosts_left - 1 + addresses.len() - index);
            let mut route = Route {
                spec: Arc::clone(&spec),
                trust: trust.clone().filter(|_| !host.is_unix()),
                host: host.host.clone(),
                address: address.clone(),
                encryption: Encryption::Plain,
            };
            match route.open(&patience) {
                Ok(session) => return Ok(session),
                Err(trouble) => {
                    let ends = ends_search(&trouble);
                    attempts.push((address.to_string(), trouble));
                    if ends {
                        return Err(name.unreachable(attempts));
                    }
                }
            }
        }
    }
    Err(name.unreachable(attempts))
}

/// How messages name the server.
pub fn server_name(spec: &ConnectionSpec) -> ServerName {
    let hosts: Vec<String> = spec.hosts.iter().map(HostSpec::to_string).collect();
    ServerName(format!("PostgreSQL at {} (database {}, user {})", hosts.join(", "), spec.database, spec.user))
}

/// One of several attempts gets its share of the time that is left, so that the last one gets some too.
fn share(patience: &Patience, attempts: usize) -> Patience {
    let left = patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    patience.at_most(left.map(|left| left / u32::try_from(attempts).unwrap_or(u32::MAX).max(1)))
}

/// A server that answered has decided, unless it says that it does not serve at the moment.
fn ends_search(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Server(fields) => fields.sqlstate != "57P03",
        Trouble::Refused { .. } | Trouble::Broken(Broken::Interrupted | Broken::Tls(_)) => true,
        Trouble::Broken(_) => false,
    }
}

/// What the modes try, one after the other, each on a new socket.
fn order(mode: TlsMode) -> &'static [Encryption] {
    match mode {
        TlsMode::Disable => &[Encryption::Plain],
        TlsMode::Allow => &[Encryption::Plain, Encryption::Required],
        TlsMode::Prefer => &[Encryption::Offered, Encryption::Plain],
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => &[Encryption::Required],
    }
}

impl Route {
    /// The address of the server; none for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        }
    }

    /// Opens a session, with the fallbacks of the mode.
    fn open(&mut self, patience: &Patience) -> Result<Session, Trouble> {
        let order = if self.trust.is_some() { order(self.spec.tls.mode) } else { &[Encryption::Plain] };
        let mut first: Option<Trouble> = None;
        for encryption in order {
            self.encryption = *encryption;
            let trouble = match self.open_once(patience) {
                Ok(session) => return Ok(session),
                Err(trouble) => trouble,
            };
            // Only the server's answer or a failure of TLS can change with the encryption.
            let worth_another = matches!(trouble, Trouble::Server(_) | Trouble::Broken(Broken::Tls(_)))
                || (*encryption == Encryption::Offered && matches!(trouble, Trouble::Broken(Broken::Closed)));
            first = Some(match first {
                Some(first) => more_telling(first, trouble),
                None => trouble,
            });
            if !worth_another {
                break;
            }
        }
        Err(first.unwrap_or(Trouble::Broken(Broken::Closed)))
    }

    fn open_once(&mut self, patience: &Patience) -> Result<Session, Trouble> {
        let channel = self.channel(patience)?;
        // A cancel request has to go the same way.
        self.encryption = if channel.tls().is_some() { Encryption::Required } else { Encryption::Plain };
        let privacy = Privacy {
            private: channel.tls().is_some() || matches!(self.address, Address::Unix(_)),
            end_point: channel.tls().and_then(end_point),
        };
        let mut link = Link::new(channel);
        let key = login(&mut link, &self.spec, privacy)?;
        Ok(Session { link, key, route: self.clone() })
    }

    /// Whether a channel is encrypted, if the server wants that too.
    pub fn encrypts(&self) -> bool {
        self.trust.is_some() && matches!(self.encryption, Encryption::Offered | Encryption::Required)
    }

    /// A connected channel, encrypted as the route says; nothing of the protocol has been said on it.
    pub fn channel(&self, patience: &Patience) -> Result<Channel, Trouble> {
        let socket = Socket::connect(&self.address, &self.spec, patience)?;
        let mut channel = Channel::new(socket, patience.clone());
        let (Some(trust), Encryption::Offered | Encryption::Required) = (&self.trust, self.encryption) else {
            return Ok(channel);
        };
        match self.ask_for_tls(channel)? {
            (b'S', with_tls) => {
                channel = with_tls;
                channel.start_tls(trust.session(&self.host)?)?;
                Ok(channel)
            }
            (b'N', plain) if self.encryption == Encryption::Offered => Ok(plain),
            (b'N', _) => Err(Trouble::refused(
                "the server does not offer TLS",
                "Switch TLS on in the server (ssl = on), or use sslmode=prefer if the network is trusted.",
            )),
            // What an old server says about it is unencrypted and from nobody in particular: not shown.
            (b'E', _) => Err(Trouble::refused("the server refused to talk about TLS", "Use sslmode=disable.")),
            (answer, _) => Err(Trouble::Broken(Broken::Protocol(format!(
                "'{}' instead of yes or no to TLS",
                char::from(answer).escape_default()
            )))),
        }
    }

    fn ask_for_tls(&self, channel: Channel) -> Result<(u8, Channel), Trouble> {
        let mut outgoing = Outgoing::default();
        outgoing.put(frontend::ssl_request);
        let mut link = Link::new(channel);
        link.send(outgoing.bytes())?;
        let answer = link.receive_byte()?;
        Ok((answer, link.channel))
    }
}
