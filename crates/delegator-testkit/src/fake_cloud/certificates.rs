//! TLS of the fake backend: a certificate for chatgpt.com, created for one test.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;

use super::connection::HOST;
use crate::certificates::Authority;

/// Writes the certificate of the authority in PEM and returns the TLS configuration of the server.
pub(super) fn create(authority_file: &Path) -> Arc<ServerConfig> {
    let authority = Authority::new();
    std::fs::write(authority_file, authority.pem()).unwrap();
    let (certificate, private_key) = authority.sign(vec![HOST.to_owned()]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    Arc::new(config.with_single_cert(vec![certificate], private_key.into()).unwrap())
}
