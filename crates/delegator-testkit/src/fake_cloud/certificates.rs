//! A certificate authority and a certificate for chatgpt.com, created for one test.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::connection::HOST;

/// Writes the certificate of the authority in PEM and returns the TLS configuration of the server.
pub(super) fn create(authority_file: &Path) -> Arc<ServerConfig> {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    std::fs::write(authority_file, pem(authority_certificate.der())).unwrap();

    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    let certificate = server.signed_by(&server_key, &Issuer::new(authority, authority_key)).unwrap();
    let private_key = PrivatePkcs8KeyDer::from(server_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    Arc::new(config.with_single_cert(vec![certificate.der().clone()], private_key.into()).unwrap())
}

fn pem(certificate: &[u8]) -> String {
    let encoded = STANDARD.encode(certificate);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|line| str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
