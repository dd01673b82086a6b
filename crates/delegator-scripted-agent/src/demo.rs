//! The demo: a small repository with a bug in it, and a script that finds and fixes it for real.
//!
//! The repository tells leap years and gets 1900 wrong. Its test is a shell script, so nothing but `sh` and `git` is
//! needed. The agent reads the code, sees the test fail, edits the file, sees the test pass and reports. It does not
//! pretend: if the test still fails, so does the turn.

use crate::{Script, ScriptError};

/// A file of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoFile {
    /// Where, from the top of the repository.
    pub path: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// The repository as the agent finds it: write these, `git init`, add, commit.
pub fn files() -> [DemoFile; 3] {
    [
        DemoFile { path: "README.md", text: include_str!("../demo/repository/README.md") },
        DemoFile { path: "leap.sh", text: include_str!("../demo/repository/leap.sh") },
        DemoFile { path: "test.sh", text: include_str!("../demo/repository/test.sh") },
    ]
}

/// What the agent is asked to do.
pub fn task() -> &'static str {
    "The test in test.sh fails: find out why, fix it, and show that the test passes."
}

/// How it does it, in about three and a half seconds.
pub fn script() -> Result<Script, ScriptError> {
    Script::parse("demo", include_bytes!("../demo/script.json"))
}
