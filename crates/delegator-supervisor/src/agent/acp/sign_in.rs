//! Whether an agent is signed in, as far as variables and files show.

use std::path::Path;

use super::profile::SignIn;
use crate::agent::environment::{Variables, variable};
use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};

/// `None` if the agent has ways to sign in that cannot be seen.
pub(super) fn check(sign_in: &SignIn, environment: &Variables) -> Option<HealthCheck> {
    if sign_in.files.is_empty() {
        return None;
    }
    let is_set = |name: &&&str| variable(environment, name).is_some_and(|value| !value.is_empty());
    let home = variable(environment, "HOME").unwrap_or_default();
    let exists = |file: &&&str| Path::new(home).join(file).is_file();
    let given = sign_in.variables.iter().find(is_set).map(|name| format!("{name} is set"));
    let found = given.or_else(|| sign_in.files.iter().find(exists).map(|file| format!("~/{file} exists")));
    let (status, message, suggestion) = match found {
        Some(found) => (HealthStatus::Ok, found, None),
        None => {
            let variables = sign_in.variables.join(", ");
            let message =
                format!("no sign-in was found: none of {variables} is set, and no sign-in is stored");
            let suggestion = sign_in.command.map(|command| format!("run '{command}' to sign in"));
            (HealthStatus::Warning, message, suggestion)
        }
    };
    Some(HealthCheck { subject: HealthSubject::SignIn, status, message, suggestion })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN_IN: SignIn =
        SignIn { command: Some("tool login"), variables: &["TOOL_KEY"], files: &[".tool/auth.json"] };

    #[test]
    fn a_key_or_a_stored_sign_in_is_enough() {
        let temp = tempfile::tempdir().unwrap();
        let home = ("HOME".into(), temp.path().as_os_str().to_owned());
        let check = |more: &[(&str, &str)]| {
            let more = more.iter().map(|(name, value)| (name.into(), value.into()));
            let variables: Variables = [home.clone()].into_iter().chain(more).collect();
            let check = check(&SIGN_IN, &variables).unwrap();
            (check.status, check.suggestion.is_some())
        };
        assert_eq!(check(&[("TOOL_KEY", "")]), (HealthStatus::Warning, true));
        assert_eq!(check(&[("TOOL_KEY", "k")]), (HealthStatus::Ok, false));
        std::fs::create_dir(temp.path().join(".tool")).unwrap();
        std::fs::write(temp.path().join(".tool/auth.json"), "{}").unwrap();
        assert_eq!(check(&[]), (HealthStatus::Ok, false));
        let unknown = SignIn { files: &[], ..SIGN_IN };
        assert_eq!(super::check(&unknown, &Vec::new()), None);
    }
}
