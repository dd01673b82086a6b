//! Which words of a line name the command.
//!
//! Flags may stand anywhere, also before the command they belong to, so the command is found first: the words that
//! name it are taken in order, values of global flags are stepped over, and everything else is put behind. Nothing is
//! decided about the rest of the line.

use std::ffi::OsString;

use super::globals;
use crate::spec::{self, CommandSpec};

/// Where the command stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocatedCommand {
    /// The words of the command or group, as far as they are known.
    pub path: Vec<String>,
    /// Their places in the line.
    pub path_indexes: Vec<usize>,
    /// A word that stands where a command should, and is none.
    pub unknown_word: Option<usize>,
}

impl LocatedCommand {
    pub fn spec(&self) -> Option<&'static CommandSpec> {
        spec::find(&self.path.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The line with the command in front.
    pub fn args_with_command_first(&self, args: &[OsString]) -> Vec<OsString> {
        let program = args.first().cloned().unwrap_or_default();
        let others = args.iter().enumerate().skip(1).filter(|(place, _)| !self.path_indexes.contains(place));
        [program]
            .into_iter()
            .chain(self.path.iter().map(OsString::from))
            .chain(others.map(|(_, word)| word.clone()))
            .collect()
    }
}

pub fn locate(args: &[OsString]) -> LocatedCommand {
    let mut located = LocatedCommand::default();
    let mut after_unknown_flag = false;
    let mut skip_value = false;
    for (place, word) in args.iter().enumerate().skip(1) {
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
        if extends_path(&located.path, &word) {
            located.path.push(word.into_owned());
            located.path_indexes.push(place);
        } else if !after_unknown_flag && located.unknown_word.is_none() {
            located.unknown_word = Some(place);
        }
        after_unknown_flag = false;
    }
    // A stray word in front of a command that was found is that command's business: an argument too many.
    if located.spec().is_some() {
        located.unknown_word = None;
    }
    located
}

/// Whether a word leads from this path to a command or group.
fn extends_path(path: &[String], word: &str) -> bool {
    spec::all().iter().any(|spec| {
        spec.path.len() > path.len()
            && spec.path.iter().zip(path).all(|(a, b)| a == b)
            && spec.path[path.len()] == word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate_in(command_line: &str) -> (Vec<String>, Option<usize>) {
        let args: Vec<OsString> = command_line.split(' ').map(OsString::from).collect();
        let located = locate(&args);
        (located.path, located.unknown_word)
    }

    #[test]
    fn flags_may_precede_the_command() {
        assert_eq!(locate_in("p --limit 2 manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p config --changed show"), (vec!["config".into(), "show".into()], None));
        assert_eq!(locate_in("p --format json config show x"), (vec!["config".into(), "show".into()], None));
    }

    #[test]
    fn value_of_a_global_flag_is_not_a_command() {
        assert_eq!(locate_in("p --output schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p --output=schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p --output schema manifets"), (vec![], Some(3)));
    }

    #[test]
    fn unknown_command_word_is_reported() {
        assert_eq!(locate_in("p manifets --limit 3"), (vec![], Some(1)));
        assert_eq!(locate_in("p config shw"), (vec!["config".into()], Some(2)));
        assert_eq!(locate_in("p --limit 2 manifets"), (vec![], Some(3)));
        assert_eq!(locate_in("p -- manifest"), (vec![], None));
        assert_eq!(locate_in("p config"), (vec!["config".into()], None));
    }
}
