//! Whether Claude Code can authenticate: `claude auth status` prints JSON and exits with 0 if it has credentials, without
//! using the network.

use serde::Deserialize;

use super::SIGN_IN_COMMAND;
use crate::agent::environment::Variables;
use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuthStatus {
    logged_in: bool,
    auth_method: Option<String>,
    api_provider: Option<String>,
}

/// Variables with which it authenticates against cloud providers. Agents get them only if the configuration names them.
const CLOUD_PROVIDERS: [&str; 3] =
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// The finding. `status` is whether the command succeeded and what it printed; `caller` are the variables of the caller.
pub(super) fn check(status: Option<(bool, &str)>, caller: &Variables) -> HealthCheck {
    let finding = |status, message: String, suggestion| HealthCheck {
        subject: HealthSubject::SignIn,
        status,
        message,
        suggestion,
    };
    let Some((is_success, output)) = status else {
        let message = "`claude auth status` could not be run".to_owned();
        return finding(HealthStatus::Warning, message, None);
    };
    let printed: AuthStatus = serde_json::from_str(output.trim()).unwrap_or_default();
    if is_success && printed.logged_in {
        let words = [printed.auth_method, printed.api_provider].into_iter().flatten();
        let message = format!("signed in ({})", words.collect::<Vec<_>>().join(", "));
        return finding(HealthStatus::Ok, message, None);
    }
    let provider = CLOUD_PROVIDERS.iter().find(|name| caller.iter().any(|(variable, _)| variable == **name));
    let suggestion = match provider {
        Some(name) => {
            format!("Add {name} and the variables it needs to the configuration: [agents.claude] env")
        }
        None => format!("Run `{SIGN_IN_COMMAND}`, or set ANTHROPIC_API_KEY."),
    };
    finding(HealthStatus::Problem, "not signed in".to_owned(), Some(suggestion))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_status_decides() {
        let none = Variables::new();
        let found = check(
            Some((true, r#"{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty"}"#)),
            &none,
        );
        assert_eq!(
            (found.status, found.message.as_str()),
            (HealthStatus::Ok, "signed in (api_key, firstParty)")
        );
        for status in [(false, r#"{"loggedIn":false,"authMethod":"none"}"#), (true, "text"), (false, "")] {
            let found = check(Some(status), &none);
            assert_eq!(found.status, HealthStatus::Problem);
            assert!(found.suggestion.unwrap().contains("claude auth login"));
        }
        assert_eq!(check(None, &none).status, HealthStatus::Warning);
        let caller = vec![("CLAUDE_CODE_USE_BEDROCK".into(), "1".into())];
        let found = check(Some((false, "{}")), &caller);
        assert!(found.suggestion.unwrap().contains("CLAUDE_CODE_USE_BEDROCK"));
    }
}
