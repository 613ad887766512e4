//! Whom a connection trusts.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Certificates are checked against those of this machine, which know a company's own authority, too.
pub(crate) fn trusting_what_the_machine_trusts() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> =
        found.iter().map(|cert| Certificate::from_der(cert.as_ref()).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::from(roots.into_iter()))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build()
}

/// The same trust, for connections that are not made by [`ureq`]. The error says why there can be none.
pub(crate) fn trusted_config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
