//! Builds the agent's environment: an allow-list of the submitter's variables, plus the task marker.

use delegator_domain::agents::AgentKind;
use delegator_domain::loader_variables::is_loader_variable;

use super::profiles::profile;
use crate::variables::{MARKER, Variables};

/// Passed unchanged to every agent.
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

/// Never passed, even if the configuration names them: backtraces end up in error messages, and the marker is
/// ours.
const NEVER_PASSED: [&str; 3] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE", MARKER];

/// The variables that the built-in list, the protocol or the user's configuration (`named`) allows.
pub fn allowed_variables(agent: AgentKind<'_>, submitted: &Variables, named: &[String]) -> Variables {
    // `TERM` is set to `dumb`.
    let is_allowed =
        |name: &str| name != "TERM" && variable_access(agent, name, named) == VariableAccess::Passed;
    submitted.iter().filter(|(name, _)| name.to_str().is_some_and(is_allowed)).cloned().collect()
}

pub fn agent_environment(
    agent: AgentKind<'_>,
    submitted: &Variables,
    named: &[String],
    marker: &str,
) -> Variables {
    let mut variables = allowed_variables(agent, submitted, named);
    variables.push(("TERM".into(), "dumb".into()));
    variables.push((MARKER.into(), marker.into()));
    variables.sort();
    variables
}

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
    let is_listed = PASSED_VARIABLES.contains(&name)
        || profile(agent).own_variables.contains(&name)
        || name.starts_with("LC_")
        || name == "TERM"
        || named.iter().any(|wanted| wanted == name);
    if NEVER_PASSED.contains(&name) || is_loader_variable(name) {
        VariableAccess::Never
    } else if is_listed {
        VariableAccess::Passed
    } else {
        VariableAccess::NotListed
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::agents::AgentProtocol;

    use super::*;

    fn names(variables: &Variables) -> Vec<&str> {
        variables.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    fn environment(variables: &[(&str, &str)], named: &[&str]) -> Variables {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let codex = AgentKind { name: "codex", protocol: AgentProtocol::CodexExec };
        agent_environment(codex, &variables, &named, "T:0")
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
    fn the_keys_of_one_agent_are_not_passed_to_another() {
        let access = |name, protocol| variable_access(AgentKind { name, protocol }, "OPENAI_API_KEY", &[]);
        assert_eq!(access("codex", AgentProtocol::CodexExec), VariableAccess::Passed);
        assert_eq!(access("mine", AgentProtocol::Plain), VariableAccess::NotListed);
        assert_eq!(access("goose", AgentProtocol::Acp), VariableAccess::Passed);
        assert_eq!(access("gemini", AgentProtocol::Acp), VariableAccess::NotListed);
    }
}
