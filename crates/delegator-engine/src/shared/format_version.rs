//! What the JSON records that the engine stores have in common: a version, and errors that name the file. A
//! missing or unknown value is an error; it never becomes a default that the program then acts on.

use std::path::Path;

use delegator_registry::{TaskDir, TaskFile};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{EngineError, Result};

/// The `version` field of a stored record whose format has the version `N`. A record with another version
/// cannot be read. It is the first field, so that a record of another version is refused for its version and
/// not for a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatVersion<const N: u32>;

impl<const N: u32> Serialize for FormatVersion<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(N)
    }
}

impl<'de, const N: u32> Deserialize<'de> for FormatVersion<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            found if found == N => Ok(FormatVersion),
            found => Err(D::Error::custom(format!(
                "its format has version {found}; this program reads version {N}"
            ))),
        }
    }
}

/// The text of a stored record. `doing` is what an error says that could not be done.
pub fn encode(doing: &'static str, record: &impl Serialize) -> Result<String> {
    serde_json::to_string(record).map_err(|error| EngineError::io(doing)(error.into()))
}

/// Reads a record from a task directory; `None` if there is no such file.
pub(crate) fn read_record<T: DeserializeOwned>(dir: &TaskDir, file: TaskFile) -> Result<Option<T>> {
    dir.read(file)?.map(|bytes| decode(&dir.file(file), &bytes)).transpose()
}

pub fn decode<T: DeserializeOwned>(file: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::StoredRecord { file: file.to_owned(), problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::Mode;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        version: FormatVersion<2>,
        mode: Mode,
    }

    fn decoded(text: &str) -> Result<Sample, String> {
        decode(Path::new("/tasks/T/sample.json"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let sample = Sample { version: FormatVersion, mode: Mode::WorkspaceWrite };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(text, r#"{"version":2,"mode":"workspace-write"}"#);
        assert_eq!(decoded(&text), Ok(sample));
    }

    #[test]
    fn unknown_versions_and_values_are_errors_that_name_the_file() {
        for (text, problem) in [
            (r#"{"version":3,"mode":"read-only"}"#, "its format has version 3; this program reads version 2"),
            (r#"{"version":2,"mode":"anything"}"#, "unknown variant `anything`"),
            ("{}", "missing field `version`"),
        ] {
            let error = decoded(text).unwrap_err();
            assert!(error.contains("/tasks/T/sample.json") && error.contains(problem), "{error}");
        }
    }
}
