//! Verifies a server's certificate as libpq does: not at all, its chain, or its chain and name.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::postgres::certificate;

/// How much is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Only that the server has the key of its certificate, which channel binding relies on.
    Nothing,
    /// The chain to a root.
    Chain,
    /// And the host's name.
    ChainAndName,
}

/// See [`Check`].
#[derive(Debug)]
pub struct Verifier {
    /// How much.
    pub check: Check,
    /// Trusted roots.
    pub roots: RootCertStore,
    /// Certificates of the user's own root file.
    pub named: Vec<CertificateDer<'static>>,
    /// Signatures that are understood.
    pub algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check == Check::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        // A self-signed certificate that is its own root: common with PostgreSQL, unknown to the web's rules.
        if self.named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            check_validity(end_entity, now)?;
        } else {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        }
        if self.check == Check::ChainAndName {
            check_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    /// By the bare key: certificates of X.509 version 1, which `openssl x509 -req` makes, are good enough for it.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = certificate::public_key(certificate).ok_or(CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &SubjectPublicKeyInfoDer::from(key), signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (from, until) = certificate::validity(certificate).ok_or(CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match now {
        _ if now < from => Err(CertificateError::NotValidYet.into()),
        _ if now > until => Err(CertificateError::Expired.into()),
        _ => Ok(()),
    }
}

/// By the alternative names; if there are none, by the common name.
fn check_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let checked = ParsedCertificate::try_from(certificate).and_then(|parsed| verify_server_name(&parsed, name));
    checked.or_else(|error| {
        let host = name.to_str();
        let common = certificate::common_name_if_alone(certificate);
        if common.is_some_and(|common| matches(&common, &host)) { Ok(()) } else { Err(error) }
    })
}

/// `*.example.com` stands for one label.
fn matches(pattern: &str, host: &str) -> bool {
    let same = |left: &str, right: &str| left.eq_ignore_ascii_case(right);
    match (pattern.strip_prefix("*."), host.split_once('.')) {
        (Some(domain), Some((label, rest))) => !label.is_empty() && domain.contains('.') && same(domain, rest),
        _ => same(pattern, host),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn common_names_match_like_host_names() {
        for (pattern, host, expected) in [
            ("db.example.com", "DB.example.com", true),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.com", "example.com", false),
            ("*", "db", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("db", "db2", false),
        ] {
            assert_eq!(matches(pattern, host), expected, "{pattern} {host}");
        }
    }
}
