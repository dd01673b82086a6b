//! Finds the secrets of a task in a text after the secrets themselves were deleted.
//!
//! A digest is stored for each value instead of the value. The first bytes of a value select where a digest
//! is computed; only [`PREFIX_BITS`] bits of their hash are stored. Escaped values are not recognised, unlike
//! in [`Redactor`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::credential::SecretKind;
use super::redactor::Redactor;

/// No masked value is shorter.
const PREFIX_BYTES: usize = 4;
const PREFIX_BITS: u32 = 12;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretDigests {
    /// Makes the digests of two tasks differ.
    salt: String,
    /// The longest value first.
    secrets: Vec<SecretDigest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SecretDigest {
    length: usize,
    prefix: u16,
    digest: [u8; 32],
}

impl SecretDigests {
    /// `salt` must be unique.
    pub fn new(redactor: &Redactor, salt: String) -> SecretDigests {
        let digest_of = |text: &[u8]| {
            let prefix = prefix_of(text)?;
            Some(SecretDigest { length: text.len(), prefix, digest: digest(&salt, text) })
        };
        let texts = redactor.index.needles.iter().map(|needle| needle.text.as_bytes());
        let mut secrets: Vec<SecretDigest> = texts.filter_map(digest_of).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.length));
        SecretDigests { salt, secrets }
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The text with the secrets replaced by a marker.
    pub fn mask(&self, text: &[u8]) -> Vec<u8> {
        let mut has_prefix = [false; 1 << PREFIX_BITS];
        for secret in &self.secrets {
            has_prefix[usize::from(secret.prefix) % has_prefix.len()] = true;
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut position = 0;
        while let Some(prefix) = prefix_of(&text[position..]) {
            let found = has_prefix[usize::from(prefix)].then(|| self.secret_at(&text[position..], prefix));
            match found.flatten() {
                Some(length) => {
                    masked.extend_from_slice(SecretKind::Env.name().as_bytes());
                    position += length;
                }
                None => {
                    masked.push(text[position]);
                    position += 1;
                }
            }
        }
        masked.extend_from_slice(&text[position..]);
        masked
    }

    /// The length of the secret with which a text starts.
    fn secret_at(&self, text: &[u8], prefix: u16) -> Option<usize> {
        let candidates = self.secrets.iter().filter(|secret| secret.prefix == prefix);
        candidates
            .filter_map(|secret| Some((secret, text.get(..secret.length)?)))
            .find(|(secret, value)| secret.digest == digest(&self.salt, value))
            .map(|(secret, _)| secret.length)
    }
}

/// Some bits that depend on the first bytes of a text; none if it has fewer.
fn prefix_of(text: &[u8]) -> Option<u16> {
    let bytes = u32::from_le_bytes(*text.first_chunk::<PREFIX_BYTES>()?);
    u16::try_from(bytes.wrapping_mul(0x9E37_79B1) >> (u32::BITS - PREFIX_BITS)).ok()
}

fn digest(salt: &str, value: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(value).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_masked_wherever_it_stands_and_its_digest_does_not_contain_it() {
        let redactor = Redactor::builder().secret("hunter2-and-more").named_secret("pässword 1").build();
        let digests = SecretDigests::new(&redactor, "T-local-1".to_owned());
        let stored = serde_json::to_string(&digests).unwrap();
        assert!(!stored.contains("hunter2") && !stored.contains("password"), "{stored}");
        let digests: SecretDigests = serde_json::from_str(&stored).unwrap();
        let masked = |text: &str| String::from_utf8(digests.mask(text.as_bytes())).unwrap();
        assert_eq!(masked("+key=hunter2-and-more;\n-pässword 1"), "+key=[REDACTED:env];\n-[REDACTED:env]");
        assert_eq!(masked("hunter2-and-morE hunter2 and"), "hunter2-and-morE hunter2 and");
        assert_eq!(masked(""), "");
        let other = SecretDigests::new(&redactor, "T-local-2".to_owned());
        assert_ne!(other.secrets[0].digest, digests.secrets[0].digest);
    }

    #[test]
    fn without_secrets_nothing_is_masked() {
        let digests = SecretDigests::new(&Redactor::builder().build(), String::new());
        assert!(digests.is_empty());
        assert_eq!(digests.mask(b"abcdef"), b"abcdef");
    }
}
