//! The environments in which cloud tasks run: `environments.json`, next to the user's configuration file.
//!
//! The file is one object, keyed by environment id. Reading is `text ► JSON ► check ► Environments`; all
//! problems of the file are reported at once, each with its line and column. Unknown fields are preserved: an
//! edit changes one entry of the object that was read, keeps the order, and replaces the file as a whole.

mod check;
mod file;

pub use check::{entry_problems, field_default, new_entry};
pub use file::{Environments, EnvironmentsError, add, read, remove};

pub fn sample() -> &'static str {
    include_str!("sample.json")
}

#[cfg(test)]
mod tests;
