//! Whether an agent is signed in, as far as variables and files show.

use std::path::Path;

use super::profile::{AcpProfile, SignInTraces};
use crate::agent::health::{HealthCheck, HealthStatus};
use crate::variables::{Variables, set_variable, variable};

/// `None` if the agent has ways to sign in that cannot be seen.
pub(in crate::agent) fn check_sign_in(agent: &AcpProfile, environment: &Variables) -> Option<HealthCheck> {
    let SignInTraces { variables, files } = agent.sign_in;
    if files.is_empty() {
        return None;
    }
    let home = variable(environment, "HOME").unwrap_or_default();
    let given = variables.iter().find(|name| set_variable(environment, name).is_some());
    let stored = || files.iter().find(|file| Path::new(home).join(file).is_file());
    let found =
        given.map(|name| format!("{name} is set")).or_else(|| Some(format!("~/{} exists", stored()?)));
    if let Some(found) = found {
        return Some(HealthCheck::sign_in(HealthStatus::Ok, found, None));
    }
    let variables = variables.join(", ");
    let message = format!("no sign-in was found: none of {variables} is set, and no sign-in is stored");
    let suggestion = agent.profile.sign_in_command.map(|command| format!("run '{command}' to sign in"));
    Some(HealthCheck::sign_in(HealthStatus::Warning, message, suggestion))
}

#[cfg(test)]
mod tests {
    use super::super::profiles::acp_profile;
    use super::*;

    #[test]
    fn a_key_or_a_stored_sign_in_is_enough() {
        let temp = tempfile::tempdir().unwrap();
        let home = ("HOME".into(), temp.path().as_os_str().to_owned());
        let check = |more: &[(&str, &str)]| {
            let more = more.iter().map(|(name, value)| (name.into(), value.into()));
            let variables: Variables = [home.clone()].into_iter().chain(more).collect();
            let check = check_sign_in(acp_profile("gemini"), &variables).unwrap();
            (check.status, check.suggestion.is_some())
        };
        assert_eq!(check(&[("GEMINI_API_KEY", "")]), (HealthStatus::Warning, true));
        assert_eq!(check(&[("GEMINI_API_KEY", "k")]), (HealthStatus::Ok, false));
        std::fs::create_dir(temp.path().join(".gemini")).unwrap();
        std::fs::write(temp.path().join(".gemini/oauth_creds.json"), "{}").unwrap();
        assert_eq!(check(&[]), (HealthStatus::Ok, false));
        assert_eq!(check_sign_in(acp_profile("kimi"), &Vec::new()), None);
    }
}
