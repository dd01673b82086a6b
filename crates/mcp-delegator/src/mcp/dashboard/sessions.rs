//! `dashboard sessions`: the browsers that are signed in; `--revoke` and `--revoke-all` end sessions.

use crate::commands::prelude::*;
use crate::commands::sign_in::{Session, Sessions};
use crate::output::data::stored_task::seconds_since;
use crate::output::values::format_age_seconds;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionsInput {
    /// End this session
    #[schemars(length(min = 1, max = 64))]
    pub revoke: Option<String>,
    /// End all sessions
    pub revoke_all: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionList {
    /// The one that was used last comes first.
    pub sessions: Vec<SessionEntry>,
    /// How many this call ended.
    pub revoked_count: usize,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionEntry {
    pub session_id: String,
    /// read, answer or write
    pub scope: &'static str,
    /// How the browser names itself.
    pub device: String,
    pub created_at: UtcTime,
    pub last_used_at: UtcTime,
    /// When it ends unless it is used.
    pub expires_at: UtcTime,
    #[serde(skip)]
    last_used_ms: i64,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "A session ends 12 hours after its last request. One that is revoked ends at once, on every server of this state directory.",
    shape: Shape::List("sessions"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    failures: &[ErrorCode::NotFound],
    examples: &[
        example("mcp-delegator dashboard sessions", "which browsers are signed in"),
        example("mcp-delegator dashboard sessions --revoke-all", "no browser is signed in any more"),
    ],
    input: InputType::with_rules::<SessionsInput>(),
    ..CommandSpec::new::<SessionsInput, SessionList>(
        &["dashboard", "sessions"],
        "List or revoke the sessions of the dashboard",
    )
};

impl InputRules for SessionsInput {
    fn problems(&self) -> Vec<Problem> {
        let are_both_given = self.revoke.is_some() && self.revoke_all;
        are_both_given.then(|| Problem::excluded("revoke", "revoke_all")).into_iter().collect()
    }
}

pub fn run(context: &Context<'_>, input: SessionsInput) -> Result<CommandOutput, AppError> {
    let unknown = || AppError::new(ErrorCode::ConfigInvalid, "The state directory is unknown.");
    let sessions = Sessions::new(context.state_dir.as_deref().ok_or_else(unknown)?);
    let failed = |error| io_error("Reading the sessions", &error);
    let all = sessions.list().map_err(failed)?;
    let is_chosen = |session: &Session| {
        input.revoke_all || input.revoke.as_ref().is_some_and(|id| session.id.as_str() == id)
    };
    let (chosen, rest): (Vec<Session>, Vec<Session>) = all.into_iter().partition(is_chosen);
    if let Some(id) = input.revoke.as_ref().filter(|_| chosen.is_empty()) {
        let error = AppError::new(ErrorCode::NotFound, format!("There is no session {id}."));
        return Err(error.suggest_call("List them with {call}.", NextCall::new(&["dashboard", "sessions"])));
    }
    for session in &chosen {
        sessions.revoke(session).map_err(failed)?;
    }
    if input.revoke_all {
        sessions.forget_address().map_err(failed)?;
    }
    let sessions: Vec<SessionEntry> = rest.iter().map(SessionEntry::of).collect();
    let count = sessions.len();
    let output = CommandOutput::done(SessionList { sessions, revoked_count: chosen.len() });
    Ok(output.fact("count", count))
}

impl SessionEntry {
    fn of(session: &Session) -> SessionEntry {
        SessionEntry {
            session_id: session.id.as_str().to_owned(),
            scope: session.scope.name(),
            device: session.device.clone(),
            created_at: UtcTime::from_ms(session.created_ms),
            last_used_at: UtcTime::from_ms(session.last_used_ms),
            expires_at: UtcTime::from_ms(session.expires_ms()),
            last_used_ms: session.last_used_ms,
        }
    }

    fn row(&self, now_ms: i64) -> Vec<String> {
        let age = format_age_seconds(seconds_since(self.last_used_ms, now_ms));
        vec![self.session_id.clone(), self.scope.to_owned(), format!("{age} ago"), self.device.clone()]
    }
}

impl CommandData for SessionList {
    fn document(&self) -> Document {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let title = match (self.sessions.len(), self.revoked_count) {
            (0, 0) => "No browser is signed in".to_owned(),
            (left, 0) => plural(left, "session"),
            (left, revoked) => format!("{} ended, {left} left", plural(revoked, "session")),
        };
        let rows = self.sessions.iter().map(|session| session.row(now_ms)).collect();
        Document::titled(title).table(&["session", "permits", "last used", "browser"], rows)
    }
}
