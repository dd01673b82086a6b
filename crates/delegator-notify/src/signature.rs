//! The signature of a webhook request: HMAC-SHA256 over the timestamp, a dot and the body.
//!
//! The timestamp is signed, too, so that a receiver can refuse old requests that another party sends again.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::SendError;

/// The value of the signature header: `sha256=` and lower-case hexadecimal digits.
pub(crate) fn sign(secret: &str, timestamp_sec: i64, body: &[u8]) -> Result<String, SendError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|error| SendError::new(format!("could not sign the request: {error}")))?;
    mac.update(timestamp_sec.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256={digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with `printf '1700000000.{"id":"x"}' | openssl dgst -sha256 -hmac hunter2`.
    #[test]
    fn the_signature_is_the_one_that_openssl_computes() {
        let expected = "sha256=4521db0bcecfc809d2adc1159a5304572abcff51e6b0b731ce3f6eaa2341f458";
        assert_eq!(sign("hunter2", 1_700_000_000, br#"{"id":"x"}"#).unwrap(), expected);
        assert_ne!(sign("hunter2", 1_700_000_001, br#"{"id":"x"}"#).unwrap(), expected);
        assert_ne!(sign("hunter3", 1_700_000_000, br#"{"id":"x"}"#).unwrap(), expected);
    }
}
