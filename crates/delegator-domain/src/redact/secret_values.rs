//! Decides which variables hold secrets, which of their values are masked, and in which encodings these are
//! searched.
//!
//! The name of a variable is split into lower-case words at `_`, `-`, `.` and camelCase boundaries, and whole
//! words are compared: substrings would match `AUTHOR`, `KEYBOARD` and `MONKEY`. Digits at the end of a word
//! are ignored (`TOKEN2`). A `key` that is known to be public (`IDEMPOTENCY_KEY`, `SSH_PUBLIC_KEY`) is no
//! secret.
//!
//! A value that also occurs in ordinary text (a path, a digest, a UUID, a flag, a small number) would mask
//! half a log, so it is not masked even if its name indicates a secret. A value whose variable the user
//! listed is masked whatever it looks like, from [`MIN_NAMED_CHARS`] on. A masked value becomes several
//! *needles*: the value itself, its longer lines (a key is often printed line by line), and its base64.
//! Base64 depends on how many bytes precede the value in the encoded blob, so besides the whole encoding
//! there is, for each of the three alignments, the core that depends on the value alone: it finds a password
//! inside `base64(user:password)`. [`super::needle`] handles JSON and percent escapes.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE};

use super::credential::SecretKind;

/// Minimum length of a value that only its name indicates to be a secret.
const MIN_CHARS: usize = 8;
/// Minimum length of a value the user listed: shorter ones occur in nearly every text.
const MIN_NAMED_CHARS: usize = 4;
/// Minimum length of a line of a longer value to be masked alone: shorter lines may be boilerplate.
const MIN_LINE_CHARS: usize = 16;

/// Whether a value has to look like a secret to be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskRule {
    /// Only the name of the variable indicates a secret.
    IfSecretLooking,
    /// The user listed the variable.
    Always,
}

/// Adds every needle of `value`, if it is masked at all.
pub(super) fn needles(value: &str, rule: MaskRule, into: &mut BTreeSet<String>) {
    let core = trim(value);
    let is_masked = match rule {
        MaskRule::IfSecretLooking => looks_secret(core),
        MaskRule::Always => core.chars().count() >= MIN_NAMED_CHARS && differs_from_markers(core),
    };
    if !is_masked {
        return;
    }
    into.insert(core.to_owned());
    // The encodings of a short value cannot be distinguished from ordinary text.
    if core.chars().count() < MIN_CHARS {
        return;
    }
    let lines: Vec<&str> = core.lines().collect();
    if lines.len() > 1 {
        let long = lines.into_iter().map(trim).filter(|line| {
            let is_masked = rule == MaskRule::Always || looks_secret(line);
            line.chars().count() >= MIN_LINE_CHARS && !line.starts_with("-----") && is_masked
        });
        into.extend(long.map(str::to_owned));
    }
    for alphabet in [STANDARD, URL_SAFE] {
        for text in [value, core] {
            let padded = alphabet.encode(text);
            into.insert(padded.trim_end_matches('=').to_owned());
            into.insert(padded);
        }
        into.extend((0..3).map(|shift| base64_core(core, shift, &alphabet)));
    }
}

/// Whether the text of a needle could stand outside a string in valid JSON, where a marker would break it.
pub(super) fn is_bare_json(needle: &str) -> bool {
    needle.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eEtrufalsn,:[]{} \t".contains(&byte))
}

/// So that a needle never starts or ends inside a JSON escape.
fn trim(value: &str) -> &str {
    value.trim_matches(|char: char| {
        char.is_whitespace() || char.is_control() || matches!(char, '"' | '\'' | '\\')
    })
}

fn looks_secret(value: &str) -> bool {
    value.chars().count() >= MIN_CHARS
        && !is_path(value)
        && !is_socket(value)
        && !is_plain_url(value)
        && !is_digest(value)
        && !is_uuid(value)
        && !is_flag_or_number(value)
        && differs_from_markers(value)
}

