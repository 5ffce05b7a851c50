//! Authorities and the certificates they sign.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P384_SHA384};

/// A certificate and its key as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// Signs certificates.
pub struct Authority {
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// Parameters with a common name and host names.
pub fn parameters(common_name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut parameters = CertificateParams::new(hosts).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters
}

fn authority_parameters(common_name: &str) -> CertificateParams {
    let mut parameters = parameters(common_name, &[]);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

impl Authority {
    pub fn new(common_name: &str) -> Authority {
        // Its hash, and so that of channel binding, is SHA-384.
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let parameters = authority_parameters(common_name);
        let certificate = parameters.self_signed(&key).unwrap().pem();
        Authority { certificate, issuer: Issuer::new(parameters, key) }
    }

    pub fn sign(&self, parameters: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        Pair { certificate: parameters.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// What `openssl req -new -x509` makes, as PostgreSQL's manual shows: an authority that is its own server, without
/// alternative names.
pub fn self_signed(common_name: &str) -> Pair {
    let key = KeyPair::generate().unwrap();
    let certificate = authority_parameters(common_name).self_signed(&key).unwrap().pem();
    Pair { certificate, key: key.serialize_pem() }
}

/// Writes a file that only its owner may read.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}
