//! Environment variables, and the marker by which the processes of a task are recognised.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;

/// Marks every process of a task: `DELEGATOR_TASK=<id>:<depth>`.
pub const MARKER: &str = "DELEGATOR_TASK";

/// The variables that an agent's commands need to work at all.
pub(crate) const CORE_NAMES: [&str; 11] =
    ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"];

pub type Variables = Vec<(OsString, OsString)>;

pub fn variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// The value of a variable that is set and not empty.
pub(crate) fn set_variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    variable(variables, name).filter(|value| !value.is_empty())
}

/// The directory that a variable names, else one below HOME.
pub(crate) fn named_directory(variables: &Variables, name: &str, below_home: &str) -> Option<PathBuf> {
    let named = set_variable(variables, name).map(PathBuf::from);
    named.or_else(|| Some(Path::new(set_variable(variables, "HOME")?).join(below_home)))
}

/// Value of the marker. `depth` counts tasks started by tasks.
pub fn task_marker(task: &TaskId, depth: u32) -> String {
    format!("{task}:{depth}")
}

/// Task and depth in a value of [`task_marker`]. Any other text counts as no marker.
pub fn parse_task_marker(marker: &str) -> Option<(TaskId, u32)> {
    let (task, depth) = marker.rsplit_once(':')?;
    Some((task.parse().ok()?, depth.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

    use super::*;

    #[test]
    fn task_markers_round_trip() {
        let task = TaskId::from_random(TaskLocation::Local, [0xab; 16]);
        let marker = task_marker(&task, 3);
        assert_eq!(parse_task_marker(&marker), Some((task.clone(), 3)));
        for invalid in
            ["", "nonsense", "nonsense:1", task.as_str(), &format!("{task}:"), &format!("{task}:-1")]
        {
            assert_eq!(parse_task_marker(invalid), None, "{invalid}");
        }
    }
}
