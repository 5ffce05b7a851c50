//! Host names to addresses, without ever blocking for good.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::thread;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::spec::HostSpec;
use super::wait::{Broken, Patience};

/// Something a socket can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(formatter, "{address}"),
            Address::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// All addresses of a host, in the system's order.
pub fn resolve(host: &HostSpec, patience: &Patience) -> Result<Vec<Address>, Broken> {
    if host.is_unix() {
        return Ok(vec![Address::Unix(PathBuf::from(host.to_string()))]);
    }
    if let Some(address) = host.address {
        return Ok(vec![Address::Tcp(address)]);
    }
    if let Ok(address) = host.host.parse::<IpAddr>() {
        return Ok(vec![Address::Tcp(SocketAddr::new(address, host.port))]);
    }
    // The system's resolver cannot be interrupted. If it is given up, its thread ends by itself.
    let (reply, answer) = bounded(1);
    let question = (host.host.clone(), host.port);
    thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let addresses = question.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let _ = reply.send(addresses);
    })?;
    loop {
        patience.check()?;
        match answer.recv_timeout(patience.step()) {
            Ok(Ok(addresses)) if addresses.is_empty() => return Err(Broken::Name("no address".to_owned())),
            Ok(Ok(addresses)) => return Ok(addresses.into_iter().map(Address::Tcp).collect()),
            Ok(Err(error)) => return Err(Broken::Name(error.to_string())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Broken::Name("the resolver failed".to_owned())),
        }
    }
}