/// Whether masking the value is idempotent: a part of one of our own markers would be found in them again.
fn differs_from_markers(value: &str) -> bool {
    !value.contains("[REDACTED") && !SecretKind::ALL.iter().any(|kind| kind.name().contains(value))
}

fn is_path(value: &str) -> bool {
    let bytes = value.as_bytes();
    let drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    if drive || ["./", "../", "~/", "file:/", "\\\\"].iter().any(|start| value.starts_with(start)) {
        return true;
    }
    if value.contains(|char: char| char.is_whitespace() && char != ' ') {
        return false;
    }
    if value.starts_with('/') {
        return !is_base64_key(value);
    }
    let name = value.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    value.contains('/')
        && (1..=5).contains(&extension.len())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
}

/// Random base64 may start with a slash; a directory name is never that long and mixed.
fn is_base64_key(value: &str) -> bool {
    let longest = value.split('/').max_by_key(|part| part.len()).unwrap_or_default();
    value.len() >= 32
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        && longest.len() >= 12
        && longest.bytes().any(|byte| byte.is_ascii_uppercase())
        && longest.bytes().any(|byte| byte.is_ascii_lowercase())
        && value.bytes().any(|byte| byte.is_ascii_digit() || byte == b'+')
}

fn is_socket(value: &str) -> bool {
    ["unix:", "npipe:", "tcp:", "@/", "vsock:"].iter().any(|start| value.starts_with(start))
        || value.ends_with(".sock")
}

/// A web address without user, query or long random part identifies a service, not a user.
fn is_plain_url(value: &str) -> bool {
    let Some(rest) = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://")) else {
        return false;
    };
    !rest.contains(['@', '?', '#', '"', '\'', '\\', ' ', '\n'])
        && rest.split('/').skip(1).all(|part| part.len() < 20)
}

fn is_digest(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let named = ["sha1", "sha256", "sha384", "sha512", "md5"].iter().any(|algorithm| {
        lower.strip_prefix(algorithm).is_some_and(|rest| rest.starts_with([':', '-']) && !rest.contains(' '))
    });
    named || (matches!(value.len(), 40 | 64) && value.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_flag_or_number(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["disabled", "required", "optional", "undefined", "anonymous"].contains(&lower.as_str())
        || (value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_digit() || b"+-._".contains(&byte)))
}

/// The base64 characters that depend on `text` alone when `shift` unknown bytes precede it.
fn base64_core(text: &str, shift: usize, alphabet: &GeneralPurpose) -> String {
    let shifted = "\0".repeat(shift) + text;
    alphabet.encode(&shifted)[(shift * 8).div_ceil(6)..shifted.len() * 8 / 6].to_owned()
}

const WORDS: &str = "accesskey accesstoken apikey apikeys apisecret apitoken auth authtoken bearer clientsecret cookie \
    cookies credential credentials dsn jwt key keys mysqlpwd oauth pass passphrase passwd password \
    passwords pat pgpassword privatekey secret secretkey secrets sshpass token tokens webhook";

/// Words that make a following `key` harmless.
const HARMLESS_KEYS: &[&str] =
    &["cache", "foreign", "idempotency", "partition", "primary", "public", "routing", "sort"];

/// Whether a variable of this name holds a secret; `extra` names match in any case.
pub fn is_secret_name<S: AsRef<str>>(name: &str, extra: &[S]) -> bool {
    if is_listed(name, extra) {
        return true;
    }
    let words = words(name);
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).map(|index| words[index].as_str());
        match word.as_str() {
            "key" | "keys" => !before.is_some_and(|before| HARMLESS_KEYS.contains(&before)),
            // `PWD` alone is the working directory of the shell; `DB_PWD` is a password.
            "pwd" => words.len() > 1,
            "string" => before == Some("connection"),
            word => WORDS.split(' ').any(|known| known == word),
        }
    })
}

