//! Whether Codex can authenticate, decided without using the network.
//!
//! Codex's own configuration names the model provider. Only OpenAI's needs `codex login`; another provider needs the
//! variable that its `env_key` names, or nothing. Measured with 0.166: `codex login status` exits with 0 only if
//! credentials are stored, whatever the provider; `codex exec` uses CODEX_API_KEY, but not OPENAI_API_KEY. With an invalid
//! configuration it prints `Error loading configuration: …`, and no other command works either.

use std::path::Path;

use delegator_domain::text::last_line;
use serde::Deserialize;

use super::SIGN_IN_COMMAND;
use crate::agent::environment::Variables;
use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};

const OPENAI: &str = "openai";
/// Used instead of stored credentials.
const CREDENTIAL_VARIABLES: [&str; 2] = ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];
const NOT_SIGNED_IN: &str = "Not logged in";
const INVALID_CONFIGURATION: &str = "Error loading config";

/// What `codex login status` reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginStatus {
    pub(crate) is_success: bool,
    pub(crate) output: String,
}

/// What the configuration says about the model provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Provider {
    /// Needs OpenAI's credentials.
    OpenAi,
    /// Needs the variable of this name, or nothing.
    Other { name: String, variable: Option<String> },
}

#[derive(Debug, Default, Deserialize)]
struct ConfigFile {
    profile: Option<String>,
    model_provider: Option<String>,
    #[serde(default)]
    profiles: std::collections::BTreeMap<String, Profile>,
    #[serde(default)]
    model_providers: std::collections::BTreeMap<String, ProviderTable>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    model_provider: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ProviderTable {
    env_key: Option<String>,
    #[serde(default)]
    requires_openai_auth: bool,
}

impl Provider {
    /// The provider in the text of Codex's `config.toml`. An invalid file is Codex's to report.
    pub(crate) fn configured(text: &str) -> Provider {
        let file: ConfigFile = toml::from_str(text).unwrap_or_default();
        let of_profile =
            file.profile.as_ref().and_then(|name| file.profiles.get(name)?.model_provider.clone());
        let name = of_profile.or(file.model_provider).unwrap_or_else(|| OPENAI.to_owned());
        match file.model_providers.get(&name) {
            Some(table) if !table.requires_openai_auth => {
                Provider::Other { name, variable: table.env_key.clone() }
            }
            None if name != OPENAI => Provider::Other { name, variable: None },
            _ => Provider::OpenAi,
        }
    }
}

/// The problem of Codex's configuration that `codex login status` printed, if it is invalid.
pub(crate) fn configuration_problem(output: &str, file: Option<&Path>) -> Option<HealthCheck> {
    let line = output.lines().find(|line| line.starts_with(INVALID_CONFIGURATION))?;
    let problem: String =
        line.split_once(": ").map_or(line, |(_, problem)| problem).chars().take(400).collect();
    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
    // Codex names the file only if it knows the line.
    let message = match problem.contains(&file) {
        true => format!("Codex's configuration is invalid: {problem}"),
        false => format!("Codex's configuration {file} is invalid: {problem}"),
    };
    Some(HealthCheck {
        subject: HealthSubject::Configuration,
        status: HealthStatus::Problem,
        message,
        suggestion: Some(format!("Correct {file}, then check again.")),
    })
}

/// The finding. `agent` are the variables that an agent gets, `caller` those of the caller; `login` is what
/// `codex login status` reported, if it could be run.
pub(crate) fn check(
    provider: &Provider,
    agent: &Variables,
    caller: &Variables,
    login: Option<&LoginStatus>,
) -> HealthCheck {
    let finding = |status, message: String, suggestion: Option<String>| HealthCheck {
        subject: HealthSubject::SignIn,
        status,
        message,
        suggestion,
    };
    let ok = |message: String| finding(HealthStatus::Ok, message, None);
    match (provider, login) {
        (Provider::Other { name, variable: None }, _) => {
            ok(format!("the model provider {name} needs no sign-in"))
        }
        (Provider::Other { name, variable: Some(variable) }, _) if is_set(agent, variable) => {
            ok(format!("{variable} is set, for the model provider {name}"))
        }
        (Provider::Other { name, variable: Some(variable) }, _) if is_set(caller, variable) => finding(
            HealthStatus::Problem,
            format!("the model provider {name} needs {variable}, which agents do not get"),
            Some(format!("Add to the configuration: [agents.codex] env = [\"{variable}\"]")),
        ),
        (Provider::Other { name, variable: Some(variable) }, _) => finding(
            HealthStatus::Problem,
            format!("the model provider {name} needs {variable}, which is not set"),
            Some(format!(
                "Set {variable}, and add to the configuration: [agents.codex] env = [\"{variable}\"]"
            )),
        ),
        (Provider::OpenAi, login) => {
            match (CREDENTIAL_VARIABLES.iter().find(|name| is_set(agent, name)), login) {
                (Some(variable), _) => ok(format!("{variable} is set")),
                (None, Some(login)) if login.is_success => ok("Codex is signed in".to_owned()),
                (None, Some(login)) => {
                    let (message, suggestion) = not_signed_in(&login.output, caller);
                    finding(HealthStatus::Problem, message, Some(suggestion))
                }
                (None, None) => finding(
                    HealthStatus::Warning,
                    "`codex login status` could not be run".to_owned(),
                    Some(format!("Run: {SIGN_IN_COMMAND} status")),
                ),
            }
        }
    }
}

fn not_signed_in(output: &str, caller: &Variables) -> (String, String) {
    if let Some(shown) = last_line(output, 200).filter(|_| !output.contains(NOT_SIGNED_IN)) {
        return (
            format!("`codex login status` failed: {shown}"),
            "Correct that, then check again.".to_owned(),
        );
    }
    if is_set(caller, "OPENAI_API_KEY") {
        let suggestion = format!("Run: printenv OPENAI_API_KEY | {SIGN_IN_COMMAND} --with-api-key");
        return ("Codex is not signed in; it does not use OPENAI_API_KEY by itself".to_owned(), suggestion);
    }
    ("Codex is not signed in".to_owned(), format!("Run: {SIGN_IN_COMMAND}"))
}

fn is_set(variables: &Variables, wanted: &str) -> bool {
    variables.iter().any(|(name, value)| name == wanted && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(names: &[&str]) -> Variables {
        names.iter().map(|name| (name.into(), "x".into())).collect()
    }

    fn login(is_success: bool, output: &str) -> Option<LoginStatus> {
        Some(LoginStatus { is_success, output: output.to_owned() })
    }

    #[test]
    fn the_provider_is_that_of_the_configuration() {
        let other = |name: &str, variable: Option<&str>| Provider::Other {
            name: name.to_owned(),
            variable: variable.map(str::to_owned),
        };
        let custom = "model_provider = 'mine'\n[model_providers.mine]\nname = 'x'\n";
        for (text, provider) in [
            ("", Provider::OpenAi),
            ("= broken", Provider::OpenAi),
            ("model_provider = 'openai'", Provider::OpenAi),
            ("model_provider = 'ollama'", other("ollama", None)),
            (custom, other("mine", None)),
            (&format!("{custom}env_key = 'KEY'"), other("mine", Some("KEY"))),
            (&format!("{custom}requires_openai_auth = true"), Provider::OpenAi),
            ("profile = 'p'\n[profiles.p]\nmodel_provider = 'lmstudio'", other("lmstudio", None)),
            ("model_provider = 'openai'\n[model_providers.mine]\nname = 'x'", Provider::OpenAi),
        ] {
            assert_eq!(Provider::configured(text), provider, "{text}");
        }
    }

    #[test]
    fn openai_needs_stored_credentials_or_a_variable() {
        let status = |agent: &[&str], login: Option<LoginStatus>| {
            check(&Provider::OpenAi, &variables(agent), &variables(agent), login.as_ref())
        };
        assert_eq!(status(&["CODEX_API_KEY"], login(false, "Not logged in\n")).status, HealthStatus::Ok);
        assert_eq!(status(&[], login(true, "Logged in using ChatGPT\n")).status, HealthStatus::Ok);
        let missing = status(&[], login(false, "Not logged in\n"));
        assert_eq!(
            (missing.status, missing.suggestion.as_deref()),
            (HealthStatus::Problem, Some("Run: codex login"))
        );
        let with_key = status(&["OPENAI_API_KEY"], login(false, "Not logged in\n"));
        assert!(with_key.suggestion.unwrap().contains("codex login --with-api-key"));
        let broken = status(&[], login(false, "WARNING: x\nError: the disk is full\n"));
        assert!(broken.message.contains("the disk is full"), "{broken:?}");
    }

    #[test]
    fn an_invalid_configuration_is_reported_with_the_file_and_the_message_of_codex() {
        let message = |output: &str| {
            configuration_problem(output, Some(Path::new("/c/config.toml"))).map(|found| found.message)
        };
        let output = "WARNING: x\nError loading configuration: /c/config.toml:1:5: extra `=`\n";
        let expected = "Codex's configuration is invalid: /c/config.toml:1:5: extra `=`";
        assert_eq!(message(output).as_deref(), Some(expected));
        let output = "Error loading configuration: Model provider `x` not found\n";
        let expected = "Codex's configuration /c/config.toml is invalid: Model provider `x` not found";
        assert_eq!(message(output).as_deref(), Some(expected));
        assert_eq!(message("Not logged in\n"), None);
    }

    #[test]
    fn another_provider_needs_its_variable_only() {
        let provider = Provider::Other { name: "mine".to_owned(), variable: Some("KEY".to_owned()) };
        let status =
            |agent: &[&str], caller: &[&str]| check(&provider, &variables(agent), &variables(caller), None);
        assert_eq!(status(&["KEY"], &["KEY"]).status, HealthStatus::Ok);
        assert!(status(&[], &["KEY"]).message.contains("which agents do not get"));
        assert!(status(&[], &[]).message.contains("which is not set"));
        let free = Provider::Other { name: "fake".to_owned(), variable: None };
        assert_eq!(check(&free, &variables(&[]), &variables(&[]), None).status, HealthStatus::Ok);
    }
}
