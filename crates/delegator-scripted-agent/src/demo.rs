//! The demo: a small repository with a bug, and a script that finds and fixes it.
//!
//! The repository recognises leap years and gets 1900 wrong. Its test is a shell script, so only `sh` and `git` are
//! needed. The agent reads the code, runs the failing test, edits the file, runs the test again and reports. All of
//! this really happens: if the test still fails, so does the turn.

use crate::{Script, ScriptError};

/// A file of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoFile {
    /// Path relative to the root of the repository.
    pub path: &'static str,
    pub text: &'static str,
}

/// The files of the repository: write these, `git init`, add, commit.
pub fn files() -> [DemoFile; 3] {
    [
        DemoFile { path: "README.md", text: include_str!("../demo/repository/README.md") },
        DemoFile { path: "leap.sh", text: include_str!("../demo/repository/leap.sh") },
        DemoFile { path: "test.sh", text: include_str!("../demo/repository/test.sh") },
    ]
}

/// The task text for the agent.
pub fn task() -> &'static str {
    "The test in test.sh fails: find out why, fix it, and show that the test passes."
}

/// The script of the agent; it takes about 3.5 seconds.
pub fn script() -> Result<Script, ScriptError> {
    Script::parse("demo", include_bytes!("../demo/script.json"))
}
