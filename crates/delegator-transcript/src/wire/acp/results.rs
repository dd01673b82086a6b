//! The agent's answers to our requests.

use crate::json::{Object, Text, Value};

use super::usage::TokenCounts;

/// The answer to `initialize`.
#[derive(Clone, Debug, Default)]
pub struct InitializeResult<'a> {
    /// Absent in goose.
    pub agent_name: Option<Text<'a>>,
    /// `session/resume` is served.
    pub can_resume: bool,
    /// A session may have more directories than one.
    pub can_add_directories: bool,
    /// `_session/steering` is served.
    pub can_steer: bool,
    /// How a user can sign in, as the agent names it.
    pub sign_in_methods: Vec<Text<'a>>,
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Clone, Debug, Default)]
pub struct SessionResult<'a> {
    /// May be absent if the session was loaded.
    pub session_id: Option<Text<'a>>,
    pub modes: Vec<Text<'a>>,
    pub current_mode: Option<Text<'a>>,
    pub config_options: Vec<ConfigOption<'a>>,
}

#[derive(Clone, Debug)]
pub struct ConfigOption<'a> {
    pub id: Text<'a>,
    /// `model`, `mode`, `thought_level`, …
    pub category: Option<Text<'a>>,
    pub current: Option<Text<'a>>,
    pub values: Vec<OptionValue<'a>>,
}

#[derive(Clone, Debug)]
pub struct OptionValue<'a> {
    pub value: Text<'a>,
    /// What a user is shown.
    pub name: Text<'a>,
}

/// The answer to `session/prompt`.
#[derive(Clone, Debug, Default)]
pub struct PromptResult<'a> {
    pub stop_reason: StopReason<'a>,
    pub(crate) usage: Option<TokenCounts>,
    /// The tokens that Gemini CLI counted. Zeros mean that no model answered.
    pub(crate) quota: Option<TokenCounts>,
    /// The turn failed, whatever the stop reason says (codex-acp).
    pub failure: Option<Text<'a>>,
}

/// Why a turn ended. `EndTurn` alone does not prove success.
#[derive(Clone, Debug, Default)]
pub enum StopReason<'a> {
    EndTurn,
    Cancelled,
    /// `max_tokens`, `max_turn_requests`, `refusal`, or an unknown one.
    Other(Text<'a>),
    #[default]
    Missing,
}

impl<'a> InitializeResult<'a> {
    pub fn read(result: &'a str) -> Self {
        let result = Object::read(result);
        let capabilities = result.object("agentCapabilities").unwrap_or_default();
        let session = capabilities.object("sessionCapabilities").unwrap_or_default();
        let steering = || result.object("_meta")?.object("steering")?.first(&["supported"], Value::boolean);
        let method = |method: Value<'a>| {
            let method = method.object()?;
            method.text("name").or_else(|| method.text("id"))
        };
        Self {
            agent_name: result.object("agentInfo").and_then(|info| info.text("name")),
            can_resume: session.object("resume").is_some(),
            can_add_directories: session.object("additionalDirectories").is_some(),
            can_steer: steering().unwrap_or(false),
            sign_in_methods: result.list(&["authMethods"], method),
        }
    }
}

impl<'a> SessionResult<'a> {
    pub fn read(result: &'a str) -> Self {
        let result = Object::read(result);
        let modes = result.object("modes").unwrap_or_default();
        Self {
            session_id: result.text("sessionId"),
            modes: modes.list(&["availableModes"], |mode| mode.object()?.text("id")),
            current_mode: modes.text("currentModeId"),
            config_options: result.list(&["configOptions"], ConfigOption::read),
        }
    }

    pub fn option(&self, id: &str) -> Option<&ConfigOption<'a>> {
        self.config_options.iter().find(|option| option.id == *id)
    }

    pub fn option_of(&self, category: &str) -> Option<&ConfigOption<'a>> {
        let has_category =
            |option: &&ConfigOption<'a>| option.category.as_ref().is_some_and(|c| *c == *category);
        self.config_options.iter().find(has_category)
    }
}

impl<'a> ConfigOption<'a> {
    fn read(option: Value<'a>) -> Option<Self> {
        let option = option.object()?;
        Some(Self {
            id: option.text("id")?,
            category: option.text("category"),
            current: option.first(&["currentValue"], Value::text_or_json),
            values: option_values(&option),
        })
    }
}

/// Values may be in named groups.
fn option_values<'a>(option: &Object<'a>) -> Vec<OptionValue<'a>> {
    let values = |entry: Value<'a>| {
        let entry = entry.object()?;
        Some(match entry.text("value") {
            Some(value) => vec![OptionValue { value, name: entry.text("name").unwrap_or_default() }],
            None => option_values(&entry),
        })
    };
    option.list(&["options"], values).into_iter().flatten().collect()
}

impl<'a> PromptResult<'a> {
    pub fn read(result: &'a str) -> Self {
        let result = Object::read(result);
        let meta = result.object("_meta").unwrap_or_default();
        let quota = || meta.object("quota")?.first(&["token_count"], TokenCounts::read);
        Self {
            stop_reason: match result.text("stopReason") {
                Some(reason) if reason == *"end_turn" => StopReason::EndTurn,
                Some(reason) if reason == *"cancelled" => StopReason::Cancelled,
                Some(reason) => StopReason::Other(reason),
                None => StopReason::Missing,
            },
            usage: result.first(&["usage"], TokenCounts::read),
            quota: quota(),
            failure: session_failure(&meta),
        }
    }
}

/// `_meta.jetbrains.air.sessionFailure`, an extension that codex-acp uses if the client asks for it.
fn session_failure<'a>(meta: &Object<'a>) -> Option<Text<'a>> {
    let failure = meta.object("jetbrains")?.object("air")?.object("sessionFailure")?;
    let is_error = failure.has_text("severity", "error");
    is_error.then(|| failure.text("title").unwrap_or_default())
}

/// Why the running turn does not take a message up, in the agent's word; `None` if it does. Reads the answer
/// to `_session/steering`.
pub fn steering_refusal(result: &str) -> Option<Text<'_>> {
    Some(Object::read(result).text("outcome").unwrap_or_default()).filter(|outcome| *outcome != *"injected")
}
