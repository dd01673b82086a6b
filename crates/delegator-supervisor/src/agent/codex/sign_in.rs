//! Whether Codex can authenticate, decided without using the network.
//!
//! Codex's own configuration names the model provider. Only OpenAI's needs `codex login`; another provider
//! needs the variable that its `env_key` names, or nothing. Measured with 0.166: `codex login status` exits
//! with 0 only if credentials are stored, whatever the provider; `codex exec` uses CODEX_API_KEY, but not
//! OPENAI_API_KEY. With an invalid configuration it prints `Error loading configuration: …`, and no other
//! command works either.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use delegator_domain::text::last_line;
use serde::Deserialize;

use super::home::codex_home;
use super::profile::SIGN_IN_COMMAND;
use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};
use crate::program::exit_and_output;
use crate::variables::{Variables, set_variable};

const OPENAI: &str = "openai";
/// Used instead of stored credentials.
const CREDENTIAL_VARIABLES: [&str; 2] = ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];
const NOT_SIGNED_IN: &str = "Not logged in";
const INVALID_CONFIGURATION: &str = "Error loading config";

#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelProvider {
    OpenAi,
    /// Needs the variable of this name, or nothing.
    Other {
        name: String,
        variable: Option<String>,
    },
}

#[derive(Debug, Default, Deserialize)]
struct ConfigFile {
    profile: Option<String>,
    model_provider: Option<String>,
    #[serde(default)]
    profiles: std::collections::BTreeMap<String, ProfileTable>,
    #[serde(default)]
    model_providers: std::collections::BTreeMap<String, ProviderTable>,
}

