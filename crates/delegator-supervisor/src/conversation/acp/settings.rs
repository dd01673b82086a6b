//! Settings of a session: modes, models and other options, and the requests that set them.
//!
//! Agents offer the same setting as a mode, as an option with an id, or as an option of a category. A setting
//! that the agent does not offer is left out if the task does not depend on it; otherwise it is requested
//! nevertheless, and the agent's refusal ends the task.

use std::borrow::Cow;

use delegator_transcript::wire::acp::outgoing::{self, ConfigValue};
use delegator_transcript::wire::acp::{ConfigOption, SessionResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcpSetting {
    Mode {
        id: &'static str,
        /// The task depends on it: the agent enforces the mode of the task by it.
        is_required: bool,
    },
    /// Left out if the agent does not offer it.
    Option {
        id: &'static str,
        value: SettingValue,
    },
    /// As the user names it.
    Model(String),
    ReasoningEffort(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    Choice(Cow<'static, str>),
    Switch(bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingRequest {
    Mode(String),
    Model(String),
    Option { id: String, value: SettingValue },
}

impl SettingRequest {
    pub(super) fn write(&self, id: i64, session_id: &str) -> Vec<u8> {
        match self {
            SettingRequest::Mode(mode) => outgoing::set_mode(id, session_id, mode),
            SettingRequest::Model(model) => outgoing::set_model(id, session_id, model),
            SettingRequest::Option { id: option, value } => {
                let value = match value {
                    SettingValue::Choice(value) => ConfigValue::Choice(value),
                    SettingValue::Switch(value) => ConfigValue::Switch(*value),
                };
                outgoing::set_config_option(id, session_id, option, value)
            }
        }
    }
}

/// The requests for the settings that the session does not have yet.
pub(super) fn setting_requests(settings: &[AcpSetting], session: &SessionResult<'_>) -> Vec<SettingRequest> {
    settings.iter().filter_map(|setting| setting_request(setting, session)).collect()
}

fn setting_request(setting: &AcpSetting, session: &SessionResult<'_>) -> Option<SettingRequest> {
    match setting {
        AcpSetting::Mode { id, is_required } => mode_request(id, *is_required, session),
        AcpSetting::Option { id, value } => {
            let option = session.option(id)?;
            let name = match value {
                SettingValue::Choice(value) => value,
                SettingValue::Switch(true) => "true",
                SettingValue::Switch(false) => "false",
            };
            let is_set = option.current.as_ref().is_some_and(|current| *current == *name);
            (!is_set).then(|| SettingRequest::Option { id: (*id).to_owned(), value: value.clone() })
        }
        AcpSetting::Model(model) => {
            let option = session.option("model").or_else(|| session.option_of("model"));
            Some(match option {
                Some(option) => choice(option, model),
                None => SettingRequest::Model(model.clone()),
            })
        }
        AcpSetting::ReasoningEffort(effort) => {
            session.option_of("thought_level").map(|option| choice(option, effort))
        }
    }
}

fn mode_request(mode: &str, is_required: bool, session: &SessionResult<'_>) -> Option<SettingRequest> {
    if session.current_mode.as_ref().is_some_and(|current| *current == *mode) {
        return None;
    }
    let is_offered = session.modes.iter().any(|offered| *offered == *mode);
    let option = session.option_of("mode").filter(|option| {
        let is_current = option.current.as_ref().is_some_and(|current| *current == *mode);
        !is_current && option.values.iter().any(|offered| offered.value == *mode)
    });
    match option {
        _ if is_offered => Some(SettingRequest::Mode(mode.to_owned())),
        Some(option) => Some(choice(option, mode)),
        None => is_required.then(|| SettingRequest::Mode(mode.to_owned())),
    }
}

/// The value that has this id or, as users read it, this name. The agent refuses what it does not know.
fn choice(option: &ConfigOption<'_>, wanted: &str) -> SettingRequest {
    let has_value = option.values.iter().any(|offered| offered.value == *wanted);
    let named = option.values.iter().find(|offered| offered.name == *wanted).filter(|_| !has_value);
    let value = named.map_or(wanted.to_owned(), |offered| offered.value.resolve().into_owned());
    SettingRequest::Option { id: option.id.resolve().into_owned(), value: SettingValue::Choice(value.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(settings: &[AcpSetting], session: &str) -> Vec<String> {
        let requests = setting_requests(settings, &SessionResult::read(session));
        let line = |request: &SettingRequest| String::from_utf8(request.write(1, "s")).unwrap();
        let after = |line: String| line.split_once(r#""method":"session/"#).unwrap().1.to_owned();
        requests.iter().map(line).map(after).collect()
    }

    const OPTIONS: &str = r#"{"configOptions":[
        {"id":"provider","category":"model","type":"select","currentValue":"x","options":[]},
        {"id":"model","category":"model","type":"select","currentValue":"a","options":[{"value":"$a(b)","name":"a"}]},
        {"id":"effort","category":"thought_level","type":"select","options":[{"options":[{"value":"low"}]}]},
        {"id":"auto_approve","type":"boolean","currentValue":false},
        {"id":"mode","category":"mode","type":"select","currentValue":"default","options":[{"value":"plan"}]}]}"#;

    #[test]
    fn settings_are_requested_as_the_agent_offers_them() {
        let settings = [
            AcpSetting::Mode { id: "plan", is_required: false },
            AcpSetting::Mode { id: "default", is_required: false },
            AcpSetting::Option { id: "auto_approve", value: SettingValue::Switch(true) },
            AcpSetting::Option { id: "auto_approve", value: SettingValue::Switch(false) },
            AcpSetting::Option { id: "unknown", value: SettingValue::Choice("on".into()) },
            AcpSetting::Model("a".to_owned()),
            AcpSetting::Model("unknown".to_owned()),
            AcpSetting::ReasoningEffort("low".to_owned()),
        ];
        let option = |id: &str, value: &str| {
            format!(r#"set_config_option","params":{{"sessionId":"s","configId":"{id}",{value}}}}}"#)
        };
        let expected = [
            option("mode", r#""value":"plan""#),
            option("auto_approve", r#""type":"boolean","value":true"#),
            option("model", r#""value":"$a(b)""#),
            option("model", r#""value":"unknown""#),
            option("effort", r#""value":"low""#),
        ];
        assert_eq!(requests(&settings, OPTIONS), expected);
    }

    #[test]
    fn a_mode_that_is_not_offered_is_requested_only_if_the_task_depends_on_it() {
        let session = r#"{"modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"plan"}]}}"#;
        let mode = |id, is_required| requests(&[AcpSetting::Mode { id, is_required }], session);
        let request =
            |mode: &str| vec![format!(r#"set_mode","params":{{"sessionId":"s","modeId":"{mode}"}}}}"#)];
        assert_eq!(mode("plan", false), request("plan"));
        assert_eq!(mode("auto", true), Vec::<String>::new(), "it is set");
        assert_eq!(mode("gone", false), Vec::<String>::new());
        assert_eq!(mode("gone", true), request("gone"));
        assert_eq!(requests(&[AcpSetting::Model("m".to_owned())], session).len(), 1, "by session/set_model");
    }
}
