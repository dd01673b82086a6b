//! Removes credentials from logs and responses.
//!
//! A [`Redactor`] knows the secret values of one environment and the formats of common credentials, and
//! replaces both by `[REDACTED:<kind>]`. It is built once, is cheap to clone, and creates streams that
//! process bytes as they arrive.
//!
//! * `secret_values` decides which variables hold secrets, and which of their values are masked.
//! * `needle` recognises a value in any escaping; `credential_formats` and `url_and_header` recognise
//!   credentials.
//! * `index` finds candidate positions, `context` tracks the preceding text, `text` reads ahead.
//! * `stream` combines them; `credential` drops the rest of tokens of any length.
//! * `digests` finds values that are not known any more.
//!
//! JSON stays JSON: in a JSON line a match never starts inside an escape, never includes an unescaped quote,
//! and never stands outside a string. `context` defines which lines are JSON.

mod context;
mod credential;
mod credential_formats;
mod digests;
mod index;
mod needle;
mod redactor;
mod secret_values;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod url_and_header;

pub use digests::SecretDigests;
pub use redactor::{Redactor, RedactorBuilder};
pub use secret_values::{is_listed, is_secret_name};
pub use stream::RedactStream;
