//! Sends a notification to a webhook: one POST request over HTTP/1.1.
//!
//! Only a 2xx status counts as delivered; redirects are not followed, because they could lead anywhere. The
//! request has one time limit from the resolution of the name to the end of the response, whose body is not
//! read. Certificates are verified with the roots of the system. Proxies are not used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rustls::CertificateError;
use sha2::Sha256;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::SendError;
use crate::notification::Notification;
use crate::settings::{NotifySettings, read_secret};
use crate::webhook_body::{WebhookRequest, request};

const TIME_LIMIT: Duration = Duration::from_secs(20);
const MAX_HEADER_BYTES: usize = 16 << 10;

pub(crate) fn post(
    settings: &NotifySettings,
    notification: &Notification,
    now_ms: i64,
) -> Result<(), SendError> {
    let webhook = settings.webhook.as_ref().ok_or_else(|| SendError::new("no webhook is configured"))?;
    let WebhookRequest { url, body } = request(webhook, notification)?;
    let timestamp_sec = now_ms / 1000;
    let mut request = agent(settings, url.starts_with("https:"))?
        .post(&url)
        .header("Content-Type", "application/json")
        .header("Mcp-Delegator-Id", &notification.id)
        .header("Mcp-Delegator-Delivery-Attempt", notification.delivery_attempt.to_string())
        .header("Mcp-Delegator-Timestamp", timestamp_sec.to_string());
    if let Some(path) = &webhook.secret_file {
        let signature = sign(&read_secret(path)?, timestamp_sec, &body)?;
        request = request.header("Mcp-Delegator-Signature", signature);
    }
    let response = request.send(&body[..]).map_err(|error| SendError::new(reason(&error)))?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(SendError::new(format!("the receiver answered with the status {status}"))),
    }
}

/// The value of the signature header: `sha256=` and the hexadecimal HMAC-SHA256 over the timestamp, a dot and
/// the body. The timestamp is signed so that a receiver can refuse old requests that another party sends
/// again.
fn sign(secret: &str, timestamp_sec: i64, body: &[u8]) -> Result<String, SendError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|error| SendError::new(format!("could not sign the request: {error}")))?;
    mac.update(timestamp_sec.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256={digits}"))
}

fn agent(settings: &NotifySettings, is_encrypted: bool) -> Result<ureq::Agent, SendError> {
    let mut builder = Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .max_response_header_size(MAX_HEADER_BYTES)
        .timeout_global(Some(TIME_LIMIT))
        .user_agent(concat!("mcp-delegator/", env!("CARGO_PKG_VERSION")));
    if is_encrypted {
        let tls = TlsConfig::builder()
            .root_certs(system_roots(settings)?)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        builder = builder.tls_config(tls.build());
    }
    Ok(builder.build().new_agent())
}

/// The roots that the submitter's variables name, or else those of the system.
fn system_roots(settings: &NotifySettings) -> Result<RootCerts, SendError> {
    let path = |name| settings.variable(name).map(Path::new);
    let found = match (path("SSL_CERT_FILE"), path("SSL_CERT_DIR")) {
        (None, None) => rustls_native_certs::load_native_certs(),
        (file, dir) => rustls_native_certs::load_certs_from_paths(file, dir),
    };
    if found.certs.is_empty() {
        let cause = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(SendError::new(format!("the system has no root certificates{cause}")));
    }
    let certificates: Vec<Certificate<'static>> =
        found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    Ok(RootCerts::new_with_certs(&certificates))
}

/// What went wrong, without the URL.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => match error.get_ref().and_then(|source| source.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                format!("the certificate of the receiver is refused: {}", certificate_reason(error))
            }
            _ => format!("the receiver could not be reached: {error}"),
        },
        ureq::Error::Timeout(_) => format!("the receiver did not answer within {} s", TIME_LIMIT.as_secs()),
        ureq::Error::HostNotFound => "the host of the URL is unknown".to_owned(),
        ureq::Error::ConnectionFailed => "the receiver could not be reached".to_owned(),
        ureq::Error::Rustls(error) => format!("the connection could not be encrypted: {error}"),
        other => format!("the request failed: {other}"),
    }
}

