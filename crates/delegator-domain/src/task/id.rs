//! Task ids: the only value a caller provides that becomes part of a path, so [`TaskId`] has only one exact
//! form. What callers type is a [`TaskIdPrefix`]; the registry finds the id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

named_enum! {
    pub enum TaskLocation {
        Local = "local",
        Cloud = "cloud",
    }
}

/// Crockford's base32: no `i`, `l`, `o` and `u`, which are easily misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Length of the random part.
const LENGTH: usize = 10;

/// `T-local-` or `T-cloud-` and 10 characters of Crockford base32: 50 random bits. The registry refuses an id
/// that is in use.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TaskId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a task id")]
pub struct IdError {
    pub given: String,
}

impl TaskId {
    pub fn from_random(location: TaskLocation, bytes: [u8; 16]) -> TaskId {
        TaskId(format!("{}{}", location.id_prefix(), random_part(bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn location(&self) -> TaskLocation {
        if self.0.starts_with("T-cloud-") { TaskLocation::Cloud } else { TaskLocation::Local }
    }
}

impl TaskLocation {
    /// How the ids of its tasks begin.
    pub fn id_prefix(self) -> String {
        format!("T-{}-", self.name())
    }
}

impl TryFrom<String> for TaskId {
    type Error = IdError;

    fn try_from(given: String) -> Result<TaskId, IdError> {
        given.parse()
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(given: &str) -> Result<TaskId, IdError> {
        let random = given.strip_prefix("T-local-").or_else(|| given.strip_prefix("T-cloud-"));
        let is_id = random.is_some_and(is_random_part);
        if is_id { Ok(TaskId(given.to_owned())) } else { Err(IdError { given: given.to_owned() }) }
    }
}

pub(super) fn random_part(bytes: [u8; 16]) -> String {
    bytes.iter().take(LENGTH).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// Whether this is the complete random part of an id.
pub(super) fn is_random_part(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// The random part of an id, or its beginning, as a person types it in lower case: `i` and `l` are `1`, `o`
/// is `0`.
pub(super) fn read_random_part(typed: &str) -> Option<String> {
    let random: String = typed
        .chars()
        .map(|letter| match letter {
            'i' | 'l' => '1',
            'o' => '0',
            other => other,
        })
        .collect();
    let is_valid = (TaskIdPrefix::MIN..=LENGTH).contains(&random.len())
        && random.bytes().all(|byte| ALPHABET.contains(&byte));
    is_valid.then_some(random)
}

/// A task id as a person types it: complete or only its beginning, with or without `T-local-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskIdPrefix {
    /// `None` if only characters of the random part were given.
    location: Option<TaskLocation>,
    random: String,
}

impl TaskIdPrefix {
    /// Minimum number of characters of the random part.
    pub const MIN: usize = 4;

    pub fn beginnings(&self) -> impl Iterator<Item = String> {
        let locations = TaskLocation::ALL.into_iter();
        let matching = locations.filter(|location| self.location.is_none_or(|given| given == *location));
        matching.map(|location| format!("{}{}", location.id_prefix(), self.random))
    }

    /// The id, if the prefix is complete and names the location.
    pub fn complete(&self) -> Option<TaskId> {
        format!("{}{}", self.location?.id_prefix(), self.random).parse().ok()
    }
}

impl FromStr for TaskIdPrefix {
    type Err = IdError;

    /// As Crockford's base32 is read: case does not count, `i` and `l` are `1`, `o` is `0`.
    fn from_str(given: &str) -> Result<TaskIdPrefix, IdError> {
        let lower = given.to_ascii_lowercase();
        let named = TaskLocation::ALL
            .into_iter()
            .find_map(|location| Some((location, lower.strip_prefix(&format!("t-{}-", location.name()))?)));
        let (location, random) =
            named.map_or((None, lower.as_str()), |(location, rest)| (Some(location), rest));
        match read_random_part(random) {
            Some(random) => Ok(TaskIdPrefix { location, random }),
            None => Err(IdError { given: given.to_owned() }),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Provider {
        /// Hosted Codex.
        CodexCloud = "codex-cloud",
        /// Our own workers.
        Fleet = "fleet",
    }
}

impl Provider {
    pub fn description(self) -> &'static str {
        match self {
            Provider::CodexCloud => "hosted Codex",
            Provider::Fleet => "the fleet",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_round_trip() {
        let id = TaskId::from_random(TaskLocation::Cloud, [0xab; 16]);
        assert_eq!(id.as_str().parse::<TaskId>().unwrap(), id);
        assert_eq!(id.location(), TaskLocation::Cloud);
    }

    #[test]
    fn malformed_ids_are_rejected() {
        let long = format!("T-local-{}", "0".repeat(32));
        for given in [
            "",
            "T-local-",
            "T-local-../../../x",
            "T-local-ABCDEFGHJK",
            "T-local-abcdefghil",
            "t-local-00",
            &long,
        ] {
            assert!(given.parse::<TaskId>().is_err(), "{given}");
        }
    }

    #[test]
    fn a_prefix_is_read_like_crockford_base32() {
        let beginnings =
            |given: &str| given.parse::<TaskIdPrefix>().unwrap().beginnings().collect::<Vec<_>>();
        assert_eq!(beginnings("T-local-7q3k"), ["T-local-7q3k"]);
        assert_eq!(beginnings("t-cloud-7Q3K"), ["T-cloud-7q3k"]);
        assert_eq!(beginnings("lOiL"), ["T-local-1011", "T-cloud-1011"]);
        let long = "0".repeat(LENGTH + 1);
        for given in ["", "T-local-", "abc", "T-local-abc", "abcu", "../../aa", "%%%%", "äöüß", &long] {
            assert!(given.parse::<TaskIdPrefix>().is_err(), "{given}");
        }
    }

    #[test]
    fn only_a_whole_id_with_its_location_is_complete() {
        let complete = |given: &str| given.parse::<TaskIdPrefix>().unwrap().complete();
        assert_eq!(complete("T-local-00000000O0"), Some(TaskId::from_random(TaskLocation::Local, [0; 16])));
        assert_eq!(complete("0000000000"), None);
        assert_eq!(complete("T-local-0000"), None);
    }
}
