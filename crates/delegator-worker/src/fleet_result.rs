//! What a worker of the fleet reports about a task that has ended. The fleet stores it as text and does not
//! read it.

use delegator_engine::{DiffOmissions, EngineError, FormatVersion, Record, encode_record, tokens};
use delegator_registry::Tokens;
use serde::{Deserialize, Serialize};

/// The result of a fleet task. Its diff and the output of the setup script are stored beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetResult {
    pub version: FormatVersion<1>,
    pub record: Record,
    /// The commit that the task started from; `None` if the repository could not be checked out.
    pub base_commit: Option<String>,
    /// The branch of that commit; `None` if the task started from a tag or a commit.
    pub branch: Option<String>,
    /// The branch to which the worker pushed the changes.
    pub pushed_branch: Option<String>,
    pub worker: String,
    pub omissions: DiffOmissions,
}

impl FleetResult {
    pub fn to_json(&self) -> Result<String, EngineError> {
        encode_record("encode the result of a task", self)
    }

    /// Fails if a worker of another version wrote a format that this version does not read.
    pub fn from_json(text: &str) -> Result<FleetResult, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn tokens(&self) -> Option<Tokens> {
        tokens(&self.record.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let result = FleetResult {
            version: FormatVersion,
            record: Record::default(),
            base_commit: Some("c0ffee".to_owned()),
            branch: Some("main".to_owned()),
            pushed_branch: None,
            worker: "build-1".to_owned(),
            omissions: DiffOmissions::default(),
        };
        let text = result.to_json().unwrap();
        assert_eq!(FleetResult::from_json(&text).unwrap(), result);
        let other = text.replacen("\"version\":1", "\"version\":2", 1);
        assert!(FleetResult::from_json(&other).unwrap_err().to_string().contains("version 2"));
    }
}
