//! What an agent sees of the submitter's environment: an allow-list, and one variable of ours.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use delegator_domain::loader_variables::is_loader_variable;
use delegator_domain::task::TaskId;

/// Marks everything that belongs to a task: `DELEGATOR_TASK=<id>:<depth>`.
pub const MARKER: &str = "DELEGATOR_TASK";

pub type Variables = Vec<(OsString, OsString)>;

/// Passed on under their own names. `TERM` is not: it becomes `dumb`.
const PASSED_ON: [&str; 26] = [
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
    // The agent's own keys.
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
];

/// Never passed on, whatever the configuration names: backtraces end up in error messages, and the marker is ours.
const NEVER: [&str; 3] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE", MARKER];

/// The marker's value. The depth counts tasks started by tasks.
pub fn task_marker(task: &TaskId, depth: u32) -> String {
    format!("{task}:{depth}")
}

/// Those variables that the built-in list or the user's configuration (`named`) allows.
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
    let mut kept = allowed_variables(submitted, named);
    kept.push(("TERM".into(), "dumb".into()));
    kept.push((MARKER.into(), marker.into()));
    kept.sort();
    kept
}

/// Whether a variable of the submitter reaches the agent.
fn is_allowed(name: &str, named: &[String]) -> bool {
    name != "TERM" && variable_right(name, named) == VariableRight::Given
}

/// What an agent gets of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableRight {
    /// The built-in list or the user's configuration names it.
    Given,
    /// Only the user's configuration could add it.
    NotListed,
    /// Nothing can add it.
    Never,
}

/// What the agent gets of a variable where the user's configuration names these.
pub fn variable_right(name: &str, named: &[String]) -> VariableRight {
    let is_listed = PASSED_ON.contains(&name)
        || name.starts_with("LC_")
        || name == "TERM"
        || named.iter().any(|wanted| wanted == name);
    match NEVER.contains(&name) || is_loader_variable(name) {
        true => VariableRight::Never,
        false if is_listed => VariableRight::Given,
        false => VariableRight::NotListed,
    }
}

/// Where Codex keeps its own things in that environment.
pub fn codex_home(environment: &Variables) -> Option<PathBuf> {
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| Path::new(value)).filter(|path| !path.as_os_str().is_empty())
    };
    value("CODEX_HOME").map(Path::to_path_buf).or_else(|| value("HOME").map(|home| home.join(".codex")))
}

/// Whether Codex will refuse to make its sandbox helper: every sandboxed command then dies without a trace. Both paths
/// are compared as they are written; who knows the canonical ones gives those.
pub fn codex_home_is_temporary(environment: &Variables) -> bool {
    let temporary = environment.iter().find(|(name, _)| name == "TMPDIR");
    let temporary = temporary.map_or(Path::new("/tmp"), |(_, value)| Path::new(value));
    let is_climbing = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    codex_home(environment).is_some_and(|home| home.starts_with(temporary) && !is_climbing(&home))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &Variables) -> Vec<&str> {
        variables.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    fn environment(given: &[(&str, &str)], named: &[&str]) -> Variables {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let given = given.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        agent_environment(given, &named, "T:0")
    }

    #[test]
    fn only_the_list_is_passed_on() {
        let given = [
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
        let kept = environment(&given, &named);
        let expected = ["DELEGATOR_TASK", "HOME", "LC_TIME", "MY_TOOL", "OPENAI_API_KEY", "PATH", "TERM"];
        assert_eq!(names(&kept), expected);
        assert!(kept.contains(&("TERM".into(), "dumb".into())));
        assert!(kept.contains(&("DELEGATOR_TASK".into(), "T:0".into())));
    }

    #[test]
    fn the_trap_of_the_temporary_home_is_seen() {
        assert!(codex_home_is_temporary(&environment(&[("CODEX_HOME", "/tmp/x")], &[])));
        assert!(!codex_home_is_temporary(&environment(&[("HOME", "/home/dev")], &[])));
        let elsewhere = [("CODEX_HOME", "/tmp/x"), ("TMPDIR", "/var/tmp")];
        assert!(!codex_home_is_temporary(&environment(&elsewhere, &[])));
    }
}
