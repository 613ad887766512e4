//! Whom a connection trusts.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Certificates are checked against those of this machine, which know a company's own authority, too.
pub(crate) fn trusting_what_the_machine_trusts() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> =
        found.iter().map(|cert| Certificate::from_der(cert.as_ref()).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::from(roots.into_iter()))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
