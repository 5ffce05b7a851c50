//! What is trusted (libpq's `sslmode`), and the client's own certificate.

mod files;
mod verifier;

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::certificate;
use super::failure::Trouble;
use super::spec::{TlsMode, TlsSpec};
use super::wait::Broken;
use verifier::{Check, Verifier};

/// What older servers ignore and servers from 17 on compare.
const APPLICATION_PROTOCOL: &[u8] = b"postgresql";
/// Stands for a host whose name cannot be in a certificate; its name is never checked then, nor sent.
const NO_NAME: &str = "name.invalid";

/// The TLS side of a connection specification, files read.
pub struct Trust {
    config: Arc<ClientConfig>,
}

impl Trust {
    /// Reads the files.
    pub fn new(spec: &TlsSpec) -> Result<Trust, Trouble> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // As libpq: whoever names roots wants them to be used, whatever the mode.
        let check = match spec.mode {
            TlsMode::VerifyFull => Check::ChainAndName,
            TlsMode::VerifyCa => Check::Chain,
            _ if spec.root_certificates.is_some() => Check::Chain,
            _ => Check::Nothing,
        };
        let (roots, named) = match check {
            Check::Nothing => (RootCertStore::empty(), Vec::new()),
            _ => files::roots(spec.root_certificates.as_deref())?,
        };
        let verifier = Verifier { check, roots, named, algorithms: provider.signature_verification_algorithms };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Broken::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&spec.certificate, &spec.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => builder
                .with_client_auth_cert(files::certificates(certificate)?, files::key(key)?)
                .map_err(|error| files::unusable(certificate, &error.to_string()))?,
            _ => {
                return Err(Trouble::refused(
                    "only one of the client's certificate and key is given",
                    "Give both, sslcert and sslkey, or none.",
                ));
            }
        };
        config.alpn_protocols = vec![APPLICATION_PROTOCOL.to_vec()];
        Ok(Trust { config: Arc::new(config) })
    }

    /// A session with the server of this name, before the handshake.
    pub fn session(&self, host: &str) -> Result<ClientConnection, Broken> {
        let name = ServerName::try_from(host.to_owned());
        let (config, name) = match name {
            Ok(name) => (Arc::clone(&self.config), name),
            Err(_) => {
                // Only reached when the host is not a name at all; verify-full fails for it.
                let mut config = ClientConfig::clone(&self.config);
                config.enable_sni = false;
                (Arc::new(config), ServerName::try_from(NO_NAME).map_err(|_| Broken::Closed)?)
            }
        };
        ClientConnection::new(config, name).map_err(Broken::Tls)
    }
}

/// Hash of the server's certificate for channel binding (RFC 5929, tls-server-end-point).
pub fn end_point(session: &ClientConnection) -> Option<Vec<u8>> {
    certificate::end_point(session.peer_certificates()?.first()?)
}
