//! Quotes words for command lines that we print.

pub use delegator_domain::text::shell_word;
