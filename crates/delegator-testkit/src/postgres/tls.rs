//! TLS of a test server: an authority and a certificate, created for one test.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::home::{ServerHome, give_to_account};
use crate::certificates::{Authority, pem};

pub(super) const SETTINGS: [&str; 3] =
    ["ssl=on", "ssl_cert_file=../certificate.pem", "ssl_key_file=../key.pem"];

pub(super) fn configure(home: &ServerHome, names: &[String]) {
    let authority = Authority::new();
    let (certificate, key) = authority.sign(names.to_vec());
    std::fs::write(authority_file(home), authority.pem()).unwrap();
    std::fs::write(home.path().join("certificate.pem"), pem("CERTIFICATE", &certificate)).unwrap();
    let key_file = home.path().join("key.pem");
    std::fs::write(&key_file, pem("PRIVATE KEY", key.secret_pkcs8_der())).unwrap();
    std::fs::set_permissions(&key_file, Permissions::from_mode(0o600)).unwrap();
    give_to_account(&key_file);
}

pub(super) fn authority_file(home: &ServerHome) -> PathBuf {
    home.path().join("authority.pem")
}