#[derive(Debug, Deserialize)]
struct ProfileTable {
    model_provider: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ProviderTable {
    env_key: Option<String>,
    #[serde(default)]
    requires_openai_auth: bool,
}

impl ModelProvider {
    /// The provider in the text of Codex's `config.toml`. An invalid file is Codex's to report.
    fn configured(text: &str) -> ModelProvider {
        let file: ConfigFile = toml::from_str(text).unwrap_or_default();
        let of_profile =
            file.profile.as_ref().and_then(|name| file.profiles.get(name)?.model_provider.clone());
        let name = of_profile.or(file.model_provider).unwrap_or_else(|| OPENAI.to_owned());
        match file.model_providers.get(&name) {
            Some(table) if !table.requires_openai_auth => {
                ModelProvider::Other { name, variable: table.env_key.clone() }
            }
            None if name != OPENAI => ModelProvider::Other { name, variable: None },
            _ => ModelProvider::OpenAi,
        }
    }
}

/// Whether Codex can authenticate, or a problem of its configuration. `environment` are the variables that
/// the agent gets, `caller` those of the caller.
pub(in crate::agent) fn check_sign_in(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    caller: &Variables,
    limit: Duration,
) -> HealthCheck {
    let file = codex_home(environment).map(|home| home.join("config.toml"));
    let args = args.iter().map(OsString::as_os_str).chain(["login", "status"].map(OsStr::new));
    let login = exit_and_output(program, args, environment, limit).ok();
    let problem = login.as_ref().and_then(|(_, output)| configuration_problem(output, file.as_deref()));
    problem.unwrap_or_else(|| {
        let config = file.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        check(&ModelProvider::configured(&config), environment, caller, login.as_ref())
    })
}

/// The problem of Codex's configuration that `codex login status` printed, if it is invalid.
fn configuration_problem(output: &str, file: Option<&Path>) -> Option<HealthCheck> {
    let line = output.lines().find(|line| line.starts_with(INVALID_CONFIGURATION))?;
    let problem: String =
        line.split_once(": ").map_or(line, |(_, problem)| problem).chars().take(400).collect();
    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
    // Codex names the file only if it knows the line.
    let named = if problem.contains(&file) { String::new() } else { format!(" {file}") };
    let message = format!("Codex's configuration{named} is invalid: {problem}");
    Some(HealthCheck {
        subject: HealthSubject::Configuration,
        status: HealthStatus::Problem,
        message,
        suggestion: Some(format!("Correct {file}, then check again.")),
    })
}

/// The finding. `agent` are the variables that an agent gets, `caller` those of the caller; `login` is what
/// `codex login status` reported, if it could be run: whether it succeeded, and its output.
fn check(
    provider: &ModelProvider,
    agent: &Variables,
    caller: &Variables,
    login: Option<&(bool, String)>,
) -> HealthCheck {
    use HealthStatus::{Ok, Problem, Warning};
    let finding = HealthCheck::sign_in;
    match provider {
        ModelProvider::Other { name, variable: None } => {
            finding(Ok, format!("the model provider {name} needs no sign-in"), None)
        }
        ModelProvider::Other { name, variable: Some(variable) } => {
            let setting = format!("[agents.codex] env = [\"{variable}\"]");
            if set_variable(agent, variable).is_some() {
                finding(Ok, format!("{variable} is set, for the model provider {name}"), None)
            } else if set_variable(caller, variable).is_some() {
                let message = format!("the model provider {name} needs {variable}, which agents do not get");
                finding(Problem, message, Some(format!("Add to the configuration: {setting}")))
            } else {
                let message = format!("the model provider {name} needs {variable}, which is not set");
                let suggestion = format!("Set {variable}, and add to the configuration: {setting}");
                finding(Problem, message, Some(suggestion))
            }
        }
        ModelProvider::OpenAi => {
            let credential = CREDENTIAL_VARIABLES.iter().find(|name| set_variable(agent, name).is_some());
            match (credential, login) {
                (Some(variable), _) => finding(Ok, format!("{variable} is set"), None),
                (None, Some((true, _))) => finding(Ok, "Codex is signed in".to_owned(), None),
                (None, Some((false, output))) => {
                    let (message, suggestion) = not_signed_in(output, caller);
                    finding(Problem, message, Some(suggestion))
                }
                (None, None) => finding(
                    Warning,
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
    if set_variable(caller, "OPENAI_API_KEY").is_some() {
        let suggestion = format!("Run: printenv OPENAI_API_KEY | {SIGN_IN_COMMAND} --with-api-key");
        return ("Codex is not signed in; it does not use OPENAI_API_KEY by itself".to_owned(), suggestion);
    }
    ("Codex is not signed in".to_owned(), format!("Run: {SIGN_IN_COMMAND}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(names: &[&str]) -> Variables {
        names.iter().map(|name| (name.into(), "x".into())).collect()
    }

    fn login(is_success: bool, output: &str) -> Option<(bool, String)> {
        Some((is_success, output.to_owned()))
    }

    #[test]
    fn the_provider_is_that_of_the_configuration() {
        let other = |name: &str, variable: Option<&str>| ModelProvider::Other {
            name: name.to_owned(),
            variable: variable.map(str::to_owned),
        };
        let custom = "model_provider = 'mine'\n[model_providers.mine]\nname = 'x'\n";
        for (text, provider) in [
            ("", ModelProvider::OpenAi),
            ("= broken", ModelProvider::OpenAi),
            ("model_provider = 'openai'", ModelProvider::OpenAi),
            ("model_provider = 'ollama'", other("ollama", None)),
            (custom, other("mine", None)),
            (&format!("{custom}env_key = 'KEY'"), other("mine", Some("KEY"))),
            (&format!("{custom}requires_openai_auth = true"), ModelProvider::OpenAi),
            ("profile = 'p'\n[profiles.p]\nmodel_provider = 'lmstudio'", other("lmstudio", None)),
            ("model_provider = 'openai'\n[model_providers.mine]\nname = 'x'", ModelProvider::OpenAi),
        ] {
            assert_eq!(ModelProvider::configured(text), provider, "{text}");
        }
    }

    #[test]
    fn openai_needs_stored_credentials_or_a_variable() {
        let status = |agent: &[&str], login: Option<(bool, String)>| {
            check(&ModelProvider::OpenAi, &variables(agent), &variables(agent), login.as_ref())
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
        let provider = ModelProvider::Other { name: "mine".to_owned(), variable: Some("KEY".to_owned()) };
        let status =
            |agent: &[&str], caller: &[&str]| check(&provider, &variables(agent), &variables(caller), None);
        assert_eq!(status(&["KEY"], &["KEY"]).status, HealthStatus::Ok);
        assert!(status(&[], &["KEY"]).message.contains("which agents do not get"));
        assert!(status(&[], &[]).message.contains("which is not set"));
        let free = ModelProvider::Other { name: "fake".to_owned(), variable: None };
        assert_eq!(check(&free, &variables(&[]), &variables(&[]), None).status, HealthStatus::Ok);
    }
}