/// Whether the user listed this variable, in any case.
pub fn is_listed<S: AsRef<str>>(name: &str, extra: &[S]) -> bool {
    extra.iter().any(|known| known.as_ref().eq_ignore_ascii_case(name))
}

fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(['_', '-', '.']) {
        let chars: Vec<char> = part.chars().collect();
        let mut word = String::new();
        for (index, &char) in chars.iter().enumerate() {
            let after_lower = index > 0 && !chars[index - 1].is_uppercase();
            let before_lower = chars.get(index + 1).is_some_and(|next| next.is_lowercase());
            // `apiKey` breaks before K; `APIKey` breaks before the capital that starts a word.
            if char.is_uppercase() && (after_lower || (index > 0 && before_lower)) {
                words.push(std::mem::take(&mut word));
            }
            word.extend(char.to_lowercase());
        }
        words.push(word);
    }
    for word in &mut words {
        word.truncate(word.trim_end_matches(|char: char| char.is_ascii_digit()).len());
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_values_are_not_masked() {
        for value in [
            "hunter2",
            "/home/me/.ssh/id_rsa",
            "/tmp/ssh-XXXXabcdef/agent.1234",
            "~/keys/deploy",
            "certs/server.pem",
            "C:\\keys\\a.pem",
            "unix:/run/user/1000/bus",
            "agent.sock",
            "https://login.example.com/oauth",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sha256:e3b0c44298fc1c149afbf4c8996fb924",
            "123e4567-e89b-12d3-a456-426614174000",
            "disabled",
            "1700000000",
            "REDACTED",
        ] {
            assert!(!looks_secret(value), "{value}");
        }
    }

    #[test]
    fn secrets_are_masked() {
        for value in [
            "hunter22",
            "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1",
            "d41d8cd98f00b204e9800998ecf8427e",
            "https://key@o1.ingest.example.com/2",
            "1234567890123456",
            "pässwörd",
        ] {
            assert!(looks_secret(value), "{value}");
        }
    }

    #[test]
    fn base64_agrees_with_known_encodings() {
        assert_eq!(base64_core("foobar", 0, &STANDARD), "Zm9vYmFy");
        assert_eq!(STANDARD.encode("foob"), "Zm9vYg==");
        assert_eq!(URL_SAFE.encode(b"\xfb\xff"), "-_8=");
        let core = base64_core("password", 2, &STANDARD);
        assert!(STANDARD.encode("u:password!").contains(&core), "{core}");
        let core = base64_core("password", 1, &STANDARD);
        assert!(STANDARD.encode("abc:password!").contains(&core), "{core}");
    }

    const NONE: &[&str] = &[];

    #[test]
    fn whole_words_indicate_a_secret() {
        for name in [
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "apiKey",
            "APIKey",
            "db.password",
            "DB_PWD",
            "PGPASSWORD",
            "GH_PAT",
            "SENTRY_DSN",
            "npm-auth",
            "TOKEN2",
            "clientSecret",
            "SESSION_COOKIE",
            "AZURE_CONNECTION_STRING",
            "AWS_CREDENTIALS",
            "SSH_AUTH_SOCK",
        ] {
            assert!(is_secret_name(name, NONE), "{name}");
        }
    }

    #[test]
    fn parts_of_words_and_public_keys_indicate_no_secret() {
        for name in [
            "PWD",
            "OLDPWD",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "KEYBOARD",
            "MONKEY",
            "IDEMPOTENCY_KEY",
            "idempotencyKey",
            "SSH_PUBLIC_KEY",
            "PATH",
            "TOKENIZERS_PARALLELISM",
            "COMPATIBILITY",
            "HOME",
            "",
        ] {
            assert!(!is_secret_name(name, NONE), "{name}");
        }
    }

    #[test]
    fn extra_names_match_in_any_case() {
        assert!(is_secret_name("Corp_Login", &["CORP_LOGIN"]));
        assert!(!is_secret_name("CORP_LOGINS", &["CORP_LOGIN"]));
    }
}
