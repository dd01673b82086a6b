//! Builds the agent's environment: an allow-list of the submitter's variables, plus the task marker.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use delegator_domain::loader_variables::is_loader_variable;
use delegator_domain::task::TaskId;

/// Marks every process of a task: `DELEGATOR_TASK=<id>:<depth>`.
pub const MARKER: &str = "DELEGATOR_TASK";

pub type Variables = Vec<(OsString, OsString)>;

/// Passed unchanged. `TERM` is not among them: it is set to `dumb`.
const PASSED_VARIABLES: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "SHELL",
    "CODEX_HOME",
    // Proxies.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    // Certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CODEX_CA_CERTIFICATE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    // Credentials of the agent.
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
];

/// Never passed, even if the configuration names them: backtraces end up in error messages, and the marker is ours.
const NEVER_PASSED: [&str; 3] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE", MARKER];

/// Value of the marker. `depth` counts tasks started by tasks.
pub fn task_marker(task: &TaskId, depth: u32) -> String {
    format!("{task}:{depth}")
}

/// The variables that the built-in list or the user's configuration (`named`) allows.
pub fn allowed_variables<'a>(
    submitted: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    named: &[String],
) -> Variables {
    submitted
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| is_allowed(name, named)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The agent's environment: the allowed variables, `TERM=dumb`, and the marker.
pub fn agent_environment<'a>(
    submitted: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    named: &[String],
    marker: &str,
) -> Variables {
    let mut variables = allowed_variables(submitted, named);
    variables.push(("TERM".into(), "dumb".into()));
    variables.push((MARKER.into(), marker.into()));
    variables.sort();
    variables
}

/// Whether a variable of the submitter is passed to the agent.
fn is_allowed(name: &str, named: &[String]) -> bool {
    name != "TERM" && variable_access(name, named) == VariableAccess::Passed
}

/// Whether a variable is passed to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableAccess {
    /// The built-in list or the user's configuration names it.
    Passed,
    /// Only the user's configuration could add it.
    NotListed,
    /// No configuration can add it.
    Never,
}

/// Whether a variable is passed to the agent, given the names in the user's configuration.
pub fn variable_access(name: &str, named: &[String]) -> VariableAccess {
    let is_listed = PASSED_VARIABLES.contains(&name)
        || name.starts_with("LC_")
        || name == "TERM"
        || named.iter().any(|wanted| wanted == name);
    match NEVER_PASSED.contains(&name) || is_loader_variable(name) {
        true => VariableAccess::Never,
        false if is_listed => VariableAccess::Passed,
        false => VariableAccess::NotListed,
    }
}

/// Codex's home directory in that environment.
pub fn codex_home(environment: &Variables) -> Option<PathBuf> {
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| Path::new(value)).filter(|path| !path.as_os_str().is_empty())
    };
    value("CODEX_HOME").map(Path::to_path_buf).or_else(|| value("HOME").map(|home| home.join(".codex")))
}

/// Whether Codex will refuse to create its sandbox helper, after which every sandboxed command fails silently. Paths
/// are compared as written; callers that know the canonical paths pass those.
pub fn codex_home_is_temporary(environment: &Variables) -> bool {
    let temporary = environment.iter().find(|(name, _)| name == "TMPDIR");
    let temporary = temporary.map_or(Path::new("/tmp"), |(_, value)| Path::new(value));
    let has_parent_component = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    codex_home(environment).is_some_and(|home| home.starts_with(temporary) && !has_parent_component(&home))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &Variables) -> Vec<&str> {
        variables.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    fn environment(variables: &[(&str, &str)], named: &[&str]) -> Variables {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let variables = variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        agent_environment(variables, &named, "T:0")
    }

    #[test]
    fn only_listed_variables_are_passed() {
        let variables = [
            ("PATH", "/bin"),
            ("HOME", "/home/dev"),
            ("LC_TIME", "C"),
            ("TERM", "xterm"),
            ("LD_PRELOAD", "/evil.so"),
            ("NODE_OPTIONS", "--require x"),
            ("GIT_SSH_COMMAND", "x"),
            ("BASH_ENV", "x"),
            ("RUST_BACKTRACE", "1"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("MY_TOOL", "1"),
            ("OPENAI_API_KEY", "k"),
            ("DELEGATOR_TASK", "T-outer:0"),
        ];
        let named = [
            "MY_TOOL",
            "RUST_BACKTRACE",
            "TERM",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
        ];
        let passed = environment(&variables, &named);
        let expected = ["DELEGATOR_TASK", "HOME", "LC_TIME", "MY_TOOL", "OPENAI_API_KEY", "PATH", "TERM"];
        assert_eq!(names(&passed), expected);
        assert!(passed.contains(&("TERM".into(), "dumb".into())));
        assert!(passed.contains(&("DELEGATOR_TASK".into(), "T:0".into())));
    }

    #[test]
    fn codex_home_below_the_temporary_directory_is_detected() {
        assert!(codex_home_is_temporary(&environment(&[("CODEX_HOME", "/tmp/x")], &[])));
        assert!(!codex_home_is_temporary(&environment(&[("HOME", "/home/dev")], &[])));
        let elsewhere = [("CODEX_HOME", "/tmp/x"), ("TMPDIR", "/var/tmp")];
        assert!(!codex_home_is_temporary(&environment(&elsewhere, &[])));
    }
}
