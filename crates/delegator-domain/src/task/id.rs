//! Task ids: the only value a caller provides that becomes part of a path, so only one exact form is accepted.

use std::fmt;
use std::str::FromStr;

use crate::named_enum::named_enum;

named_enum! {
    /// Where a task runs.
    pub enum TaskLocation {
        Local = "local",
        Cloud = "cloud",
    }
}

/// `T-local-` or `T-cloud-` and 32 hexadecimal digits: 128 random bits, so that an id cannot be guessed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdError {
    pub given: String,
}

impl TaskId {
    pub fn from_random(location: TaskLocation, bits: [u8; 16]) -> TaskId {
        let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        TaskId(format!("T-{}-{digits}", location.name()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn location(&self) -> TaskLocation {
        if self.0.starts_with("T-cloud-") { TaskLocation::Cloud } else { TaskLocation::Local }
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(given: &str) -> Result<TaskId, IdError> {
        let random = given.strip_prefix("T-local-").or_else(|| given.strip_prefix("T-cloud-"));
        let is_valid = random.is_some_and(|random| {
            random.len() == 32 && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        if is_valid { Ok(TaskId(given.to_owned())) } else { Err(IdError { given: given.to_owned() }) }
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

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a task id", self.given)
    }
}

impl std::error::Error for IdError {}

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
        for given in
            ["", "T-local-", "T-local-../../x", "T-local-ABCDEF0123456789ABCDEF0123456789", "t-local-00"]
        {
            assert!(given.parse::<TaskId>().is_err(), "{given}");
        }
    }
}
