//! Which words of a line name the command.
//!
//! Flags may stand anywhere, also before the command they belong to, so the command is found first: the words that
//! name it are taken in order, values of global flags are stepped over, and everything else is put behind. Nothing is
//! decided about the rest of the line.

use std::ffi::OsString;

use super::globals;
use crate::registry::{self, CommandSpec};

/// Where the command stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Located {
    /// The words of the command or group, as far as they are known.
    pub path: Vec<String>,
    /// Their places in the line.
    pub places: Vec<usize>,
    /// A word that stands where a command should, and is none.
    pub stray: Option<usize>,
}

impl Located {
    pub fn spec(&self) -> Option<&'static CommandSpec> {
        registry::find(&self.path.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The line with the command in front.
    pub fn in_order(&self, words: &[OsString]) -> Vec<OsString> {
        let program = words.first().cloned().unwrap_or_default();
        let rest = words.iter().enumerate().skip(1).filter(|(place, _)| !self.places.contains(place));
        [program]
            .into_iter()
            .chain(self.path.iter().map(OsString::from))
            .chain(rest.map(|(_, word)| word.clone()))
            .collect()
    }
}

pub fn locate(words: &[OsString]) -> Located {
    let mut located = Located::default();
    let mut after_unknown_flag = false;
    let mut skip_value = false;
    for (place, word) in words.iter().enumerate().skip(1) {
        let word = word.to_string_lossy();
        if std::mem::take(&mut skip_value) {
            continue;
        }
        if word == "--" || located.spec().is_some() {
            break;
        }
        if word.len() > 1 && word.starts_with('-') {
            skip_value = globals::takes_value(&word);
            after_unknown_flag = !skip_value && !globals::is_known(&word) && !word.contains('=');
            continue;
        }
        if is_step(&located.path, &word) {
            located.path.push(word.into_owned());
            located.places.push(place);
        } else if !after_unknown_flag && located.stray.is_none() {
            located.stray = Some(place);
        }
        after_unknown_flag = false;
    }
    // A stray word in front of a command that was found is that command's business: an argument too many.
    if located.spec().is_some() {
        located.stray = None;
    }
    located
}

/// Whether a word leads from this path to a command or group.
fn is_step(path: &[String], word: &str) -> bool {
    registry::all().iter().any(|spec| {
        spec.path.len() > path.len()
            && spec.path.iter().zip(path).all(|(a, b)| a == b)
            && spec.path[path.len()] == word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(line: &str) -> (Vec<String>, Option<usize>) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let located = locate(&words);
        (located.path, located.stray)
    }

    #[test]
    fn flags_may_stand_before_the_command() {
        assert_eq!(located("p --limit 2 manifest"), (vec!["manifest".into()], None));
        assert_eq!(located("p config --changed show"), (vec!["config".into(), "show".into()], None));
        assert_eq!(located("p --format json config show x"), (vec!["config".into(), "show".into()], None));
    }

    #[test]
    fn the_value_of_a_global_flag_is_no_command() {
        assert_eq!(located("p --output schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(located("p --output=schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(located("p --output schema manifets"), (vec![], Some(3)));
    }

    #[test]
    fn a_word_that_is_no_command_is_noticed() {
        assert_eq!(located("p manifets --limit 3"), (vec![], Some(1)));
        assert_eq!(located("p config shw"), (vec!["config".into()], Some(2)));
        assert_eq!(located("p --limit 2 manifets"), (vec![], Some(3)));
        assert_eq!(located("p -- manifest"), (vec![], None));
        assert_eq!(located("p config"), (vec!["config".into()], None));
    }
}