fn certificate_reason(error: &CertificateError) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer | E::BadSignature => "it is signed by an authority that this machine does not trust; SSL_CERT_FILE can name \
             another file of trusted authorities"
            .to_owned(),
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another host".to_owned(),
        E::Expired | E::ExpiredContext { .. } => "it has expired".to_owned(),
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        // The name of the error in rustls-webpki 0.103, which this crate does not depend on.
        E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is that of an authority (CA:TRUE), which a server cannot use; a self-signed one needs CA:FALSE"
                .to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use delegator_domain::notification::WebhookFormat;

    use super::*;
    use crate::notification::tests::ended_task;
    use crate::settings::Webhook;

    /// Sends a notification to a receiver with this response; returns the outcome and the request.
    fn exchange(response: &'static str, secret: Option<&str>) -> (Result<(), SendError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?token=private", listener.local_addr().unwrap());
        let secret_file = secret.map(|secret| {
            let path = folder.path().join("secret");
            std::fs::write(&path, secret).unwrap();
            path
        });
        let webhook = Some(Webhook { url, secret_file, format: WebhookFormat::Json });
        let settings = NotifySettings::new(None, webhook, None, &BTreeMap::new());
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                request.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
            request + &String::from_utf8(body).unwrap()
        });
        let notification = Notification::new(&ended_task(), 3, &settings);
        let sent = post(&settings, &notification, 1_700_000_000_500);
        (sent, receiver.join().unwrap())
    }

    #[test]
    fn a_request_is_signed_and_names_its_attempt() {
        let (sent, request) = exchange("HTTP/1.1 204 No Content\r\n\r\n", Some("hunter2\n"));
        assert_eq!(sent, Ok(()));
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name)).unwrap();
            line.split_once(": ").unwrap().1.to_owned()
        };
        assert!(head.starts_with("POST /hook?token=private HTTP/1.1"), "{head}");
        assert_eq!(header("mcp-delegator-timestamp"), "1700000000");
        assert_eq!(header("mcp-delegator-delivery-attempt"), "3");
        assert_eq!(
            header("mcp-delegator-signature"),
            sign("hunter2", 1_700_000_000, body.as_bytes()).unwrap()
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["id"].as_str().unwrap(), header("mcp-delegator-id"));
        assert_eq!(body["delivery_attempt"], 3);
    }

    /// Computed with `printf '1700000000.{"id":"x"}' | openssl dgst -sha256 -hmac hunter2`.
    #[test]
    fn the_signature_is_the_one_that_openssl_computes() {
        let expected = "sha256=4521db0bcecfc809d2adc1159a5304572abcff51e6b0b731ce3f6eaa2341f458";
        assert_eq!(sign("hunter2", 1_700_000_000, br#"{"id":"x"}"#).unwrap(), expected);
        assert_ne!(sign("hunter2", 1_700_000_001, br#"{"id":"x"}"#).unwrap(), expected);
        assert_ne!(sign("hunter3", 1_700_000_000, br#"{"id":"x"}"#).unwrap(), expected);
    }

    #[test]
    fn other_statuses_and_redirects_are_failures() {
        for (response, expected) in [
            ("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "the status 500"),
            (
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
                "the status 302",
            ),
        ] {
            let (sent, request) = exchange(response, None);
            assert!(sent.unwrap_err().0.contains(expected));
            assert!(!request.to_ascii_lowercase().contains("signature"), "{request}");
        }
    }

    #[test]
    fn an_unreachable_receiver_is_named_without_its_url() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/private", listener.local_addr().unwrap());
        drop(listener);
        let webhook = Some(Webhook { url, secret_file: None, format: WebhookFormat::Json });
        let settings = NotifySettings::new(None, webhook, None, &BTreeMap::new());
        let error = post(&settings, &Notification::new(&ended_task(), 1, &settings), 0).unwrap_err();
        assert!(error.0.contains("could not be reached") && !error.0.contains("private"), "{error}");
    }

    #[test]
    fn without_the_secret_nothing_is_sent() {
        let webhook = Webhook {
            url: "http://127.0.0.1:1/".to_owned(),
            secret_file: Some("/nowhere/secret".into()),
            format: WebhookFormat::Json,
        };
        let settings = NotifySettings::new(None, Some(webhook), None, &BTreeMap::new());
        let error = post(&settings, &Notification::new(&ended_task(), 1, &settings), 0).unwrap_err();
        assert!(error.0.contains("could not read the secret"), "{error}");
    }

    #[test]
    fn a_refused_certificate_is_explained() {
        let reason_for = |error| {
            let error = std::io::Error::other(rustls::Error::InvalidCertificate(error));
            reason(&ureq::Error::Io(error))
        };
        let unknown = reason_for(CertificateError::UnknownIssuer);
        assert!(
            unknown.starts_with("the certificate of the receiver is refused: it is signed by"),
            "{unknown}"
        );
        assert!(unknown.contains("SSL_CERT_FILE"), "{unknown}");
        let name: Box<dyn std::error::Error + Send + Sync> = "CaUsedAsEndEntity".into();
        let authority = reason_for(CertificateError::Other(rustls::OtherError(Arc::from(name))));
        assert!(authority.contains("CA:FALSE"), "{authority}");
    }
}
