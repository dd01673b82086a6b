//! The parser of all values of the command line: it accepts every text, because validation reports all problems together.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

/// Accepts any string; the choices are used only for help and completions.
#[derive(Debug, Clone)]
pub struct LenientParser {
    choices: Vec<String>,
}

impl LenientParser {
    pub fn text() -> Self {
        LenientParser { choices: Vec::new() }
    }

    pub fn choices(choices: &[&str]) -> Self {
        LenientParser { choices: choices.iter().map(|choice| (*choice).to_owned()).collect() }
    }
}

impl TypedValueParser for LenientParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        match value.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(clap::Error::new(clap::error::ErrorKind::InvalidUtf8).with_cmd(command)),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        match self.choices.as_slice() {
            [] => None,
            choices => Some(Box::new(choices.iter().map(PossibleValue::new))),
        }
    }
}
