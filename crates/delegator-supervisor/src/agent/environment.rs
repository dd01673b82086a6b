//! Builds the agent's environment: an allow-list of the submitter's variables, plus the task marker.

use std::ffi::{OsStr, OsString};

use delegator_domain::agents::{AgentKind, AgentProtocol};
use delegator_domain::loader_variables::is_loader_variable;
use delegator_domain::task::TaskId;

use super::{acp, claude, codex};

/// Marks every process of a task: `DELEGATOR_TASK=<id>:<depth>`.
pub const MARKER: &str = "DELEGATOR_TASK";

pub type Variables = Vec<(OsString, OsString)>;

/// The value of a variable.
pub fn variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// The variables that an agent's commands need to work at all.
pub(super) const CORE_NAMES: [&str; 11] =
    ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"];

/// Passed unchanged to every agent. `TERM` is not among them: it is set to `dumb`.
const PASSED_VARIABLES: [&str; 19] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "SHELL",
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
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
];

/// Never passed, even if the configuration names them: backtraces end up in error messages, and the marker is ours.
const NEVER_PASSED: [&str; 3] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE", MARKER];

/// Value of the marker. `depth` counts tasks started by tasks.
pub fn task_marker(task: &TaskId, depth: u32) -> String {
    format!("{task}:{depth}")
}

/// Task and depth in a value of [`task_marker`]. Any other text counts as no marker.
pub fn parse_task_marker(marker: &str) -> Option<(TaskId, u32)> {
    let (task, depth) = marker.rsplit_once(':')?;
    Some((task.parse().ok()?, depth.parse().ok()?))
}

/// The variables that the built-in list, the protocol or the user's configuration (`named`) allows.
pub fn allowed_variables<'a>(
    agent: AgentKind<'_>,
    submitted: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    named: &[String],
) -> Variables {
    submitted
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| is_allowed(agent, name, named)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The agent's environment: the allowed variables, `TERM=dumb`, and the marker.
pub fn agent_environment<'a>(
    agent: AgentKind<'_>,
    submitted: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    named: &[String],
    marker: &str,
) -> Variables {
    let mut variables = allowed_variables(agent, submitted, named);
    variables.push(("TERM".into(), "dumb".into()));
    variables.push((MARKER.into(), marker.into()));
    variables.sort();
    variables
}

/// Whether a variable of the submitter is passed to the agent.
fn is_allowed(agent: AgentKind<'_>, name: &str, named: &[String]) -> bool {
    name != "TERM" && variable_access(agent, name, named) == VariableAccess::Passed
}

/// Whether a variable is passed to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableAccess {
    /// The built-in list, the protocol or the user's configuration names it.
    Passed,
    /// Only the user's configuration could add it.
    NotListed,
    /// No configuration can add it.
    Never,
}

/// Whether a variable is passed to the agent, given the names in the user's configuration.
pub fn variable_access(agent: AgentKind<'_>, name: &str, named: &[String]) -> VariableAccess {
    let own_variables: &[&str] = match agent.protocol {
        AgentProtocol::CodexExec | AgentProtocol::CodexAppServer => &codex::OWN_VARIABLES,
        AgentProtocol::ClaudeStream => &claude::OWN_VARIABLES,
        AgentProtocol::Acp => acp::profile(agent.name).own_variables,
        AgentProtocol::Plain | AgentProtocol::IdleJsonl => &[],
    };
    let is_listed = PASSED_VARIABLES.contains(&name)
        || own_variables.contains(&name)
        || name.starts_with("LC_")
        || name == "TERM"
        || named.iter().any(|wanted| wanted == name);
    match NEVER_PASSED.contains(&name) || is_loader_variable(name) {
        true => VariableAccess::Never,
        false if is_listed => VariableAccess::Passed,
        false => VariableAccess::NotListed,
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

    use super::*;

    fn names(variables: &Variables) -> Vec<&str> {
        variables.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    fn environment(variables: &[(&str, &str)], named: &[&str]) -> Variables {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let variables = variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let codex = AgentKind { name: "codex", protocol: AgentProtocol::CodexExec };
        agent_environment(codex, variables, &named, "T:0")
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

    #[test]
    fn the_keys_of_one_agent_are_not_passed_to_another() {
        let access = |name, protocol| variable_access(AgentKind { name, protocol }, "OPENAI_API_KEY", &[]);
        assert_eq!(access("codex", AgentProtocol::CodexExec), VariableAccess::Passed);
        assert_eq!(access("mine", AgentProtocol::Plain), VariableAccess::NotListed);
        assert_eq!(access("goose", AgentProtocol::Acp), VariableAccess::Passed);
        assert_eq!(access("gemini", AgentProtocol::Acp), VariableAccess::NotListed);
    }
}
