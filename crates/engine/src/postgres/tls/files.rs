//! Certificates and keys in PEM files, and the system's roots.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::postgres::failure::Trouble;

/// Roots of a file with the certificates themselves, or of the operating system (`system` or None).
pub fn roots(file: Option<&Path>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), Trouble> {
    let mut store = RootCertStore::empty();
    let mut named = Vec::new();
    match file.filter(|file| *file != Path::new("system")) {
        Some(file) => {
            named = certificates(file)?;
            for certificate in &named {
                store.add(certificate.clone()).map_err(|error| unusable(file, &error))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(Trouble::refused(
                    "this machine has no store of trusted certificates",
                    "Name the file with the certificate of the server's authority: sslrootcert.",
                ));
            }
        }
    }
    Ok((store, named))
}

/// All certificates of a PEM file; at least one.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unusable(file, &error))?;
    if certificates.is_empty() {
        return Err(unusable(file, &"it holds no PEM certificate"));
    }
    Ok(certificates)
}

/// The key of a PEM file, which nobody else may read (libpq's rule).
pub fn key(file: &Path) -> Result<PrivateKeyDer<'static>, Trouble> {
    let metadata = std::fs::metadata(file).map_err(|error| unusable(file, &error))?;
    // A key of root may be readable by root's group.
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(Trouble::refused(
            format!("key file {}: others may read it (mode {:o})", file.display(), metadata.mode() & 0o777),
            format!("chmod 0600 {}", file.display()),
        ));
    }
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| unusable(file, &format!("{error}; it has to be PEM without a pass phrase")))
}

/// A file that cannot be used.
pub fn unusable(file: &Path, why: &dyn Display) -> Trouble {
    Trouble::refused(format!("{}: {why}", file.display()), "Check the file that the connection's TLS settings name.")
}
